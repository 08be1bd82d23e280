"""Facts about each point: dual variable, slack, kind of support vector, weight."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.facts import Facts, PerceptronFacts, describe
from margrove.studio.content import Scene

__all__ = ["MACHINES", "Support", "boosting_weights", "over_points", "support_of"]

MACHINES = ("SVC", "NuSVC", "LinearSVC", "SVR", "NuSVR", "LinearSVR", "KernelPerceptron")
# The harmless kinds come first: on the margin, inside it, on the wrong side. Regression has two,
# on the edge of the tube and outside.
_CODES = {3: (1, 2, 3), 2: (1, 3)}


@dataclass(frozen=True, eq=False)
class Support:
    """Arrays over all points of a scene; None where a fact does not apply."""

    alpha: np.ndarray
    slack: np.ndarray | None
    kind: np.ndarray | None


def support_of(model: Any, scene: Scene, facts: Any = None) -> Support | None:
    """Facts of a support vector machine or a kernel perceptron; None for other learners."""
    if type(model).__name__ not in MACHINES:
        return None
    facts = describe(model) if facts is None else facts
    alpha = np.zeros(len(scene.training_rows))
    for machine in facts.machines:
        np.add.at(alpha, machine.support, np.abs(machine.coefficients))
    if isinstance(facts, PerceptronFacts):
        return Support(over_points(scene, alpha), None, None)
    slack = None if facts.proof is None else _slack(model, scene)
    return Support(over_points(scene, alpha), slack, _kinds(facts, scene))


def over_points(scene: Scene, of_training: np.ndarray, elsewhere: float = 0) -> np.ndarray:
    """Values of the training points, and one value for all test points, as an array."""
    found = np.full(len(scene.y), elsewhere, dtype=of_training.dtype)
    found[scene.training_rows] = of_training
    return found


def _kinds(facts: Facts, scene: Scene) -> np.ndarray | None:
    if not facts.kinds:
        return None
    kinds = np.zeros(len(scene.training_rows), dtype=np.uint8)
    for code, kind in zip(_CODES[len(facts.kinds)], facts.kinds, strict=True):
        kinds[kind.rows] = code
    return over_points(scene, kinds)


def _slack(model: Any, scene: Scene) -> np.ndarray | None:
    """The slack of each point; None for several machines, in each of which it has one."""
    machines = model.certificate_.machines
    if len(machines) != 1:
        return None
    slack = np.zeros(len(scene.training_rows))
    slack[machines[0].rows] = machines[0].errors
    return over_points(scene, slack)


def boosting_weights(model: Any, scene: Scene) -> np.ndarray | None:
    """Weights of the points in the last round of AdaBoost, 1 on average; None for others."""
    if not hasattr(model, "staged_weights"):
        return None
    X, y = scene.training()
    kept: deque[np.ndarray] = deque(model.staged_weights(X, y), maxlen=1)
    if not kept:
        return None
    last = kept[0]
    weights = last if last.ndim == 1 else last.mean(axis=1)
    return over_points(scene, weights / weights.mean(), elsewhere=1)
