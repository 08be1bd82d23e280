"""
Bagging and random forests
==========================

Grow a tree on each of many bootstrap samples and let them vote. Single trees need not be
very good. This page shows why this helps, why trees should differ, and what a forest reports about
itself.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import (
    BaggingClassifier,
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from margrove.datasets import make_moons, make_waveform
from margrove.plot import decision_boundary

# %%
# Trees change with the sample
# ----------------------------
# Three trees, each of another bootstrap sample of the same rows, and the vote of two hundred.

X, y = make_moons(200, noise=0.3, random_state=0, return_X_y=True)
bag = BaggingClassifier(DecisionTreeClassifier(), 200, random_state=0).fit(X, y)
_, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
for panel, model, title in zip(
    axes, [*bag.estimators_[:3], bag], ["tree 1", "tree 2", "tree 3", "200 trees"], strict=True
):
    decision_boundary(model, X, y, ax=panel, legend=False)
    panel.set_title(title)

# %%
# The boundaries of twenty trees, thin, and that of the vote:

_, ax = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
margrove.plot.bagged_boundaries(bag, X, y, n_members=20, ax=ax)

# %%
# The vote is steadier than its members, and better on new rows:

X_new, y_new = make_moons(3000, noise=0.3, random_state=1, return_X_y=True)
single = [tree.score(X_new, y_new) for tree in bag.estimators_]
print(f"trees: {np.mean(single):.1%} right on average, the best {max(single):.1%}")
print(f"their vote: {bag.score(X_new, y_new):.1%}")

# %%
# Why it helps, and why not more
# ------------------------------
# The mean of B trees whose errors have variance s^2 and correlation r has variance
#
# .. code-block:: text
#
#     r s^2 + (1 - r) s^2 / B
#
# More trees take away the second term, never the first. A random forest lowers r: each split may
# choose among a few features only, newly drawn. Trees get a little worse, and the forest better.
# On Breiman's waveforms, with 21 features:

X, y = make_waveform(300, random_state=0, return_X_y=True)
X_new, y_new = make_waveform(3000, random_state=1, return_X_y=True)
for name, max_features in (
    ("bagged trees, all 21", None),
    ("random forest, 4", 4),
    ("random forest, 1", 1),
):
    forest = RandomForestClassifier(200, max_features=max_features, random_state=0).fit(X, y)
    told = margrove.tree_correlation(forest, X_new, y_new)
    print(
        f"{name:21s} correlation {told.correlation:.2f}, "
        f"a tree errs on {told.tree_error:.1%}, the forest on {told.forest_error:.1%}"
    )

# %%
# A test set without extra rows
# -----------------------------
# Every tree left out 37 % of the rows. For each row the trees that have not seen it are a forest
# of their own, so that the error is estimated without a test set, tree by tree. More trees never
# hurt; they just stop helping.

forest = RandomForestClassifier(500, oob_score=True, random_state=0).fit(X, y)
print(f"out-of-bag accuracy {forest.oob_score_:.1%}, on new rows {forest.score(X_new, y_new):.1%}")
_, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
margrove.plot.oob_curve(forest, ax=ax)

# %%
# It is an estimate from three hundred rows, and this one is too good by some points. Over ten
# samples the two agree on average, while single ones are off by a few points either way:

pairs = []
for seed in range(10):
    rows, labels = make_waveform(300, random_state=seed, return_X_y=True)
    own = RandomForestClassifier(200, oob_score=True, random_state=0).fit(rows, labels)
    pairs.append((own.oob_score_, own.score(X_new, y_new)))
estimated, true = np.array(pairs).T
print(f"out of bag {estimated.mean():.1%}, on new rows {true.mean():.1%}, on average")
print(f"a single estimate is off by {np.abs(estimated - true).mean():.1%}, typically")

# %%
# What matters
# ------------
# Exchange the values of a feature among the out-of-bag rows: by how much more do the trees err?
# The ends of a waveform are noise, and their importances are near zero.

found = margrove.oob_importances(forest, X, y, random_state=0)
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
margrove.plot.importances(found, ax=ax)

# %%
# Average or vote
# ---------------
# The lecture's eight trees say True, False, True, True, False, True, True, True: the plurality
# says True. Averaging probabilities instead is the default, ``voting="hard"`` counts votes.

votes = RandomForestClassifier(9, voting="hard", random_state=0).fit(X, y)
counted = np.array([tree.predict(X_new[:1]) for tree in votes]).ravel()
print("votes of nine trees:", counted, "->", votes.predict(X_new[:1])[0])
_, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
small = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y)
unsure = X_new[small.predict_proba(X_new).max(axis=1).argmin()]  # the hardest of the new rows
margrove.plot.member_votes(small, unsure, ax=ax)

# %%
# For regression a forest gives intervals: those from out-of-bag errors have the given coverage.

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, (2000, 1))
height = np.sin(x[:, 0]) + rng.normal(size=2000) * np.where(x[:, 0] < 5, 0.1, 0.5)
curve = RandomForestRegressor(100, min_samples_leaf=5, oob_score=True, random_state=0).fit(
    x[:1000], height[:1000]
)
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
margrove.plot.prediction_intervals(curve, x[1000:], height[1000:], coverage=0.9, ax=ax)

# %%
# Forests grow their trees side by side. :doc:`Boosting <adaboost>` grows them one after the
# other.
