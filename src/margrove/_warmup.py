"""Runs every kernel of the library once, for each type of array it can be given."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["run_everything_once"]


def run_everything_once() -> None:
    """Fit and use each learner on toy data, dense and sparse, float64 and float32."""
    from margrove.margin.kernel_perceptron import KernelPerceptron
    from margrove.margin.kernels import KERNELS
    from margrove.margin.perceptron import Perceptron

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X, y in _toy_data():
            Perceptron(max_iter=2).fit(X, y).predict(X)
            for kernel in sorted(KERNELS):
                KernelPerceptron(kernel=kernel, max_iter=1).fit(X, y).predict(X)


def _toy_data() -> Iterator[tuple[Any, np.ndarray]]:
    y = np.arange(12) % 3
    X = np.random.default_rng(0).random((12, 4)) + y[:, None]
    for dtype in (np.float64, np.float32):
        yield X.astype(dtype), y
        yield sp.csr_array(X.astype(dtype)), y
