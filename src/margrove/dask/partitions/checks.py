"""Checks of one partition of a table, on the worker that computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from margrove._data import numeric_matrix, require_finite
from margrove.dask.partitions.disk_storage import is_on_disk, stored
from margrove.exceptions import InvalidDataError

__all__ = [
    "Form",
    "PartitionCheck",
    "checked_partition",
    "joined",
    "placeholder_estimator",
    "vector_of",
]

Form = Literal["dense", "csr", "frame"]


@dataclass(frozen=True)
class PartitionCheck:
    """The requirements for each partition."""

    columns: tuple[Any, ...] | None
    names: np.ndarray | None
    keep_frames: bool
    allow_nan: bool
    estimator: str
    share_of_worker: float = 0.0  # partitions a worker


def checked_partition(
    rows: list[Any],
    targets: list[Any] | None,
    weights: list[Any] | None,
    first: int,
    check: PartitionCheck,
) -> tuple[Any, Any, Any, tuple[int, int, Form, str, bool]]:
    """One checked partition from its blocks: rows, targets, weights, and facts about them."""
    checked_rows, checked_targets, checked_weights = [], [], []
    for i, block in enumerate(rows):
        try:
            X = _rows_of(block, check)
            y = None if targets is None else vector_of(targets[i], X.shape[0], "y")
            w = None if weights is None else _weights_of(weights[i], X.shape[0])
        except (ValueError, TypeError) as error:
            raise InvalidDataError(f"Partition {first + i} of X: {error}") from error
        checked_rows.append(X)
        checked_targets.append(y)
        checked_weights.append(w)
    X = _stacked(checked_rows, first)
    y = None if targets is None else joined(checked_targets)  # type: ignore[arg-type]
    w = None if weights is None else joined(checked_weights)  # type: ignore[arg-type]
    form, kept = _form(X), stored(X, check.share_of_worker)
    return kept, y, w, (*X.shape, form, str(getattr(X, "dtype", "")), is_on_disk(kept))


def _rows_of(block: Any, check: PartitionCheck) -> Any:
    if check.columns is not None:
        block = _in_order(block, check.columns)
    if check.keep_frames and (check.columns is not None or block.dtype.kind in "OU"):
        return block
    if block.shape[0] == 0:
        empty = np.empty((0, block.shape[1]), dtype=getattr(block, "dtype", np.float64))
        block = sp.csr_array(empty) if sp.issparse(block) else empty
    X = numeric_matrix(block, check.estimator, True, 0)
    if not check.allow_nan and X.shape[0]:
        require_finite(X, check.names, placeholder_estimator(check.estimator))
    return X


def _in_order(block: Any, columns: tuple[Any, ...]) -> Any:
    """A block with its columns in the order of the collection."""
    found = tuple(block.columns)
    if found == columns:
        return block
    missing = [name for name in columns if name not in found]
    strange = [name for name in found if name not in columns]
    if missing or strange:
        problems = [f"lacks the columns {missing}"] * bool(missing)
        problems += [f"has the columns {strange}, which others lack"] * bool(strange)
        raise InvalidDataError(f"it {' and '.join(problems)}.")
    return block[list(columns)]


def placeholder_estimator(name: str) -> Any:
    """An object of a class with this name, for error messages that name the estimator."""
    return type(name, (), {})()


def vector_of(block: Any, n_rows: int, name: str) -> np.ndarray:
    array = np.asarray(block.to_numpy() if hasattr(block, "to_numpy") else block)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if len(array) != n_rows:
        raise InvalidDataError(
            f"it has {n_rows} rows, but {name} has {len(array)} there. Take both from one "
            "collection."
        )
    return array


def _weights_of(block: Any, n_rows: int) -> np.ndarray:
    return np.ascontiguousarray(vector_of(block, n_rows, "sample_weight"), dtype=np.float64)


def _form(X: Any) -> Form:
    if sp.issparse(X):
        return "csr"
    return "dense" if isinstance(X, np.ndarray) and X.dtype.kind == "f" else "frame"


def _stacked(blocks: list[Any], first: int) -> Any:
    """Several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    forms, widths = {_form(block) for block in blocks}, {block.shape[1] for block in blocks}
    if len(forms) > 1 or len(widths) > 1:
        raise InvalidDataError(
            f"Partitions {first} to {first + len(blocks) - 1} of X are of different kinds: "
            f"{sorted(forms)} with {sorted(widths)} columns."
        )
    if "csr" in forms:
        return sp.csr_array(sp.vstack(blocks, format="csr"))
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate(blocks)
    import pandas as pd  # type: ignore[import-untyped]

    return pd.concat(blocks, ignore_index=True)


def joined(pieces: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays one after the other; empty ones do not affect the dtype."""
    filled = [piece for piece in pieces if len(piece)] or list(pieces[:1])
    return np.concatenate(filled)
