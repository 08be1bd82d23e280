"""Small generated sets with known properties."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from margrove._data import seed_of
from margrove.datasets.bunches import AsFrame, as_bunch, require_samples

__all__ = ["make_circles", "make_gaussians", "make_moons", "make_separable_clouds", "make_xor"]

_PLANE = ["x1", "x2"]


def _require(n_samples: int, least: int, noise: float = 0.0) -> None:
    require_samples(n_samples, least)
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be a finite number >= 0. Got {noise!r} instead.")


def make_xor(
    n_samples: int = 200,
    *,
    noise: float = 0.15,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """Four clouds at the corners of a square; classes are the diagonals, so no line separates them.

    With `noise=0` and `n_samples=4` this is the table of exclusive or.
    """
    _require(n_samples, 1, noise)
    rng = np.random.default_rng(seed_of(random_state))
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float64)
    corner = np.arange(n_samples) % 4
    data = corners[corner] + noise * rng.standard_normal((n_samples, 2))
    target = (corners[corner, 0] != corners[corner, 1]).astype(np.int64)
    return as_bunch(
        data,
        target,
        feature_names=_PLANE,
        description="Exclusive or: four clouds, equal classes on the diagonals.",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def make_separable_clouds(
    n_samples: int = 100,
    *,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """Two clouds in a known square and a known triangle, 3 apart.

    The corners are among the points, so the convex hulls and the maximum-margin plane are known
    exactly. The Bunch has `hulls` (the corners of class -1 and +1), `nearest_points` (one of each
    hull), `normal`, `offset` (of the plane normal.x = offset) and `margin` = 1.5.
    """
    _require(n_samples, 8)
    rng = np.random.default_rng(seed_of(random_state))
    square = np.array([[0, 0], [2, 0], [2, 2], [0, 2]], dtype=np.float64)
    triangle = np.array([[5, 1], [8, 4], [9, -1]], dtype=np.float64)
    rotation = np.array([[0.8, 0.6], [-0.6, 0.8]])  # by the angle of the 3-4-5 triangle
    hulls = [square @ rotation, triangle @ rotation]
    clouds = []
    for hull, size in zip(hulls, (n_samples - n_samples // 2, n_samples // 2), strict=True):
        inside = rng.dirichlet(np.ones(len(hull)), size=max(0, size - len(hull))) @ hull
        clouds.append(np.vstack([hull, inside]))
    data = np.vstack(clouds)
    target = np.repeat([-1, 1], [len(cloud) for cloud in clouds])
    normal = np.array([1.0, 0.0]) @ rotation
    return as_bunch(
        data,
        target,
        feature_names=_PLANE,
        description="Two separable clouds with known hulls, 3 apart.",
        return_X_y=return_X_y,
        as_frame=as_frame,
        hulls=hulls,
        nearest_points=(np.array([2.0, 1.0]) @ rotation, np.array([5.0, 1.0]) @ rotation),
        normal=normal,
        offset=3.5,
        margin=1.5,
    )


def make_circles(
    n_samples: int = 200,
    *,
    noise: float = 0.1,
    factor: float = 0.5,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """A circle within a circle; the map x -> (x1^2, x2^2) makes them linearly separable."""
    from sklearn.datasets import make_circles as make

    _require(n_samples, 2, noise)
    data, target = make(n_samples, noise=noise, factor=factor, random_state=seed_of(random_state))
    return as_bunch(
        data,
        target,
        feature_names=_PLANE,
        description="Two concentric circles.",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def make_moons(
    n_samples: int = 200,
    *,
    noise: float = 0.2,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """Two interleaving half circles."""
    from sklearn.datasets import make_moons as make

    _require(n_samples, 2, noise)
    data, target = make(n_samples, noise=noise, random_state=seed_of(random_state))
    return as_bunch(
        data,
        target,
        feature_names=_PLANE,
        description="Two interleaving half circles.",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def make_gaussians(
    n_samples: int = 200,
    *,
    means: Any = ((-1.0, 0.0), (1.0, 0.0)),
    covariances: Any = None,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """Two equally likely Gaussian classes, with the best possible classifier.

    The Bunch has `bayes_decision(X)`, the log-odds of the second class, which is positive if that
    class is more likely, and, for equal covariances (the default is the identity), the
    `bayes_error` Phi(-delta / 2), with delta the Mahalanobis distance of the means.
    """
    rng = np.random.default_rng(seed_of(random_state))
    centres = np.asarray(means, dtype=np.float64)
    _require(n_samples, 2)
    if centres.ndim != 2 or len(centres) != 2:
        raise ValueError(f"means must be two points. Got shape {centres.shape} instead.")
    d = centres.shape[1]
    covariance = np.asarray(
        [np.eye(d)] * 2 if covariances is None else covariances, dtype=np.float64
    )
    target = np.arange(n_samples) % 2
    roots = np.linalg.cholesky(covariance)
    normal = rng.standard_normal((n_samples, d))
    data = centres[target] + np.einsum("nij,nj->ni", roots[target], normal)

    def log_density(X: np.ndarray, k: int) -> np.ndarray:
        scaled = np.linalg.solve(roots[k], (np.asarray(X, dtype=np.float64) - centres[k]).T)
        return -0.5 * (scaled**2).sum(axis=0) - np.log(np.diag(roots[k])).sum()

    def bayes_decision(X: np.ndarray) -> np.ndarray:
        return log_density(X, 1) - log_density(X, 0)

    bayes_error = None
    if np.array_equal(covariance[0], covariance[1]):
        delta = np.linalg.norm(np.linalg.solve(roots[0], centres[1] - centres[0]))
        bayes_error = float(norm.cdf(-delta / 2))
    return as_bunch(
        data,
        target,
        feature_names=[f"x{j + 1}" for j in range(d)],
        description="Two Gaussian classes with their Bayes classifier.",
        return_X_y=return_X_y,
        as_frame=as_frame,
        bayes_decision=bayes_decision,
        bayes_error=bayes_error,
    )
