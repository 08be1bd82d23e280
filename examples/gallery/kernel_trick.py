"""
Kernels: a plane in a space nobody enters
=========================================

What no line separates in the plane, a plane may separate in a space with more features. A
kernel gives the inner products of that space without ever computing the features. This page
makes the space visible, then does without it, and shows what gamma does.
"""

import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import SVC, KernelPerceptron, Perceptron, PolynomialMap, RBFTaylorMap, kernels
from margrove.datasets import make_circles, make_moons
from margrove.plot import decision_boundary

# %%
# A circle becomes a line
# -----------------------
# x -> (x1^2, x2^2) turns the circle x1^2 + x2^2 = r into a straight line. The perceptron, which
# fails on the left, separates the right.

X, y = make_circles(100, noise=0.05, return_X_y=True)
_, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
margrove.plot.circle_to_line(X, y, axes=axes)
for name, table in (("x1, x2", X), ("x1^2, x2^2", X**2)):
    line = Perceptron(max_iter=5000, tol=None).fit(table, y)
    print(f"a perceptron on {name}: separated {line.separated_}")

# %%
# Ten features for the price of three
# -----------------------------------
# The kernel (1 + x.z)^2 of points with three features is the inner product of ten: 1, the three
# features, their squares and their products, with factors of the root of two. Computing it takes
# one product of three numbers.

points = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
features = PolynomialMap(degree=2, gamma=1.0, coef0=1.0).fit_transform(points)
print("features:", features.shape[1])
print("phi(x).phi(z)  =", round(features[0] @ features[1], 9))
print("(1 + x.z)^2    =", (1 + points[0] @ points[1]) ** 2)

# %%
# The Gaussian kernel exp(-gamma ||x - z||^2) has infinitely many features; a Taylor series lists
# them. The first dozen are enough here, and the map knows how much the others could add.

line = np.linspace(-1, 1, 50)[:, None]
exact = kernels.RBF(gamma=0.7)(line)
for degree in (2, 5, 12):
    mapped = RBFTaylorMap(gamma=0.7, degree=degree).fit(line)
    phi = mapped.transform(line)
    print(f"{phi.shape[1]:3d} features: largest error {np.abs(phi @ phi.T - exact).max():.1e}")

# %%
# Learning by mistakes, in that space
# -----------------------------------
# A perceptron is a sum of the points that it was wrong about, so that all it needs are inner
# products with them. Put a kernel in place of x.z, and the plane is one of the feature space:

model = KernelPerceptron(kernel="poly", degree=2, coef0=1.0).fit(X, y)
print(f"separated: {model.separated_}, by {np.count_nonzero(model.alpha_)} of {len(X)} points")
_, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
decision_boundary(model, X, y, ax=ax)

# %%
# The same machine by hand: the sum over support vectors is all there is.

bent = SVC(kernel=kernels.RBF(sigma=0.7), C=10).fit(X, y)
by_hand = bent.dual_coef_[0] @ bent.kernel_(bent.support_vectors_, X) + bent.intercept_[0]
print("largest difference:", f"{np.abs(by_hand - bent.decision_function(X)).max():.1e}")

# %%
# What gamma does
# ---------------
# gamma = 1 / (2 sigma^2) says how near is near. (One slide has 1 / sigma^2.) A small gamma gives
# a nearly straight boundary; a large one puts an island around every point, and every point
# becomes a support vector.

X, y = make_moons(100, noise=0.2, return_X_y=True)
_, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
margrove.plot.effect_of_c_and_gamma(X, y, settings="gamma", axes=axes)
for gamma in (0.01, 1.0, 10.0, 500.0):
    machine = SVC(gamma=gamma).fit(X, y)
    print(f"gamma = {gamma:6g}: {len(machine.support_)} of {len(X)} points are support vectors")

# %%
# Which gamma, and which C? :doc:`Cross-validation <tuning_c_and_gamma>` tells.
