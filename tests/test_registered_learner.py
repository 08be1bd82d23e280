"""A learner that a module registers is known everywhere, and missed where it is not registered."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import margrove
from margrove.cli import main
from margrove.exceptions import ModelFileError, UnsavableModelError
from margrove.select.compare.compared_models import default_models
from margrove.select.errors import InvalidRequestError
from margrove.select.learners import (
    LEARNERS,
    Learner,
    TaskEstimator,
    learner_named,
    learner_of_class,
    learners_table,
    register_learner,
    unregister_learner,
)
from margrove.select.learners.registry import MODULES_VARIABLE
from margrove.studio.learners.registry import LEARNERS as OFFERS
from margrove.workbench.doctor.costs.families import family_of, learners_for
from margrove.workbench.workflow import compared_learners

pytest.importorskip("polars")

MODULE = "nearest_means_of_a_test"
SOURCE = '''
"""A learner in one file."""
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
import margrove
from margrove.select.learners import Learner, Parameter, TaskEstimator


class NearestMeans(ClassifierMixin, BaseEstimator):
    def __init__(self, shrink=0.0):
        self.shrink = shrink

    def fit(self, X, y):
        X = np.asarray(X, float)
        self.classes_ = np.unique(y)
        means = np.array([X[np.asarray(y) == own].mean(axis=0) for own in self.classes_])
        self.means_ = (1 - self.shrink) * means + self.shrink * X.mean(axis=0)
        return self

    def predict(self, X):
        check_is_fitted(self)
        far = ((np.asarray(X, float)[:, None, :] - self.means_) ** 2).sum(axis=2)
        return self.classes_[far.argmin(axis=1)]


margrove.register_learner(
    Learner(
        name="nearest-means",
        title="nearest class means",
        family="margin",
        classification=TaskEstimator(
            estimator=NearestMeans,
            title="Nearest means",
            summary="Asks which class has the nearest mean.",
            parameters=(
                Parameter(
                    name="shrink", title="shrinkage", kind="number", default=0.0, low=0.0,
                    high=0.9, summary="How far means are pulled together.",
                ),
            ),
            fitted=("classes_", "means_"),
        ),
        tuning={"shrink": [0.0, 0.5]},
    )
)
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The module that registers, imported; it is forgotten afterwards."""
    monkeypatch.setenv(MODULES_VARIABLE, "")
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    sys.modules.pop(MODULE, None)
    yield importlib.import_module(MODULE)
    if "nearest-means" in LEARNERS:
        unregister_learner("nearest-means")
    sys.modules.pop(MODULE, None)


def run(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return stopped.value.code, out, err


def test_it_is_in_every_list(module) -> None:
    cls = module.NearestMeans
    assert LEARNERS["nearest-means"].module == MODULE
    assert learner_of_class(cls) is LEARNERS["nearest-means"]
    assert "nearest-means" in compared_learners("classification")
    assert "nearest-means" not in compared_learners("regression")
    assert "NearestMeans" in default_models("classification", np.ones((3, 2)))
    assert cls in [type(own) for own in learners_for("classification")]
    assert family_of(cls()).table_form == "scaled"
    assert "| `nearest-means` | nearest class means | `NearestMeans` | |" in learners_table()
    told = OFFERS["NearestMeans"].as_dict()
    assert (told["title"], told["task"]) == ("Nearest means", "classification")
    assert [own["name"] for own in told["parameters"]] == ["shrink"]
    assert OFFERS["NearestMeans"].new_estimator({"shrink": 0.5}, 0).shrink == 0.5


def test_it_is_tuned_by_its_grid(module) -> None:
    X, y = margrove.datasets.load_iris(return_X_y=True)
    tuned = margrove.autotune(module.NearestMeans(), X, y, random_state=0)
    assert [own["shrink"] for own in tuned.tuning_.candidates] == [0.0, 0.5]
    assert tuned.shrink == tuned.tuning_.parameters["shrink"]


def test_it_is_compared_fitted_saved_and_used(module, capsys, tmp_path) -> None:
    words = ("--learner", "nearest-means", "--json")
    code, out, _ = run(capsys, "compare", "--data", "iris", "--folds", "2", *words)
    assert code == 0
    assert {own["learner"] for own in json.loads(out)["learners"]} == {"baseline", "nearest-means"}
    code, out, err = run(
        capsys, "fit", "--data", "iris", *words, "-o", "m.margrove", "--param", "shrink=0.25"
    )
    assert code == 0, err
    assert json.loads(out)["score"]["value"] > 0.7
    assert margrove.load("m.margrove")[-1].shrink == 0.25
    assert run(capsys, "predict", "m.margrove", "--data", "iris", "--quiet")[0] == 0
    unregister_learner("nearest-means")
    with pytest.raises(ModelFileError, match=r"'nearest-means', which is not registered here"):
        margrove.load("m.margrove")
    code, _, err = run(capsys, "predict", "m.margrove", "--data", "iris", "--quiet")
    assert code == 2
    assert "MARGROVE_LEARNERS" in err
    code, _, err = run(capsys, "fit", "--data", "iris", *words, "-o", "n.margrove")
    assert code == 2
    assert "'nearest-means' is not one of" in err


IN_ANOTHER_PROCESS = """
from margrove.studio.learners.registry import LEARNERS as OFFERS
from margrove.select.learners.registry import missing_modules
print("NearestMeans" in OFFERS, *missing_modules())
"""


@pytest.mark.parametrize("is_found", [True, False])
def test_other_processes_register_it_or_say_that_they_cannot(module, tmp_path, is_found) -> None:
    assert os.environ[MODULES_VARIABLE] == MODULE
    paths = [os.environ.get("PYTHONPATH", ""), str(tmp_path) if is_found else ""]
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(own for own in paths if own)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    told = done.stdout.strip()
    assert told.startswith(str(is_found))
    assert (f"{MODULE!r}, which registers learners, cannot be imported" in told) != is_found


def test_commands_refuse_a_module_that_is_not_there(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "margrove", "fit", "--data", "iris", "--learner", "tree"],
        env=os.environ | {MODULES_VARIABLE: "no_such_module_of_learners"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no_such_module_of_learners" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def entry(**changes):
    from sklearn.naive_bayes import GaussianNB

    bayes = TaskEstimator(estimator=GaussianNB, title="Naive Bayes", summary="Bell curves.")
    own = {"name": "bayes", "title": "naive Bayes", "family": "margin", "classification": bayes}
    return Learner(**(own | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "svm"}, "already"),
        ({"name": "Naive Bayes"}, "lower-case"),
        ({"name": "baseline"}, "lower-case"),
        ({"classification": None}, "no estimator"),
        (
            {"classification": TaskEstimator(estimator="SVC", title="t", summary="s")},
            "belongs to the learner 'svm'",
        ),
    ],
)
def test_entries_that_are_refused(changes, message) -> None:
    before = dict(LEARNERS)
    with pytest.raises(ValueError, match=message):
        register_learner(entry(**changes))
    assert before == LEARNERS


def test_margroves_own_stay() -> None:
    with pytest.raises(ValueError, match="cannot be removed"):
        unregister_learner("svm")
    with pytest.raises(InvalidRequestError, match="There is no learner 'bayes'"):
        learner_named("bayes")


def test_a_model_file_needs_to_know_what_to_keep(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(MODULES_VARIABLE, "")
    register_learner(entry())
    try:
        model = LEARNERS["bayes"].classification.estimator_class()
        pipeline = margrove.table_model(model)
        with pytest.raises(UnsavableModelError, match="registered learner 'bayes'"):
            margrove.save(pipeline, tmp_path / "m.margrove")
    finally:
        unregister_learner("bayes")
