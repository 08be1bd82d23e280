"""
Tuning: which C, which gamma, how many trees
============================================

"Cross-validate C and the kernel width", say the lectures. Each family of learners has a cheap
and honest way to choose its own settings. This page shows them, and what the best of many
scores is worth.
"""

import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import (
    SVCCV,
    DecisionTreeClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from margrove.datasets import make_moons

# %%
# A map of C and gamma
# --------------------
# Every cell is a machine of each fold, solved to the end; they share their work, so that a
# hundred cells cost far less than a hundred searches.

X, y = make_moons(200, noise=0.3, random_state=0, return_X_y=True)
X_new, y_new = make_moons(3000, noise=0.3, random_state=1, return_X_y=True)
search = SVCCV().fit(X, y)
_, ax = plt.subplots(figsize=(7, 5), layout="constrained")
margrove.plot.score_map(search, ax=ax)
print(
    {name: round(value, 4) for name, value in search.best_params_.items()},
    f"cross-validated {search.best_score_:.3f}",
)

# %%
# Good settings lie along a ridge: a smoother kernel needs a larger C. At the top
# every point is an island, at the lower left everything is one class.
#
# The simplest of the good ones
# -----------------------------
# Scores of folds vary. Of all cells within a standard error of the best, take the one with the
# smallest C and gamma: a smoother boundary for the same evidence.

simple = SVCCV(refit="1se").fit(X, y)
_, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for panel, model, title in zip(
    axes, (search, simple), ("best", "within a standard error"), strict=True
):
    margrove.plot.decision_boundary(model.best_estimator_, X, y, ax=panel, legend=False)
    panel.set_title(f"{title}: {model.score(X_new, y_new):.1%} right on new rows")

# %%
# One function for all families
# -----------------------------
# ``autotune`` knows what matters for each: the pruning of a tree, the number of trees of a forest
# by its out-of-bag rows, the rounds of boosting by cross-validation.

for estimator in (
    DecisionTreeClassifier(),
    RandomForestClassifier(),
    HistGradientBoostingClassifier(max_leaf_nodes=8),
):
    tuned = margrove.autotune(estimator, X, y, random_state=0)
    chosen = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in tuned.tuning_.parameters.items()
    }
    print(
        f"{type(estimator).__name__}: {chosen}, {tuned.score(X_new, y_new):.1%} right on new rows"
    )

# %%
# It reports what it did and why:

tuned = margrove.autotune(DecisionTreeClassifier(), X, y, random_state=0)
for sentence in tuned.tuning_.explanation:
    print(sentence)
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
margrove.plot.tuning_curve(tuned, ax=ax)

# %%
# The best of many is too good to be true
# ---------------------------------------
# A coin has no best settings. The best cell of a hundred still looks better than a coin, because
# it was chosen for its score. For an unbiased score, test the whole search on rows that it has not
# seen.

coins = np.random.default_rng(0).integers(0, 2, 200)
fooled = SVCCV().fit(X, coins)
honest = np.mean(fooled.predict(X_new) == np.random.default_rng(1).integers(0, 2, len(X_new)))
print(f"best cell {fooled.best_score_:.3f}, on new rows {honest:.3f}")
