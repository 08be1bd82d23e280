"""
Comparing models honestly
=========================

One model scores 96 %, another 95 %. Is the first better, or is it chance? This page gives all
models the same folds, tests the differences as folds require, and shows how a careless test finds
differences that are not there.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove
from margrove import SVC, DecisionTreeClassifier, LinearSVC, RandomForestClassifier
from margrove.datasets import load_breast_cancer

# %%
# Four families on one table
# --------------------------
# Machines measure distances and need scaled features. The scaler is part of the model, so that it
# is fitted separately in each fold and does not see the held-out rows.

X, y = load_breast_cancer(return_X_y=True)
models = {
    "kernel machine": make_pipeline(StandardScaler(), SVC()),
    "linear machine": make_pipeline(StandardScaler(), LinearSVC(C=0.01)),
    "forest": RandomForestClassifier(100, random_state=0),
    "tree": DecisionTreeClassifier(),
}
comparison = margrove.compare(models, X, y, random_state=0)
_, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
margrove.plot.compared_models(comparison, ax=ax)
for one in comparison.models:
    print(f"{one.name:15s} {one.score:.4f}")

# %%
# The result in sentences:

for sentence in comparison.sentences:
    print("-", sentence)

# %%
# Differences to the best, with their intervals. If an interval contains zero, the difference may be
# chance; "do not differ at this sample size" is not "are equally good".

_, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
margrove.plot.compared_models(comparison, what="differences", ax=ax)

# %%
# Why not a plain t-test
# ----------------------
# Folds share most of their training rows, and repeating cross-validation tests the same rows
# again. Scores of folds are not independent, and a test that assumes it finds more and more false
# differences. Here are two simple rules, each of which uses one of two equally useful features: is
# it above the middle between the classes? Neither is better, by construction.


def share_right(x, y, train, test):
    middle = (x[train & (y == 0)].mean() + x[train & (y == 1)].mean()) / 2
    return np.mean((x[test] > middle) == (y[test] == 1))


def differences_of_folds(seed, n_rows=60, n_repeats=4, n_folds=5):
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = y[:, None] + rng.normal(scale=1.2, size=(n_rows, 2))
    found = []
    for _ in range(n_repeats):
        fold = rng.permutation(n_rows) % n_folds
        for k in range(n_folds):
            parts = fold != k, fold == k
            found.append(share_right(X[:, 0], y, *parts) - share_right(X[:, 1], y, *parts))
    return np.array(found)


plain, corrected = [], []
for seed in range(500):
    d = differences_of_folds(seed)
    spread = d.var(ddof=1)
    plain.append(2 * stats.t.sf(abs(d.mean()) / np.sqrt(spread / 20), 19))
    corrected.append(2 * stats.t.sf(abs(d.mean()) / np.sqrt(spread * (1 / 20 + 1 / 4)), 19))
print(f"plain t-test: a 'difference' in {np.mean(np.array(plain) < 0.05):.0%} of the data sets")
print(
    "corrected for the overlap of folds: "
    f"in {np.mean(np.array(corrected) < 0.05):.0%}, where 5 % was promised"
)

# %%
# Is 0.9 right nine times of ten?
# -------------------------------
# A classifier can rank rows well and still give wrong probabilities. Reliability compares
# probabilities with observed frequencies.

test = np.arange(len(y)) % 2 == 0
forest = RandomForestClassifier(200, random_state=0).fit(X[~test], y[~test])
told = margrove.reliability(forest, X[test], y[test])
_, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
margrove.plot.reliability_diagram(told, ax=ax)

# %%
# The same on the command line, for a table of your own: ``margrove compare flowers.csv --target
# species``.
