"""From a raw table to a model file, and from the file to predictions for another raw table."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest

import margrove
from margrove.workbench.workflow import compared_learners

FIT = ("fit", "iris.csv", "--id", "flower", "--quiet")


def predictions_of(out):
    return pl.read_csv(io.StringIO(out))


@pytest.mark.parametrize("learner", compared_learners("classification"))
def test_every_learner_goes_from_table_to_predictions(learner, folder, run, iris_frame) -> None:
    assert run(*FIT, "--learner", learner, "-o", "m.margrove")[0] == 0
    code, out, err = run("predict", "m.margrove", "iris.parquet", "--quiet")
    found = predictions_of(out)
    assert (code, err) == (0, "")
    assert found.columns[:2] == ["flower", "predicted species"]
    assert found["flower"].to_list() == iris_frame["flower"].to_list()
    right = (found["predicted species"] == iris_frame["species"]).mean()
    assert right > 0.8
    shares = found.select(pl.selectors.starts_with("probability of iris-"))
    if shares.width:
        assert shares.width == 3
        np.testing.assert_allclose(shares.sum_horizontal(), 1.0, atol=1e-9)


@pytest.mark.parametrize("learner", ["perceptron", "linear-svm", "svm"])
def test_machines_get_probabilities_by_calibration(learner, folder, run) -> None:
    assert run(*FIT, "--learner", learner, "--calibrate", "-o", "m.margrove")[0] == 0
    found = predictions_of(run("predict", "m.margrove", "iris.csv", "--quiet")[1])
    shares = found.select(pl.selectors.starts_with("probability of iris-"))
    np.testing.assert_allclose(shares.sum_horizontal(), 1.0, atol=1e-9)
    best = np.array([name[len("probability of ") :] for name in shares.columns])
    assert (best[shares.to_numpy().argmax(axis=1)] == found["predicted species"].to_numpy()).all()
    assert run("explain", "m.margrove", "iris.csv", "--row", "0", "--quiet")[0] == 0


def test_numbers_have_no_probabilities(tmp_path, refused) -> None:
    arguments = ("--data", "diabetes", "--learner", "tree", "--calibrate", "--quiet")
    assert "--calibrate needs a classification" in refused(
        "fit", *arguments, "-o", tmp_path / "m.margrove"
    )


def test_columns_are_found_by_name(folder, run, iris_frame) -> None:
    assert run(*FIT, "--learner", "tree", "-o", "m.margrove")[0] == 0
    expected = run("predict", "m.margrove", "iris.csv", "--quiet")[1]
    turned = iris_frame.select(reversed(iris_frame.columns)).with_columns(more=pl.lit(1))
    turned.write_csv("turned.csv")
    assert run("predict", "m.margrove", "turned.csv", "--quiet")[1] == expected


def test_a_missing_column_is_named(folder, run, refused, iris_frame) -> None:
    assert run(*FIT, "--learner", "tree", "-o", "m.margrove")[0] == 0
    iris_frame.drop("soil").write_csv("less.csv")
    assert "soil" in refused("predict", "m.margrove", "less.csv", "--quiet")


def test_numbers_have_intervals(tmp_path, run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    fit = ("fit", "--data", "diabetes", "--learner", "forest", "-o", "m.margrove", "--quiet")
    assert run(*fit)[0] == 0
    code, out, _ = run("predict", "m.margrove", "--data", "diabetes", "--confidence", "0.8")
    found = predictions_of(out)
    assert code == 0
    assert found.columns == ["predicted target", "low", "high"]
    inside = (found["low"] <= found["predicted target"]) & (
        found["predicted target"] <= found["high"]
    )
    assert inside.mean() > 0.95


def test_without_a_learner_the_winner_is_saved_and_scores_are_of_unseen_rows(folder, run) -> None:
    code, out, _ = run("fit", "iris.csv", "--ignore", "flower", "--json", "--max-time", "1")
    found = json.loads(out)
    assert code == 0
    assert found["file"] == "iris.margrove"
    assert found["learner"] in compared_learners("classification")
    score = found["score"]
    assert score["rows"] == 30
    assert score["low"] <= score["value"] <= score["high"]
    assert score["baseline"] == pytest.approx(1 / 3)
    assert margrove.inspect_file("iris.margrove").about["target"] == "species"


def test_bytes_of_a_model_depend_on_nothing_else(folder, run) -> None:
    for name in ("a.margrove", "b.margrove"):
        assert run(*FIT, "--learner", "forest", "-o", name)[0] == 0
    first, second = (folder / name for name in ("a.margrove", "b.margrove"))
    assert first.read_bytes() == second.read_bytes()


def test_parameters_are_literals(folder, run, refused) -> None:
    tree = (*FIT, "--learner", "tree")
    assert run(*tree, "-o", "m.margrove", "--param", "max_depth=1")[0] == 0
    assert margrove.load("m.margrove")[-1].max_depth == 1
    evil = "max_depth=__import__('os').system('touch evil')"
    assert "must be a number, a word" in refused(*tree, "-o", "n.margrove", "--param", evil)
    assert not (folder / "evil").exists()
    assert "has no parameter 'C'" in refused(*tree, "-o", "n.margrove", "--param", "C=1")
    assert "NAME=VALUE" in refused(*tree, "-o", "n.margrove", "--param", "C")
    assert "needs --learner" in refused(*FIT, "-o", "n.margrove", "--param", "C=1")
    assert "max_depth" in refused(*tree, "-o", "n.margrove", "--param", "max_depth=-1")
    assert not (folder / "n.margrove").exists()


def test_tuning_shows_what_was_tried(folder, run) -> None:
    code, out, _ = run("tune", "iris.csv", "--id", "flower", "--learner", "tree", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["file"] is None
    assert "model__ccp_alpha" in found["tuned"]
    assert len(found["tried"]) > 1
    code, out, _ = run(
        "tune", "iris.csv", "--id", "flower", "--learner", "linear-svm", "-o", "m.margrove"
    )
    assert code == 0
    assert "tried" in out
    assert margrove.load("m.margrove").predict(pl.read_csv("iris.csv")).shape == (150,)


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.parquet", "p.jsonl"])
def test_predictions_in_all_formats(name, folder, run) -> None:
    assert run(*FIT, "--learner", "tree", "-o", "m.margrove")[0] == 0
    assert run("predict", "m.margrove", "iris.csv", "-o", name, "--quiet")[:2] == (0, "")
    found = margrove.read_table(name).frame
    assert found.shape == (150, 5)


def test_a_file_that_is_there_stays_unless_forced(folder, run, refused) -> None:
    tree = (*FIT, "--learner", "tree", "-o", "m.margrove")
    assert run(*tree)[0] == 0
    before = (folder / "m.margrove").read_bytes()
    assert "--force" in refused(*tree, "--param", "max_depth=1")
    assert (folder / "m.margrove").read_bytes() == before
    assert run(*tree, "--param", "max_depth=1", "--force")[0] == 0
    assert (folder / "m.margrove").read_bytes() != before
    wrong = ("predict", "m.margrove", "iris.csv", "--quiet", "--force", "-o")
    assert "is an input of the command" in refused(*wrong, "iris.csv")
    assert "no folder" in refused(*wrong, "nowhere/p.csv")
    assert "must end with" in refused(*wrong, "p.xlsx")
    assert "is a directory" in refused(*FIT, "--learner", "tree", "-o", str(folder))


def test_a_model_file_that_is_none(folder, refused) -> None:
    assert "not" in refused("predict", "iris.csv", "iris.csv", "--quiet")
    assert "does not exist" in refused("predict", "gone.margrove", "iris.csv", "--quiet")
    assert "Give the rows" in refused("predict", "iris.csv", "--quiet")


def test_standard_input(folder) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "margrove"]
    piped = (folder / "iris.csv").read_bytes()
    fit = [*command, "fit", "-", "--id", "flower", "--learner", "tree", "-o", "m.margrove"]
    subprocess.run(fit, input=piped, check=True, capture_output=True)
    done = subprocess.run(
        [*command, "predict", "m.margrove", "-"], input=piped, check=True, capture_output=True
    )
    assert done.stdout.count(b"\n") == 151


def test_predict_can_be_tried_at_once(run) -> None:
    code, out, err = run("predict")
    assert code == 0
    assert "No model file is given" in err
    assert predictions_of(out).height == 569
