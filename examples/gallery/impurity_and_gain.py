"""
Impurity and gain: which question is best
=========================================

A good question leaves purer groups. There are several ways to measure impurity, and for numbers
a question is also a threshold. This page follows the irises of the lectures.
"""

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.datasets import load_iris_ratios, make_xor
from margrove.grove.criteria import entropy, impurity

# %%
# Three measures
# --------------
# With shares p of the classes: the error 1 - max p, the Gini index 1 - sum p^2, and the entropy
# -sum p log p. All are 0 for a pure group and largest where classes are equal. Gini and entropy
# are curved, so that they also reward a question that makes one side purer without changing any
# majority.

_, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
margrove.plot.impurity_curves(ax=ax)
for name in ("entropy", "gini", "error"):
    before = impurity(name, [40, 40])
    one = 0.5 * impurity(name, [30, 10]) + 0.5 * impurity(name, [10, 30])
    other = 0.75 * impurity(name, [20, 40]) + 0.25 * impurity(name, [20, 0])
    print(
        f"{name:8s} gain of (30, 10 | 10, 30): {before - one:.3f}, "
        f"of (20, 40 | 20, 0): {before - other:.3f}"
    )

# %%
# The error finds both questions equally good. The other two prefer the second, which has one pure
# side. The base of the logarithm is a matter of units: bits, nats or digits.

print(
    {
        name: round(float(entropy([0.25, 0.75], base)), 3)
        for name, base in (("2", 2), ("e", np.e), ("10", 10))
    }
)

# %%
# Irises, by two ratios
# ---------------------
# Length by width of sepals and of petals. The first cut, on the sepals' ratio, leaves 49 of the
# first species alone. The other side has 1, 50 and 50 of the three, with a Gini index of 0.5098:
# the slide's number.

iris = load_iris_ratios()
stump = DecisionTreeClassifier(max_leaf_nodes=2).fit(iris.data, iris.target)
reading = margrove.read_tree(stump)
print(reading.nodes[0].question.text)
for leaf in reading.leaves:
    counts = np.round(np.array(list(leaf.shares.values())) * leaf.weight).astype(int)
    print(f"{counts}: Gini index {leaf.impurity:.4f}")

# %%
# Where to cut next? For each feature, every threshold is tried. The second ratio has the better
# one.

inside = iris.data[:, 0] > stump.arrays_.threshold[0]
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
margrove.plot.gain_against_threshold(iris.data[inside], iris.target[inside], ax=ax)

# %%
# The leaf that gains most is split first, again and again. Rectangles come out, whose sides are
# parallel to the axes.

_, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
margrove.plot.tree_growth(iris.data, iris.target, leaves=(2, 3, 6), axes=axes)

# %%
# A leaf need not be pure. Its shares are probabilities: three red and five green make 3/8 and
# 5/8.

leaf = DecisionTreeClassifier().fit([[0.0]] * 8, ["red"] * 3 + ["green"] * 5)
print(dict(zip(leaf.classes_.tolist(), leaf.predict_proba([[0.0]])[0].tolist(), strict=True)))

# %%
# Numbers instead of classes
# --------------------------
# For regression the impurity is the variance, a leaf says the mean, and the tree is a function of
# steps.

x = np.linspace(0, 6, 120)[:, None]
height = np.sin(x[:, 0]) + 0.15 * np.random.default_rng(0).normal(size=120)
_, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for panel, n_leaves in zip(axes, (4, 12), strict=True):
    steps = DecisionTreeRegressor(max_leaf_nodes=n_leaves).fit(x, height)
    margrove.plot.regression_surface(steps, x, height, ax=panel)
    panel.set_title(f"{n_leaves} leaves")

# %%
# Greed is short-sighted
# ----------------------
# In four quadrants no first cut gains anything, and yet two levels separate them all. A tree that
# refuses to split without gain never gets there. So grow first, and :doc:`prune afterwards
# <overfitting_and_pruning>`.

corners, parity = make_xor(4, noise=0.0, return_X_y=True)
grown = DecisionTreeClassifier().fit(corners, parity)
timid = DecisionTreeClassifier(min_impurity_decrease=1e-9).fit(corners, parity)
print(f"gain at the root {grown.arrays_.decrease[0]}, right {grown.score(corners, parity):.0%}")
print(
    f"a tree that wants gain at once: {timid.get_n_leaves()} leaf, "
    f"right {timid.score(corners, parity):.0%}"
)
