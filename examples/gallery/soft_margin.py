"""
The soft margin and the price of slack
======================================

Classes overlap. A soft margin lets points be inside it, or even on the wrong side, and charges
for it: C for each unit of slack. This page shows what C trades for what, and the three kinds of
support vectors.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import SVC, losses
from margrove.datasets import make_gaussians
from margrove.plot import decision_boundary

# %%
# .. code-block:: text
#
#     minimise 1/2 ||w||^2 + C (slack of all points)        slack = max(0, 1 - y f(x))
#
# That is the hinge loss plus a penalty on w: a support vector machine is a linear model with
# L2-regularised hinge loss, with lambda = 1 / C. Two Gaussian classes, for which the best
# possible boundary is known:

data = make_gaussians(120, random_state=1)
X, y = data.data, 2 * data.target - 1
model = SVC(kernel="linear", C=1.0, tol=1e-6).fit(X, y)
slack = losses.Hinge().value(y * model.decision_function(X))
objective = 0.5 * model.coef_[0] @ model.coef_[0] + 1.0 * slack.sum()
print(f"by hand {objective:.6f}, in the certificate {model.certificate_.primal:.6f}")

# %%
# The slack of a point is how far it is from where it should be, in units of the margin:

few = np.arange(40)
small = SVC(kernel="linear", C=1.0).fit(X[few], y[few])
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
margrove.plot.slacks(small, X[few], y[few], ax=ax)

# %%
# Three kinds of support vectors
# ------------------------------
# Points beyond the margin have alpha = 0 and do not matter. The others are on the margin (slack
# 0, alpha between 0 and C), inside it (slack up to 1, alpha = C), or misclassified (slack above
# 1, alpha = C).

_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
decision_boundary(model, X, y, ax=ax)
proof = model.certificate_
print(
    f"on the margin {len(proof.on_margin)}, inside {len(proof.inside_margin)}, "
    f"wrong {len(proof.misclassified)}"
)

# %%
# What C trades
# -------------
# With a large C the margin narrows until few points are inside. With a small C it is wide, with
# many points inside. (One lecture calls the price lambda; in the others lambda
# is 1 / C.)

_, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
prices = [(0.01, None), (1.0, None), (1000.0, None)]  # no gamma: a linear kernel
margrove.plot.effect_of_c_and_gamma(X, y, settings=prices, axes=axes)

# %%
# A path over C says the same in numbers: support vectors fall, the margin narrows, and all
# machines are solved one from the other.

path = margrove.svm_path(SVC(kernel="linear"), X, y, Cs=np.geomspace(0.001, 100, 11))
margrove.plot.svm_path(path)
for point in path.points[::5]:
    print(f"C = {point.C:8.3f}: {point.n_support:3d} support vectors")

# %%
# The best boundary of these Gaussians errs on a known share of new points. The machine is close,
# for nearly any C: where classes are simple, C matters little.

fresh = make_gaussians(20_000, random_state=2)
for C in (0.01, 1.0, 100.0):
    wrong = np.mean(SVC(kernel="linear", C=C).fit(X, y).predict(fresh.data) != 2 * fresh.target - 1)
    print(
        f"C = {C:6g}: {wrong:.1%} of new points wrong (the best possible: {data.bayes_error:.1%})"
    )

# %%
_, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
margrove.plot.svm_and_bayes(X, y, data.bayes_decision, estimator=SVC(kernel="linear", C=1.0), ax=ax)

# %%
# C cannot bend the plane. :doc:`Kernels <kernel_trick>` can.
