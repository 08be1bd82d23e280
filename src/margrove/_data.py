"""The boundary: whatever users hand in becomes canonical arrays here, or an error that helps.

Inside the library
    X               C-contiguous float64 or float32 array, or CSR with sorted, unique int32
                    column indices and int64 row pointers, always finite unless asked otherwise
    y               int64 codes into `classes`, or float64 targets
    sample_weight   float64, finite, >= 0, at least one > 0

scikit-learn's validation does what it does well; this adds what it lacks: a structure check of
sparse matrices (compiled code trusts their indices), Arrow tables and lazy frames, errors that
name row and column, labels that survive NumPy's fixed-width strings, and no side effects: nothing
is written to an estimator before a fit has succeeded.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
)

from margrove.exceptions import DataWarning, InvalidDataError, MalformedSparseError

__all__ = [
    "Batch",
    "Labels",
    "Rows",
    "Table",
    "TrainingLabels",
    "check_batch",
    "check_labels",
    "check_table",
    "check_targets",
    "check_training_labels",
    "check_weights",
    "class_factors",
    "kernel_rows",
    "like_fitted",
    "seed_of",
]

_EXACT_INTEGERS = 2**53
_LONG_LABEL = 1024


@dataclass(frozen=True)
class Table:
    """A checked X and what an estimator remembers of it."""

    X: Any
    feature_names: np.ndarray | None

    @property
    def attributes(self) -> dict[str, Any]:
        """`n_features_in_` and, where the columns have names, `feature_names_in_`."""
        remembered: dict[str, Any] = {"n_features_in_": int(self.X.shape[1])}
        if self.feature_names is not None:
            remembered["feature_names_in_"] = self.feature_names
        return remembered


@dataclass(frozen=True)
class Labels:
    """Class labels as int64 `codes` into the sorted `classes`."""

    codes: np.ndarray
    classes: np.ndarray


class Rows(NamedTuple):
    """X as compiled code sees it: row-major dense, or CSR; the unused half is empty.

    dense (n, d), data (nnz,), indices int32 (nnz,), indptr int64 (n + 1,), is_dense.
    """

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    is_dense: bool


def kernel_rows(X: Any) -> Rows:
    """View a checked X for compiled code, without a copy."""
    if sp.issparse(X):
        empty = np.empty((0, 0), dtype=X.dtype)
        return Rows(_frozen(empty), _frozen(X.data), _frozen(X.indices), _frozen(X.indptr), False)
    no_index = _frozen(np.empty(0, np.int32))
    no_pointer = _frozen(np.empty(0, np.int64))
    return Rows(_frozen(X), _frozen(np.empty(0, X.dtype)), no_index, no_pointer, True)


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view: one kernel signature whether or not the user's array is writable."""
    view = array.view()
    view.flags.writeable = False
    return view


# --- X ------------------------------------------------------------------------------------------


def check_table(
    X: Any,
    estimator: Any,
    *,
    accept_sparse: bool = True,
    allow_nan: bool = False,
    min_rows: int = 1,
) -> Table:
    """Check X as given to `fit`; nothing is stored on the estimator."""
    X = _collected(X)
    names = _feature_names(X)
    array = _numeric_matrix(X, estimator, accept_sparse, min_rows)
    if not allow_nan:
        _require_finite(array, names, estimator)
    return Table(array, names)


def like_fitted(
    X: Any,
    estimator: Any,
    *,
    accept_sparse: bool = True,
    allow_nan: bool = False,
    min_rows: int = 1,
) -> Any:
    """Check X as given to `predict` and its like, against the columns seen in `fit`."""
    X = _collected(X)
    _feature_names(X)
    _check_feature_names(estimator, X, reset=False)
    array = _numeric_matrix(X, estimator, accept_sparse, min_rows)
    _check_n_features(estimator, array, reset=False)
    if not allow_nan:
        _require_finite(array, getattr(estimator, "feature_names_in_", None), estimator)
    return array


def _collected(X: Any) -> Any:
    """Lazy frames are read in; everything else is left as it is."""
    if type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "collect"):
        return X.collect()
    return X


class _Names:
    """Takes what scikit-learn would have written to the estimator."""


def _feature_names(X: Any) -> np.ndarray | None:
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        return None
    columns = list(X.columns if hasattr(X, "columns") else X.column_names)
    columns = [name for name in columns if isinstance(name, str)]
    if len(set(columns)) < len(columns):
        twice = sorted({name for name in columns if columns.count(name) > 1})
        raise InvalidDataError(
            f"X has more than one column named {', '.join(map(repr, twice))}. Rename or drop them: "
            "columns are matched by name."
        )
    taker = _Names()
    _check_feature_names(taker, X, reset=True)
    return getattr(taker, "feature_names_in_", None)


def _numeric_matrix(X: Any, estimator: Any, accept_sparse: bool, min_rows: int) -> Any:
    if sp.issparse(X):
        _require_sound_structure(X)
    elif _is_frame(X):
        X = _frame_to_array(X)
    else:
        X = _plain_array(X)
    array = check_array(
        X,
        accept_sparse="csr" if accept_sparse else False,
        accept_large_sparse=True,
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        ensure_min_samples=min_rows,
        estimator=estimator,
        input_name="X",
    )
    if sp.issparse(array):
        return _canonical_csr(array)
    return np.ascontiguousarray(array)


def _plain_array(X: Any) -> Any:
    """Refuse what NumPy would silently reinterpret, and say when a conversion loses bits."""
    if isinstance(X, np.ma.MaskedArray):
        raise InvalidDataError(
            "X is a masked array, whose mask would be ignored. Pass X.filled(value), or use an "
            "imputer such as sklearn.impute.SimpleImputer."
        )
    if not isinstance(X, np.ndarray):
        return X
    kind = X.dtype.kind
    if kind in "mMV":
        raise InvalidDataError(
            f"X has dtype {X.dtype}, which is not a number. Turn dates and durations into numbers "
            "first, for example days since a date of your choice."
        )
    if kind in "US":
        cell = f"X[{', '.join('0' * X.ndim)}] = {X.flat[0]!r}" if X.size else "an empty array"
        raise InvalidDataError(
            f"dtype='numeric' is not compatible with arrays of bytes/strings: {cell}. Convert your "
            "data to numeric values explicitly, for example X.astype(float)."
        )
    if kind in "iu" and X.dtype.itemsize == 8 and X.size and _max_abs(X) > _EXACT_INTEGERS:
        warnings.warn(
            "X holds integers beyond 2**53, which float64 cannot tell apart. Subtract an offset "
            "or treat them as categories.",
            DataWarning,
            stacklevel=5,
        )
    if kind == "f" and X.dtype.itemsize > 8 and not np.array_equal(X, X.astype(np.float64)):
        warnings.warn(
            f"X has dtype {X.dtype} and was rounded to float64.", DataWarning, stacklevel=5
        )
    return X


def _max_abs(X: np.ndarray) -> int:
    return max(int(X.max()), -int(X.min()))


def _is_frame(X: Any) -> bool:
    module = type(X).__module__.partition(".")[0]
    if module in ("numpy", "builtins", "scipy"):
        return False
    import narwhals.stable.v2 as nw

    return bool(nw.dependencies.is_into_dataframe(X))


def _frame_to_array(X: Any) -> np.ndarray:
    """Numeric and boolean columns of any dataframe library; missing becomes NaN."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, eager_only=True)
    columns = []
    for position, name in enumerate(frame.columns):
        series = frame.get_column(name) if isinstance(name, str) else frame[:, position]
        if not (series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.Object)):
            raise InvalidDataError(
                f"Column {name!r} of X has type {series.dtype}, which is not a number. Encode it "
                "first, for example with sklearn.preprocessing.OneHotEncoder, or drop it."
            )
        columns.append(_series_to_float(series, nw))
    if not columns:
        return np.empty((len(frame), 0))
    kind = np.float32 if all(column.dtype == np.float32 for column in columns) else np.float64
    out = np.empty((len(frame), len(columns)), dtype=kind)
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def _series_to_float(series: Any, nw: Any) -> np.ndarray:
    if series.dtype == nw.Object:  # pandas columns of Python objects
        return np.asarray(series.to_list(), dtype=np.float64)
    if series.dtype != nw.Float32:
        series = series.cast(nw.Float64)
    if series.is_null().any():
        return np.array([np.nan if v is None else v for v in series.to_list()], dtype=np.float64)
    return np.asarray(series.to_numpy())


def _require_finite(X: Any, names: np.ndarray | None, estimator: Any) -> None:
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one fast pass; only a doubt costs a second one
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if sp.issparse(X):
        position = int(np.argmax(bad))
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        column, value = int(X.indices[position]), X.data[position]
    else:
        row, column = (int(i) for i in np.unravel_index(int(np.argmax(bad)), X.shape))
        value = X[row, column]
    where = f"row {row}, column {column}" if names is None else f"row {row}, column {names[column]!r}"
    what = "NaN" if np.isnan(value) else "infinity"
    raise InvalidDataError(
        f"Input X contains {what} (first at {where}; {int(bad.sum())} such values). "
        f"{type(estimator).__name__} needs finite numbers: drop these rows, or use "
        "sklearn.impute.SimpleImputer for missing values and a RobustScaler or clipping for "
        "infinity, or a value too large for dtype('float64')."
    )


# --- sparse -------------------------------------------------------------------------------------


def _require_sound_structure(X: Any) -> None:
    """Every index array of a sparse matrix is checked before anything, SciPy included, trusts it."""
    if X.ndim != 2:
        raise InvalidDataError(f"Expected 2D array, got a sparse array of {X.ndim} dimension(s).")
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    elif X.format == "coo":
        for axis, index in enumerate(X.coords):
            _check_index(index, X.shape[axis], "row" if axis == 0 else "column")
            if len(index) != len(X.data):
                raise MalformedSparseError("X", f"{len(index)} indices for {len(X.data)} values")
    elif X.format == "dia" and X.data.shape[0] != len(X.offsets):
        raise MalformedSparseError("X", "the numbers of diagonals and offsets differ")


def _check_compressed(X: Any) -> None:
    n_major, n_minor = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        if X.data.ndim != 3 or min(X.data.shape[1:]) < 1:
            raise MalformedSparseError("X", f"blocks of shape {X.data.shape[1:]}")
        n_major, n_minor = n_major // X.data.shape[1], n_minor // X.data.shape[2]
    indptr, indices = X.indptr, X.indices
    if indptr.ndim != 1 or indices.ndim != 1:
        raise MalformedSparseError("X", "indptr and indices must be one-dimensional")
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise MalformedSparseError(
            "X", f"indptr has dtype {indptr.dtype} and indices {indices.dtype}, not integers"
        )
    if len(indptr) != n_major + 1:
        raise MalformedSparseError("X", f"indptr has {len(indptr)} entries, not {n_major + 1}")
    if indptr[0] != 0:
        raise MalformedSparseError("X", f"indptr starts with {indptr[0]}, not 0")
    if np.any(indptr[1:] < indptr[:-1]):
        position = int(np.argmax(indptr[1:] < indptr[:-1]))
        raise MalformedSparseError(
            "X", f"indptr decreases from {indptr[position]} to {indptr[position + 1]}"
        )
    if indptr[-1] > len(indices) or indptr[-1] > len(X.data):
        raise MalformedSparseError(
            "X",
            f"indptr ends with {indptr[-1]}, but there are {len(indices)} indices and "
            f"{len(X.data)} values",
        )
    _check_index(indices[: indptr[-1]], n_minor, "row" if X.format == "csc" else "column")


def _check_index(index: np.ndarray, size: int, axis: str) -> None:
    if len(index) == 0:
        return
    if index.dtype.kind not in "iu":
        raise MalformedSparseError("X", f"{axis} indices have dtype {index.dtype}, not integers")
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= size:
        bad = low if low < 0 else high
        raise MalformedSparseError("X", f"{axis} index {bad} is outside 0..{size - 1}")


def _canonical_csr(X: Any) -> sp.csr_array:
    """Sorted, unique int32 columns and int64 pointers; the user's matrix is never changed."""
    if X.shape[1] > np.iinfo(np.int32).max:
        raise InvalidDataError(
            f"X has {X.shape[1]} columns; sparse input may have up to {np.iinfo(np.int32).max}. "
            "Hash the columns to fewer, for example with sklearn.feature_extraction.FeatureHasher."
        )
    stored = int(X.indptr[-1])
    indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(X.indices[:stored], dtype=np.int32)
    data = np.ascontiguousarray(X.data[:stored])
    ascending = np.ones(stored, dtype=bool)
    ascending[1:] = indices[1:] > indices[:-1]
    ascending[indptr[:-1][indptr[:-1] < stored]] = True  # a row's first entry may be anything
    if not ascending.all():
        row_of = np.repeat(np.arange(X.shape[0]), np.diff(indptr))
        tidy = sp.coo_array((data, (row_of, indices)), shape=X.shape).tocsr()
        tidy.sum_duplicates()
        indptr, indices = tidy.indptr.astype(np.int64), tidy.indices.astype(np.int32)
        data = tidy.data
    out = sp.csr_array(X.shape, dtype=data.dtype)
    # The constructor would narrow indptr to int32 again; kernels take one signature.
    out.data, out.indices, out.indptr = data, indices, indptr
    return out


# --- y ------------------------------------------------------------------------------------------


def check_labels(y: Any, n_rows: int) -> Labels:
    """Class labels of any type as codes; the classes are sorted as `numpy.unique` sorts."""
    if y is None:
        raise InvalidDataError(
            "This estimator requires y to be passed, but the target y is None: give one class label "
            "for each row of X."
        )
    array = _label_array(y)
    if array.size == 0 and n_rows:
        raise InvalidDataError(f"y is empty, but X has {n_rows} rows.")
    check_classification_targets(array)
    array = column_or_1d(array, warn=True)
    _require_length(array, n_rows, "y")
    classes, codes = np.unique(array, return_inverse=True)
    if classes.dtype == object:
        classes = _readable_classes(classes)
    _warn_of_lookalikes(classes)
    return Labels(codes.astype(np.int64, copy=False), classes)


def _label_array(y: Any) -> np.ndarray:
    """As an array, with strings kept as Python objects: NumPy's own drop trailing NULs."""
    if isinstance(y, (list, tuple)) and any(isinstance(label, str) for label in y):
        array = np.empty(len(y), dtype=object)
        array[:] = y
        y = array
    elif not isinstance(y, (np.ndarray, list, tuple)) and hasattr(y, "to_numpy"):
        y = y.to_numpy()
    y = np.asarray(y)
    if y.dtype == object and y.ndim == 1:
        kinds = {str if isinstance(label, str) else type(label) for label in y}
        missing = [i for i, label in enumerate(y) if label is None or label != label]
        if missing:
            raise InvalidDataError(
                f"Input y contains NaN or None (first at row {missing[0]}). Drop the rows without a label."
            )
        if str in kinds and len(kinds) > 1:
            others = sorted(kind.__name__ for kind in kinds if kind is not str)
            raise InvalidDataError(
                f"y mixes strings with {', '.join(others)}. Use one type of label, for example "
                "y.astype(str)."
            )
    elif y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmax(~np.isfinite(y.ravel())))
        raise InvalidDataError(f"Input y contains NaN or infinity (first at row {row}).")
    return y


def _readable_classes(classes: np.ndarray) -> np.ndarray:
    """Plain string arrays where they hold every label exactly, else Python objects."""
    if not all(isinstance(label, str) for label in classes):
        return np.asarray(classes.tolist()) if len(classes) else classes
    if any(label.endswith("\0") or len(label) > _LONG_LABEL for label in classes):
        return classes
    return np.asarray(classes.tolist(), dtype=str)


def _warn_of_lookalikes(classes: np.ndarray) -> None:
    if classes.dtype.kind not in "UO" or not all(isinstance(label, str) for label in classes):
        return
    seen: dict[str, str] = {}
    for label in classes:
        other = seen.setdefault(unicodedata.normalize("NFC", label), label)
        if other is not label:
            warnings.warn(
                f"The labels {ascii(other)} and {ascii(label)} look the same but are different "
                "strings, so they are different classes. Apply unicodedata.normalize('NFC', ...) "
                "to y if they should be one.",
                DataWarning,
                stacklevel=4,
            )


def check_targets(y: Any, n_rows: int, *, multi_output: bool = False) -> np.ndarray:
    """Regression targets as finite float64."""
    if y is None:
        raise InvalidDataError(
            "This estimator requires y to be passed, but the target y is None: give one number "
            "for each row of X."
        )
    targets = check_array(
        y, ensure_2d=False, dtype=np.float64, input_name="y", allow_nd=False, order="C"
    )
    if not multi_output:
        targets = column_or_1d(targets, warn=True)
    _require_length(targets, n_rows, "y")
    return targets


def _require_length(array: Any, n_rows: int, name: str) -> None:
    if len(array) != n_rows:
        raise InvalidDataError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"{name} has {len(array)}."
        )


# --- weights ------------------------------------------------------------------------------------


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """One finite weight >= 0 a row; without any, ones."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight)
    if weight.ndim != 1:
        raise InvalidDataError(
            "Sample weights must be a 1D array, got "
            f"{f'shape {weight.shape}' if weight.ndim else repr(sample_weight)}: one weight for "
            f"each of the {n_rows} rows is needed."
        )
    weight = check_array(
        weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight"
    )
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight.shape == ({len(weight)},), expected ({n_rows},)!")
    if np.any(weight < 0):
        row = int(np.argmax(weight < 0))
        raise InvalidDataError(f"sample_weight is negative at row {row}: {weight[row]!r}.")
    if not np.any(weight > 0):
        raise InvalidDataError(
            "sample_weight is zero for all rows, which removes them all. Give at least one row a "
            "positive weight."
        )
    return weight


def class_factors(
    class_weight: Mapping[Any, float] | str | None, labels: Labels, weight: np.ndarray
) -> np.ndarray:
    """The factor that `class_weight` puts on each class of `labels.classes`.

    "balanced" is total / (number of classes * weight of the class), as in scikit-learn but with
    weights for counts, so that repeating a row and weighting it are the same.
    """
    classes = labels.classes
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        total = np.bincount(labels.codes, weights=weight, minlength=len(classes))
        present = total > 0
        factors = np.zeros(len(classes))
        factors[present] = total.sum() / (present.sum() * total[present])
        return factors
    known = {label: code for code, label in enumerate(classes.tolist())}
    factors = np.ones(len(classes))
    for label, factor in class_weight.items():
        if label not in known:
            raise ValueError(
                f"class_weight names the class {label!r}, which is not in y. "
                f"The classes are {classes.tolist()}."
            )
        if not (np.isscalar(factor) and np.isfinite(factor) and factor > 0):
            raise ValueError(
                f"class_weight[{label!r}] must be a positive finite number. Got {factor!r} instead."
            )
        factors[known[label]] = float(factor)
    return factors


@dataclass(frozen=True)
class TrainingLabels:
    """Labels, the weight of each row as given, and the factor of each class.

    A row counts weight * factors[code]. The two stay apart until equal rows are merged: sums of
    the given weights are exact where they are counts, sums of their products would not be.
    Codes of rows of weight zero mean nothing.
    """

    codes: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    factors: np.ndarray


def check_training_labels(
    y: Any, sample_weight: Any, class_weight: Any, n_rows: int, *, min_classes: int = 2
) -> TrainingLabels:
    """Check y and both kinds of weight together: a row of weight zero is as good as absent."""
    labels = check_labels(y, n_rows)
    weight = check_weights(sample_weight, n_rows)
    kept = weight > 0
    if not kept.all():
        labels = _without_absent_classes(labels, kept)
    if len(labels.classes) < min_classes:
        raise InvalidDataError(
            f"The data has {len(labels.classes)} class ({labels.classes.tolist()}), but at least "
            f"{min_classes} classes are needed. Check y and sample_weight."
        )
    factors = class_factors(class_weight, labels, weight)
    return TrainingLabels(labels.codes, labels.classes, _moderate(weight), factors)


@dataclass(frozen=True)
class Batch:
    """One batch of a stream, its classes those of the whole stream."""

    X: Any
    labels: TrainingLabels
    attributes: dict[str, Any]


def check_batch(
    estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any, class_weight: Any
) -> Batch | None:
    """Check what `partial_fit` was given; None for a batch without rows."""
    stream_classes = _stream_classes(estimator, classes)
    if hasattr(estimator, "classes_"):
        X = like_fitted(X, estimator, min_rows=0)
        names = ("n_features_in_", "feature_names_in_")
        remembered = {n: getattr(estimator, n) for n in names if hasattr(estimator, n)}
    else:
        table = check_table(X, estimator, min_rows=0)
        X, remembered = table.X, table.attributes
    if X.shape[0] == 0:
        return None
    labels = check_labels(y, X.shape[0])
    unknown = ~np.isin(labels.classes, stream_classes)
    if unknown.any():
        raise InvalidDataError(
            f"y has the class {labels.classes[unknown].tolist()[0]!r}, which was not in `classes` of "
            f"the first call to partial_fit: {stream_classes.tolist()}."
        )
    codes = np.searchsorted(stream_classes, labels.classes)[labels.codes]
    weight = check_weights(sample_weight, X.shape[0])
    factors = class_factors(class_weight, Labels(codes, stream_classes), weight)
    training = TrainingLabels(codes, stream_classes, _moderate(weight), factors)
    return Batch(X, training, remembered)


def _stream_classes(estimator: Any, classes: Any) -> np.ndarray:
    known = getattr(estimator, "classes_", None)
    if classes is None:
        if known is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return np.asarray(known)
    given = check_labels(classes, len(classes)).classes
    if known is not None and not np.array_equal(known, given):
        raise ValueError(
            f"`classes={given.tolist()}` is not the same as on the first call to partial_fit, was: "
            f"{np.asarray(known).tolist()}."
        )
    if len(given) < 2:
        raise InvalidDataError(f"classes has 1 class ({given.tolist()}), at least 2 classes are needed.")
    return given


def _without_absent_classes(labels: Labels, kept: np.ndarray) -> Labels:
    present = np.unique(labels.codes[kept])
    if len(present) == len(labels.classes):
        return labels
    absent = np.delete(labels.classes, present)
    warnings.warn(
        f"All rows of class {', '.join(repr(label) for label in absent.tolist())} have "
        "sample_weight 0, so the class is left out of classes_.",
        DataWarning,
        stacklevel=4,
    )
    new_code = np.zeros(len(labels.classes), dtype=np.int64)
    new_code[present] = np.arange(len(present))
    return Labels(new_code[labels.codes], labels.classes[present])


def _moderate(weight: np.ndarray) -> np.ndarray:
    """Weights at the edge of floating point, brought to where sums and products are safe.

    Tiny ones are multiplied by a power of two, which is exact; huge ones are capped.
    """
    largest = weight.max()
    if largest < 1e-150:
        weight = np.ldexp(weight, 1 - int(np.frexp(largest)[1]))
    return np.minimum(weight, 1e290)


# --- random_state -------------------------------------------------------------------------------


def seed_of(random_state: Any) -> int:
    """One 32-bit seed from anything scikit-learn takes as random_state, or a Generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint64))
    return int(random_state)


