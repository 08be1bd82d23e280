"""Numbers beside a picture: errors, counts, and the certificate of the solution."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from margrove.facts import Facts, GradientFacts, LinearFacts, PerceptronFacts
from margrove.grove import DecisionTree
from margrove.grove.serve import LEAF
from margrove.studio.content import Scene
from margrove.studio.pictures.scene_fits import Fitted

__all__ = ["empty_figures", "figures_of"]

_GOOD_GAP = 0.01  # relative; tol = 1e-3 stays below
_FOREST_NAMES = (
    "RandomForestClassifier", "RandomForestRegressor",
    "ExtraTreesClassifier", "ExtraTreesRegressor",
)  # fmt: skip

Line = dict[str, Any]
_NAMES_OF_LOSSES = {"squared_error": "half the mean squared error"}


def figures_of(found: Fitted, scene: Scene) -> dict[str, Any]:
    """`Figures` of the protocol, of a fitted model of a scene."""
    model = found.model
    counts, lines = _counts_and_certificate(found)
    return {
        "trainError": _error(model, scene, *scene.training()),
        "testError": _error(model, scene, *scene.testing()),
        "seconds": found.seconds,
        "counts": [{"name": name, "value": value} for name, value in counts.items()],
        "certificate": sorted(lines, key=lambda line: line["good"]),
        "remarks": list(found.remarks),
    }


def empty_figures(remark: str) -> dict[str, Any]:
    """`Figures` for a scene without a fit."""
    return {
        "trainError": None,
        "testError": None,
        "seconds": 0.0,
        "counts": [],
        "certificate": [],
        "remarks": [remark],
    }


def _error(model: Any, scene: Scene, X: np.ndarray, y: np.ndarray) -> float | None:
    """The share of mistakes, or the root of the mean squared error."""
    if not len(y):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = np.asarray(model.predict(X))
    if scene.task == "classification":
        return float(np.mean(predicted != y))
    error = float(np.sqrt(np.mean((predicted - y) ** 2)))
    return error if math.isfinite(error) else None


# -- by kind of learner ----------------------------------------------------------------------------


def _counts_and_certificate(found: Fitted) -> tuple[dict[str, float], list[Line]]:
    """Counts of a fitted model, and the lines of its certificate."""
    model = found.model
    name = type(model).__name__
    if isinstance(model, DecisionTree):
        return _of_tree(model), []
    if name in _FOREST_NAMES:
        return _of_forest(model)
    if name.startswith("Bagging"):
        return {"members": len(model.estimators_)}, []
    if name == "AdaBoostRegressor":
        return {"rounds": len(model.estimators_)}, []
    if name == "AdaBoostClassifier":
        return _of_boosting(model)
    for kind, reader in _READERS.items():
        if isinstance(found.facts, kind):
            return reader(found.facts)
    return {}, []


def _of_tree(model: Any) -> dict[str, float]:
    tree = model.arrays_
    return {
        "leaves": int(np.count_nonzero(tree.kind == LEAF)),
        "nodes": len(tree),
        "depth": int(tree.depth.max()),
    }


def _of_forest(model: Any) -> tuple[dict[str, float], list[Line]]:
    trees = model.trees_
    leaves = [tree.n_leaves for tree in trees]
    counts: dict[str, float] = {"trees": len(trees), "leaves of all trees": int(sum(leaves))}
    if not hasattr(model, "oob_score_"):
        return counts, []
    score = float(model.oob_score_)
    if hasattr(model, "classes_"):
        counts["error out of bag, %"] = round(100.0 * (1.0 - score), 1)
    else:
        counts["r2 out of bag"] = round(score, 3)
    return counts, []


def _of_machine(facts: Facts) -> tuple[dict[str, float], list[Line]]:
    counts: dict[str, float] = {}
    if facts.n_support is not None:
        counts["support vectors"] = int(facts.n_support)
    if len(facts.machines) == 1:  # the training error tells how many are wrong
        counts |= {
            kind.name: int(kind.count) for kind in facts.kinds if kind.name != "misclassified"
        }
    counts["iterations"] = int(facts.iterations)
    lines = []
    proof = facts.proof
    if proof is not None:
        gap = f"{proof.gap:.2g}: at most {100 * proof.relative_gap:.2g} % from the best"
        lines.append(_line("duality gap", gap, good=proof.relative_gap <= _GOOD_GAP))
        if not isinstance(facts, LinearFacts):  # they stop by the gap
            good = proof.violation <= 10.0 * float(facts.parameters["tol"])
            lines.append(_line("largest KKT violation", f"{proof.violation:.2g}", good=good))
        between = f"{proof.dual:.6g} to {proof.primal:.6g}"
        lines.append(_line("the best objective is in", between, good=True))
    if facts.converged is False:
        lines.append(_line("converged", "no", good=False))
    widths = [machine.margin_width for machine in facts.machines]
    if len(widths) == 1 and widths[0] is not None and math.isfinite(widths[0]):
        counts["width of the margin"] = float(f"{widths[0]:.4g}")
    return counts, lines


def _of_perceptron(facts: PerceptronFacts) -> tuple[dict[str, float], list[Line]]:
    counts: dict[str, float] = {"mistakes": int(facts.mistakes), "epochs": int(facts.epochs)}
    if facts.kernel is not None and facts.n_support is not None:
        counts["support vectors"] = int(facts.n_support)
    separated = bool(facts.separated)
    lines = [_line("separates the points", "yes" if separated else "no", good=separated)]
    bound = facts.novikoff_bound
    if bound is not None and math.isfinite(bound):
        text = f"{facts.mistakes:g} mistakes, the theorem allows {bound:,.0f}"
        lines.append(_line("Novikoff", text, good=facts.mistakes <= bound))
    return counts, lines


def _of_boosting(model: Any) -> tuple[dict[str, float], list[Line]]:
    """From the history: facts about all members would take longer than the fit."""
    history, n_rounds = model.history_, len(model)
    error, bound = (
        float(values[n_rounds - 1]) for values in (history.training_error, history.bound)
    )
    lines = []
    if math.isfinite(bound):
        text = f"{error:.1%}, the bound says at most {min(bound, 1.0):.1%}"
        lines.append(_line("training error", text, good=error <= bound + 1e-9))
    if history.outcome != "complete":
        lines.append(_line("why it stopped", str(history.outcome), good=True))
    return {"rounds": n_rounds}, lines


def _of_gradient(facts: GradientFacts) -> tuple[dict[str, float], list[Line]]:
    counts: dict[str, float] = {"rounds": int(facts.n_rounds), "trees": int(facts.n_trees)}
    before, after = facts.loss_at_start, facts.loss_at_end
    name = _NAMES_OF_LOSSES.get(facts.loss, facts.loss)
    fell = _line(f"{name} fell", f"{before:.4g} to {after:.4g}", good=after <= before)
    return counts, [fell]


def _line(name: str, value: str, *, good: bool) -> Line:
    return {"name": name, "value": value, "good": bool(good)}


_READERS: dict[type, Callable[[Any], tuple[dict[str, float], list[Line]]]] = {
    PerceptronFacts: _of_perceptron,  # these are Facts, too
    Facts: _of_machine,
    GradientFacts: _of_gradient,
}
