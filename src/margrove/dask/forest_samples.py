"""Who of a member's rows is in the sample of a tree, and with which weight.

What `bootstrap.resampling` and `forest.training_data.Sampler` find for all rows, for some of them.
"""

from __future__ import annotations

import numpy as np

from margrove.dask.forest_frames import Frame, OwnRows
from margrove.ensemble.bootstrap.resampling import _MOST_UNITS, stream
from margrove.ensemble.forest.shards import draw_some, strike_some

__all__ = ["balanced_weights", "left_out_of", "multiplicities_of"]


def multiplicities_of(own: OwnRows, frame: Frame, number: int) -> np.ndarray:
    """How often each row is in the sample of a tree, int64."""
    samples = np.zeros(len(own.places), np.int64)
    draw_some(own.begins, own.ends, frame.n_units, stream(frame.seed, number), frame.n_draws,
              samples)  # fmt: skip
    return samples


def left_out_of(own: OwnRows, frame: Frame, number: int) -> np.ndarray:
    """How much of each row a tree has not seen, int32."""
    if not frame.n_units:
        return np.zeros(len(own.places), np.int32)
    if not frame.is_whole or frame.is_even or frame.n_draws > _MOST_UNITS:
        return (multiplicities_of(own, frame, number) == 0).astype(np.int32)
    left_out = (own.ends - own.begins).astype(np.int32)
    strike_some(own.begins, own.ends, frame.n_units, stream(frame.seed, number), frame.n_draws,
                left_out)  # fmt: skip
    return left_out


def balanced_weights(
    own: OwnRows, frame: Frame, samples: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Every class weighs the same; counts are those of the classes in the rows of all members."""
    starts = frame.targets.starts
    labels = own.labels.reshape(-1, frame.n_outputs)
    weight = samples.astype(np.float64)
    for o in range(frame.n_outputs):
        here = counts[starts[o] : starts[o + 1]].astype(np.float64)
        present = here > 0
        total = np.int64(here.sum())
        factors = np.where(present, total / np.maximum(here, 1) / present.sum(), 0.0)
        weight *= factors[labels[:, o] - starts[o]]
    whole = np.rint(weight / frame.unit)
    return np.where(samples > 0, np.maximum(whole, 1.0), 0.0).astype(np.int64)
