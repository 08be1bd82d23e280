"""The doctor at the command line: files, JSON, exit codes, no tracebacks."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

from margrove.cli import main
from margrove.datasets import load_iris


def run(*arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["doctor", *arguments])
    out, err = capsys.readouterr()
    return stopped.value.code, out, err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    X, y = load_iris(return_X_y=True)
    frame = pl.DataFrame(
        {
            "number": np.arange(150),
            "length": [None if i % 10 == 0 else v for i, v in enumerate(X[:, 2])],
            "soil": ["clay" if v > 3 else "sand" for v in X[:, 1]],
            "code": [f"c{k}" for k in y],
            "species": [f"iris-{k}" for k in y],
        }
    )
    frame.write_csv(tmp_path / "iris.csv")
    frame.write_csv(tmp_path / "iris.tsv", separator="\t")
    frame.write_parquet(tmp_path / "iris.parquet")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("a,b\n")
    (tmp_path / "one_column.csv").write_text("a\n1\n2\n")
    (tmp_path / "no_labels.csv").write_text("a,b\n1,\n2,\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really")
    (tmp_path / "data.xlsx").write_text("x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["iris.csv", "iris.tsv", "iris.parquet"])
def test_a_file_is_looked_over(name, folder, capsys) -> None:
    code, out, err = run(name, "--target", "species", "--no-estimate", capsys=capsys)
    assert code == 0
    assert err == ""
    assert f"{name}, target 'species'" in out
    assert "150 rows, 4 columns (2 of labels); the target has 3 classes" in out
    assert "Column 'code' is the target under other names" in out
    assert "Column 'number' has a different value in each of the 150 rows" in out
    assert out.index("critical (leak)") < out.index("warning (id_column)")


def test_advice_is_that_of_commands(folder, capsys) -> None:
    code, out, _ = run("--no-estimate", capsys=capsys)
    assert code == 0
    assert "scale columns automatically" in " ".join(out.split())
    assert "sklearn" not in out
    out = " ".join(run("iris.csv", "--no-estimate", capsys=capsys)[1].split())
    assert "leave it out: --ignore code." in out
    assert "--ignore number; or, if it names the rows, use --id number." in out


def test_json_says_the_same(folder, capsys) -> None:
    code, out, _ = run("iris.csv", "--json", "--no-estimate", capsys=capsys)
    assert code == 0
    document = json.loads(out)
    assert document["task"] == "classification"
    assert not document["healthy"]
    assert {"leak", "id_column", "missing_values"} <= {
        finding["kind"] for finding in document["findings"]
    }
    assert document["estimates"] == []


def test_estimates_are_shown(folder, capsys) -> None:
    code, out, _ = run("iris.csv", "--probe-seconds", "0.01", "--json", capsys=capsys)
    assert code == 0
    names = {cost["estimator"] for cost in json.loads(out)["estimates"]}
    assert {"SVC", "RandomForestClassifier", "Perceptron"} <= names
    code, out, _ = run("--data", "iris", "--probe-seconds", "0.01", capsys=capsys)
    assert code == 0
    assert "A fit of all rows on this machine takes about" in out


def test_built_in_data(capsys) -> None:
    code, out, _ = run("--data", "play_tennis", "--no-estimate", capsys=capsys)
    assert code == 0
    assert "14 rows, 4 columns (4 of labels); the target has 2 classes" in out
    code, out, _ = run("--no-estimate", capsys=capsys)
    assert code == 0
    assert "'worst area'" in out


def test_the_task_can_be_chosen(folder, capsys) -> None:
    arguments = ("iris.csv", "--target", "number", "--no-estimate", "--json")
    assert json.loads(run(*arguments, capsys=capsys)[1])["task"] == "regression"
    chosen = run(*arguments, "--task", "classification", capsys=capsys)
    assert json.loads(chosen[1])["task"] == "classification"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("one_column.csv", "no columns"),
        ("no_labels.csv", "2 of 2 rows (100 %) have no target"),
    ],
)
def test_hardly_any_table_is_a_finding(name, found, folder, capsys) -> None:
    code, out, err = run(name, capsys=capsys)
    assert (code, err) == (0, "")
    assert found in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty.csv"], "empty.csv"),
        (["header.csv"], "no rows"),
        (["broken.parquet"], "was cut off"),
        (["data.xlsx"], "ends in '.xlsx'"),
        (["missing.csv"], "does not exist"),
        (["iris.csv", "--target", "nope"], "no column 'nope'.*columns are number, length"),
        (["iris.csv", "--task", "clustering"], "clustering"),
        (["iris.csv", "--task", "regression"], "contains labels"),
        (["iris.csv", "--folds", "1"], "folds"),
        (["iris.csv", "--probe-seconds", "0"], "probe-seconds"),
        (["--data", "nope"], "no built-in data set 'nope'"),
        (["--target", "b"], "no column 'b'"),
        (["iris.csv", "--data", "iris"], "not both"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(arguments, message, folder, capsys) -> None:
    code, out, err = run(*arguments, capsys=capsys)
    assert code == 2
    assert out == ""
    assert err.startswith("margrove: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err


def test_an_interrupt_is_exit_code_130(capsys, monkeypatch) -> None:
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("margrove.workbench.doctor.doctor", interrupted)
    code, _, err = run("--data", "iris", capsys=capsys)
    assert code == 130
    assert err.strip() == "margrove: interrupted"


def test_escape_sequences_in_files_are_shown_not_obeyed(folder, capsys) -> None:
    path = folder / "odd\x1b[31m.csv"
    lines = ["a,\x1b[31mred,y"] + [f"{i},{i % 3},\x1b[3{i % 2}mc{i % 2}" for i in range(40)]
    path.write_text("\n".join(lines))
    code, out, _ = run(str(path), "--no-estimate", capsys=capsys)
    assert code == 0
    assert "\x1b" not in out


def test_the_system(capsys) -> None:
    from margrove._runtime import kernel_source

    status, out, _ = run("--system", capsys=capsys)
    assert status == 0
    assert f"numpy {np.__version__}" in out
    assert kernel_source().reason in out
    status, out, _ = run("--system", "--json", capsys=capsys)
    found = json.loads(out)
    assert found["versions"]["numpy"] == np.__version__
    assert found["kernels"] == kernel_source().level
    assert found["cores"] >= 1
