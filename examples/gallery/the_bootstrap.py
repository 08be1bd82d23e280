"""
The bootstrap: how sure is a number?
====================================

A median has been computed from a sample. How much would it vary from sample to sample? There is
only one sample. The bootstrap draws new ones from it.
"""

import matplotlib.pyplot as plt
import numpy as np

import margrove
from margrove import DecisionTreeClassifier
from margrove.datasets import load_breast_cancer

# %%
# .. code-block:: text
#
#     draw n rows out of the n rows, with replacement, B times
#     compute the statistic of each of these samples:  S_1 ... S_B
#     mean = sum S_b / B,   variance = sum (S_b - mean)^2 / B
#
# Forty waiting times, and their median:

waiting = np.random.default_rng(0).exponential(5.0, 40)
result = margrove.bootstrap(waiting, np.median, n_resamples=2000, random_state=0)
print(result)
print(
    f"variance {result.variance:.4f}, by hand {np.mean((result.resamples - result.mean) ** 2):.4f}"
)

# %%
_, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
margrove.plot.bootstrap_histogram(result, name="median", ax=ax)

# %%
# Is it right? Here the truth is known: draw many samples from the same distribution and look how
# medians vary.

truth = np.median(np.random.default_rng(1).exponential(5.0, (20_000, 40)), axis=1).std()
print(f"standard error by the bootstrap {result.standard_error:.3f}, in truth {truth:.3f}")

# %%
# What a sample leaves out
# ------------------------
# A row is not drawn in any of n draws with probability (1 - 1/n)^n, which is about 1/e = 37 %.
# These out-of-bag rows are a test set without extra data.

for n in (10, 100, 10_000):
    print(f"n = {n:6d}: {(1 - 1 / n) ** n:.4f} of the rows are left out")

# %%
# A tree that has memorised its rows makes no mistake on them. The error on rows that were left out
# is a little too high, since each tree saw only 63 % of the rows; the .632+ estimate corrects this.

X, y = load_breast_cancer(return_X_y=True)
error = margrove.bootstrap_error(DecisionTreeClassifier(), X, y, n_resamples=50, random_state=0)
print(
    f"training {error.training:.3f}, out of bag {error.out_of_bag:.3f}, .632+ {error.e632_plus:.3f}"
)

# %%
# Samples of the sample also make many different trees out of one table: that is :doc:`bagging
# <bagging_and_forests>`.
