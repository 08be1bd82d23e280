"""Dask collections as blocks: their partitions as delayed values, matching for X and y."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed

from margrove.dask.cluster import gathered
from margrove.exceptions import InvalidDataError

__all__ = [
    "blocks_beside",
    "blocks_of",
    "checked_table",
    "collection_of",
    "is_collection",
    "is_dataframe",
    "is_delayed_list",
    "is_frame_of_floats",
]


def is_collection(thing: Any) -> bool:
    """Whether it is a Dask collection (an array, a dataframe, ...)."""
    return bool(is_dask_collection(thing))


def is_delayed_list(thing: Any) -> bool:
    """Whether it is a list of delayed values: the parts of a table."""
    is_list = isinstance(thing, (list, tuple)) and len(thing) > 0
    return is_list and all(isinstance(part, Delayed) for part in thing)


def collection_of(parts: Any, client: Any) -> Any:
    """A list of delayed arrays or dataframes as one Dask collection; anything else as it is.

    The first part is computed, to see what kind of table it is.
    """
    if not is_delayed_list(parts):
        return parts
    (empty,) = gathered(client, client.compute([delayed(_without_rows)(parts[0])]), "part {}")
    if hasattr(empty, "iloc"):
        import dask.dataframe as dd

        return dd.from_delayed(list(parts), meta=empty, verify_meta=False)
    import dask.array as da

    shape = (np.nan, *empty.shape[1:])
    return da.concatenate([da.from_delayed(part, shape, meta=empty) for part in parts])


def _without_rows(part: Any) -> Any:
    if hasattr(part, "iloc") or sp.issparse(part):
        return part.iloc[:0] if hasattr(part, "iloc") else part[:0]
    return np.asarray(part)[:0]


def is_dataframe(thing: Any) -> bool:
    """Whether it is a dataframe or a series, by its class: delayed values have any attribute."""
    return hasattr(type(thing), "to_dask_array")


def is_frame_of_floats(thing: Any) -> bool:
    """Whether it is a dataframe of float64 only, without labels."""
    return is_dataframe(thing) and all(dtype == np.float64 for dtype in thing._meta.dtypes)


def _is_array(thing: Any) -> bool:
    return hasattr(type(thing), "rechunk") and is_collection(thing)


def checked_table(X: Any) -> Any:
    if is_dataframe(X) and X.ndim == 2:
        return X
    if not _is_array(X):
        raise InvalidDataError(
            f"X must be a Dask array or dataframe, as y is. Got {type(X).__name__} instead. Use "
            "dask.array.from_array(X, chunks=(100_000, -1)), or compute y for a local fit."
        )
    if X.ndim != 2:
        raise InvalidDataError(
            f"Expected 2D array, got {X.ndim}D array instead: X is a Dask array of shape "
            f"{X.shape}. Reshape it to (rows, features)."
        )
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def blocks_of(collection: Any) -> list[Any]:
    """The partitions of a collection, as delayed values.

    The graph of a dataframe is not optimised: this may merge partitions if few columns of a file
    are used, and X and y of one dataframe would no longer match.
    """
    if _is_array(collection):
        return list(collection.to_delayed().ravel())
    return list(collection.to_delayed(optimize_graph=False))


def blocks_beside(values: Any, X: Any, name: str) -> tuple[list[Any] | None, bool]:
    """Blocks of y or sample_weight that match those of X, and whether it is a local array."""
    if values is None:
        return None, False
    if not is_collection(values):
        return None, True
    if _is_array(values):
        values = _chunked_like(values, X)
    elif not is_dataframe(values):
        raise InvalidDataError(
            f"{name} must be a Dask array or series, or an array. Got {type(values).__name__}."
        )
    blocks, n = blocks_of(values), _n_blocks(X)
    if len(blocks) != n:
        raise InvalidDataError(
            f"X has {n} partitions and {name} has {len(blocks)}, and not all their sizes are "
            "known, so rows cannot be matched. Pass columns of one dataframe, or compute the "
            "sizes of arrays: X.compute_chunk_sizes(), y.to_dask_array(lengths=True)."
        )
    return blocks, False


def _n_blocks(X: Any) -> int:
    return int(X.numblocks[0]) if _is_array(X) else int(X.npartitions)


def _chunked_like(values: Any, X: Any) -> Any:
    if values.ndim > 1 and values.numblocks[1] > 1:
        values = values.rechunk({1: -1})
    chunks, wanted = values.chunks[0], X.chunks[0] if _is_array(X) else ()
    are_known = not any(np.isnan(size) for size in (*chunks, *wanted))
    if wanted and are_known and chunks != wanted and sum(chunks) == sum(wanted):
        return values.rechunk({0: wanted})
    return values
