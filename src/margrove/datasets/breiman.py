"""Synthetic sets of Breiman's papers on bagging, boosting and forests (1996 to 2001)."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._data import seed_of
from margrove.datasets.bunches import AsFrame, as_bunch, require_samples

__all__ = ["make_ringnorm", "make_threenorm", "make_twonorm", "make_waveform"]

_N_FEATURES = 20
_N_TIMES = 21


def make_waveform(
    n_samples: int = 300,
    *,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """Three classes: mixtures of two of three triangular waves, plus noise, at 21 times."""
    rng = _generator(n_samples, random_state)
    times = np.arange(1, _N_TIMES + 1)
    waves = np.stack([np.maximum(6 - np.abs(times - peak), 0) for peak in (11, 15, 7)])
    target = rng.integers(3, size=n_samples)
    first, second = np.array([0, 0, 1])[target], np.array([1, 2, 2])[target]
    share = rng.uniform(size=(n_samples, 1))
    data = share * waves[first] + (1.0 - share) * waves[second]
    data += rng.standard_normal((n_samples, _N_TIMES))
    return _as_bunch(data, target, "Mixtures of two of three waves.", return_X_y, as_frame)


def make_twonorm(
    n_samples: int = 300,
    *,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """Two Gaussian classes in 20 dimensions with opposite centres."""
    rng = _generator(n_samples, random_state)
    target = rng.integers(2, size=n_samples)
    centre = np.where(target == 0, 1.0, -1.0)[:, None] * (2.0 / np.sqrt(_N_FEATURES))
    data = rng.standard_normal((n_samples, _N_FEATURES)) + centre
    return _as_bunch(data, target, "Two clouds.", return_X_y, as_frame)


def make_threenorm(
    n_samples: int = 300,
    *,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """A class of two Gaussians and a class of one, in 20 dimensions."""
    rng = _generator(n_samples, random_state)
    target = rng.integers(2, size=n_samples)
    side = rng.choice([-1.0, 1.0], size=n_samples)[:, None] * np.ones(_N_FEATURES)
    alternating = np.where(np.arange(_N_FEATURES) % 2 == 0, 1.0, -1.0)
    centre = np.where(target[:, None] == 0, side, alternating) * (2.0 / np.sqrt(_N_FEATURES))
    data = rng.standard_normal((n_samples, _N_FEATURES)) + centre
    return _as_bunch(data, target, "Two clouds against one.", return_X_y, as_frame)


def make_ringnorm(
    n_samples: int = 300,
    *,
    random_state: Any = 0,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
) -> Any:
    """A wide Gaussian around a narrow one, in 20 dimensions."""
    rng = _generator(n_samples, random_state)
    target = rng.integers(2, size=n_samples)
    narrow = rng.standard_normal((n_samples, _N_FEATURES))
    shifted = narrow + 1.0 / np.sqrt(_N_FEATURES)
    data = np.where(target[:, None] == 0, 2.0 * narrow, shifted)
    return _as_bunch(data, target, "A wide cloud around a narrow one.", return_X_y, as_frame)


def _generator(n_samples: Any, random_state: Any) -> np.random.Generator:
    require_samples(n_samples, 1)
    return np.random.default_rng(seed_of(random_state))


def _as_bunch(
    data: np.ndarray, target: np.ndarray, description: str, return_X_y: bool, as_frame: AsFrame
) -> Any:
    return as_bunch(
        data,
        target,
        feature_names=[f"x{k + 1}" for k in range(data.shape[1])],
        description=description,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )
