"""explain, inspect and datasets."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest

from margrove.datasets import DATASETS

FIT = ("fit", "iris.csv", "--id", "flower", "--quiet", "-o", "m.margrove", "--learner")


def test_a_tree_is_explained_by_rules(folder, run) -> None:
    assert run(*FIT, "tree")[0] == 0
    code, out, _ = run("explain", "m.margrove")
    assert code == 0
    assert "Rules" in out
    assert "length" in out


def test_columns_are_ranked_by_shuffling_where_the_target_is_known(folder, run) -> None:
    assert run(*FIT, "forest")[0] == 0
    found = json.loads(run("explain", "m.margrove", "iris.csv", "--json")[1])
    assert max(found["shuffled"], key=found["shuffled"].get) == "length"
    assert found["shuffled"]["length"] > 0.2
    assert "shuffled" not in json.loads(run("explain", "m.margrove", "--json")[1])


@pytest.mark.parametrize("learner", ["tree", "forest", "boosting", "linear-svm", "svm"])
def test_one_answer_is_taken_apart(learner, folder, run, iris_frame) -> None:
    assert run(*FIT, learner)[0] == 0
    code, out, _ = run("explain", "m.margrove", "iris.csv", "--row", "0", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["answer"] == "iris-0"
    if learner == "svm":
        assert "added" not in found
    else:
        assert sum(found["added"].values()) > 0


def test_weights_of_a_linear_machine(folder, run) -> None:
    assert run(*FIT, "linear-svm")[0] == 0
    found = json.loads(run("explain", "m.margrove", "--json", "--top", "2")[1])
    assert len(found["weights"]) == 3
    assert all(len(weights) == 2 for weights in found["weights"].values())


def test_rows_that_are_not_there(folder, run, refused) -> None:
    assert run(*FIT, "tree")[0] == 0
    assert "below 150" in refused("explain", "m.margrove", "iris.csv", "--row", 150, "--json")
    assert "needs a FILE" in refused("explain", "m.margrove", "--row", "1", "--quiet")


def test_inspect_says_what_a_file_holds(folder, run, refused) -> None:
    assert run(*FIT, "forest")[0] == 0
    code, out, _ = run("inspect", "m.margrove")
    assert code == 0
    assert "RandomForestClassifier" in out
    assert "species" in out
    assert json.loads(run("inspect", "m.margrove", "--json")[1])["about"]["learner"] == "forest"
    assert "does not exist" in refused("inspect", "gone.margrove")


@pytest.mark.parametrize("command", ["explain", "inspect"])
def test_they_can_be_tried_at_once(command, run) -> None:
    code, out, err = run(command)
    assert code == 0
    assert "No model file is given" in err
    assert out


def test_the_list_of_data_sets(run) -> None:
    found = json.loads(run("datasets", "--json")[1])
    assert [entry["name"] for entry in found] == list(DATASETS)
    assert all(entry["rows"] > 0 and entry["what"] for entry in found)
    assert "breast_cancer" in run("datasets")[1]


@pytest.mark.parametrize("name", list(DATASETS))
def test_every_data_set_is_a_table(name, run) -> None:
    code, out, _ = run("datasets", name)
    found = pl.read_csv(io.StringIO(out))
    assert code == 0
    assert found.columns[-1] == "target"
    assert found.height == DATASETS[name]().data.shape[0]


def test_data_sets_are_written_to_files(tmp_path, run, refused, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("datasets", "iris", "-o", "iris.parquet")[0] == 0
    assert pl.read_parquet("iris.parquet").height == 150
    assert "--force" in refused("datasets", "iris", "-o", "iris.parquet")
    assert "no built-in" in refused("datasets", "nope")
