"""Models in files: `save`, `load`, and `inspect_file`, which reads a file without loading it."""

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
    """Save a model, fitted or not, to a file that contains values and no code.

    The file is written completely or not at all: if something goes wrong, an existing file stays
    unchanged. Its bytes depend only on the model. `n_jobs` and `verbose`, which belong to the
    machine, and references to the training data are left out.

    Parameters
    ----------
    model : estimator
        Any estimator of margrove, or a `Pipeline`, a `VotingClassifier` or the like that contains
        some; see the page on model files.
    file : str, path or binary file object
        Names usually end in ".margrove".
    about : dict or None, default=None
        Plain values to keep beside the model, such as the name of the target: strings, numbers,
        truth values, None, and lists and dicts of them. `inspect_file` shows them.

    Raises
    ------
    UnsavableModelError
        If the model contains something that a file cannot contain, such as a function of your own.
        Nothing is written then.

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
    """The kind and the values of a model; a model that could not be loaded is refused."""
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
    return kind, {name: value for name, value in values.items() if name != "is"}


def _not_a_model(thing: Any) -> tuple[str, str, str]:
    """For an error: the name of the thing, what it is, and the way out."""
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
            "Classes of your own and of other libraries are code, which model files do not contain."
        ),
    )


def load(file: File) -> Any:
    """Load a model that `save` has written.

    Nothing in a file is executed, and every value in it is checked: a file that is damaged,
    truncated or forged is refused. The model predicts bit for bit what the saved one did.

    Parameters
    ----------
    file : str, path or binary file object

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is not a complete and valid model file.

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
    """Load a model, and the notes that were saved with it.

    Parameters
    ----------
    file : str, path or binary file object

    Returns
    -------
    model : estimator
    about : dict
        As it was given to `save`, with lists in place of tuples; empty if none was given.

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
    except Exception as error:  # values that contradict each other in a way that no check covers
        reason = f"its values contradict each other: {type(error).__name__}: {error}"
        raise ModelFileError(reason, None, _name_of(file)) from error


def _name_of(file: File) -> str:
    return os.fspath(file) if isinstance(file, (str, os.PathLike)) else ""


# -- inspecting files --

_TRAINING_ROWS = {
    "support_vectors_": "support vectors are rows of the training data",
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
    """What a model file contains.

    kind            the class of the model
    format_version  the version of the file format
    is_fitted       whether the model is fitted
    parameters      plain values, and the names of objects
    feature_names   those of the model, None if it has none
    classes         its class labels, None if it has none
    fields          all fitted attributes
    remarks         what the file contains of the training data
    about           the notes that were saved with the model
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
        lines += [f"  {value}" for value in self.fields]
        lines += [f"Note: {remark}." for remark in self.remarks]
        return "\n".join(lines)


def inspect_file(file: File) -> FileSummary:
    """Read what a model file contains, without loading the model.

    Parameters
    ----------
    file : str, path or binary file object

    Returns
    -------
    FileSummary
        `print` it, or see its attributes. `remarks` say what the file contains of the training
        data: everyone who gets the file gets these data, too.

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
    ('support vectors are rows of the training data',)
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
    everything = [*fields, *(value for value in inner if value.name.count(".") > 1)]
    return FileSummary(
        kind,
        FORMAT_VERSION,
        bool(fitted) or any(".fitted." in value.name for value in everything),
        {name: _readable(value) for name, value in parameters.items()},
        _as_tuple(_first(values, "feature_names_in_")),
        _as_tuple(_first(values, "classes_")),
        tuple(everything),
        tuple(
            dict.fromkeys(
                remark
                for name, remark in _TRAINING_ROWS.items()
                if any(name in value.name.split(".") for value in everything)
            )
        ),
        about,
    )


def _fields(values: Any, where: str = "") -> Iterator[Field]:
    """All values that are not containers."""
    if isinstance(values, dict):
        for name, value in values.items():
            if name != "is":
                yield from _fields(value, f"{where}.{name}" if where else name)
    elif isinstance(values, (list, tuple)):
        for i, value in enumerate(values):
            yield from _fields(value, f"{where}.{i}")
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
    """A parameter; objects are replaced by their names."""
    if isinstance(value, dict) and "is" in value:
        return value["is"]
    if isinstance(value, (list, tuple)):
        return type(value)(_readable(item) for item in value)
    return value


def _first(values: Any, wanted: str) -> Any:
    """The outermost attribute of that name; for a pipeline, that of one of its steps."""
    if not isinstance(values, dict):
        nested = values if isinstance(values, (list, tuple)) else ()
        found = (_first(item, wanted) for item in nested)
    elif wanted in values:
        return values[wanted]
    else:
        found = (_first(values[name], wanted) for name in values if name != "is")
    return next((value for value in found if value is not None), None)


def _as_tuple(found: Any) -> tuple[Any, ...] | None:
    if isinstance(found, np.ndarray):
        return tuple(found.tolist())
    return tuple(map(_as_tuple, found)) if isinstance(found, list) else None
