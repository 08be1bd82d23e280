"""Subject: the model of a report, its rows, and the names of its features and target."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove._data import count_rows
from margrove.exceptions import InvalidDataError
from margrove.facts import (
    PartialDependenceFacts,
    describe,
    is_described,
    outline,
    partial_dependence_facts,
)

__all__ = ["Subject", "subject_of", "uncalibrated"]

_MAX_ROWS_TO_PROVE = 20_000  # for more rows, a proof would take too long
_N_EFFECTS = 4  # columns whose effect is shown
_MAX_TRIED = 400  # columns that are tried for these
_EFFECT_ROWS = 300


@dataclass(frozen=True)
class Subject:
    """A fitted model and the rows that it is reported on.

    model            the estimator or pipeline
    last             its last step
    X, y             the training rows
    X_test, y_test   held-out rows; None if there are none
    test_rows        indices of the held-out rows in the original table, None if not known
    target           the name of the target, "" if it has none
    feature_names    of the features of the last step; None if they have none
    """

    model: Any
    last: Any
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    target: str
    feature_names: tuple[str, ...] | None
    test_rows: Any = None

    @property
    def inner(self) -> Any:
        """The model without a calibration around it."""
        return uncalibrated(self.model)

    @property
    def estimator(self) -> str:
        return self.outline.estimator

    @property
    def task(self) -> str:
        """ "classification", "regression", "outlier detection" or ""."""
        return self.outline.task

    @property
    def is_held_out(self) -> bool:
        return self.X_test is not None

    @property
    def is_of_other_rows(self) -> bool:
        """Whether the training rows are not available, so that X is X_test."""
        return self.X is self.X_test

    def row_number(self, judged: int) -> int:
        """The index of a judged row in the original table."""
        return judged if self.test_rows is None else int(self.test_rows[judged])

    @property
    def judged_rows(self) -> Any:
        return self.X_test if self.is_held_out else self.X

    @property
    def judged_targets(self) -> Any:
        return self.y_test if self.is_held_out else self.y

    @cached_property
    def n_rows(self) -> int:
        return int(count_rows(self.X))

    @cached_property
    def outline(self) -> Any:
        return self.facts if self.facts is not None else outline(self.last)

    @cached_property
    def facts(self) -> Any:
        """The facts of `describe` about the last step; None if it does not know the estimator."""
        if not is_described(self.last):
            return None
        if self.y is None or self.n_rows > _MAX_ROWS_TO_PROVE:
            return describe(self.last)
        try:
            return describe(self.last, self.prepared(self.X), self.y)
        except (ValueError, TypeError, InvalidDataError):  # it was fitted to other rows
            return describe(self.last)

    @cached_property
    def named(self) -> Any:
        """The last step with the names of its features, for texts only, not for predictions."""
        if self.feature_names is None or hasattr(self.last, "feature_names_in_"):
            return self.last
        named = copy.copy(self.last)
        named.feature_names_in_ = np.array(self.feature_names, dtype=object)
        return named

    @cached_property
    def dependence(self) -> PartialDependenceFacts | None:
        """Partial dependence of the columns with the largest effect; None if there are too many."""
        shape = getattr(self.judged_rows, "shape", None) or np.shape(self.judged_rows)
        n_columns = int(shape[1])
        features = None
        if n_columns > _MAX_TRIED:
            features = self._important_columns(n_columns)
            if features is None:
                return None
        return partial_dependence_facts(
            self.model, self.judged_rows, features, n_features=_N_EFFECTS, max_rows=_EFFECT_ROWS
        )

    @property
    def moving_names(self) -> tuple[str, ...]:
        """Columns by how much the mean prediction changes with them, the largest first."""
        if self.task not in ("classification", "regression"):
            return ()
        try:
            found = self.dependence
        except Exception:  # the section about dependence reports it
            return ()
        return () if found is None else tuple(curve.name for curve in found.curves)

    def _important_columns(self, n_columns: int) -> list[int] | None:
        """The most important columns, if the model has importances of them."""
        importances: Any = getattr(self.facts, "importances", None)
        if hasattr(self.inner, "steps") or importances is None or len(importances) != n_columns:
            return None
        order = np.argsort(-np.asarray(importances), kind="stable")[:_N_EFFECTS]
        return [int(j) for j in order if importances[j] > 0] or None

    def prepared(self, X: Any) -> Any:
        """Rows after the steps before the last one."""
        return self.inner[:-1].transform(X) if hasattr(self.inner, "steps") else X

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the features of the last step; "x0" and so on if they have none."""
        if self.feature_names is not None:
            return self.feature_names
        return tuple(f"x{j}" for j in range(self.outline.n_features))


def uncalibrated(model: Any) -> Any:
    """The estimator inside a calibrated model, if there is only one; else the model itself."""
    members = getattr(model, "calibrated_classifiers_", None)
    return members[0].estimator if members is not None and len(members) == 1 else model


def subject_of(
    model: Any, X: Any, y: Any, X_test: Any, y_test: Any, recipe: Any, test_rows: Any = None
) -> Subject:
    """Check the arguments of `report`, and find the names of target and features."""
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test belong together: give both or neither.")
    model = getattr(model, "best_estimator_", model)  # of a search
    check_is_fitted(model)
    inner = uncalibrated(model)
    last = inner.steps[-1][1] if hasattr(inner, "steps") else inner
    last = getattr(last, "best_estimator_", last)
    for name, rows, targets in (("", X, y), ("_test", X_test, y_test)):
        if targets is not None and count_rows(rows) != count_rows(targets):
            raise InvalidDataError(
                f"X{name} has {count_rows(rows)} rows and y{name} {count_rows(targets)}. Give one "
                "target for each row."
            )
    names = _feature_names(inner, last)
    return Subject(model, last, X, y, X_test, y_test, _target(y, recipe), names, test_rows)


def _target(y: Any, recipe: Any) -> str:
    if isinstance(recipe, Mapping) and isinstance(recipe.get("target"), str):
        return str(recipe["target"])
    name = getattr(y, "name", None)
    return name if isinstance(name, str) else ""


def _feature_names(model: Any, last: Any) -> tuple[str, ...] | None:
    if hasattr(model, "steps"):
        try:
            names = model[:-1].get_feature_names_out()
        except (AttributeError, ValueError, TypeError):  # a step has no names
            names = None
        n = getattr(last, "n_features_in_", None)
        if names is not None and (n is None or len(names) == n):
            return tuple(str(name) for name in names)
    names = getattr(last, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)
