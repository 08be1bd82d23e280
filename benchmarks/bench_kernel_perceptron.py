"""KernelPerceptron against the time of building the Gram blocks it needs, and nothing else."""

from __future__ import annotations

import numpy as np

from compare import Case
from data import ORIGIN, covtype
from margrove import KernelPerceptron
from margrove.margin.kernels.gram_tiles import gram

SETTINGS = {"gamma": 0.1, "max_iter": 5, "tol": None, "n_jobs": 2}


def load(two_classes):
    X, y = covtype(20_000, scaled=True)
    y = (y == 1).astype(int) if two_classes else y
    model = KernelPerceptron(**SETTINGS).fit(X, y)
    return X, y, model


def fit(data):
    X, y, _ = data
    return KernelPerceptron(**SETTINGS).fit(X, y)


def build_gram_blocks(data):
    """K(support vectors, all rows) once, block by block, on both cores; nothing is done with it."""
    X, _, model = data
    kernel = model.kernel_
    points = kernel.points(X, shift=kernel.centre(X))
    out = np.empty((1024, len(points)))
    for start in range(0, len(model.support_), 1024):
        block = points.take(model.support_[start : start + 1024])
        gram(kernel, block, points, out=out[: len(block)], n_threads=2)
    return model


def quality(model, data):
    return {
        "support vectors": len(model.support_),
        "mistakes": model.mistakes_,
        "train accuracy": model.score(data[0], data[1]),
    }


CASES = [
    Case(
        name=f"covtype 20000 x 54, RBF, 5 epochs, {kind}",
        data=lambda two=two: load(two),
        ours={"margrove": fit},
        peers={"its Gram blocks alone": build_gram_blocks},
        quality=quality,
        decisive="train accuracy",
        note=f"A ratio of 0.1 or more means at most ten times the Gram blocks. {ORIGIN}",
        repeats=3,
    )
    for kind, two in (("2 classes", True), ("7 classes", False))
]
