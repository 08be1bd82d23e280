"""The features of a training set as compiled code sees them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel

__all__ = ["Columns", "code_of"]


class Columns(NamedTuple):
    """The features: codes, and what they stand for.

    n_codes int64 (d,); has_missing, categorical bool (d,).
    values float64, first int64 (d + 1,): the values of feature j are values[first[j]:first[j + 1]];
    only there when thresholds are drawn at random.
    by_row uint8: narrow once more, (rows, columns): only there for forests of many columns, whose
    small nodes look at many features of few rows.
    """

    narrow: np.ndarray
    medium: np.ndarray
    wide: np.ndarray
    width: np.ndarray
    place: np.ndarray
    n_codes: np.ndarray
    has_missing: np.ndarray
    categorical: np.ndarray
    values: np.ndarray
    first: np.ndarray
    by_row: np.ndarray


@kernel(inner=True)
def code_of(columns, feature, row):
    width, place = columns.width[feature], columns.place[feature]
    if width == 0:
        return np.int64(columns.narrow[place, row])
    if width == 1:
        return np.int64(columns.medium[place, row])
    return np.int64(columns.wide[place, row])
