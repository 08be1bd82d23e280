"""
The maximal margin and the convex hulls
=======================================

Of all planes that separate two classes, which one? The one in the middle: as far as possible
from the nearest point of either class. This page finds it in two ways that turn out to be one.
"""

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import SVC
from margrove.datasets import make_separable_clouds, make_xor
from margrove.exceptions import NotSeparableError
from margrove.plot import decision_boundary

# %%
# Perceptrons that see the points in different orders find different lines. All are right about
# every point, and some pass close by one. The thick line is the one that this page is about.

clouds = make_separable_clouds(60)
X, y = clouds.data, clouds.target
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
margrove.plot.separating_lines(X, y, ax=ax)

# %%
# The first way: the longest distance
# -----------------------------------
# A point is y (w.x + b) / ||w|| away from the plane. Scaling w so that the nearest points have y
# (w.x + b) = 1 leaves 1 / ||w|| to be made large, so that the problem is
#
# .. code-block:: text
#
#     minimise 1/2 ||w||^2   subject to   y (w.x + b) >= 1 for all points
#
# ``C=inf`` allows no exceptions.

model = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X, y)
w = model.coef_[0]
print(f"margin 1 / ||w|| = {1 / np.linalg.norm(w):.6f}; of these clouds {clouds.margin} is known")
print(f"smallest y f(x): {(y * model.decision_function(X)).min():.6f}")

# %%
# The plane is held by the points that touch the margin. All others could be taken away.

_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
decision_boundary(model, X, y, ax=ax)
print(f"{len(model.support_)} of {len(X)} points are support vectors")
alone = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X[model.support_], y[model.support_])
print("w of all points   :", np.round(w, 6))
print("w of these alone  :", np.round(alone.coef_[0], 6))

# %%
# The second way: the nearest points of two hulls
# -----------------------------------------------
# The convex hull of a class is all weighted averages of its points. Find the nearest two points u
# and v of the two hulls, join them, and put the plane across the middle. That is what the dual
# problem does: its alphas, divided by their sum, are the weights of these averages.

alpha = model.dual_coef_[0]  # alpha times y
total = alpha[alpha > 0].sum()
u = alpha[alpha > 0] @ model.support_vectors_[alpha > 0] / total
v = -alpha[alpha < 0] @ model.support_vectors_[alpha < 0] / total
print("u and v from the alphas :", np.round(u, 4), np.round(v, 4))
print("known of these clouds   :", *(np.round(point, 4) for point in clouds.nearest_points[::-1]))
print(f"distance {np.linalg.norm(u - v):.6f} = 2 x margin, and w = {total:.4f} (u - v)")

# %%
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
margrove.plot.hulls(X, y, ax=ax)

# %%
# One value for both
# ------------------
# Every choice of alphas gives a bound: no plane can have a smaller 1/2 ||w||^2. The best alphas
# reach it. The difference between the two values, the duality gap, is therefore a proof of how
# good an answer is, and every fit has one.

proof = model.certificate_
print(f"primal {proof.primal:.9f}")
print(f"dual   {proof.dual:.9f}")

# %%
# The solver ``"hull"`` works on the hulls directly, and ends at the same plane:

hull = SVC(kernel="linear", C=np.inf, solver="hull", tol=1e-8).fit(X, y)
print("largest difference in w:", f"{np.abs(hull.coef_ - model.coef_).max():.1e}")

# %%
# Where the hulls meet there is no such plane. The error proves it: it names a point that both
# hulls share.

corners, parity = make_xor(4, noise=0.0, return_X_y=True)
try:
    SVC(kernel="linear", C=np.inf).fit(corners, parity)
except NotSeparableError as error:
    rows, weights = np.asarray(error.rows), np.asarray(error.weights)
    for label in (0, 1):
        own = rows[parity[rows] == label]
        print(
            f"class {label}: average of rows {own} =", weights[parity[rows] == label] @ corners[own]
        )

# %%
# Classes that overlap need :doc:`a soft margin <soft_margin>`.
