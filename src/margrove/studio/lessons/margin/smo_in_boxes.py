"""SMO: two dual variables at a time."""

from __future__ import annotations

from functools import partial

import numpy as np

from margrove.studio.content import Scene
from margrove.studio.lessons.lesson import Lesson, Measure, fitted_to, preset_scene

__all__ = ["LESSON"]


def _right(scene: Scene) -> Measure:
    machine = fitted_to(scene, "SVC", solver="smo")
    signed = machine.dual_coef_[0]
    total = float(signed.sum())
    of_classes = [float(np.abs(signed[is_class]).sum()) for is_class in (signed > 0, signed < 0)]
    return Measure(
        0.0 if abs(total) < 1e-6 * max(of_classes) else total,
        0.005 * max(1.0, *of_classes),
        f"At the end the alphas of the two classes sum to {of_classes[0]:.4g} and "
        f"{of_classes[1]:.4g}. A pair moves along a line on which this sum does not change, and at "
        "the start, with all alphas 0, it is 0.",
    )


LESSON = Lesson(
    name="smo",
    title="SMO: two at a time",
    text="""
    The widest margin is found by weighing points: each has a number alpha between 0 and C,
    which says how much it pushes the line away. All alphas together have to balance, those of
    one class against those of the other, or the line would not stay where it is.

    So no alpha can change alone. SMO changes two at a time: the second one makes up for the
    change of the first. That leaves a single direction, a line across the box of the two, and
    there is a formula for the best point on a line.

    Follow the box: the best point on the line may lie outside of it, and then the step ends at
    the edge. The dual objective, below, rises with every step.
    """,
    stage="steps",
    steps="smo",
    make_scene=partial(
        preset_scene,
        "gaussians",
        "SVC",
        {"kernel": "linear", "C": 1.0, "solver": "smo"},
        size=30,
        noise=0.7,
    ),
    question=(
        "Count the alphas of one class as positive and those of the other as negative. What do "
        "they sum to, after any step?"
    ),
    hint="It is the same after every step. What is it before the first, when all of them are 0?",
    right=_right,
)
