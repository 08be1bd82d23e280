"""From a file or a built-in set to a matrix of features and a vector of labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from margrove.exceptions import InvalidDataError

__all__ = ["LoadedTable", "builtin_table", "read_table"]

_READERS = {".csv": ",", ".tsv": "\t", ".parquet": None}
_MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "?"]
_EXACT_INTEGERS = 2**53


@dataclass(frozen=True)
class LoadedTable:
    """Numbers (n, p) with NaN for missing, texts (n, q) with "" for missing, labels (n,)."""

    name: str
    target: str
    numbers: np.ndarray
    texts: np.ndarray
    labels: np.ndarray

    @property
    def summary(self) -> str:
        """Rows, columns by kind, classes: how the table was understood."""
        kinds = [(self.numbers.shape[1], "numeric"), (self.texts.shape[1], "text")]
        columns = " and ".join(f"{count} {kind}" for count, kind in kinds if count)
        n_classes = len(set(self.labels.tolist()))
        return f"{len(self.labels)} rows, {columns} features, {n_classes} classes"


def builtin_table(name: str) -> LoadedTable:
    """One of `margrove.datasets.DATASETS`."""
    from margrove.datasets import DATASETS

    if name not in DATASETS:
        raise InvalidDataError(
            f"There is no built-in data set {name!r}. There are {', '.join(DATASETS)}."
        )
    bunch = DATASETS[name]()
    labels = np.asarray(bunch.target)
    if bunch.get("target_names") is not None:
        labels = np.asarray(bunch.target_names)[labels]
    nothing = np.empty((len(labels), 0))
    if bunch.data.dtype.kind == "U":
        return LoadedTable(name, "target", nothing, bunch.data.astype(object), labels)
    return LoadedTable(name, "target", bunch.data, nothing.astype(object), labels)


def read_table(path: Path, target: str | None) -> LoadedTable:
    """A CSV, TSV or Parquet file, perhaps compressed; the target is the last column by default."""
    frame = _read(path)
    if frame.height == 0 or frame.width < 2:
        raise InvalidDataError(
            f"{path} has {frame.height} rows and {frame.width} columns; a table needs at least one "
            "row, one feature and the target."
        )
    if target is None:
        target = frame.columns[-1]
    if target not in frame.columns:
        raise InvalidDataError(
            f"{path} has no column {target!r}. Its columns are {', '.join(frame.columns[:20])}."
        )
    frame = frame.filter(frame[target].is_not_null())
    if frame.height == 0:
        raise InvalidDataError(f"The target column {target!r} of {path} is empty.")
    numbers, texts = _split_by_type(frame.drop(target))
    return LoadedTable(path.name, target, numbers, texts, _labels(frame[target]))


def _read(path: Path) -> Any:
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError(
            "Reading a file needs polars: pip install 'margrove[data]'. Built-in data work without."
        ) from error
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise InvalidDataError(f"{path} {what}.")
    compressed = path.suffix.lower() in (".gz", ".zst")
    suffix = (path.with_suffix("").suffix if compressed else path.suffix).lower()
    if suffix not in _READERS:
        raise InvalidDataError(
            f"{path} is not a {', '.join(_READERS)} file, perhaps with .gz or .zst: got {suffix!r}."
        )
    try:
        if suffix == ".parquet":
            return pl.read_parquet(path, glob=False)
        return _read_csv(path, _READERS[suffix] or ",")
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise InvalidDataError(f"{path} could not be read: {_first_line(error)}") from error


def _read_csv(path: Path, separator: str) -> Any:
    import polars as pl

    settings: dict[str, Any] = {"separator": separator, "null_values": _MISSING, "glob": False}
    settings["try_parse_dates"] = True
    try:
        return pl.read_csv(path, infer_schema_length=10_000, **settings)
    except pl.exceptions.ComputeError:  # a later row may need a wider type than the first ones
        return pl.read_csv(path, infer_schema_length=None, **settings)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _split_by_type(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    import polars as pl

    numbers, texts = [], []
    for column in frame.iter_columns():
        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            numbers.append(column.cast(pl.Float64).to_numpy())
        elif column.dtype.is_temporal():
            numbers.append(column.to_physical().cast(pl.Float64).to_numpy())
        elif column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
            raise InvalidDataError(f"Column {column.name!r} holds {column.dtype}, not values.")
        else:
            texts.append(column.cast(pl.String).fill_null("").to_numpy())
    height = frame.height
    return (
        np.column_stack(numbers) if numbers else np.empty((height, 0)),
        np.column_stack(texts).astype(object) if texts else np.empty((height, 0), dtype=object),
    )


def _labels(column: Any) -> np.ndarray:
    if column.dtype.is_float():
        values = column.to_numpy()
        if not np.isfinite(values).all():
            raise InvalidDataError(
                f"The target column {column.name!r} has values that are not finite."
            )
        whole = (values == np.floor(values)) & (np.abs(values) < _EXACT_INTEGERS)
        return values.astype(np.int64) if bool(np.all(whole)) else values
    if column.dtype.is_integer():
        return np.asarray(column.to_numpy())
    return np.array([str(value) for value in column.to_list()])
