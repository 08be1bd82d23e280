"""docs/migration.md lists every parameter and method that differs from scikit-learn's."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
import sklearn

import margrove
import margrove.tune

PAGE = (Path(__file__).parent.parent / "docs/migration.md").read_text()
LISTED_FOR = re.search(r"scikit-learn (\d+\.\d+)", PAGE)[1]
PEERS = {
    "sklearn.linear_model": ["Perceptron"],
    "sklearn.svm": ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR"],
    "sklearn.tree": ["DecisionTreeClassifier", "DecisionTreeRegressor"],
    "sklearn.ensemble": [
        f"{kind}{task}"
        for kind in (
            "AdaBoost",
            "Bagging",
            "ExtraTrees",
            "GradientBoosting",
            "HistGradientBoosting",
            "RandomForest",
        )
        for task in ("Classifier", "Regressor")
    ],
    "sklearn.model_selection": ["GridSearchCV"],
}
PAIRS = {
    name: (
        getattr(importlib.import_module(module), name),
        getattr(margrove, name, None) or getattr(margrove.tune, name),
    )
    for module, names in PEERS.items()
    for name in names
}
LEARNERS = [name for name in PAIRS if name != "GridSearchCV"]
ABSENT = "-"


def defaults_of(cls) -> dict[str, str]:
    found = inspect.signature(cls.__init__).parameters
    return {name: written(one.default) for name, one in found.items() if name != "self"}


def written(default) -> str:
    return "required" if default is inspect.Parameter.empty else repr(default)


def differences() -> set[tuple[str, str, str, str]]:
    """Estimator, parameter, scikit-learn's default, ours."""
    found = set()
    for name, (theirs, ours) in PAIRS.items():
        before, after = defaults_of(theirs), defaults_of(ours)
        for parameter in {*before, *after}:
            pair = before.get(parameter, ABSENT), after.get(parameter, ABSENT)
            if pair[0] != pair[1]:
                found.add((name, parameter, *pair))
    return found


def methods_of(cls) -> set[str]:
    """Public methods; what metadata routing makes is not counted."""
    names = {name for name in dir(cls) if name[0] != "_" and callable(getattr(cls, name))}
    return {name for name in names if not re.fullmatch(r"set_\w+_request", name)}


def missing_methods() -> set[tuple[str, str]]:
    return {
        (name, method)
        for name, (theirs, ours) in PAIRS.items()
        for method in methods_of(theirs) - methods_of(ours)
    }


def table_of(heading: str) -> list[list[str]]:
    """Rows of the tables below a heading."""
    part = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def estimators_in(cell: str) -> list[str]:
    return LEARNERS if cell == "every learner" else re.findall(r"`(\w+)`", cell)


def listed() -> set[tuple[str, str, str, str]]:
    return {
        (name, parameter.strip("`"), theirs.strip("`"), ours.strip("`"))
        for parameter, names, theirs, ours, _ in table_of("Parameters")
        for name in estimators_in(names)
    }


def listed_methods() -> set[tuple[str, str]]:
    return {
        (name, method.strip("`"))
        for method, names, _ in table_of("Methods that are not here")
        for name in estimators_in(names)
    }


def test_every_difference_of_parameters_is_listed() -> None:
    assert differences() - listed() == set()


def test_every_missing_method_is_listed() -> None:
    assert missing_methods() - listed_methods() == set()


@pytest.mark.skipif(
    not sklearn.__version__.startswith(f"{LISTED_FOR}."), reason="the page is for another version"
)
def test_nothing_is_listed_that_is_not_so() -> None:
    assert listed() - differences() == set()
    assert listed_methods() - missing_methods() == set()


def test_every_row_says_why() -> None:
    for row in [*table_of("Parameters"), *table_of("Methods that are not here")]:
        assert len(row[-1]) > 10, row


@pytest.mark.parametrize("name", PAIRS)
def test_arguments_by_position_are_the_same(name) -> None:
    def by_position(cls) -> list[str]:
        found = inspect.signature(cls.__init__).parameters.values()
        return [one.name for one in found if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]

    theirs, ours = PAIRS[name]
    assert by_position(ours) == by_position(theirs)
