"""margrove compare: the learners, how tables are read, the output."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest

from margrove.workbench.workflow import BASELINE, compared_learners

QUICK = ("--learner", "tree", "--folds", "2")


def names_in(out):
    return {entry["learner"] for entry in json.loads(out)["learners"]}


def test_all_families_take_part_and_the_best_is_named(run) -> None:
    code, out, _ = run("compare", "--data", "iris", "--folds", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert names_in(out) == {BASELINE, *compared_learners("classification")}
    scores = [entry["score"] for entry in found["learners"]]
    assert scores == sorted(scores, reverse=True)
    assert found["winner"] == found["learners"][0]["learner"]
    assert all(entry["low"] <= entry["score"] <= entry["high"] for entry in found["learners"])
    assert found["seed"] == 0


def test_numbers_are_compared_by_r2(run) -> None:
    code, out, _ = run("compare", "--data", "diabetes", *QUICK, "--learner", "forest", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["score"] == "r2"
    assert names_in(out) == {BASELINE, "tree", "forest"}
    assert found["winner"] == "forest"


@pytest.mark.parametrize("data", ["play_tennis", "boosting_points"])
def test_built_in_data_as_a_table_for_people(data, run) -> None:
    code, out, err = run("compare", "--data", data, *QUICK)
    assert code == 0
    assert "tree" in out
    assert "2-fold cross-validation, seed 0" in out
    assert "read as" in err


@pytest.mark.parametrize("name", ["iris.csv", "iris.tsv", "iris.parquet", "iris.jsonl"])
def test_all_formats_give_the_same(name, folder, run) -> None:
    code, out, _ = run("compare", name, *QUICK, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["target"] == "species"
    assert found["rows"] == 150
    expected = json.loads(run("compare", "iris.csv", *QUICK, "--json")[1])
    assert [e["score"] for e in found["learners"]] == [e["score"] for e in expected["learners"]]


def test_the_same_seed_gives_the_same_answer(folder, run) -> None:
    def scores(seed):
        out = run("compare", "iris.csv", *QUICK, "--seed", seed, "--json")[1]
        return [(entry["learner"], entry["score"]) for entry in json.loads(out)["learners"]]

    assert scores(3) == scores(3)
    assert scores(3) != scores(4)


def test_a_test_part_in_place_of_folds(folder, run) -> None:
    code, out, _ = run(
        "compare", "iris.csv", "--learner", "tree", "--test-size", "0.4", "--json", "--score",
        "accuracy",
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0
    assert (found["folds"], found["test_size"]) == (None, 0.4)
    assert found["score"] == "accuracy"


def test_types_can_be_overridden(folder, run) -> None:
    _, _, err = run("compare", "iris.csv", *QUICK, "--type", "width=category", "--ignore", "seen")
    line = next(line for line in err.splitlines() if "width" in line)
    assert "category" in line
    assert not any(re.match(r"\s*seen\s", line) for line in err.splitlines())


def test_quiet_prints_the_result_alone(folder, run) -> None:
    code, out, err = run("compare", "iris.csv", *QUICK, "--quiet")
    assert (code, err) == (0, "")
    assert "tree" in out


def test_missing_values_are_recognised(tmp_path, run) -> None:
    lines = ["a,b,y"] + [
        f"{'NA' if i % 7 == 0 else i},{'?' if i % 5 == 0 else i * 2},{i % 2}" for i in range(60)
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    code, _, err = run("compare", tmp_path / "t.csv", *QUICK)
    assert code == 0
    assert re.search(r"a\s+number\s+9", err)
    assert re.search(r"b\s+number\s+12", err)


def test_classes_of_few_rows_are_named(tmp_path, run) -> None:
    lines = ["a,y"] + [f"{i},{i % 25}" for i in range(500)] + ["1,99", "2,99"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    code, out, err = run("compare", tmp_path / "t.csv", "--learner", "tree")
    assert code == 0
    assert "26 classes" in out
    assert "5-fold" in out
    assert "1 of 26 classes have fewer rows than there are folds, such as '99' with 2" in err


def test_a_learner_without_time_is_marked(folder, run) -> None:
    arguments = ("--data", "digits", "--learner", "boosting", "--folds", "2", "--max-time", "0.001")
    found = json.loads(run("compare", *arguments, "--json")[1])
    assert {e["learner"]: e["stopped_early"] for e in found["learners"]} == {
        "boosting": True,
        BASELINE: False,
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
    binary = pl.DataFrame({"a": [b"\xff\xfe", b"\x00"], "y": ["p", "q"]})
    binary.write_parquet(folder / "binary.parquet")
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty.csv"], "empty.csv"),
        (["header.csv"], "rows"),
        (["one_column.csv"], "column"),
        (["ragged.csv"], "line 3|line 4"),
        (["constant.csv"], "'x'"),
        (["rare.csv"], "class 'y' of 'b' has one row only"),
        (["no_labels.csv"], "'b'"),
        (["broken.parquet"], "broken.parquet"),
        (["binary.parquet"], "'a'"),
        (["bytes.csv"], "bytes.csv"),
        (["data.xlsx"], "data.xlsx"),
        (["folder.csv"], "director|folder"),
        (["missing.csv"], "does not exist"),
        (["constant.csv", "--target", "nope"], "no column 'nope'"),
        (["--data", "nope"], "no built-in data set 'nope'"),
        (["--folds", "1"], "folds"),
        (["--folds", "2", "--test-size", "0.5"], "not both"),
        (["constant.csv", "--data", "iris"], "not both"),
        (["--data", "iris", "--type", "x=colour"], "--type needs COLUMN=TYPE"),
        (["--data", "iris", "--score", "beauty"], "beauty"),
        (["--data", "iris", "--score", "f1_macro", "--test-size", "0.5"], "Use --folds"),
        (["--data", "diabetes", "--learner", "perceptron"], "no perceptron for regression"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    arguments, message, tmp_path, refused, monkeypatch
) -> None:
    monkeypatch.chdir(bad_files(tmp_path))
    assert re.search(message, refused("compare", *arguments, "--quiet"))


def test_escape_sequences_in_names_are_shown_not_obeyed(tmp_path, refused) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,\x1b[31mred\n1,x\n2,x\n")
    err = refused("compare", path, "--quiet")
    assert "\x1b" not in err
    assert r"\x1b[31mred" in err


def test_markup_in_names_is_text(tmp_path, run) -> None:
    path = tmp_path / "[bold]x.csv"
    path.write_text("a,b\n" + "\n".join(f"{i},{i % 2}" for i in range(20)))
    assert "[bold]x.csv" in run("compare", path, *QUICK)[1]
