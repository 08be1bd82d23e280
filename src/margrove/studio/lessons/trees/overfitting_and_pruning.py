"""Overfitting, and pruning against it."""

from __future__ import annotations

from functools import partial

from margrove.facts.models import pruning_errors
from margrove.studio.content import Scene, StudioError
from margrove.studio.lessons.lesson import Count, Lesson, fitted_to, preset_scene

__all__ = ["LESSON"]


def _right(scene: Scene) -> Count:
    if not scene.is_test.any():
        raise StudioError(
            "Keep some points for testing: without them one cannot tell which tree is best."
        )
    tree = fitted_to(scene, "DecisionTreeClassifier", ccp_alpha=0.0)
    found = pruning_errors(tree, *scene.training(), *scene.testing())
    best, n_leaves = found.best, int(found.n_leaves[0])
    return Count(
        int(found.n_leaves[best]),
        f"Its test error is {found.test_errors[best]:.1%}, that of the full tree with {n_leaves} "
        f"leaves {found.test_errors[0]:.1%}, although the full tree makes fewer mistakes on the "
        "points that it was grown on.",
    )


LESSON = Lesson(
    name="pruning",
    title="Overfitting and pruning",
    text="""
    Without a limit, a tree grows until it makes no mistake on the points it learns from. If these
    points are noisy, it learns the noise: small boxes around single points, which say nothing
    about new ones.

    The rings are points that the tree has not seen. They show how well it does on new points.
    Growing is cheap and easy to undo, so one grows the full tree and then prunes it, rather
    than stopping early: a split that gains little may have a good one below it.

    Give every leaf a price. As it rises, the branches that gain least for their leaves go
    first, and each step here removes some. The training error only rises on the way. The test
    error falls at first, and rises in the end.
    """,
    stage="steps",
    steps="pruning",
    make_scene=partial(
        preset_scene,
        "moons",
        "DecisionTreeClassifier",
        size=240,
        noise=0.35,
        seed=1,
        test_share=0.4,
    ),
    question="How many leaves has the smallest of the trees whose test error is the least?",
    hint="The text of a step says so; the full tree, before the first step, counts too.",
    right=_right,
)
