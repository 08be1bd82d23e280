"""Categories and missing values in one numbering for all parts of a table.

The numbering is that of `grove.table.encoding.read_table` for the table as a whole: each part
is asked for its labels, the labels of all parts are put in order, and each part is encoded by
them. So a label that only one part has, or a part without any, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.dask.part_checks import named
from margrove.dask.parts import Parts
from margrove.dask.waiting import gathered
from margrove.exceptions import InvalidDataError
from margrove.grove.table.encoding import refuse_infinity
from margrove.grove.table.label_columns import (
    LabelColumn,
    categorical_mask,
    encode_columns,
    is_missing,
    labels_of_column,
    read_columns,
)

__all__ = ["EncodedParts", "encoded"]


@dataclass(frozen=True)
class EncodedParts:
    """A table as numbers.

    parts        of float64 (float32 or CSR where a table of numbers was so), NaN for missing
    categories   {column: labels}, as an estimator's `categories_`
    """

    parts: Parts
    categories: dict[int, np.ndarray]

    @property
    def attributes(self) -> dict[str, Any]:
        """What an estimator remembers of the table."""
        own = self.parts.attributes
        remembered = {"n_features_in_": own["n_features_in_"], "categories_": self.categories}
        return remembered | own

    @property
    def is_categorical(self) -> np.ndarray:
        mask = np.zeros(self.parts.n_features, dtype=bool)
        mask[list(self.categories)] = True
        return mask

    @property
    def n_categories(self) -> np.ndarray:
        counts = np.zeros(self.parts.n_features, np.int64)
        for column, labels in self.categories.items():
            counts[column] = len(labels)
        return counts


def encoded(parts: Parts, estimator: Any, categorical_features: Any) -> EncodedParts:
    """Make numbers of a table whose parts were made with `keep_frames=True`.

    Parameters
    ----------
    parts : Parts
    estimator : estimator
        Whom error messages speak of.
    categorical_features : as of the local estimators
        "from_dtype", "all", names or numbers of columns, a mask, or None.

    Returns
    -------
    EncodedParts
        Its parts are made on the workers; what this process gets to see are the labels.
    """
    names, told = parts.feature_names, type(estimator).__name__
    found = _asked(parts, _mask_of_numbers(parts, categorical_features), told)
    has_labels = [any(own[j].kind == "labels" for own in found) for j in range(parts.n_features)]
    mask = categorical_mask(categorical_features, names, has_labels)
    if not mask.any() and parts.form != "frame":
        return EncodedParts(parts, {})
    if parts.form == "csr":
        raise InvalidDataError(
            "categorical_features needs a dense X: a sparse matrix has no labels but zero. Use "
            "X.map_blocks(lambda block: block.toarray())."
        )
    categories = {
        int(j): labels_of_column(_joint([own[j] for own in found], int(j), names), estimator)
        for j in np.flatnonzero(mask)
    }
    made = parts.map(_numbers, categories, names, stores=True)
    return EncodedParts(parts.with_X(made, "dense"), categories)


# -- labels --


@dataclass(frozen=True)
class _Distinct:
    """What is in one column of one part.

    kind     "labels"; "objects", numbers that would be labels beside texts; or "numbers"
    values   the distinct ones; of "numbers" only where they were asked for
    """

    kind: str
    values: Any
    is_missing: bool = False


def _mask_of_numbers(parts: Parts, categorical_features: Any) -> np.ndarray:
    """Columns that are categories because somebody said so, as far as that can be told."""
    by_type = [False] * parts.n_features
    if categorical_features is None or isinstance(categorical_features, str):
        by_type = [categorical_features == "all"] * parts.n_features
        return np.array(by_type)
    return categorical_mask(categorical_features, parts.feature_names, by_type)


def _asked(parts: Parts, mask: np.ndarray, estimator: str) -> list[list[_Distinct]]:
    """The columns of each part; parts without rows have nothing to say."""
    if parts.form != "frame" and not mask.any():
        return []
    made = parts.map(_distinct, mask, parts.feature_names, estimator)
    return [
        own if n else [_Distinct("numbers", np.empty(0), True)] * parts.n_features
        for own, n in zip(gathered(parts.client, made), parts.lengths, strict=True)
    ]


def _distinct(
    part: Any, mask: np.ndarray, names: np.ndarray | None, estimator: str
) -> list[_Distinct]:
    if sp.issparse(part):
        return [_Distinct("numbers", None)] * part.shape[1]
    if _is_plain(part):
        if np.isinf(part[:, mask]).any():
            refuse_infinity(part, named(estimator), names)
        return [_of_numbers(column, mask[j]) for j, column in enumerate(part.T)]
    found = []
    for j, column in enumerate(read_columns(part)):
        if isinstance(column, LabelColumn):
            found.append(_Distinct("labels", column.labels))
        elif _holds_objects(part, j):
            found.append(_Distinct("objects", _cells(part, j)))
        else:
            found.append(_of_numbers(column, mask[j]))
    return found


def _is_plain(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind == "f"


def _of_numbers(column: np.ndarray, are_wanted: bool) -> _Distinct:
    is_missing = bool(np.isnan(column).all())
    return _Distinct("numbers", np.unique(column) if are_wanted else None, is_missing)


def _holds_objects(part: Any, j: int) -> bool:
    kind = part.dtype if isinstance(part, np.ndarray) else part.iloc[:, j].dtype
    return bool(kind == np.dtype(object))


def _cells(part: Any, j: int) -> list[Any]:
    cells = part[:, j].tolist() if isinstance(part, np.ndarray) else part.iloc[:, j].tolist()
    return [cell for cell in dict.fromkeys(cells) if not is_missing(cell)]


def _joint(found: list[_Distinct], j: int, names: np.ndarray | None) -> Any:
    """The labels of a column in all parts, first come first served."""
    if any(own.kind == "labels" for own in found):
        _require_labels(found, j, names)
        cells = (cell for own in found if own.kind != "numbers" for cell in own.values)
        return LabelColumn(np.empty(0, dtype=np.int64), list(dict.fromkeys(cells)))
    return np.concatenate([np.asarray(own.values, dtype=np.float64) for own in found])


def _require_labels(found: list[_Distinct], j: int, names: np.ndarray | None) -> None:
    """Files of one table whose types were guessed one by one do not always agree."""
    labelled = next(k for k, own in enumerate(found) if own.kind == "labels")
    for k, own in enumerate(found):
        if own.kind == "numbers" and not own.is_missing:
            column = repr(str(names[j])) if names is not None else str(j)
            raise InvalidDataError(
                f"Partition {k} of X: column {column} holds numbers, but in partition {labelled} "
                f"it holds labels such as {found[labelled].values[0]!r}. Read both with one type, "
                f"for example X.astype({{{column}: str}})."
            )


# -- numbers --


def _numbers(part: Any, categories: dict[int, np.ndarray], names: np.ndarray | None) -> np.ndarray:
    """A part with categories as their numbers."""
    columns = list(part.T) if _is_plain(part) else read_columns(part)
    if not len(part):
        return np.empty((0, len(columns)))
    return encode_columns(columns, categories, names)
