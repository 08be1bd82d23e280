"""Categories and missing values, with the same numbers in all partitions of a table.

The numbers are those of `grove.table.encoding.read_table` for the whole table: the labels of all
partitions are collected and sorted, and each partition is encoded with them. So it does not matter
which labels are in which partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import LabelCells, is_missing
from margrove.dask.cluster import gathered
from margrove.dask.partitions.checks import placeholder_estimator
from margrove.dask.partitions.table import Partitions
from margrove.exceptions import InvalidDataError
from margrove.grove.table import (
    categorical_mask,
    category_labels,
    encode_columns,
    read_columns,
    refuse_infinity,
)

__all__ = ["EncodedPartitions", "encoded"]


@dataclass(frozen=True)
class EncodedPartitions:
    """A table as numbers.

    partitions   float64 (float32 or CSR if a table of numbers was), NaN for missing values
    categories   {column: labels}, as `categories_` of an estimator
    """

    partitions: Partitions
    categories: dict[int, np.ndarray]

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of an estimator about the table."""
        attributes = self.partitions.attributes
        known = {
            "n_features_in_": attributes["n_features_in_"],
            "categories_": self.categories,
        }
        return known | attributes

    @property
    def is_categorical(self) -> np.ndarray:
        mask = np.zeros(self.partitions.n_features, dtype=bool)
        mask[list(self.categories)] = True
        return mask

    @property
    def n_categories(self) -> np.ndarray:
        counts = np.zeros(self.partitions.n_features, np.int64)
        for column, labels in self.categories.items():
            counts[column] = len(labels)
        return counts


def encoded(partitions: Partitions, estimator: Any, categorical_features: Any) -> EncodedPartitions:
    """Encode a table whose partitions were made with `keep_frames=True` as numbers.

    Parameters
    ----------
    partitions : Partitions
    estimator : estimator
        The estimator that error messages name.
    categorical_features : as of the local estimators
        "from_dtype", "all", names or numbers of columns, a mask, or None.

    Returns
    -------
    EncodedPartitions
        Its partitions are made on the workers; only the labels are sent to this process.
    """
    names, estimator_name = partitions.feature_names, type(estimator).__name__
    found = _distinct_of_partitions(
        partitions, _mask_of_numbers(partitions, categorical_features), estimator_name
    )
    has_labels = [
        any(columns[j].kind == "labels" for columns in found) for j in range(partitions.n_features)
    ]
    mask = categorical_mask(categorical_features, names, has_labels)
    if not mask.any() and partitions.form != "frame":
        return EncodedPartitions(partitions, {})
    if partitions.form == "csr":
        raise InvalidDataError(
            "categorical_features needs a dense X: a sparse matrix has no labels but zero. Use "
            "X.map_blocks(lambda block: block.toarray())."
        )
    categories = {
        int(j): category_labels(_joint([columns[j] for columns in found], int(j), names), estimator)
        for j in np.flatnonzero(mask)
    }
    made = partitions.map(_numbers, categories, names, stores=True)
    return EncodedPartitions(partitions.with_X(made, "dense"), categories)


# -- labels --


@dataclass(frozen=True)
class _Distinct:
    """The distinct values of one column of one partition.

    kind     "labels"; "objects", numbers that are labels if other partitions have text; or
             "numbers"
    values   the distinct values; of "numbers" only if they are needed
    """

    kind: str
    values: Any
    is_missing: bool = False


def _mask_of_numbers(partitions: Partitions, categorical_features: Any) -> np.ndarray:
    """Columns that `categorical_features` says are categories, whatever their values."""
    by_type = [False] * partitions.n_features
    if categorical_features is None or isinstance(categorical_features, str):
        by_type = [categorical_features == "all"] * partitions.n_features
        return np.array(by_type)
    return categorical_mask(categorical_features, partitions.feature_names, by_type)


def _distinct_of_partitions(
    partitions: Partitions, mask: np.ndarray, estimator: str
) -> list[list[_Distinct]]:
    """The columns of each partition; those of empty partitions count as missing."""
    if partitions.form != "frame" and not mask.any():
        return []
    made = partitions.map(_distinct, mask, partitions.feature_names, estimator)
    return [
        columns if n else [_Distinct("numbers", np.empty(0), True)] * partitions.n_features
        for columns, n in zip(gathered(partitions.client, made), partitions.lengths, strict=True)
    ]


def _distinct(
    partition: Any, mask: np.ndarray, names: np.ndarray | None, estimator: str
) -> list[_Distinct]:
    if sp.issparse(partition):
        return [_Distinct("numbers", None)] * partition.shape[1]
    if _is_plain(partition):
        if np.isinf(partition[:, mask]).any():
            refuse_infinity(partition, placeholder_estimator(estimator), names)
        return [_of_numbers(column, mask[j]) for j, column in enumerate(partition.T)]
    found = []
    for j, column in enumerate(read_columns(partition)):
        if isinstance(column, LabelCells):
            found.append(_Distinct("labels", column.labels))
        elif _holds_objects(partition, j):
            found.append(_Distinct("objects", _cells(partition, j)))
        else:
            found.append(_of_numbers(column, mask[j]))
    return found


def _is_plain(partition: Any) -> bool:
    return isinstance(partition, np.ndarray) and partition.dtype.kind == "f"


def _of_numbers(column: np.ndarray, are_wanted: bool) -> _Distinct:
    is_missing = bool(np.isnan(column).all())
    return _Distinct("numbers", np.unique(column) if are_wanted else None, is_missing)


def _holds_objects(partition: Any, j: int) -> bool:
    kind = partition.dtype if isinstance(partition, np.ndarray) else partition.iloc[:, j].dtype
    return bool(kind == np.dtype(object))


def _cells(partition: Any, j: int) -> list[Any]:
    cells = (
        partition[:, j].tolist()
        if isinstance(partition, np.ndarray)
        else partition.iloc[:, j].tolist()
    )
    return [cell for cell in dict.fromkeys(cells) if not is_missing(cell)]


def _joint(found: list[_Distinct], j: int, names: np.ndarray | None) -> Any:
    """The labels of a column in all partitions, in the order of their first occurrence."""
    if any(column.kind == "labels" for column in found):
        _require_labels(found, j, names)
        cells = (cell for column in found if column.kind != "numbers" for cell in column.values)
        return LabelCells("", np.empty(0, dtype=np.int64), list(dict.fromkeys(cells)))
    return np.concatenate([np.asarray(column.values, dtype=np.float64) for column in found])


def _require_labels(found: list[_Distinct], j: int, names: np.ndarray | None) -> None:
    """Refuse a column with labels in one partition and numbers in another, as files may have."""
    labelled = next(k for k, distinct in enumerate(found) if distinct.kind == "labels")
    for k, distinct in enumerate(found):
        if distinct.kind == "numbers" and not distinct.is_missing:
            column = repr(str(names[j])) if names is not None else str(j)
            raise InvalidDataError(
                f"Partition {k} of X: column {column} holds numbers, but in partition {labelled} "
                f"it holds labels such as {found[labelled].values[0]!r}. Read both with one type, "
                f"for example X.astype({{{column}: str}})."
            )


# -- numbers --


def _numbers(
    partition: Any, categories: dict[int, np.ndarray], names: np.ndarray | None
) -> np.ndarray:
    """A partition as numbers, with categories encoded."""
    columns = list(partition.T) if _is_plain(partition) else read_columns(partition)
    if not len(partition):
        return np.empty((0, len(columns)))
    return encode_columns(columns, categories, names)
