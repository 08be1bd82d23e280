"""TablePreparation: raw tables for models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_feature_names,
    _check_feature_names_in,
    _check_n_features,
    check_is_fitted,
)

from margrove._data import (
    Cells,
    collected,
    column_names,
    feature_names,
    is_frame,
    library_of,
    select_columns,
)
from margrove._runtime import Estimator, require_memory
from margrove.exceptions import DataWarning, InvalidDataError
from margrove.workbench.tables.prepare.column_encoders import ColumnPart, TreeColumn, Unknown
from margrove.workbench.tables.prepare.column_learning import Settings, learn_part
from margrove.workbench.tables.prepare.column_types import Column, typed_columns
from margrove.workbench.tables.prepare.table_columns import frame_columns
from margrove.workbench.tables.prepare.tree_tables import as_tree_table
from margrove.workbench.tables.read import shown

__all__ = ["TablePreparation"]

_WORDS = {"numbers": 20_000, "categories": 300}
_WIDE, _DENSE = 100, 0.25
_ROWS_AT_ONCE = 4096


class TablePreparation(TransformerMixin, Estimator):
    """Prepares raw tables with numbers, categories, dates and texts for models.

    `fit` learns from the training rows only: types of the columns (see `describe_columns`), labels,
    medians, scales, words. Later tables are matched by the names of their columns: their order does
    not matter, and unknown columns are ignored.

    Parameters
    ----------
    form : {"numbers", "categories"}, default="numbers"
        "numbers" is for margin machines, and for models of other libraries: numbers are scaled to
        mean 0 and standard deviation 1, missing ones become the median, labels become indicators,
        dates their parts, texts weighted words (tf-idf). The result is an array, or CSR if it is
        wide and mostly zero.

        "categories" is for trees, forests and boosting of margrove: numbers are kept, with NaN for
        missing ones, labels stay labels, which trees can split, and texts become counts of the
        words that depend most on y. The result is a frame of the same library as X, or an array if
        X is one.
    types : dict or None, default=None
        Types of columns by name, to override those that are found: "number", "category", "date",
        "text" or "ignored".
    max_categories : int, default=100
        The most labels of a column; all rarer labels become one, "(other)".
    max_words : int or None, default=None
        The most words of a column of texts. None is 20,000 for "numbers", 300 for "categories".
    missing_indicator : bool, default=True
        With "numbers", whether a column with missing cells in training gets an additional column
        that is 1 where a cell is missing.

    Attributes
    ----------
    columns_ : tuple of Column
        The type of each column of X, and the reason for it.
    parts_ : tuple
        The learnt values of each column that is used.
    is_sparse_ : bool
        Whether `transform` returns CSR.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the columns of X have names.

    Notes
    -----
    A label that training has not seen counts as "(other)" if there is such a label. Otherwise it
    is missing, and a `DataWarning` says so. A column of numbers that has become text, and a missing
    column, are errors.

    Examples
    --------
    >>> import polars as pl
    >>> from margrove.tables import TablePreparation
    >>> table = pl.DataFrame({"age": [20, None, 40], "sex": ["f", "m", "f"]})
    >>> preparation = TablePreparation().fit(table)
    >>> preparation.get_feature_names_out().tolist()
    ['age', 'age is missing', 'sex=f', 'sex=m']
    >>> preparation.transform(table.select("sex", "age"))[1].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "form": [StrOptions({"numbers", "categories"})],
        "types": [dict, None],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "max_words": [Interval(Integral, 1, None, closed="left"), None],
        "missing_indicator": ["boolean"],
    }

    columns_: tuple[Column, ...]
    parts_: tuple[ColumnPart, ...]
    is_sparse_: bool
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        form: str = "numbers",
        *,
        types: dict[str, str] | None = None,
        max_categories: int = 100,
        max_words: int | None = None,
        missing_indicator: bool = True,
    ) -> None:
        self.form = form
        self.types = types
        self.max_categories = max_categories
        self.max_words = max_words
        self.missing_indicator = missing_indicator

    # -- learning --

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the types and values of the columns of a table.

        Parameters
        ----------
        X : dataframe or array of shape (n, d)
            A frame of polars, pandas, pyarrow or another library.
        y : array of shape (n,) or None, default=None
            With form "categories", decides which words of texts are kept.

        Returns
        -------
        self
        """
        self._check_parameters()
        table = frame_columns(X, self)
        typed = typed_columns(table.cells, self.types)
        target = None if y is None else np.asarray(y)
        settings = self._settings()
        parts = tuple(learn_part(one, target, settings) for one in typed if one.column.is_used)
        columns = tuple(replace(one.column, examples=()) for one in typed)
        _require_some(parts, columns, table.n_rows, self.form)
        learnt: dict[str, Any] = {
            "columns_": columns,
            "parts_": parts,
            "is_sparse_": self.form == "numbers" and _is_wide(parts),
            "_form": self.form,
            "n_features_in_": len(columns),
        }
        if table.feature_names is not None:
            learnt["feature_names_in_"] = table.feature_names
        self._commit(learnt)
        return self

    def _settings(self) -> Settings:
        max_words = _WORDS[self.form] if self.max_words is None else int(self.max_words)
        has_indicators = self.missing_indicator and self.form == "numbers"
        return Settings(self.form, int(self.max_categories), max_words, has_indicators)

    # -- applying --

    def transform(self, X: Any) -> Any:
        """Prepare a table with what was learnt.

        Parameters
        ----------
        X : dataframe or array
            Columns of a frame are matched by name.

        Returns
        -------
        ndarray, csr_array or dataframe of shape (n, k)
        """
        check_is_fitted(self)
        X = collected(X)
        cells = self._matched(X)
        unknown: Unknown = []
        if self._form == "numbers":
            result = self._numbers(cells, unknown)
        else:
            columns = [
                column
                for part in self.parts_
                for column in part.tree_columns(cells[part.name], unknown)
            ]
            result = self._tree_table(columns, X)
        self._warn_of(unknown)
        return result

    def _matched(self, X: Any) -> dict[str, Cells]:
        """The cells of the needed columns, by their names in training."""
        has_names = hasattr(self, "feature_names_in_")
        if is_frame(X) and has_names:
            return self._by_name(X)
        table = frame_columns(X, self)
        _check_feature_names(self, X, reset=False)
        if len(table.cells) != self.n_features_in_:
            _check_n_features(self, np.empty((1, len(table.cells))), reset=False)
        known = [column.name for column in self.columns_]
        return {
            name: replace(cell, name=name) for name, cell in zip(known, table.cells, strict=True)
        }

    def _by_name(self, X: Any) -> dict[str, Cells]:
        needed = [part.name for part in self.parts_]
        feature_names(X)
        present = column_names(X)
        absent = sorted(set(needed) - set(present), key=needed.index)
        if absent:
            named = ", ".join(shown(name) for name in absent[:5])
            raise InvalidDataError(
                f"X lacks the column{'s' if len(absent) > 1 else ''} {named}"
                f"{f' and {len(absent) - 5} more' if len(absent) > 5 else ''}, which training had. "
                f"It has {', '.join(shown(name) for name in present[:20])}"
                f"{' and more' if len(present) > 20 else ''}."
            )
        read = frame_columns(select_columns(X, needed), self)
        return {column.name: column for column in read.cells}

    def _numbers(self, cells: dict[str, Cells], unknown: Unknown) -> Any:
        """The blocks of all parts side by side, (n, k)."""
        n_rows = len(next(iter(cells.values())))
        blocks: list[Any] = [part.block(cells[part.name], unknown) for part in self.parts_]
        if self.is_sparse_:
            as_rows = [block if sp.issparse(block) else sp.csr_array(block) for block in blocks]
            joined = sp.csr_array(sp.hstack(as_rows, format="csr"))
            joined.sort_indices()
            return joined
        width = sum(block.shape[1] for block in blocks)
        require_memory(8 * n_rows * width, f"The prepared table of {n_rows} rows", "Use fewer.")
        return _side_by_side(blocks, n_rows, width)

    def _tree_table(self, columns: list[TreeColumn], X: Any) -> Any:
        from sklearn.utils._set_output import _get_output_config

        wanted = _get_output_config("transform", self)["dense"]
        library = library_of(X) if wanted == "default" else wanted
        names = self.get_feature_names_out().tolist()
        return as_tree_table(columns, names, library)

    def _warn_of(self, unknown: Unknown) -> None:
        if unknown:
            warnings.warn(
                f"TablePreparation has not seen {', '.join(unknown[:3])}"
                f"{' and others' if len(unknown) > 3 else ''} in training; such values are treated "
                "as missing.",
                DataWarning,
                stacklevel=3,
            )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            If given, the names of the columns of X.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        outputs: Callable[[ColumnPart], list[str]] = (
            (lambda part: part.outputs())
            if self._form == "numbers"
            else (lambda part: part.tree_outputs())
        )
        names = _all_different([name for part in self.parts_ for name in outputs(part)])
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = False
        return tags


def _require_some(
    parts: tuple[ColumnPart, ...], columns: tuple[Column, ...], n_rows: int, form: str
) -> None:
    if any(part.outputs() if form == "numbers" else part.tree_outputs() for part in parts):
        return
    reasons = "; ".join(f"{shown(column.name)}: {column.reason}" for column in columns[:5])
    raise InvalidDataError(
        f"Nothing can be learnt from X with n_samples={n_rows}: no column distinguishes its rows "
        f"({reasons}{'; ...' if len(columns) > 5 else ''}). Give other columns, or other types."
    )


def _side_by_side(blocks: list[Any], n_rows: int, width: int) -> np.ndarray:
    """The blocks as one array, some rows at a time, so that these stay in the cache."""
    result = np.zeros((n_rows, width))
    for first in range(0, n_rows, _ROWS_AT_ONCE):
        last, start = min(first + _ROWS_AT_ONCE, n_rows), 0
        for block in blocks:
            end = start + block.shape[1]
            if sp.issparse(block):
                entries = slice(block.indptr[first], block.indptr[last])
                rows = np.repeat(np.arange(first, last), np.diff(block.indptr[first : last + 1]))
                result[rows, start + block.indices[entries]] = block.data[entries]
            else:
                result[first:last, start:end] = block[first:last]
            start = end
    return result


def _is_wide(parts: tuple[ColumnPart, ...]) -> bool:
    width = sum(len(part.outputs()) for part in parts)
    filled = sum(part.entries_a_row() for part in parts)
    return width > _WIDE and filled < _DENSE * width


def _all_different(names: list[str]) -> list[str]:
    """The names, with a number added to repeated ones."""
    taken: set[str] = set()
    result = []
    for name in names:
        unique, number = name, 2
        while unique in taken:
            unique, number = f"{name} ({number})", number + 1
        taken.add(unique)
        result.append(unique)
    return result
