"""Kernels, and how far the influence of a point reaches."""

from __future__ import annotations

from functools import partial

from margrove.studio.content import Scene
from margrove.studio.lessons.lesson import Count, Lesson, fitted_to, preset_scene

__all__ = ["LESSON"]

_SMALL, _MEDIUM, _LARGE = 0.1, 2.0, 200.0


def _right(scene: Scene) -> Count:
    machines = {
        gamma: fitted_to(scene, "SVC", kernel="rbf", gamma=gamma)
        for gamma in (_SMALL, _MEDIUM, _LARGE)
    }
    n = {gamma: len(machine.support_) for gamma, machine in machines.items()}
    return Count(
        n[_LARGE],
        f"Of {len(scene.training_rows)} points. With gamma = {_MEDIUM:g} it is {n[_MEDIUM]}, and "
        f"with {_SMALL:g} {n[_SMALL]}. Where every point influences only its neighbourhood, nearly "
        "all points are needed: the machine has memorised them.",
    )


LESSON = Lesson(
    name="kernels",
    title="Kernels and gamma",
    text="""
    No line separates the two moons. But a support vector machine uses only inner products of
    points, and a kernel is an inner product in another space, of more dimensions. A plane in that
    space is a curve in this one.

    The Gaussian kernel makes every point a hill. The score of a place is the sum of all hills
    there: those of one class go up, those of the other go down. Gamma says how steep they are.
    With a small gamma they are as wide as the whole plane, with a large one they are needles.

    The three machines differ in gamma only. The first is too stiff for the moons. The last has
    islands around single points, and all around them it knows nothing.
    """,
    stage="compare",
    make_scene=partial(
        preset_scene,
        "moons",
        "SVC",
        {"kernel": "rbf", "gamma": _SMALL, "C": 1.0},
        size=120,
        noise=0.2,
        test_share=0.25,
    ),
    others=(
        {"learner": "SVC", "parameters": {"kernel": "rbf", "gamma": _MEDIUM, "C": 1.0}},
        {"learner": "SVC", "parameters": {"kernel": "rbf", "gamma": _LARGE, "C": 1.0}},
    ),
    question=f"How many support vectors has the machine with gamma = {_LARGE:g}?",
    hint="It is among the figures of that machine. Compare it with the number of training points.",
    right=_right,
)
