"""
AdaBoost: ten points, three rules of thumb
==========================================

No single line parallel to an axis gets more than seven of these ten points right. Three of
them, voting, get all ten. This page follows the lectures' example round by round, checks the
bound on the training error, and shows when boosting overfits and when it does not.
"""

import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import AdaBoostClassifier, DecisionTreeClassifier, facts
from margrove.datasets import load_boosting_points, make_moons

# %%
# Three rounds
# ------------
# .. code-block:: text
#
#     D = 1/n for all points
#     each round:  h     the rule with the smallest weighted error eps
#                  beta  = 1/2 ln((1 - eps) / eps)
#                  D     times exp(-beta y h(x)), made to sum to one: mistakes get heavier
#     together:    sign(sum beta h(x))

X, y = load_boosting_points(return_X_y=True)
stump = DecisionTreeClassifier(max_depth=1, criterion="error")
model = AdaBoostClassifier(stump, n_estimators=3).fit(X, y)
history = model.history_
for t in range(3):
    print(
        f"round {t + 1}: eps = {history.error[t]:.2f}, beta = {history.beta[t]:.2f}, "
        f"all so far wrong on {history.training_error[t]:.0%}"
    )

# %%
# These are the slides' numbers: 0.30, 0.21, 0.14 and 0.42, 0.65, 0.92. Points are as large as
# their weights, circles mark mistakes.

_, axes = plt.subplots(2, 2, figsize=(8, 7), layout="constrained")
margrove.plot.boosting_rounds(model, X, y, axes=axes)

# %%
# After a round its mistakes weigh exactly one half, so that the same rule would be no better than
# a coin:

for t, weight in enumerate(model.staged_weights(X, y)):
    if t:
        wrong = model[t - 1].predict(X) != y
        print(f"after round {t}: the three mistakes weigh {weight[wrong].sum():.3f} together")
for rule in facts.stump_rules(model):
    print(f"{rule.weight:.2f}  {rule.text}")

# %%
# The bound
# ---------
# If each rule is better than chance by an edge g = 1/2 - eps, the training error is at most
# exp(-2 sum g^2): it falls exponentially, however weak the rules. The product of the normalisers
# Z is a tighter bound.

edges = history.edge
print("edges                ", edges.round(3))
print(
    "exp(-2 sum of edge^2)", np.exp(-2 * np.cumsum(edges**2)).round(3), history.edge_bound.round(3)
)
print("product of Z         ", history.bound.round(3))
print("training error       ", history.training_error)

# %%
X, y = make_moons(400, noise=0.3, random_state=0, return_X_y=True)
X_new, y_new = make_moons(2000, noise=0.3, random_state=1, return_X_y=True)
stumps = AdaBoostClassifier(stump, n_estimators=400).fit(X, y)
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
margrove.plot.boosting_errors(stumps, X_new, y_new, scale="log", ax=ax)

# %%
# Why it often does not overfit
# -----------------------------
# Boosted trees make no mistake in training after a few rounds, and new rows still gain from more
# of them. The reason is the margin: how clearly the vote is right. More rounds make the unclear
# cases clearer.

tree = DecisionTreeClassifier(max_depth=6)
deep = AdaBoostClassifier(tree, n_estimators=500).fit(X, y)
wrong = [1 - score for score in deep.staged_score(X_new, y_new)]
for t in (5, 100, 500):
    print(
        f"{t:4d} rounds: {deep.history_.training_error[t - 1]:.1%} wrong in training, "
        f"{wrong[t - 1]:.1%} on new rows"
    )
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
margrove.plot.boosting_margins(deep, X, y, stages=(5, 100, 500), ax=ax)

# %%
# And when it does
# ----------------
# Labels that are wrong get heavier and heavier, since no rule explains them. With a fifth of the
# labels flipped, a few rounds are best; ``early_stopping`` finds out on rows held out.

flipped = np.where(np.random.default_rng(0).random(len(y)) < 0.2, 1 - y, y)
noisy = AdaBoostClassifier(tree, n_estimators=300).fit(X, flipped)
wrong = 1 - np.array(list(noisy.staged_score(X_new, y_new)))
held = AdaBoostClassifier(stump, n_estimators=300, early_stopping=True, random_state=0).fit(
    X, flipped
)
print(
    f"trees: {wrong.min():.1%} wrong on new rows at best, {wrong[-1]:.1%} after {len(wrong)} rounds"
)
print(f"stumps, stopped after {len(held)} rounds: {1 - held.score(X_new, y_new):.1%}")

# %%
# AdaBoost reweights rows. :doc:`Gradient boosting <gradient_boosting>` asks where the loss is
# steepest, for any loss.
