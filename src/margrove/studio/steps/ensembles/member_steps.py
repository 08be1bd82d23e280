"""Bagging and forests, member by member: the vote of the first 1, 2, 3, ... members."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.ensemble.bagging import Bagging
from margrove.studio.content import Scene
from margrove.studio.pictures import curve_from_values, curve_of, places_of, plane_of
from margrove.studio.steps.shown_trees import tree_of_scene
from margrove.studio.steps.traces import (
    GridShape,
    Trace,
    curve_over_steps,
    error_name,
    shown_numbers,
    state_of,
    step_record,
)

__all__ = ["first_members", "trace"]

_MOST_POINTS = 2_000  # of each kind, on which the errors of hundreds of models are computed


def first_members(model: Any, number: int) -> Any:
    """An ensemble of the first `number` members of a fitted one."""
    if number == len(model):
        return model
    if not isinstance(model, Bagging):
        return model[:number]
    smaller = copy(model)
    for name in ("estimators_", "estimators_features_", "_samples"):
        setattr(smaller, name, getattr(model, name)[:number])
    return smaller


@dataclass(frozen=True, eq=False)
class _Fit:
    scene: Scene
    model: Any
    numbers: list[int]

    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        number = self.numbers[position]
        if number == 0:
            return state_of(position)
        model = first_members(self.model, number)
        drawn: dict[str, Any] = {
            "tree": tree_of_scene(self.model, self.scene, number - 1),
            "highlighted": self.scene.training_rows[self.left_out(number)].tolist(),
        }
        if self.scene.task == "regression":
            return state_of(position, curve=_curve(model, self.scene), **drawn)
        return state_of(position, plane=plane_of(model, self.scene, grid), **drawn)

    def left_out(self, number: int) -> np.ndarray:
        """The training rows that a member has not seen."""
        n = len(self.scene.training_rows)
        if not self.model.bootstrap and not isinstance(self.model, Bagging):
            return np.arange(0)
        seen = self.model.estimators_samples_[number - 1]
        return np.setdiff1d(np.arange(n), seen)


def _curve(model: Any, scene: Scene) -> dict[str, Any]:
    """The curve, with the interval of a forest once it has enough members."""
    try:
        return curve_of(model, scene)
    except ValueError:
        x = places_of(scene)
        return curve_from_values(
            scene, x, model.predict(x[:, None]), at_points=model.predict(scene.x)
        )


def trace(scene: Scene) -> Trace:
    X, y = scene.training()
    estimator = scene.estimator()
    if estimator.bootstrap and not isinstance(estimator, Bagging):
        estimator.set_params(oob_score=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few members leave points without out-of-bag votes
        model = estimator.fit(X, y)
    numbers = shown_numbers(len(model))
    fit = _Fit(scene, model, numbers)
    meter = _ErrorMeter(scene)
    errors = [meter.errors(first_members(model, number)) for number in numbers[1:]]
    curves = [curve_over_steps(meter.training_name, [np.nan, *(pair[0] for pair in errors)])]
    if scene.is_test.any():
        curves.append(
            curve_over_steps(meter.test_name, [np.nan, *(pair[1] or 0.0 for pair in errors)])
        )
    out_of_bag = _out_of_bag(model, numbers)
    if out_of_bag is not None:
        curves.append(curve_over_steps(f"out-of-bag {error_name(scene)}", out_of_bag))
    return Trace(
        steps=[
            _describe(fit, k, errors[k - 1], None if out_of_bag is None else out_of_bag[k])
            for k in range(1, len(numbers))
        ],
        total=len(model),
        curves=curves,
        state=fit.state,
    )


def _out_of_bag(model: Any, numbers: list[int]) -> np.ndarray | None:
    """The out-of-bag error of forests with bootstrap; for regression, its square root."""
    found = getattr(model, "oob_curve_", None)
    if found is None:
        return None
    curve = np.asarray(found, dtype=np.float64)
    curve = curve if hasattr(model, "classes_") else np.sqrt(curve)
    return np.concatenate([[np.nan], curve])[numbers]


def _describe(
    fit: _Fit, position: int, errors: tuple[float, float | None], out_of_bag: float | None
) -> dict[str, Any]:
    number = fit.numbers[position]
    tree = fit.model.estimators_[number - 1]
    n, left = len(fit.scene.training_rows), len(fit.left_out(number))
    seen = f"has seen {n - left} of the {n} points" if left else f"has seen all {n} points"
    text = f"Member {number} {seen}. Now {number} members vote."
    if number == 1:
        text = f"Member 1 {seen}. It is the only one so far."
    figures: dict[str, Any] = {"member": number, "points seen": n - left}
    if hasattr(tree, "get_n_leaves"):
        figures |= {"leaves": int(tree.get_n_leaves()), "depth": int(tree.get_depth())}
    figures["training error"] = errors[0]
    if errors[1] is not None:
        figures["test error"] = errors[1]
    if out_of_bag is not None:
        figures["out-of-bag error"] = out_of_bag
    return step_record(text, **figures)


class _ErrorMeter:
    """Computes errors of models on the points of a scene, or on some if there are many."""

    def __init__(self, scene: Scene) -> None:
        self._is_class = scene.task == "classification"
        self._training = _some(*scene.training())
        self._test = _some(*scene.testing()) if scene.is_test.any() else None
        name = error_name(scene)
        n = len(scene.training_rows)
        of = f", of {len(self._training[1]):,} points" if n > _MOST_POINTS else ""
        self.training_name = f"training {name}{of}"
        self.test_name = f"test {name}"

    def errors(self, model: Any) -> tuple[float, float | None]:
        """The errors on training points and on test points; None if there are no test points."""
        test = None if self._test is None else self._error(model, *self._test)
        return self._error(model, *self._training), test

    def _error(self, model: Any, X: np.ndarray, y: np.ndarray) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the picture shows the warnings of the fit
            found = np.asarray(model.predict(X))
        if self._is_class:
            return float(np.mean(found != y))
        return float(np.sqrt(np.mean((found - y) ** 2)))


def _some(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every k-th point, so that few enough are left."""
    every = -(-len(y) // _MOST_POINTS)
    return (X[::every], y[::every]) if every > 1 else (X, y)
