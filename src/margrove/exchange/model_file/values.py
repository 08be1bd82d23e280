"""Estimators as plain values, for archives, and back.

Plain values stay. Everything else becomes a dictionary whose entry "is" says what it is:

    an estimator       parameters and fitted attributes, as `kinds` describes them
    a part of one      its fields, as `kinds` describes them
    "pairs"            a dictionary whose keys are not all strings
    "set"              a set or frozenset
    "slice", "type"    of columns; of numbers
    "criterion"        name and parameters of a registered criterion
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from margrove.exceptions import ModelFileError, UnsavableModelError
from margrove.exchange.model_file.checks import Sizes, class_at, refuse_unless
from margrove.exchange.model_file.kinds import (
    Kind,
    Part,
    kind_name_of,
    kinds,
    part_name_of,
    part_named,
)
from margrove.exchange.model_file.registered_kinds import refusal_of_kind, why_not_saved

__all__ = ["LEFT_OUT", "model_of", "values_of"]

LEFT_OUT = frozenset({"n_jobs", "verbose", "memory"})  # parameters that belong to the machine
_NOT_LEARNT = frozenset({"_committed", "_skl_callbacks", "tuning_"})  # attributes of the fit
_PLAIN = (type(None), bool, int, float, str, bytes)
_TYPES: dict[str, Any] = {
    **{kind.__name__: kind for kind in (bool, int, float, str, object)},
    **{
        f"numpy.{name}": getattr(np, name)
        for name in ("bool_", "int32", "int64", "float32", "float64", "number", "object_")
    },
}


# -- from models --


def values_of(thing: Any, where: str = "") -> Any:
    """A model, or anything in it, as plain values; UnsavableModelError if there are none for it."""
    where = where or type(thing).__name__
    if hasattr(type(thing), "to_local"):  # an estimator of a cluster is saved as the local one
        thing = thing.to_local()
    if isinstance(thing, (*_PLAIN, np.ndarray, np.generic)):
        return thing
    part = part_name_of(thing)
    if part is not None:
        return _values_of_part(thing, part, where)
    if type(thing) in (list, tuple):
        return type(thing)(values_of(item, f"{where}[{i}]") for i, item in enumerate(thing))
    if isinstance(thing, dict):
        return _values_of_dictionary(thing, where)
    if type(thing) in (set, frozenset):
        return _values_of_set(thing, where)
    if isinstance(thing, slice):
        return {"is": "slice", "ends": [thing.start, thing.stop, thing.step]}
    kind = kind_name_of(thing)
    if kind is not None:
        return _values_of_estimator(thing, kind, where)
    for name, known in _TYPES.items():
        if thing is known:
            return {"is": "type", "name": name}
    if getattr(thing, "format", None) == "csr":
        return thing
    raise UnsavableModelError(where, *_why_not(thing))


def _values_of_part(thing: Any, name: str, where: str) -> dict[str, Any]:
    values = part_named(name).values_of(thing)  # type: ignore[union-attr]
    return {"is": name} | {
        field: values_of(value, f"{where}.{field}") for field, value in values.items()
    }


def _values_of_dictionary(given: dict[Any, Any], where: str) -> dict[str, Any]:
    if all(type(key) is str for key in given) and "is" not in given:
        return {key: values_of(value, f"{where}[{key!r}]") for key, value in given.items()}
    for key in given:
        if not isinstance(key, (*_PLAIN, np.generic)):
            raise UnsavableModelError(f"the key {key!r} of {where}", *_why_not(key))
    return {
        "is": "pairs",
        "pairs": [[key, values_of(value, f"{where}[{key!r}]")] for key, value in given.items()],
    }


def _values_of_set(given: set[Any] | frozenset[Any], where: str) -> dict[str, Any]:
    """A set as a sorted list, because the order of a set differs from run to run."""
    for item in given:
        if not isinstance(item, (*_PLAIN, np.generic)):
            raise UnsavableModelError(f"an item of {where}", *_why_not(item))
    items = sorted(given, key=lambda item: (type(item).__name__, item is not None and item))
    return {"is": "set", "items": items, "frozen": isinstance(given, frozenset)}


def _values_of_estimator(model: Any, name: str, where: str) -> dict[str, Any]:
    kind = kinds()[name]
    given = model.get_params(deep=False)
    parameters = {
        parameter: values_of(value, f"{where}.{parameter}")
        for parameter, value in given.items()
        if parameter not in LEFT_OUT
    }
    if "criterion" in parameters:
        parameters["criterion"] = _values_of_criterion(parameters["criterion"])
    fitted = _fitted_attributes(model, kind, given, where)
    return {
        "is": name,
        "parameters": parameters,
        "fitted": {
            attribute: values_of(value, f"{where}.{attribute}")
            for attribute, value in fitted.items()
        },
    }


def _fitted_attributes(
    model: Any, kind: Kind, parameters: dict[str, Any], where: str
) -> dict[str, Any]:
    """The fitted attributes in the order of the file; none if the model is not fitted."""
    state = {name: value for name, value in vars(model).items() if name not in parameters}
    skipped = kind.skipped | _NOT_LEARNT
    learnt = kind.take({name: value for name, value in state.items() if name not in skipped})
    for name in learnt:
        if name not in kind.checks:
            raise UnsavableModelError(
                f"{where}.{name}",
                "an attribute that is not part of such a model",
                f"Keep it elsewhere and delete it: del model.{name}.",
            )
    return {name: learnt[name] for name in kind.checks if name in learnt}


def _values_of_criterion(criterion: Any) -> Any:
    """The name of a criterion; of one that the user has registered, name and parameters."""
    from margrove.grove import CRITERIA

    known = CRITERIA.get(criterion) if isinstance(criterion, str) else None
    if known is None or known.impurity is None:
        return criterion
    return {"is": "criterion"} | known.saved()


def _why_not(thing: Any) -> tuple[str, str]:
    """For an error: what the thing is, and the way out."""
    kind = type(thing)
    if isinstance(thing, (np.random.RandomState, np.random.Generator)):
        return f"a {kind.__name__}", (
            "Use a number: model.set_params(random_state=0) keeps the fitted attributes."
        )
    base = {parent.__name__ for parent in kind.__mro__}
    if "GradientLoss" in base:
        return f"{thing!r}, of your own", (
            "It is code, which a model file does not contain. Register it under a name "
            "(margrove.register_gradient_loss), or pickle the model for your own use."
        )
    if "CallableKernel" not in base and "Kernel" in base:
        return f"{thing!r}, which is not registered", (
            "A model file contains the names of registered kernels, not their code. Put the class "
            "into margrove.kernels.KERNELS with @margrove.kernels.registered, or pickle the model "
            "for your own use."
        )
    if "Kernel" in base:
        return f"{thing!r}, of your own", (
            "It is code, which a model file does not contain. Use a kernel of margrove, or pickle "
            "the model for your own use."
        )
    registered = why_not_saved(thing)
    if registered is not None:
        return registered
    if hasattr(thing, "get_params"):
        return f"a {kind.__module__}.{kind.__name__}", (
            "Model files contain estimators of margrove, and those of scikit-learn that the page "
            "on model files lists. Save the model without it, or pickle the whole model for your "
            "own use."
        )
    if callable(thing):
        name = getattr(thing, "__qualname__", kind.__qualname__)
        return f"the function {name}", (
            "It is code, which a model file does not contain. Use one that margrove has a name "
            "for, or pickle the model for your own use."
        )
    return f"a {kind.__module__}.{kind.__qualname__}", (
        "Replace it by plain values, or pickle the model for your own use."
    )


# -- to models --


def model_of(values: Any, where: str = "") -> Any:
    """The model, or part of it, that plain values describe; ModelFileError if they are invalid."""
    if type(values) in (list, tuple):
        return type(values)(model_of(item, f"{where}[{i}]") for i, item in enumerate(values))
    if not isinstance(values, dict):
        return values
    if "is" not in values:
        return {key: model_of(value, f"{where}.{key}") for key, value in values.items()}
    name = values["is"]
    fields = {key: value for key, value in values.items() if key != "is"}
    refuse_unless(isinstance(name, str), f"{where} has no kind")
    if name in _OTHERS:
        return _OTHERS[name](fields, where)
    part = part_named(name)
    if part is not None:
        return _part_of(part, fields, where or name)
    if name in kinds():
        return _estimator_of(kinds()[name], fields, where or name)
    raise ModelFileError(f"{where or 'it'} is {refusal_of_kind(name)}")


def _pairs_of(fields: dict[str, Any], where: str) -> dict[Any, Any]:
    _require_keys(fields, {"pairs"}, where)
    found: dict[Any, Any] = {}
    for pair in fields["pairs"]:
        refuse_unless(
            isinstance(pair, list)
            and len(pair) == 2
            and isinstance(pair[0], (*_PLAIN, np.generic)),
            f"{where} is not made of pairs",
        )
        refuse_unless(pair[0] not in found, f"{where} has a key twice")
        found[pair[0]] = model_of(pair[1], f"{where}[{pair[0]!r}]")
    return found


def _set_of(fields: dict[str, Any], where: str) -> set[Any] | frozenset[Any]:
    _require_keys(fields, {"items", "frozen"}, where)
    is_plain = all(isinstance(item, (*_PLAIN, np.generic)) for item in fields["items"])
    refuse_unless(is_plain, f"{where} is not a set of plain values")
    return frozenset(fields["items"]) if fields["frozen"] else set(fields["items"])


def _slice_of(fields: dict[str, Any], where: str) -> slice:
    _require_keys(fields, {"ends"}, where)
    refuse_unless(
        len(fields["ends"]) == 3 and all(isinstance(end, _PLAIN) for end in fields["ends"]),
        f"{where} is not a slice",
    )
    return slice(*fields["ends"])


def _type_of(fields: dict[str, Any], where: str) -> Any:
    _require_keys(fields, {"name"}, where)
    refuse_unless(fields["name"] in _TYPES, f"{where} is a type that is not known")
    return _TYPES[fields["name"]]


def _criterion_of(fields: dict[str, Any], where: str) -> str:
    """The name of a criterion that is registered here."""
    _require_keys(fields, {"name", "parameters"}, where)
    refuse_unless(
        isinstance(fields["name"], str)
        and isinstance(fields["parameters"], dict)
        and all(isinstance(number, float) for number in fields["parameters"].values()),
        f"{where} is not a criterion",
    )
    from margrove.grove import criterion_saved_as

    try:
        return criterion_saved_as(fields).name
    except LookupError as error:
        raise ModelFileError(f"{where}: {error.args[0]}.") from None


_OTHERS: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "pairs": _pairs_of,
    "set": _set_of,
    "slice": _slice_of,
    "type": _type_of,
    "criterion": _criterion_of,
}


def _require_keys(values: dict[str, Any], wanted: set[str], where: str) -> None:
    missing, strange = wanted - set(values), set(values) - wanted
    refuse_unless(not missing, f"{where} lacks {min(missing, default='')!r}")
    refuse_unless(not strange, f"{where} has an entry {min(strange, default='')[:50]!r}")


def _part_of(part: Part, fields: dict[str, Any], where: str) -> Any:
    _require_keys(fields, set(part.fields), where)
    sizes = Sizes()
    made: dict[str, Any] = {}
    for name, check in part.fields.items():
        made[name] = model_of(fields[name], f"{where}.{name}")
        check(made[name], f"{where}.{name}", sizes)
    part.examine(made, sizes)
    return part.made_of(made)


def _estimator_of(kind: Kind, fields: dict[str, Any], where: str) -> Any:
    _require_keys(fields, {"parameters", "fitted"}, where)
    estimator: Any = class_at(kind.home)
    known = set(estimator._get_param_names()) - LEFT_OUT
    given = fields["parameters"]  # those that are missing, of older files, have their defaults
    _require_keys(given, set(given) & known, f"{where}.parameters")
    model = estimator(**{name: model_of(value, f"{where}.{name}") for name, value in given.items()})
    fitted = _checked(kind, fields["fitted"], where)
    if fitted and hasattr(model, "_commit"):
        model._commit(fitted)
    else:
        vars(model).update(fitted)
    return model


def _checked(kind: Kind, given: dict[str, Any], where: str) -> dict[str, Any]:
    is_fitted = bool(set(given) & set(kind.required))
    wanted = set(kind.required) if is_fitted else set()
    _require_keys(given, wanted | set(given) & set(kind.checks), f"{where}.fitted")
    sizes = Sizes()
    fitted: dict[str, Any] = {}
    for name, check in kind.checks.items():
        if name in given:
            fitted[name] = model_of(given[name], f"{where}.{name}")
            check(fitted[name], f"{where}.{name}", sizes)
    if is_fitted:
        kind.examine(fitted, sizes)
    return kind.make(fitted) if is_fitted else fitted
