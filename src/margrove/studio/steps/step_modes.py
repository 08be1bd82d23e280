"""The step modes: their titles, their learners, and the functions that trace them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from margrove.studio.content import LectureTable, Scene, StudioError
from margrove.studio.pictures import missing
from margrove.studio.steps.ensembles import adaboost, gradient_boosting, member_steps
from margrove.studio.steps.margin import hull, perceptron, smo, subgradient
from margrove.studio.steps.traces import Trace
from margrove.studio.steps.trees import pruning, splits
from margrove.studio.worker import LruCache, key_of

__all__ = ["STEPS", "StepMode", "step_of", "steps_of"]

Result = TypeVar("Result")

_CACHED = 6

_FORESTS = (
    "RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier",
    "ExtraTreesRegressor",
)  # fmt: skip
_BAGS = ("BaggingClassifier", "BaggingRegressor")
_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor")
_GRADIENT = (
    "GradientBoostingClassifier", "GradientBoostingRegressor", "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
)  # fmt: skip


@dataclass(frozen=True)
class StepMode:
    """A way to show a fit in steps: its texts, its learners, and the function that traces a fit.

    highlights   what the highlighted points of a step are
    """

    kind: str
    title: str
    summary: str
    learners: tuple[str, ...]
    trace: Callable[[Any], Trace]
    highlights: str = ""


STEPS: dict[str, StepMode] = {
    mode.kind: mode
    for mode in (
        StepMode(
            "perceptron",
            "The perceptron, mistake by mistake",
            "A step is a mistake: the point is added to the weights or subtracted from them.",
            ("Perceptron",),
            perceptron.trace,
            "the mistake",
        ),
        StepMode(
            "smo",
            "Sequential minimal optimisation, pair by pair",
            "A step moves the dual variables of two points along a line, within their box.",
            ("SVC",),
            smo.trace,
            "the pair",
        ),
        StepMode(
            "subgradient",
            "Stochastic subgradients, visit by visit",
            "A step visits a point whose margin is below 1, and turns the weights towards it.",
            ("SVC",),
            subgradient.trace,
            "the point that is visited",
        ),
        StepMode(
            "hull",
            "The nearest points of two hulls, move by move",
            "A step moves a point of each hull towards the other, in the feature space of the "
            "kernel. The margin is hard, so C and class weights have no effect.",
            ("SVC",),
            hull.trace,
            "points that have a weight",
        ),
        StepMode(
            "splits",
            "A tree, split by split",
            "A step splits the leaf whose split gains most, summed over its points.",
            _TREES,
            splits.trace,
            "points of the leaf",
        ),
        StepMode(
            "pruning",
            "A tree, pruned step by step",
            "A step raises the price of a leaf until some branches are not worth their leaves.",
            _TREES,
            pruning.trace,
            "points of the branch",
        ),
        StepMode(
            "members",
            "An ensemble, member by member",
            "A step adds a tree, grown on its own draw of the points, to the vote.",
            (*_BAGS, *_FORESTS),
            member_steps.trace,
            "not drawn for this tree",
        ),
        StepMode(
            "adaboost",
            "AdaBoost, round by round",
            "A step fits a rule to the weighted points, and then changes their weights.",
            ("AdaBoostClassifier",),
            adaboost.trace,
            "missed by this rule",
        ),
        StepMode(
            "gradient",
            "Gradient boosting, round by round",
            "A step fits a tree to the residuals, and adds a fraction of it.",
            _GRADIENT,
            gradient_boosting.trace,
        ),
    )
}

_traces: LruCache[Trace] = LruCache(_CACHED)


def steps_of(kind: Any, scene: Scene | LectureTable) -> dict[str, Any]:
    """All steps of the fit of a scene: `Steps` of the protocol.

    Parameters
    ----------
    kind : str
        A key of STEPS.
    scene : Scene or LectureTable
        A table of the lectures for "splits" only.

    Returns
    -------
    dict

    Examples
    --------
    >>> from margrove.studio.content.lectures import lecture_table
    >>> from margrove.studio.steps import steps_of
    >>> [step["text"] for step in steps_of("splits", lecture_table("play_tennis"))["steps"]][:1]
    ['A leaf of 14 rows asks outlook = ?. Its impurity, 0.940, falls by 0.247.']
    """
    mode = _mode(kind, scene)
    return {
        "kind": mode.kind,
        "title": mode.title,
        "summary": mode.summary,
        **_trace(mode, scene).as_dict(),
    }


def step_of(
    kind: Any, scene: Scene | LectureTable, number: Any, grid: Any = (60, 60)
) -> dict[str, Any]:
    """The state after one of the shown steps: `Step` of the protocol.

    Parameters
    ----------
    kind, scene
        As in `steps_of`.
    number : int
        From 0, the state before the first step.
    grid : pair of int
        Rows and columns of surfaces.

    Returns
    -------
    dict
    """
    mode = _mode(kind, scene)
    trace = _trace(mode, scene)
    last = len(trace.steps)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= last:
        raise StudioError(f"number must be a step from 0 to {last}. Got {ascii(number)[:60]}.")
    state = _with_studio_errors(mode, lambda: trace.state(number, grid))
    is_test = np.zeros(0, bool) if isinstance(scene, LectureTable) else scene.is_test
    return state | {"isTest": is_test.astype(np.uint8), "highlights": mode.highlights}


def _mode(kind: Any, scene: Scene | LectureTable) -> StepMode:
    mode = STEPS.get(kind) if isinstance(kind, str) else None
    if mode is None:
        raise StudioError(f"Steps are {', '.join(STEPS)}. Got {ascii(kind)[:60]}.")
    if isinstance(scene, LectureTable):
        if kind != "splits":
            raise StudioError(f"Tables of the lectures are shown split by split, not by {kind}.")
    elif scene.learner not in mode.learners:
        raise StudioError(f"{scene.learner} has no steps of this kind: {mode.title}.")
    return mode


def _trace(mode: StepMode, scene: Scene | LectureTable) -> Trace:
    key = scene.name if isinstance(scene, LectureTable) else key_of(scene)
    return _traces.get((mode.kind, key), lambda: _traced(mode, scene))


def _traced(mode: StepMode, scene: Scene | LectureTable) -> Trace:
    lacking = "" if isinstance(scene, LectureTable) else missing(scene)
    if lacking:
        raise StudioError(lacking)
    return _with_studio_errors(mode, lambda: mode.trace(scene))


def _with_studio_errors(mode: StepMode, make: Callable[[], Result]) -> Result:
    """Call without warnings, which the picture of the scene shows; errors become StudioErrors."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make()
    except StudioError:
        raise
    except (ValueError, TypeError, ArithmeticError) as error:
        raise StudioError(f"{mode.title}: {error}") from error
