"""The perceptron and its mistakes."""

from __future__ import annotations

from functools import partial

from margrove.studio.content import Scene
from margrove.studio.lessons.lesson import Count, Lesson, preset_scene
from margrove.studio.lessons.lesson_fits import fitted_to

__all__ = ["LESSON"]


def _right(scene: Scene) -> Count:
    model = fitted_to(scene, "Perceptron")
    n = int(model.mistakes_)
    if not model.separated_:
        return Count(n, "No line separates these points, so it would go on making them for ever.")
    bound = float(model.novikoff_bound_)
    return Count(
        n,
        f"Then all points are on their side. Novikoff's theorem promised at most {bound:.0f}: the "
        "square of the radius of the points over the margin of the line that it found.",
    )


LESSON = Lesson(
    name="perceptron",
    title="The perceptron and its mistakes",
    text="""
    A perceptron looks at one point after the other. As long as its line puts a point on the
    right side it does nothing at all. When it is wrong, it adds the point to its weights, or
    takes it away, depending on the class, and so turns the line a little.

    Each step here is one such mistake: the pale line is the one before, the strong line the one
    after. Mind that the line often gets worse for other points. It need not improve every time
    to arrive.

    If some line separates the classes, mistakes come to an end, however long one goes on. How
    many there can be depends on how far out the points lie and how wide the gap between the
    classes is. It does not depend on how many points there are.
    """,
    stage="steps",
    steps="perceptron",
    make_scene=partial(preset_scene, "separable_clouds", "Perceptron", {"shuffle": True}),
    question="How many mistakes does the perceptron make on these points before it is done?",
    hint="Go to the last step: its number is the answer.",
    right=_right,
)
