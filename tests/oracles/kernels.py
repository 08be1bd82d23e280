"""Kernel functions of two vectors, straight from their formulas."""

from __future__ import annotations

import math

import numpy as np

FORMULAS = {
    "linear": lambda x, z, p: float(x @ z),
    "poly": lambda x, z, p: (p["gamma"] * float(x @ z) + p["coef0"]) ** p["degree"],
    "rbf": lambda x, z, p: math.exp(-p["gamma"] * float(((x - z) ** 2).sum())),
    "sigmoid": lambda x, z, p: math.tanh(p["gamma"] * float(x @ z) + p["coef0"]),
    "laplacian": lambda x, z, p: math.exp(-p["gamma"] * float(np.abs(x - z).sum())),
    "chi2": lambda x, z, p: math.exp(
        -p["gamma"] * sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)
    ),
}


def naive_gram(name, X, Z, **parameters):
    return np.array([[FORMULAS[name](x, z, parameters) for z in Z] for x in X])
