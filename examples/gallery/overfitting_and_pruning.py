"""
Overfitting and pruning
=======================

A tree without limits memorises its rows, noise included. This page shows how that looks,
and two ways back: rows held out decide which branches go, or a price on leaves does.
"""

import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import DecisionTreeClassifier
from margrove.datasets import make_moons

# %%
# Two moons that overlap. The grown tree makes no mistake on the rows that it has seen, by islands
# around single points, and pays for it on new rows.

X, y = make_moons(300, noise=0.35, random_state=0, return_X_y=True)
X_new, y_new = make_moons(2000, noise=0.35, random_state=1, return_X_y=True)
grown = DecisionTreeClassifier().fit(X, y)
print(
    f"{grown.get_n_leaves()} leaves: {grown.score(X, y):.1%} right in training, "
    f"{grown.score(X_new, y_new):.1%} on new rows"
)

# %%
# The curve of every textbook: as the tree gets larger, the training error goes to zero, while the
# error on other rows falls at first and then rises.

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
margrove.plot.error_against_size(grown, X, y, X_new, y_new, ax=ax)

# %%
# Rows held out decide
# --------------------
# Reduced-error pruning: of all nodes, turn the one into a leaf that improves the accuracy on a
# validation set most, and stop when none does.

rows = np.arange(len(X))
first, second = rows % 3 > 0, rows % 3 == 0
large = DecisionTreeClassifier().fit(X[first], y[first])
small = margrove.prune(large, "reduced_error", X=X[second], y=y[second])
print(f"{large.get_n_leaves()} leaves, {large.score(X_new, y_new):.1%} right on new rows")
print(f"{small.get_n_leaves()} leaves, {small.score(X_new, y_new):.1%} right on new rows")

# %%
# A price on leaves
# -----------------
# Cost-complexity pruning makes impurity + alpha x leaves small. Each alpha has its tree, and
# these are nested: a path from the grown tree to its root. Cross-validation picks one, here the
# smallest tree whose error is within a standard error of the least.

found = margrove.cross_validated_alpha(DecisionTreeClassifier(), X, y, random_state=0)
pruned = margrove.prune(grown, ccp_alpha=found.ccp_alpha)
print(f"{len(found.n_leaves)} trees on the path; chosen: {pruned.get_n_leaves()} leaves")
print(f"{pruned.score(X_new, y_new):.1%} right on new rows, without holding any row back")
_, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for panel, model, title in zip(axes, (grown, pruned), ("grown", "pruned"), strict=True):
    margrove.plot.regions(model, X, y, ax=panel, legend=False)
    panel.set_title(f"{title}: {model.get_n_leaves()} leaves")

# %%
# Stopping early is cheaper, but cannot see later splits: a node that gains nothing may have
# children that gain much.

for name, limit in (("max_depth", 3), ("min_samples_leaf", 20), ("significance", 0.01)):
    model = DecisionTreeClassifier(**{name: limit}).fit(X, y)
    print(
        f"{name}={limit}: {model.get_n_leaves()} leaves, "
        f"{model.score(X_new, y_new):.1%} right on new rows"
    )

# %%
# A single tree is easy to read, but varies much with its data. :doc:`Many trees
# <bagging_and_forests>` are more stable.
