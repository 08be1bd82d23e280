"""Lazy predictions of any fitted model for Dask collections, partition by partition.

Arrays give arrays in the same chunks, known or not; dataframes give series or dataframes with the
same index. Only one thing is computed at once: the prediction for one made-up row, if the model
does not tell its dtype and shape. The model is in the graph once.
"""

from __future__ import annotations

import copy
import uuid
import warnings
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from dask.base import compute
from dask.delayed import delayed

from margrove.dask.partitions import is_collection
from margrove.exceptions import InvalidDataError, NotFittedError

__all__ = [
    "apply",
    "decision_function",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score",
    "transform",
]


def predict(model: Any, X: Any) -> Any:
    """Predictions of a fitted model for the rows of a Dask collection.

    Parameters
    ----------
    model : fitted estimator
        Any of margrove, support vector machines included, or a pipeline around one.
    X : dask array (n_samples, n_features) or dask dataframe

    Returns
    -------
    dask array (n_samples,) or dask series
        Lazy; class labels have the type that they had in training.

    Examples
    --------
    >>> import dask.array, margrove
    >>> from margrove.dask import predict
    >>> model = margrove.SVC().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> X = dask.array.asarray([[0.2], [2.7], [0.4]]).rechunk((2, 1))
    >>> predict(model, X).compute(scheduler="synchronous").tolist()
    ['low', 'high', 'low']
    """
    return _lazily(model, "predict", X)


def predict_proba(model: Any, X: Any) -> Any:
    """Probabilities of the classes: a dask array (n_samples, n_classes), or a dataframe.

    Parameters
    ----------
    model : fitted classifier
    X : dask array (n_samples, n_features) or dask dataframe

    Returns
    -------
    dask array or dask dataframe
        The columns of a dataframe are the classes.

    Examples
    --------
    >>> import dask.array, margrove
    >>> from margrove.dask import predict_proba
    >>> tree = margrove.DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> X = dask.array.asarray([[0.2], [0.9]])
    >>> predict_proba(tree, X).compute(scheduler="synchronous").tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return _lazily(model, "predict_proba", X)


def predict_log_proba(model: Any, X: Any) -> Any:
    """Logarithms of the probabilities; see `predict_proba`.

    Parameters
    ----------
    model : fitted classifier
    X : dask array (n_samples, n_features) or dask dataframe

    Returns
    -------
    dask array or dask dataframe

    Examples
    --------
    >>> import dask.array, margrove
    >>> from margrove.dask import predict_log_proba
    >>> tree = margrove.DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> X = dask.array.asarray([[0.2], [0.9]])
    >>> predict_log_proba(tree, X)[:, 1].compute(scheduler="synchronous").tolist()
    [-inf, 0.0]
    """
    return _lazily(model, "predict_log_proba", X)


def decision_function(model: Any, X: Any) -> Any:
    """Scores of the rows, as the `decision_function` of the model returns them.

    Parameters
    ----------
    model : fitted estimator
    X : dask array (n_samples, n_features) or dask dataframe

    Returns
    -------
    dask array, series or dataframe

    Examples
    --------
    >>> import dask.array, margrove
    >>> from margrove.dask import decision_function
    >>> machine = margrove.LinearSVC().fit([[0.0], [1.0]], [0, 1])
    >>> X = dask.array.asarray([[0.0], [1.0]])
    >>> (decision_function(machine, X) > 0).compute(scheduler="synchronous").tolist()
    [False, True]
    """
    return _lazily(model, "decision_function", X)


def apply(model: Any, X: Any) -> Any:
    """The leaf of each row: in a tree, or in each tree of an ensemble.

    Parameters
    ----------
    model : fitted tree, forest or boosted trees
    X : dask array (n_samples, n_features) or dask dataframe

    Returns
    -------
    dask array, series or dataframe

    Examples
    --------
    >>> import dask.array, margrove
    >>> from margrove.dask import apply
    >>> tree = margrove.DecisionTreeRegressor().fit([[0.0], [1.0]], [5.0, 7.0])
    >>> apply(tree, dask.array.asarray([[0.2], [0.9]])).compute(scheduler="synchronous").tolist()
    [1, 2]
    """
    return _lazily(model, "apply", X)


def transform(model: Any, X: Any) -> Any:
    """The rows, transformed by a fitted transformer.

    Parameters
    ----------
    model : fitted transformer
    X : dask array (n_samples, n_features) or dask dataframe

    Returns
    -------
    dask array or dask dataframe

    Examples
    --------
    >>> import dask.array, margrove
    >>> from margrove.dask import transform
    >>> mapping = margrove.PolynomialMap(degree=2).fit([[1.0, 2.0]])
    >>> transform(mapping, dask.array.asarray([[1.0, 2.0]])).shape
    (1, 6)
    """
    return _lazily(model, "transform", X)


def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Accuracy of a classifier, r2 of a regression: computed at once, as the local `score` would.

    Parameters
    ----------
    model : fitted estimator
    X : dask array or dataframe
    y : dask array or series, or array-like
    sample_weight : likewise, optional

    Returns
    -------
    float

    Examples
    --------
    >>> import dask, dask.array, margrove
    >>> from margrove.dask import score
    >>> tree = margrove.DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> with dask.config.set(scheduler="synchronous"):
    ...     score(tree, dask.array.asarray([[0.2], [0.9]]), ["no", "no"])
    0.5
    """
    from sklearn.base import is_classifier
    from sklearn.metrics import accuracy_score, r2_score

    predicted, truth, weight = compute(predict(model, X), y, sample_weight)
    truth = np.asarray(truth)
    if truth.ndim == 2 and truth.shape[1] == 1:
        truth = truth.ravel()
    measure = accuracy_score if is_classifier(model) else r2_score
    return float(measure(truth, np.asarray(predicted), sample_weight=weight))


# -- the task graph --


@dataclass(frozen=True)
class _Answer:
    """The form of the predictions.

    dtype     their dtype
    shape     the shape of the prediction for one row; () for a number or a label
    columns   the names of the columns in a dataframe
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    columns: tuple[Any, ...] | None = None

    def nothing(self) -> np.ndarray:
        """The predictions for no rows."""
        return np.empty((0, *self.shape), dtype=self.dtype)


def _lazily(model: Any, method: str, X: Any) -> Any:
    if not is_collection(X):
        raise InvalidDataError(
            f"X must be a Dask array or dataframe. Got {type(X).__name__} instead; for tables on "
            f"this machine, use model.{method}(X)."
        )
    model = _on_one_thread(model.to_local() if hasattr(type(model), "to_local") else model)
    if not hasattr(model, method):
        getattr(model, method)  # its error says why it is not there
    answer = _answer_like(model, method, X)
    name = f"{type(model).__name__}-{uuid.uuid4().hex}"
    shared = delayed(model, name=name, pure=True)
    if hasattr(type(X), "to_dask_array"):
        return X.map_partitions(
            _answers_with_index,
            shared,
            method,
            answer,
            meta=_framed(answer.nothing(), X._meta.index[:0], answer, method),
            enforce_metadata=False,
        )
    if X.ndim != 2:
        raise InvalidDataError(f"Expected 2D array, got a Dask array of shape {X.shape} instead.")
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    layout: dict[str, Any] = {"chunks": (X.chunks[0], *((size,) for size in answer.shape))}
    if not answer.shape:
        layout["drop_axis"] = 1
    elif len(answer.shape) > 1:
        layout["new_axis"] = list(range(2, 1 + len(answer.shape)))
    return X.map_blocks(
        _answers, shared, method, answer, dtype=answer.dtype, meta=answer.nothing(), **layout
    )


def _on_one_thread(model: Any) -> Any:
    """The model with n_jobs=1, because partitions are predicted in parallel already."""
    if getattr(model, "n_jobs", None) in (None, 1):
        return model
    model = copy.copy(model)
    model.n_jobs = 1
    return model


def _answers(block: Any, model: Any, method: str, answer: _Answer) -> np.ndarray:
    if block.shape[0] == 0:
        return answer.nothing()
    with joblib.parallel_config(backend="threading", n_jobs=1):
        found = getattr(model, method)(block)
    found = found.toarray() if sp.issparse(found) else np.asarray(found)
    return found.astype(answer.dtype, copy=False)


def _answers_with_index(block: Any, model: Any, method: str, answer: _Answer) -> Any:
    return _framed(_answers(block, model, method, answer), block.index, answer, method)


def _framed(values: np.ndarray, index: Any, answer: _Answer, method: str) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    if not answer.shape:
        return pd.Series(values, index=index, name=method)
    if len(answer.shape) > 1:
        raise InvalidDataError(
            f"{method} returns an array of shape {answer.shape} for each row, which a dataframe "
            "cannot contain. Use X.to_dask_array()."
        )
    return pd.DataFrame(values, index=index, columns=list(answer.columns or range(*answer.shape)))


# -- the form of predictions --


def _answer_like(model: Any, method: str, X: Any) -> _Answer:
    classes = _classes(model)
    if classes is not None and method == "predict":
        return _Answer(classes.dtype, ())
    if classes is not None and method in ("predict_proba", "predict_log_proba"):
        return _Answer(np.dtype(np.float64), (len(classes),), tuple(classes.tolist()))
    try:
        with warnings.catch_warnings():  # of unknown labels
            warnings.simplefilter("ignore")
            found = getattr(model, method)(_made_up_row(X))
    except NotFittedError:
        raise
    except (ValueError, TypeError) as error:
        raise InvalidDataError(
            f"{type(model).__name__}.{method} does not accept rows like those of X: {error}"
        ) from error
    columns = getattr(found, "columns", None)
    found = found if sp.issparse(found) else np.asarray(found)
    names = tuple(columns) if columns is not None else None
    if classes is not None and found.shape[1:] == (len(classes),):
        names = tuple(classes.tolist())
    return _Answer(found.dtype, tuple(found.shape[1:]), names)


def _classes(model: Any) -> np.ndarray | None:
    """The class labels of a model with one output; None if it has none."""
    try:
        classes = getattr(model, "classes_", None)
    except NotFittedError:
        raise
    except Exception:
        return None
    return classes if isinstance(classes, np.ndarray) and classes.ndim == 1 else None


def _made_up_row(X: Any) -> Any:
    if hasattr(type(X), "to_dask_array"):
        return X._meta_nonempty.iloc[:1]
    row = np.zeros((1, X.shape[1]), dtype=X.dtype)
    return sp.csr_array(row) if sp.issparse(X._meta) else row
