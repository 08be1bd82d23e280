"""margrove fit --cluster: from files to a model file, and from there to predictions."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

import margrove
from margrove.cli import main

N = 400


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "key": [f"k{i}" for i in range(N)],
            "a": rng.random(N),
            "b": rng.choice(["x", "y", "z"], N),
            "k": rng.integers(0, 4, N),
            "when": pd.date_range("2020-01-01", periods=N),
        }
    )
    table["out"] = np.where((table["a"] > 0.5) ^ (table["b"] == "x"), "yes", "no")
    table.loc[5, "out"] = None
    return table


@pytest.fixture
def folder(tmp_path, frame, monkeypatch):
    for k, rows in enumerate(np.array_split(np.arange(N), 3)):
        frame.iloc[rows].to_parquet(tmp_path / f"big{k}.parquet")
        frame.iloc[rows].to_csv(tmp_path / f"big{k}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys, folder):
    def run_command(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return stopped.value.code, out, err

    return run_command


@pytest.fixture
def fit(run, cluster4, folder):
    """Fit on the cluster of the tests; patterns are absolute, as its workers are elsewhere."""

    def run_fit(files, *arguments):
        pattern = folder / files
        where = ("--cluster", cluster4.scheduler.address)
        return run("fit", pattern, "--target", "out", *where, *arguments)

    return run_fit


def test_a_forest_of_files_predicts_raw_tables(fit, run, frame):
    code, out, err = fit(
        "big*.parquet", "--id", "key", "--ignore", "when", "--learner", "forest",
        "--param", "n_estimators=10", "-o", "m.margrove",
    )  # fmt: skip
    assert code == 0, err
    assert "1 rows without out were left out" in err
    assert "399 rows in 3 partitions, 3 columns, 1 of them categories" in err
    assert "On 80 rows that it had not seen: accuracy" in out
    code, out, err = run("predict", "m.margrove", "big1.parquet", "--quiet")
    assert code == 0, err
    found = pd.read_csv(io.StringIO(out))
    wanted = frame.iloc[134:267]
    assert found["key"].tolist() == wanted["key"].tolist()
    assert (found["predicted out"].to_numpy() == wanted["out"].to_numpy()).mean() > 0.9


def test_the_model_is_that_of_one_machine(fit, frame):
    code, _, err = fit(
        "big*.parquet", "--id", "key", "--ignore", "when", "--test-size", "0", "--learner",
        "forest", "--param", "n_estimators=30", "-o", "m.margrove", "--seed", "3",
    )  # fmt: skip
    assert code == 0, err
    known = frame.dropna(subset="out")
    X = known[["a", "b", "k"]]
    local = margrove.RandomForestClassifier(30, oob_score=True, random_state=3)
    local.fit(X, known["out"].to_numpy())
    found = margrove.load("m.margrove")
    np.testing.assert_array_equal(found.predict_proba(X), local.predict_proba(X))
    assert found.oob_score_ == local.oob_score_
    assert found.feature_names_in_.tolist() == ["a", "b", "k"]


def test_csv_files_and_json(fit):
    code, out, err = fit(
        "big*.csv", "--ignore", "key", "--ignore", "when", "--ignore", "b", "--learner",
        "linear-svm", "--json", "-o", "m.margrove",
    )  # fmt: skip
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["rows"] == 399
    assert found["task"] == "classification"
    assert found["partitions"] == 3
    assert found["columns"] == [{"name": "a", "type": "number"}, {"name": "k", "type": "number"}]
    assert margrove.inspect_file("m.margrove").about["target"] == "out"


WRONG = [
    (["--ignore", "key"], "Column 'when' has type .* Leave it out: --ignore when"),
    (["--tune"], "--tune and --calibrate are not for clusters"),
    (["--learner", "svm", "--ignore", "when"], "There is no svm on a cluster. There are"),
    (["--learner", "linear-svm", "--ignore", "when", "--ignore", "key"],
     "linear-svm takes numbers only, and 'b' holds categories.*--ignore b"),
    (["--type", "when=date"], "--type when=date is not for clusters"),
    (["--type", "b=number", "--ignore", "when"], "Column 'key' holds text|Column 'b' holds text"),
    (["--ignore", "nothing"], "has no column 'nothing'. Its columns are key, a, b"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_what_a_cluster_does_not_do_is_said_plainly(fit, arguments, message):
    code, out, err = fit("big*.parquet", *arguments, "-o", "m.margrove", "--quiet")
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1
    assert re.search(message, err), err


def test_files_that_are_not_there_or_mixed(fit):
    assert "No file matches" in fit("none*.parquet", "--quiet")[2]
    assert "all .parquet or all .csv. Got .csv, .parquet" in fit("big*", "--quiet")[2]


def test_what_is_no_cluster_is_refused(run):
    code, _, err = run("fit", "big0.parquet", "--cluster", "everywhere")
    assert code == 2
    assert "--cluster takes local, local:WORKERS" in err


def test_a_scheduler_that_is_not_there_is_named(run, monkeypatch):
    monkeypatch.setattr("margrove.cli.clusters._CONNECT_SECONDS", 1)
    code, _, err = run("fit", "big0.parquet", "--cluster", "tcp://127.0.0.1:9")
    assert code == 2
    assert "There is no scheduler at tcp://127.0.0.1:9" in err


def test_a_cluster_that_fails_is_not_the_users_fault(fit, monkeypatch):
    from margrove.cli import clusters
    from margrove.exceptions import ClusterError

    def fail(*arguments, **settings):
        raise ClusterError("All workers are lost.")

    monkeypatch.setattr(clusters, "held_out", fail)
    code, _, err = fit(
        "big*.parquet", "--learner", "forest", "--ignore", "when", "--quiet", "-o", "m.margrove"
    )
    assert (code, err) == (1, "margrove: All workers are lost.\n")


@pytest.mark.nightly
def test_a_cluster_of_this_machine(run):
    code, out, err = run(
        "fit", "big*.parquet", "--target", "out", "--ignore", "when", "--ignore", "key",
        "--cluster", "local:2", "--learner", "forest", "-o", "m.margrove",
    )  # fmt: skip
    assert code == 0, err
    assert "A cluster on this machine: 2 workers" in err
    assert "accuracy" in out
