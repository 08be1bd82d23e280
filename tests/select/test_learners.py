"""The registry of learners is complete, and the documentation agrees with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import margrove
from margrove.select.learners import LEARNERS, learner_of_class, learners_at, learners_table

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", LEARNERS)
def test_estimators_are_public_and_belong_to_one_learner(name) -> None:
    learner = LEARNERS[name]
    assert learner.name == name
    assert learner.title
    for entry in learner.estimators:
        assert getattr(margrove, entry.class_name) is entry.estimator_class
        assert learner_of_class(entry.estimator_class) is learner
        assert entry.summary.endswith(".")
        entry.estimator_class(**learner.settings, **learner.table_settings)


def test_classes_that_are_derived_count_as_their_base() -> None:
    class Own(margrove.SVC):
        pass

    assert learner_of_class(Own) is LEARNERS["svm"]
    assert learner_of_class(int) is None


def test_who_takes_part_where() -> None:
    def names(place, task):
        return [learner.name for learner in learners_at(place, task)]

    assert names("comparisons", "classification") == [
        "perceptron", "linear-svm", "svm", "tree", "forest", "adaboost", "boosting",
    ]  # fmt: skip
    assert names("commands", "regression") == [
        "linear-svm", "svm", "tree", "bagging", "forest", "extra-trees", "adaboost", "boosting",
    ]  # fmt: skip
    assert "bagging" not in names("estimates", "classification")
    assert "classic-boosting" in names("estimates", "regression")


def test_the_documentation_has_the_table() -> None:
    assert learners_table() in (DOCS / "command-line.md").read_text()
