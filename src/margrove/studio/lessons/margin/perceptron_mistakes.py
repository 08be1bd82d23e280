"""The perceptron and its mistakes."""

from __future__ import annotations

from functools import partial

from margrove.studio.content import Scene
from margrove.studio.lessons.lesson import Count, Lesson, fitted_to, preset_scene

__all__ = ["LESSON"]


def _right(scene: Scene) -> Count:
    model = fitted_to(scene, "Perceptron")
    n = int(model.mistakes_)
    if not model.separated_:
        return Count(n, "No line separates these points, so it would make mistakes for ever.")
    bound = float(model.novikoff_bound_)
    return Count(
        n,
        "Then all points are on the right side. Novikoff's theorem allows at most "
        f"{bound:.0f}: the square of the radius of the points divided by the margin of the line.",
    )


LESSON = Lesson(
    name="perceptron",
    title="The perceptron and its mistakes",
    text="""
    A perceptron looks at one point after the other. As long as its line puts a point on the
    right side it does nothing at all. When it is wrong, it adds the point to its weights, or
    takes it away, depending on the class, and so turns the line a little.

    Each step here is one such mistake: the pale line is the one before, the strong line the one
    after. Note that the line often gets worse for other points. It need not improve in every
    step to reach a solution.

    If some line separates the classes, the number of mistakes is limited. The limit depends on
    how far out the points lie and how wide the gap between the classes is. It does not depend on
    how many points there are.
    """,
    stage="steps",
    steps="perceptron",
    make_scene=partial(preset_scene, "separable_clouds", "Perceptron", {"shuffle": True}),
    question="How many mistakes does the perceptron make on these points before it is done?",
    hint="Go to the last step: its number is the answer.",
    right=_right,
)
