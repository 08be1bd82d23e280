"""Predictions of bagged trees: one pass over the rows finds what the members predict one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from margrove import BaggingClassifier, BaggingRegressor, DecisionTreeClassifier
from margrove.ensemble.bagging import bagged_ensemble, predictions


def table(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def one_by_one(model: Any, rows: Any) -> np.ndarray:
    """The mean as `RunningMean` has it."""
    is_class = hasattr(model, "classes_")
    mean = predictions.RunningMean(rows.shape[0])
    for member, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        if is_class:
            shares = member.predict_proba(rows[:, columns])
            mean.add(predictions.shares_of(shares, member, "predict_proba", model.n_classes_))
        else:
            mean.add(member.predict(rows[:, columns]))
    return mean.mean()


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each prediction was made in one pass."""
    seen: list[bool] = []

    def recorded(*given: Any) -> Any:
        found = predictions.mean_of_trees(*given)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(bagged_ensemble, "mean_of_trees", recorded)
    return seen


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_features": 0.4},
        {"bootstrap_features": True, "max_features": 7},
        {"max_samples": 6},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("form", ["dense", "float32", "fortran", "sparse"])
def test_members_are_summed_up_bit_for_bit(
    settings: dict[str, Any], n_jobs: int | None, form: str, passes: list[bool]
) -> None:
    X, rows = table(120, 9), table(7283, 9, seed=1)
    X, rows = X * (np.abs(X) > 0.7), rows * (np.abs(rows) > 0.7)
    labels = (X[:, 0] > 0).astype(int) + 2 * (X[:, 4] > 0.5)  # a small sample lacks some classes
    make = {
        "dense": np.asarray,
        "float32": lambda Z: Z.astype(np.float32),
        "fortran": np.asfortranarray,
        "sparse": sp.csr_matrix,
    }[form]
    for kind, y in ((BaggingClassifier, labels), (BaggingRegressor, X[:, 0] + X[:, 1] ** 2)):
        model = kind(n_estimators=5, random_state=0, n_jobs=n_jobs, **settings).fit(make(X), y)
        for n in (1, 40, 7283):  # the last two rows are a tile of their own
            given = make(rows[:n])
            found = model.predict_proba(given) if y is labels else model.predict(given)
            assert np.array_equal(found, one_by_one(model, given))
            assert passes[-1] or n < 5000


def test_missing_values_categories_and_other_members_are_predicted_one_by_one(
    passes: list[bool],
) -> None:
    X, rows = table(80, 4), table(900, 4, seed=1)
    y = (X[:, 0] > 0).astype(int)
    rows[17, 2] = np.nan
    model = BaggingClassifier(n_estimators=3, random_state=0).fit(X, y)
    assert np.array_equal(model.predict_proba(rows), one_by_one(model, rows))
    coded = np.minimum(np.round(np.abs(X)), 1.0)
    base = DecisionTreeClassifier(categorical_features=[0, 1])
    model = BaggingClassifier(base, 3, random_state=0).fit(coded, y)
    many = np.tile(coded, (12, 1))
    assert np.array_equal(model.predict_proba(many), one_by_one(model, many))

    class Other(DecisionTreeClassifier):
        def predict_proba(self, X: Any, check_input: bool = True) -> Any:
            return 1.0 - super().predict_proba(X)

    model = BaggingClassifier(Other(), 3, random_state=0).fit(X, y)
    assert np.array_equal(model.predict_proba(many), one_by_one(model, many))
    assert passes == [False, False, False]


def test_altered_columns_are_not_followed() -> None:
    X = table(80, 4)
    model = BaggingClassifier(n_estimators=3, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    model.estimators_features_[1] = np.array([0, 1, 2, 400])
    with pytest.raises(IndexError):
        model.predict(table(900, 4))
    model.estimators_features_[1] = np.array([-9, 1, 2, 3])
    with pytest.raises(IndexError):
        model.predict(table(900, 4))


def test_infinity_is_refused() -> None:
    X = table(80, 4)
    model = BaggingRegressor(n_estimators=3, random_state=0).fit(X, X[:, 0])
    for make in (np.asarray, sp.csr_matrix):
        rows = table(900, 4)
        rows[3, 3] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            model.predict(make(rows))
