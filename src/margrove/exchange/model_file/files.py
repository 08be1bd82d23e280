"""Models in files: `save`, `load`, and `inspect_file`, which looks without loading."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from margrove._files import FORMAT_VERSION, read_archive, write_archive
from margrove.exceptions import ModelFileError, UnsavableModelError
from margrove.exchange.model_file.about import about_for_file, about_from_file
from margrove.exchange.model_file.kinds import kind_name_of, kinds
from margrove.exchange.model_file.registered_kinds import refusal_of_kind
from margrove.exchange.model_file.values import model_of, values_of

__all__ = ["Field", "FileSummary", "inspect_file", "load", "load_with_about", "save"]

File = str | os.PathLike[str] | BinaryIO


def save(model: Any, file: File, *, about: Mapping[str, Any] | None = None) -> None:
    """Save a model, fitted or not, to a file that holds values and no code.

    The file appears as a whole or not at all: whatever goes wrong, one that was there before is as
    it was. Its bytes depend on the model alone. Left out are `n_jobs` and `verbose`, which are a
    matter of the machine, and references to the training data.

    Parameters
    ----------
    model : estimator
        Any estimator of margrove, or a `Pipeline`, `VotingClassifier` and the like around some; see
        the page on model files.
    file : str, path or binary file object
        By custom, names end in ".margrove".
    about : dict or None, default=None
        Plain values to keep beside the model, such as the name of what it predicts: texts, numbers,
        truth values, None, and lists and dicts of them. `inspect_file` shows them.

    Raises
    ------
    UnsavableModelError
        If there is something in the model that a file does not hold, such as a function of your
        own. Nothing is written then.

    Examples
    --------
    >>> import io, margrove
    >>> model = margrove.SVC().fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> file = io.BytesIO()
    >>> margrove.save(model, file)
    >>> _ = file.seek(0)
    >>> margrove.load(file).predict([[0.2], [2.7]]).tolist()
    ['low', 'high']
    """
    kept = about_for_file(about)
    kind, values = _described(model)
    write_archive(file, kind, values | ({_ABOUT: kept} if kept else {}))


_ABOUT = "about"


def _described(model: Any) -> tuple[str, dict[str, Any]]:
    """The kind and the values of a model; what could not be loaded is not saved."""
    model = model.to_local() if hasattr(type(model), "to_local") else model
    kind = kind_name_of(model)
    if kind is None:
        raise UnsavableModelError(*_not_a_model(model))
    values = values_of(model)
    try:
        model_of(values)
    except (ModelFileError, ValueError, TypeError) as error:
        reason = error.reason if isinstance(error, ModelFileError) else str(error)
        raise UnsavableModelError(
            kind, f"not as a fit leaves it: {reason.split('. ')[0]}", "Fit the model again."
        ) from error
    return kind, {name: own for name, own in values.items() if name != "is"}


def _not_a_model(thing: Any) -> tuple[str, str, str]:
    if isinstance(thing, type):
        return thing.__name__, "a class", f"Save an instance of it: {thing.__name__}()."
    what = f"a {type(thing).__qualname__}"
    if hasattr(thing, "best_estimator_"):
        return "it", what, "Save its best_estimator_."
    return (
        "it",
        what,
        (
            "Give an estimator of margrove, or a pipeline that ends in one, as save(model, file). "
            "Classes of your own and of other libraries are code, which a model file does not hold."
        ),
    )


def load(file: File) -> Any:
    """Load a model that `save` has written.

    Nothing in a file is ever run, and nothing in it is believed: a file that is damaged, cut off or
    made up is refused, whatever is in it. The model predicts bit for bit what the saved one did.

    Parameters
    ----------
    file : str, path or binary file object

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is not a whole and sound model file.

    Examples
    --------
    >>> import pathlib, tempfile, margrove
    >>> tree = margrove.DecisionTreeRegressor().fit([[1.0], [2.0], [3.0]], [5.0, 5.0, 7.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tree.margrove")
    ...     margrove.save(tree, path)
    ...     margrove.load(path).predict([[1.5], [3.5]]).tolist()
    [5.0, 7.0]
    """
    return load_with_about(file)[0]


def load_with_about(file: File) -> tuple[Any, dict[str, Any]]:
    """Load a model, and what was kept beside it.

    Parameters
    ----------
    file : str, path or binary file object

    Returns
    -------
    model : estimator
    about : dict
        As it was given to `save`, with lists for tuples; empty if nothing was.

    Examples
    --------
    >>> import io, margrove
    >>> from margrove.exchange.model_file.files import load_with_about
    >>> file = io.BytesIO()
    >>> margrove.save(margrove.SVC(), file, about={"target": "income"})
    >>> _ = file.seek(0)
    >>> load_with_about(file)
    (SVC(), {'target': 'income'})
    """
    kind, values = read_archive(file)
    try:
        if kind not in kinds():
            raise ModelFileError(f"it holds {refusal_of_kind(kind)}")
        about = about_from_file(values.pop(_ABOUT, {}))
        return model_of({"is": kind} | values), about
    except ModelFileError as error:
        raise ModelFileError(error.reason, error.offset, _name_of(file)) from None
    except MemoryError:
        raise
    except Exception as error:  # values that fit together in no way we have thought of
        reason = f"its values contradict each other: {type(error).__name__}: {error}"
        raise ModelFileError(reason, None, _name_of(file)) from error


def _name_of(file: File) -> str:
    return os.fspath(file) if isinstance(file, (str, os.PathLike)) else ""


# -- looking at files --

_TRAINING_ROWS = {
    "support_vectors_": "support vectors are rows of the training data, word for word",
    "leaf_samples_": "targets of the training rows are kept for each leaf",
    "residuals_": "errors on the training rows are kept",
    "oob_prediction_": "out-of-bag predictions of the training rows are kept",
    "oob_decision_function_": "out-of-bag predictions of the training rows are kept",
    "parts_": "labels and words of the training table are kept",
}


@dataclass(frozen=True)
class Field:
    """One value of a model file: where it is, what it is, and how many bytes it takes."""

    name: str
    content: str
    n_bytes: int

    def __str__(self) -> str:
        return f"{self.name}: {self.content}, {self.n_bytes} bytes"


@dataclass(frozen=True)
class FileSummary:
    """What a model file holds.

    kind            the class of the model
    format_version  of the file
    is_fitted
    parameters      as far as they are plain values
    feature_names   of the model, None if it has none
    classes         its labels, None if it has none
    fields          all that was learnt
    remarks         what is in the file of the training data
    about           what was kept beside the model
    """

    kind: str
    format_version: int
    is_fitted: bool
    parameters: dict[str, Any]
    feature_names: tuple[str, ...] | None
    classes: tuple[Any, ...] | None
    fields: tuple[Field, ...]
    remarks: tuple[str, ...]
    about: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        state = "fitted" if self.is_fitted else "not fitted"
        lines = [f"{self.kind}, {state}, format version {self.format_version}"]
        lines += [f"  about {name}: {value!r}" for name, value in self.about.items()]
        lines += [f"  {name} = {value!r}" for name, value in self.parameters.items()]
        lines += [f"  {own}" for own in self.fields]
        lines += [f"Note: {remark}." for remark in self.remarks]
        return "\n".join(lines)


def inspect_file(file: File) -> FileSummary:
    """Say what a model file holds, without making a model of it.

    Parameters
    ----------
    file : str, path or binary file object

    Returns
    -------
    FileSummary
        `print` it, or see its attributes. `remarks` say what the file holds of the training data:
        whoever gets the file gets that too.

    Examples
    --------
    >>> import io, margrove
    >>> file = io.BytesIO()
    >>> margrove.save(margrove.SVC(C=2.0).fit([[0.0], [1.0]], ["a", "b"]), file)
    >>> _ = file.seek(0)
    >>> found = margrove.inspect_file(file)
    >>> found.kind, found.classes, found.parameters["C"]
    ('SVC', ('a', 'b'), 2.0)
    >>> found.remarks
    ('support vectors are rows of the training data, word for word',)
    """
    kind, values = read_archive(file)
    parameters, fitted = values.get("parameters"), values.get("fitted")
    if not isinstance(parameters, dict) or not isinstance(fitted, dict) or kind not in kinds():
        raise ModelFileError(
            f"it holds a {kind[:50]!r}, which is not a model that this margrove knows.",
            None,
            _name_of(file),
        )
    try:
        about = about_from_file(values.pop(_ABOUT, {}))
    except ModelFileError as error:
        raise ModelFileError(error.reason, None, _name_of(file)) from None
    fields = tuple(_fields(fitted))
    inner = _fields(parameters, "parameters")
    everything = [*fields, *(own for own in inner if own.name.count(".") > 1)]
    return FileSummary(
        kind,
        FORMAT_VERSION,
        bool(fitted) or any(".fitted." in own.name for own in everything),
        {name: _readable(value) for name, value in parameters.items()},
        _as_tuple(_first(values, "feature_names_in_")),
        _as_tuple(_first(values, "classes_")),
        tuple(everything),
        tuple(
            dict.fromkeys(
                remark
                for name, remark in _TRAINING_ROWS.items()
                if any(name in own.name.split(".") for own in everything)
            )
        ),
        about,
    )


def _fields(values: Any, where: str = "") -> Iterator[Field]:
    """All values that are no containers."""
    if isinstance(values, dict):
        for name, own in values.items():
            if name != "is":
                yield from _fields(own, f"{where}.{name}" if where else name)
    elif isinstance(values, (list, tuple)):
        for i, own in enumerate(values):
            yield from _fields(own, f"{where}.{i}")
    else:
        yield Field(where, *_content(values))


def _content(value: Any) -> tuple[str, int]:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}", value.nbytes
    if sp.issparse(value):
        n_bytes = value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
        return f"sparse {value.dtype} {value.shape}", n_bytes
    size = len(value.encode()) if isinstance(value, str) else 8
    return repr(value) if size <= 60 else f"text of {size} bytes", size


def _readable(value: Any) -> Any:
    """Parameters that are objects, as their names."""
    if isinstance(value, dict) and "is" in value:
        return value["is"]
    if isinstance(value, (list, tuple)):
        return type(value)(_readable(own) for own in value)
    return value


def _first(values: Any, wanted: str) -> Any:
    """The outermost attribute of that name; of a pipeline, that of its steps."""
    if not isinstance(values, dict):
        nested = values if isinstance(values, (list, tuple)) else ()
        found = (_first(own, wanted) for own in nested)
    elif wanted in values:
        return values[wanted]
    else:
        found = (_first(values[own], wanted) for own in values if own != "is")
    return next((own for own in found if own is not None), None)


def _as_tuple(found: Any) -> tuple[Any, ...] | None:
    if isinstance(found, np.ndarray):
        return tuple(found.tolist())
    return tuple(map(_as_tuple, found)) if isinstance(found, list) else None
