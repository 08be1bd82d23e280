"""Bagging, and forests."""

from __future__ import annotations

from functools import partial

import numpy as np

from margrove.studio.content import Scene
from margrove.studio.lessons.lesson import Lesson, Measure, fitted_to, preset_scene

__all__ = ["LESSON"]


def _right(scene: Scene) -> Measure:
    forest = fitted_to(scene, "RandomForestClassifier", bootstrap=True)
    n = len(scene.training_rows)
    left_out = [1.0 - len(np.unique(sample)) / n for sample in forest.estimators_samples_]
    share = float(np.mean(left_out))
    return Measure(
        share,
        0.03,
        f"That is the mean over {len(left_out)} trees. A point is missed by one draw with "
        f"probability 1 - 1/{n}, and by all {n} of them with {(1 - 1 / n) ** n:.3f}. These points "
        "can test the tree: that gives the out-of-bag error.",
    )


LESSON = Lesson(
    name="forests",
    title="Bagging and forests",
    text="""
    A deep tree follows its points closely. With other points it would be another tree, and that
    makes it unreliable. If there were many sets of points, one could grow a tree on each and
    let them vote: what is particular to one set would be outvoted.

    There is only one set. So each tree gets a draw from it, with replacement, of as many points
    as there are. In each step one more tree joins the vote, and the points that it has not seen
    are marked.

    Trees that all ask the same question first still make the same mistakes. A forest therefore
    lets each split choose among a few features only, drawn at random. This makes single trees
    worse, and the forest better.
    """,
    stage="steps",
    steps="members",
    make_scene=partial(
        preset_scene,
        "moons",
        "RandomForestClassifier",
        {"n_estimators": 40},
        size=150,
        noise=0.3,
        test_share=0.2,
    ),
    question="Which share of the points has a tree of this forest not seen, on average?",
    hint="Look at some of the steps: how many of the points has each tree seen?",
    right=_right,
)
