"""
The perceptron: learning from mistakes
======================================

The oldest learner of the family looks at one point at a time. If the point is on the wrong side
of its plane, it moves the plane a little towards it, and otherwise does nothing. This page
shows every single move, the theorem that says how many there can be, and what the perceptron
does not care about.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import KernelPerceptron, Perceptron
from margrove.datasets import make_separable_clouds, make_xor
from margrove.plot import decision_boundary

# %%
# A loss that can be followed downhill
# ------------------------------------
# With labels y of -1 and +1, a plane w.x + b is right about a point if z = y (w.x + b) is
# positive. Counting mistakes (the 0-1 loss) gives no hint which way to go: it is flat nearly
# everywhere. The perceptron's loss max(0, -z) grows with how wrong a point is, so that it has a
# slope to follow. The hinge of support vector machines and the logistic loss do the same with a
# preference for points that are right by some distance.

_, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
margrove.plot.loss_functions(["zero_one", "perceptron", "hinge", "logistic"], ax=ax)

# %%
# One step down the slope at one point is the whole algorithm:
#
# .. code-block:: text
#
#     start with w = 0, b = 0
#     for each point, again and again
#         if y (w.x + b) <= 0:  w = w + y x,  b = b + y
#
# (One of the slides writes "< 0". With w = 0 at the start that would never move.) Two clouds that
# can be separated are a good start; ``watch`` reports every mistake while the fit runs.

clouds = make_separable_clouds(60)
X, y = clouds.data, clouds.target
mistakes = []
with margrove.watch(on_step=mistakes.append):
    model = Perceptron(max_iter=10_000).fit(X, y)

print(f"{model.mistakes_} mistakes in {model.n_iter_} epochs; separated: {model.separated_}")
for update in mistakes[:3]:
    print(f"epoch {update.epoch}, row {update.row}: y f(x) = {update.value:.2f}")

# %%
# Each mistake adds y x to the weights, which turns the line towards the point. The last line
# separates the clouds.

shown = [1, 2, len(mistakes)]
_, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
learner = Perceptron(max_iter=10_000)
margrove.plot.perceptron_steps(X, y, estimator=learner, steps=shown, axes=axes)

# %%
# How many mistakes can there be?
# -------------------------------
# Block and Novikoff: if the points lie within a radius R and some plane separates them by a
# margin g, the perceptron makes at most (R / g)^2 mistakes, however many points there are and in
# whatever order they come.

print(f"{model.mistakes_} mistakes, and the theorem allows {model.novikoff_bound_:.0f}")

# %%
# The weights are a sum of the points it was wrong about, each as often as it was wrong. So a
# perceptron can also be written down by counting mistakes, one number a point. That is the dual
# representation, which kernels will need:

dual = KernelPerceptron(kernel="linear", max_iter=10_000).fit(X, y)
print(f"{np.count_nonzero(dual.alpha_)} of {len(X)} points were ever mistaken")
print("w from the counts:", np.round((dual.alpha_ * y) @ X, 3))
print("w of the primal  :", np.round(model.coef_[0], 3))

# %%
# What it does not care about
# ---------------------------
# The perceptron stops at the first plane that works, which may pass right beside a point. Asking
# for more, y f(x) > margin, pushes the plane away from the points. How far it could be pushed is
# known of these clouds.


def nearest(machine):
    """The distance of the nearest point to the line."""
    return (y * machine.decision_function(X)).min() / np.linalg.norm(machine.coef_)


wide = Perceptron(margin=500.0, max_iter=10_000, tol=None).fit(X, y)
print(f"nearest point: {nearest(model):.3f} away without, {nearest(wide):.3f} with a margin")
print(f"the widest possible: {clouds.margin}")
_, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for panel, machine, title in zip(
    axes, (model, wide), ("first that works", "margin=500"), strict=True
):
    decision_boundary(machine, X, y, ax=panel, legend=False)
    panel.set_title(title)

# %%
# The plane with the widest margin is found directly by :doc:`support vector machines
# <maximal_margin>`. And where no plane separates, the perceptron never ends by itself; it says
# so:

corners, parity = make_xor(4, noise=0.0, return_X_y=True)
print("exclusive or, separated:", Perceptron().fit(corners, parity).separated_)
