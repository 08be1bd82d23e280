"""
Gradient boosting: small trees down a slope
===========================================

Start with a constant. Look where the loss is steepest, grow a small tree for that, take a step,
repeat. This page shows the steps, the learning rate, when to stop, and losses other than
squares.
"""

import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from margrove.datasets import load_breast_cancer

# %%
# For squared errors the slope at a row is what is still missing there. So each tree is fitted to
# what the ones before left over, and a tenth of it is added.

rng = np.random.default_rng(0)
x = np.linspace(0.0, 6.0, 300)[:, None]
wave = np.sin(x[:, 0]) + 0.3 * rng.normal(size=300)
model = HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=4).fit(x, wave)
_, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
margrove.plot.gradient_stages(model, x, wave, rounds=(1, 5, 20, 100), axes=axes)

# %%
# The first two rounds by hand: the mean, then trees of what is missing.

start = wave.mean()
first = next(iter(model.staged_predict(x)))
print(f"start {start:.4f}; mean of what is missing afterwards {np.mean(wave - first):.1e}")
for t in (0, 1, 5, 20, 100):
    print(f"{t:4d} rounds: half the mean squared error {model.history_.training_loss[t]:.3f}")

# %%
# Step by step, or in leaps
# -------------------------
# Smaller steps need more rounds and usually end lower. Rows held out say when to stop.

X_val, y_val = x[1::2], np.sin(x[1::2, 0]) + 0.3 * np.random.default_rng(1).normal(size=150)
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for rate in (1.0, 0.3, 0.05):
    boosted = HistGradientBoostingRegressor(
        max_iter=300, max_leaf_nodes=8, learning_rate=rate, min_samples_leaf=5
    )
    boosted.fit(x, wave)
    errors = [np.mean((y_val - said) ** 2) for said in boosted.staged_predict(X_val)]
    ax.plot(
        range(1, 301),
        errors,
        label=f"learning_rate={rate:g}: best {min(errors):.4f} after {np.argmin(errors) + 1}",
    )
ax.set(xscale="log", xlabel="rounds", ylabel="squared error on rows held out")
ax.legend()

# %%
stopped = HistGradientBoostingRegressor(max_iter=1000, max_leaf_nodes=8, learning_rate=0.05)
stopped.fit(x, wave, X_val=X_val, y_val=y_val)
print(f"{stopped.history_.outcome} after {stopped.n_iter_} of 1000 rounds")

# %%
# Any loss
# --------
# Other losses ask for other things: absolute errors for medians, quantile losses for what 90 %
# stay below. Three models make a band:

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(x, wave, ".", color="grey", markersize=3)
for q in (0.1, 0.5, 0.9):
    level = HistGradientBoostingRegressor(
        loss="quantile", quantile=q, max_iter=60, max_leaf_nodes=5
    ).fit(x, wave)
    below = np.mean(wave <= level.predict(x))
    ax.plot(x, level.predict(x), label=f"quantile {q}: {below:.0%} of the rows are below")
ax.legend()

# %%
# Classes
# -------
# Two classes have one score, the logarithm of the odds, and the log loss. Training and test loss
# against rounds:

X, y = load_breast_cancer(return_X_y=True)
test = np.arange(len(y)) % 3 == 0
judge = HistGradientBoostingClassifier(max_iter=150, learning_rate=0.1).fit(X[~test], y[~test])
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
margrove.plot.loss_curve(judge, X[test], y[test], ax=ax)
print(f"{judge.score(X[test], y[test]):.1%} right on rows held out")

# %%
# What speaks for an answer? Shapley values share it out among the features, exactly.

names = np.array(load_breast_cancer().feature_names)
reasons = margrove.shap_values(judge, X[test][:1])
order = np.argsort(-np.abs(reasons.values[0]))[:3]
for j in order:
    print(f"{names[j]:22s} {reasons.values[0, j]:+.2f}")
