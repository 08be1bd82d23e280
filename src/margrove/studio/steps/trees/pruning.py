"""Cost-complexity pruning: from the full tree to its root, with a rising price of a leaf."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from margrove.facts.models import PruningErrors, pruning_errors
from margrove.grove.prune import prune
from margrove.studio.content import Scene
from margrove.studio.pictures import curve_of, plane_of
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
from margrove.studio.worker import LruCache

__all__ = ["trace"]

_MODELS = 64


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fit; `has_test` says whether `errors.test_errors` are those of test points."""

    scene: Scene
    full_tree: Any
    errors: PruningErrors
    has_test: bool
    numbers: list[int]
    models: LruCache[Any]

    @property
    def training(self) -> np.ndarray:
        return self._shown(self.errors.training_errors)

    @property
    def test(self) -> np.ndarray:
        return self._shown(self.errors.test_errors)

    def _shown(self, errors: np.ndarray) -> np.ndarray:
        """Errors as the page shows them: shares of mistakes, or roots of mean squared errors."""
        return errors if self.scene.task == "classification" else np.sqrt(errors)

    def model(self, number: int) -> Any:
        if number == 0:
            return self.full_tree
        alpha = float(self.errors.ccp_alphas[number])
        return self.models.get(number, partial(prune, self.full_tree, ccp_alpha=alpha))

    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        model = self.model(self.numbers[position])
        drawn: dict[str, Any] = {"tree": tree_of_scene(model, self.scene)}
        if self.scene.task == "regression":
            drawn["curve"] = curve_of(model, self.scene)
        else:
            drawn["plane"] = plane_of(model, self.scene, grid)
        if position > 0:
            drawn["highlighted"] = self._merged(self.model(self.numbers[position - 1]), model)
        return state_of(position, **drawn)

    def _merged(self, before: Any, after: Any) -> list[int]:
        """The points whose leaf has become larger."""
        X, _ = self.scene.training()
        sizes = [tree.arrays_.n_samples[tree.apply(X)] for tree in (before, after)]
        found: list[int] = self.scene.training_rows[sizes[0] != sizes[1]].tolist()
        return found


def trace(scene: Scene) -> Trace:
    X, y = scene.training()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture shows the warnings
        full_tree = scene.estimator().set_params(ccp_alpha=0.0).fit(X, y)
    has_test = bool(scene.is_test.any())
    errors = pruning_errors(full_tree, X, y, *(scene.testing() if has_test else (X, y)))
    numbers = shown_numbers(len(errors.ccp_alphas) - 1)
    fit = _Fit(scene, full_tree, errors, has_test, numbers, LruCache(_MODELS))
    curves = [curve_over_steps(f"training {error_name(scene)}", fit.training[numbers])]
    if has_test:
        curves.append(curve_over_steps(f"test {error_name(scene)}", fit.test[numbers]))
    return Trace(
        steps=[_describe(fit, k) for k in range(1, len(numbers))],
        total=len(errors.ccp_alphas) - 1,
        curves=curves,
        state=fit.state,
    )


def _describe(fit: _Fit, position: int) -> dict[str, Any]:
    errors, number, before = fit.errors, fit.numbers[position], fit.numbers[position - 1]
    alpha = float(errors.ccp_alphas[number])
    leaves = int(errors.n_leaves[number])
    gone = int(errors.n_leaves[before]) - leaves
    text = (
        f"From a price of {alpha:.4g} on, {gone} {'leaf is' if gone == 1 else 'leaves are'} not "
        f"worth it: {leaves} {'is' if leaves == 1 else 'are'} left."
    )
    if fit.has_test and number == errors.best:
        text = f"{text} No other tree has a smaller test error, or an equal one with fewer leaves."
    if number == _chosen(fit):
        text = f"{text} This is the tree for the chosen price."
    figures: dict[str, Any] = {
        "alpha": alpha,
        "leaves": leaves,
        "training error": fit.training[number],
    }
    if fit.has_test:
        figures["test error"] = fit.test[number]
    return step_record(text, **figures)


def _chosen(fit: _Fit) -> int:
    """The step whose tree belongs to the `ccp_alpha` of the scene."""
    price = float(fit.scene.estimator().ccp_alpha)
    return int(np.searchsorted(fit.errors.ccp_alphas, price, side="right")) - 1
