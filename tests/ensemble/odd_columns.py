"""Columns whose bins are not obvious: heavy values, few, far apart, missing, infinite, -0.0."""

from __future__ import annotations

import numpy as np

KINDS = ("even", "heavy", "few", "steps", "missing", "infinite", "nothing", "far", "zeros")


def column(kind, n, rng):
    if kind == "heavy":
        return np.where(rng.random(n) < 0.9, 0.0, rng.exponential(size=n))
    if kind == "few":
        return rng.integers(0, 5, n) + 0.5
    if kind == "steps":
        return np.round(rng.standard_normal(n) * 30) / 7
    if kind == "missing":
        return np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n))
    if kind == "infinite":
        return np.where(rng.random(n) < 0.1, np.inf, -np.where(rng.random(n) < 0.1, np.inf, 1.5))
    if kind == "nothing":
        return np.full(n, np.nan)
    if kind == "zeros":
        return np.where(rng.random(n) < 0.5, 0.0, -0.0) * rng.integers(-1, 2, n)
    return np.exp(20 * rng.standard_normal(n)) if kind == "far" else rng.random(n)
