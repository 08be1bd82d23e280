"""The command line as a person uses it: good input, bad input, exit codes, no tracebacks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date, timedelta

import polars as pl
import pytest

from margrove import __version__
from margrove.cli import main
from margrove.cli.compare import _wilson_interval
from margrove.datasets import load_iris


def run(*arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    out, err = capsys.readouterr()
    return stopped.value.code, out, err


@pytest.fixture
def table(tmp_path):
    X, y = load_iris(return_X_y=True)
    frame = pl.DataFrame(
        {
            "width": X[:, 1],
            "length": [None if i % 10 == 0 else v for i, v in enumerate(X[:, 2])],
            "soil": ["clay" if v > 3 else "sand" for v in X[:, 1]],
            "seen": [date(2020, 1, 1) + timedelta(days=i % 30) for i in range(150)],
            "species": [f"iris-{k}" for k in y],
        }
    )
    frame.write_csv(tmp_path / "iris.csv")
    frame.write_csv(tmp_path / "iris.tsv", separator="\t")
    frame.write_parquet(tmp_path / "iris.parquet")
    return tmp_path


def test_version_and_help(capsys) -> None:
    assert run("--version", capsys=capsys)[:2] == (0, f"margrove {__version__}\n")
    code, out, _ = run("--help", capsys=capsys)
    assert code == 0
    assert "compare" in out
    assert run("compare", "--help", capsys=capsys)[0] == 0


def test_module_and_script_are_the_same_program() -> None:
    for command in ([sys.executable, "-m", "margrove"], [f"{sys.prefix}/bin/margrove"]):
        out = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert out.stdout == f"margrove {__version__}\n"


@pytest.mark.parametrize("data", ["iris", "play_tennis", "boosting_points"])
def test_compare_on_built_in_data(data, capsys) -> None:
    code, out, _ = run("compare", "--data", data, capsys=capsys)
    assert code == 0
    assert data in out
    assert "KernelPerceptron" in out
    assert "95 % interval" in out
    assert "seed 0" in out


@pytest.mark.parametrize("name", ["iris.csv", "iris.tsv", "iris.parquet"])
def test_compare_on_a_file(name, table, capsys) -> None:
    code, out, err = run(
        "compare", str(table / name), "--json", "--target", "species", capsys=capsys
    )
    assert code == 0
    assert err == ""
    results = json.loads(out)
    best = results[0]
    assert best["accuracy"] == max(r["accuracy"] for r in results)
    assert all(r["low"] <= r["accuracy"] <= r["high"] for r in results)
    baseline = next(r for r in results if "largest class" in r["learner"])
    assert baseline["accuracy"] == pytest.approx(1 / 3)
    assert best["low"] > baseline["high"]


def test_the_same_seed_gives_the_same_answer(table, capsys) -> None:
    runs = [json.loads(run("compare", "--json", "--seed", "5", capsys=capsys)[1]) for _ in range(2)]
    for first, second in zip(*runs, strict=True):
        assert {k: v for k, v in first.items() if "seconds" not in k} == {
            k: v for k, v in second.items() if "seconds" not in k
        }


def bad_files(folder):
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("a,b\n")
    (folder / "one_column.csv").write_text("a\n1\n2\n")
    (folder / "ragged.csv").write_text('a,b\n1,2\n3,4,5,6\n"')
    (folder / "constant.csv").write_text("a,b\n1,x\n2,x\n")
    (folder / "rare.csv").write_text("a,b\n1,x\n2,x\n3,y\n")
    (folder / "no_labels.csv").write_text("a,b\n1,\n2,\n")
    (folder / "broken.parquet").write_bytes(b"PAR1 not really")
    (folder / "bytes.csv").write_bytes(b"\xff\xfe\x00\x01" * 10)
    (folder / "data.xlsx").write_text("x")
    (folder / "folder.csv").mkdir()
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty.csv"], "empty.csv"),
        (["header.csv"], "0 rows"),
        (["one_column.csv"], "1 columns"),
        (["ragged.csv"], "could not be read"),
        (["constant.csv"], "one class only, 'x'"),
        (["rare.csv"], "class 'y' of 'b' has one row only"),
        (["no_labels.csv"], "target column 'b' of .* is empty"),
        (["broken.parquet"], "could not be read"),
        (["bytes.csv"], "bytes.csv"),
        (["data.xlsx"], "is not a .csv"),
        (["folder.csv"], "is a directory"),
        (["missing.csv"], "does not exist"),
        (["constant.csv", "--target", "nope"], "no column 'nope'.*columns are a, b"),
        (["--data", "nope"], "no built-in data set 'nope'"),
        (["--data", "diabetes"], "is a quantity"),
        (["--folds", "1"], "folds"),
        (["--target", "b"], "--target is for a FILE"),
        (["constant.csv", "--data", "iris"], "not both"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    arguments, message, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(bad_files(tmp_path))
    code, out, err = run("compare", *arguments, capsys=capsys)
    assert code == 2
    assert out == ""
    assert err.startswith("margrove: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err

    assert re.search(message, err), err


def test_no_arguments_show_the_help(capsys) -> None:
    code, out, _ = run(capsys=capsys)
    assert code == 0
    assert out.count("\n") > 5


def test_missing_values_are_recognised_and_the_reading_is_shown(tmp_path, capsys) -> None:
    lines = ["a,b,y"] + [
        f"{'NA' if i % 7 == 0 else i},{'?' if i % 5 == 0 else i * 2},{i % 2}" for i in range(60)
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    code, out, _ = run("compare", str(tmp_path / "t.csv"), capsys=capsys)
    assert code == 0
    assert "60 rows, 2 numeric features, 2 classes" in out


def test_types_may_widen_late_in_a_file(tmp_path, capsys) -> None:
    lines = ["a,y"] + [f"{i if i < 10_500 else i + 0.5},{'xy'[i % 2]}" for i in range(10_600)]
    (tmp_path / "LATE.CSV").write_text("\n".join(lines))
    code, out, _ = run(
        "compare", str(tmp_path / "LATE.CSV"), "--max-time", "0.2", "--folds", "2", capsys=capsys
    )
    assert code == 0
    assert "at most 0.2 s a fit" in out


def test_binary_columns_are_one_line(tmp_path, capsys) -> None:
    pl.DataFrame({"a": [b"\xff\xfe", b"\x00"], "y": ["p", "q"]}).write_parquet(
        tmp_path / "b.parquet"
    )
    code, _, err = run("compare", str(tmp_path / "b.parquet"), capsys=capsys)
    assert code == 2
    assert "Column 'a' holds Binary" in err


def test_many_integer_classes_are_classes_and_few_rows_mean_few_folds(tmp_path, capsys) -> None:
    lines = ["a,y"] + [f"{i},{i % 25}" for i in range(500)] + ["1,99", "2,99"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    code, out, err = run("compare", str(tmp_path / "t.csv"), "--max-time", "0.1", capsys=capsys)
    assert code == 0
    assert "26 classes" in out
    assert "Only 2 folds instead of 5: the class '99'" in err


def test_an_interrupt_shows_what_is_known(capsys, monkeypatch) -> None:
    from margrove.cli import compare

    def interrupted(*args, **kwargs):
        yield compare.Result("the first", 0.9, 0.8, 0.95, 0.1)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "_results", interrupted)
    code, out, _ = run("compare", capsys=capsys)
    assert code == 130
    assert "the first" in out


def test_unknown_commands(capsys) -> None:
    code, _, err = run("grow", capsys=capsys)
    assert code == 2
    assert "No such command 'grow'" in err


def test_escape_sequences_in_names_are_shown_not_obeyed(tmp_path, capsys) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,\x1b[31mred\n1,x\n2,x\n")
    code, _, err = run("compare", str(path), capsys=capsys)
    assert code == 2
    assert "\x1b" not in err
    assert r"\x1b[31mred" in err


def test_markup_in_names_is_text(tmp_path, capsys) -> None:
    path = tmp_path / "[bold]x.csv"
    path.write_text("a,b\n" + "\n".join(f"{i},{i % 2}" for i in range(20)))
    assert "[bold]x.csv" in run("compare", str(path), capsys=capsys)[1]


def test_without_polars_the_message_says_what_to_install(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    code, _, err = run("compare", str(tmp_path / "t.csv"), capsys=capsys)
    assert code == 2
    assert "pip install 'margrove[data]'" in err


def test_an_interrupt_is_exit_code_130(capsys, monkeypatch) -> None:
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("margrove.cli.compare._results", interrupted)
    code, _, err = run("compare", capsys=capsys)
    assert code == 130
    assert err.strip() == "margrove: interrupted"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m margrove compare --data iris | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_warmup(capsys) -> None:
    code, out, _ = run("warmup", capsys=capsys)
    assert code == 0
    assert "All kernels are ready" in out


def test_the_interval_is_wilsons() -> None:
    """Against the textbook's worked values, and sensible at the edges."""
    low, high = _wilson_interval(45, 50)
    assert low == pytest.approx(0.7864, abs=1e-4)
    assert high == pytest.approx(0.9565, abs=1e-4)
    assert _wilson_interval(0, 10)[0] == 0.0
    assert _wilson_interval(10, 10)[1] == pytest.approx(1.0)
