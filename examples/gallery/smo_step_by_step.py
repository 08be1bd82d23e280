"""
SMO: two alphas at a time
=========================

The dual problem has one variable for each point, a box 0 <= alpha <= C, and one equation, sum y
alpha = 0, that forbids changing a single alpha. Sequential minimal optimisation changes two,
and needs no more than arithmetic. This page takes the steps apart.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import SVC
from margrove.datasets import make_gaussians

# %%
# One step, by hand
# -----------------
# .. code-block:: text
#
#     eta      = K11 + K22 - 2 K12
#     alpha2  <- alpha2 + y2 (E1 - E2) / eta,  clipped to [L, H];    E = f(x) - y
#     alpha1  <- alpha1 + y1 y2 (what alpha2 lost)
#
# L and H are where the line y1 alpha1 + y2 alpha2 = constant enters and leaves the box. The slide
# gives those of unequal labels; equal ones have others.


def smo_step(K, y, alpha, first, second, C):
    """alpha with a step on two of them: the lecture's formulas."""
    f = K @ (alpha * y)
    difference = (f[first] - y[first]) - (f[second] - y[second])
    eta = K[first, first] + K[second, second] - 2 * K[first, second]
    a1, a2 = alpha[first], alpha[second]
    if y[first] != y[second]:
        low, high = max(0, a2 - a1), min(C, C + a2 - a1)
    else:
        low, high = max(0, a1 + a2 - C), min(C, a1 + a2)
    new = alpha.copy()
    new[second] = np.clip(a2 + y[second] * difference / eta, low, high)
    new[first] += y[first] * y[second] * (a2 - new[second])
    return new


# %%
# Two points, (1, 2) and (0, 0): eta = 5, E1 - E2 = -2, so that alpha = 2 / 5 and one step is the
# whole fit. If C is smaller than that, the step is clipped.

two, sides = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([1.0, -1.0])
for C in (10.0, 0.25):
    by_hand = smo_step(two @ two.T, sides, np.zeros(2), 0, 1, C)
    model = SVC(kernel="linear", C=C).fit(two, sides)
    print(f"C = {C:5}: by hand {by_hand}, SVC {np.abs(model.dual_coef_[0])}")

# %%
# Every step of a real fit
# ------------------------
# ``watch`` hands out the steps of the compiled solver while it runs. Replaying them with the
# formulas above gives the same alphas, and the dual objective rises with every one.

X, side = make_gaussians(60, random_state=1, return_X_y=True)
y = 2.0 * side - 1.0
steps = []
with margrove.watch(on_step=steps.append):
    model = SVC(kernel="linear", C=1.0).fit(X, y)

K, alpha, C = X @ X.T, np.zeros(len(y)), 1.0
objective, n_clipped = [0.0], 0
for step in steps:
    alpha = smo_step(K, y, alpha, step.first, step.second, C)
    objective.append(alpha.sum() - 0.5 * (alpha * y) @ K @ (alpha * y))
    n_clipped += alpha[step.first] in (0.0, C) or alpha[step.second] in (0.0, C)

learnt = np.zeros(len(y))
learnt[model.support_] = np.abs(model.dual_coef_[0])
print(f"{len(steps)} steps, {n_clipped} of them end at a side of the box")
print(f"largest difference from SVC's alphas: {np.abs(alpha - learnt).max():.1e}")
print(f"the objective never fell: {np.all(np.diff(objective) > 0)}")

# %%
# Most is gained in the first steps; the last ones polish. How much is missing is known without
# the answer: the primal value of the same w is an upper bound.

gap = []
alpha = np.zeros(len(y))
for step in steps:
    alpha = smo_step(K, y, alpha, step.first, step.second, C)
    f = K @ (alpha * y)
    shift = (
        np.median((y - f)[(alpha > 0) & (alpha < C)]) if np.any((alpha > 0) & (alpha < C)) else 0.0
    )
    slack = np.maximum(0, 1 - y * (f + shift))
    gap.append(0.5 * (alpha * y) @ f + C * slack.sum() - objective[len(gap) + 1])
_, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
axes[0].plot(objective)
axes[0].set(xlabel="steps", ylabel="dual objective")
axes[1].semilogy(gap)
axes[1].set(xlabel="steps", ylabel="duality gap")

# %%
# The box
# -------
# A step moves along a line in the square of its two alphas. Where the best point of the line lies
# outside, the step ends at the side of the square.

_, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
margrove.plot.smo_box(X, y, estimator=SVC(kernel="linear", C=C), axes=axes)

# %%
# Without a bias nothing couples the alphas, and one at a time will do: coordinate ascent moves
# parallel to the axes. (A slanted step is an addition of this library: after an epoch, all alphas
# go on a little in the direction that the epoch led.)

_, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
margrove.plot.coordinate_ascent(ax=ax)

# %%
# When to stop
# ------------
# When all points satisfy the KKT conditions within ``tol``: room to spare at alpha = 0 (y f(x) >=
# 1), exactly on the margin in between, and within the margin or beyond at alpha = C (y f(x) <= 1;
# the slide's 0 is a slip).

exact = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
alpha = np.zeros(len(y))
alpha[exact.support_] = np.abs(exact.dual_coef_[0])
margins = y * exact.decision_function(X)
for name, rows in (("0", alpha == 0), ("in between", (alpha > 0) & (alpha < C)), ("C", alpha == C)):
    print(
        f"alpha {name:>10}: {rows.sum():2d} rows, "
        f"y f(x) from {margins[rows].min():.3f} to {margins[rows].max():.3f}"
    )
print(f"largest violation: {exact.certificate_.violation:.1e}")

# %%
# As a picture: each row at its margin and its alpha.

_, ax = plt.subplots(figsize=(6, 4), layout="constrained")
margrove.plot.multipliers(exact, X, y, ax=ax)
