"""The classes that replace those of scikit-learn while it is patched.

A replacement is an estimator of margrove under scikit-learn's name. It differs in two ways. A fit
that margrove refuses and scikit-learn accepts runs in scikit-learn's class, with a warning that
says why; and every fit is counted. `isinstance(model, sklearn.svm.SVC)` is true for replacements,
for the class of margrove and for that of scikit-learn, so that models that were loaded or made
earlier still pass such checks.

Classes are made on first use, as attributes of this module, where pickles look for them, also in
processes in which nothing is patched.
"""

from __future__ import annotations

import functools
import importlib
import time
import warnings
from dataclasses import dataclass
from typing import Any

from margrove.exceptions import FallbackWarning, MalformedSparseError

__all__ = ["PUBLIC_HOMES", "FitCount", "Replacement", "fit_counts", "original", "replacement"]

_PAIRS = ("AdaBoost", "Bagging", "ExtraTrees", "GradientBoosting", "HistGradientBoosting")

# Where scikit-learn offers each name.
PUBLIC_HOMES: dict[str, str] = {
    **dict.fromkeys(
        ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR"), "sklearn.svm"
    ),
    "Perceptron": "sklearn.linear_model",
    "DecisionTreeClassifier": "sklearn.tree",
    "DecisionTreeRegressor": "sklearn.tree",
    **{
        f"{kind}{task}": "sklearn.ensemble"
        for kind in (*_PAIRS, "RandomForest")
        for task in ("Classifier", "Regressor")
    },
}

_ORIGINALS: dict[str, type] = {}
_COUNTS: dict[tuple[str, str], FitCount] = {}


@dataclass
class FitCount:
    """How many fits of an estimator ran in one of the libraries, and how long they took."""

    estimator: str
    library: str
    fits: int = 0
    seconds: float = 0.0


def fit_counts() -> list[FitCount]:
    """Counts of all fits of replacements in this process, the longest first."""
    return sorted(_COUNTS.values(), key=lambda count: -count.seconds)


def original(name: str) -> type:
    """The class of scikit-learn, even if it has been replaced."""
    if name not in _ORIGINALS:
        found = getattr(importlib.import_module(PUBLIC_HOMES[name]), name)
        if isinstance(found, Replacement):  # the user has assigned it directly
            found = found._original
        _ORIGINALS[name] = found
    return _ORIGINALS[name]


class Replacement(type):
    """Metaclass of replacements: instances of both libraries' classes pass isinstance."""

    _ours: type
    _original: type
    falls_back = True  # otherwise the error of margrove is raised

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or isinstance(
            instance, (cls._ours, cls._original)
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return super().__subclasscheck__(subclass) or issubclass(
            subclass, (cls._ours, cls._original)
        )


@functools.cache
def replacement(name: str) -> Any:
    """The class of margrove under scikit-learn's name."""
    import margrove

    ours = getattr(margrove, name)

    @functools.wraps(ours.fit)  # whose signature metadata routing reads
    def fit(self: Any, *args: Any, **more: Any) -> Any:
        start = time.perf_counter()
        try:
            ours.fit(self, *args, **more)
        except MalformedSparseError:  # scikit-learn would read outside its arrays
            raise
        except (TypeError, ValueError, NotImplementedError) as refusal:
            if not _may_fall_back(self):
                raise
            _fit_theirs(self, refusal, *args, **more)
            _count(name, "scikit-learn", start)
        else:
            _count(name, "margrove", start)
        return self

    content = {"__module__": __name__, "__qualname__": name, "__doc__": ours.__doc__, "fit": fit}
    return Replacement(name, (ours,), content | {"_ours": ours, "_original": original(name)})


def _may_fall_back(model: Any) -> bool:
    """Whether scikit-learn may fit: it may not fit derived classes, whose methods it lacks."""
    return Replacement.falls_back and "_original" in vars(type(model))


def _fit_theirs(model: Any, refusal: Exception, *args: Any, **more: Any) -> None:
    """Fit with scikit-learn, and turn the model into its class; otherwise raise the refusal."""
    theirs = _counterpart(model)
    try:
        theirs.fit(*args, **more)
    except Exception:
        raise refusal from None
    name = type(model).__name__
    model.__class__ = type(theirs)
    model.__dict__ = vars(theirs)
    warnings.warn(
        f"This fit of {name} ran in scikit-learn, because margrove refused it: {refusal}",
        FallbackWarning,
        stacklevel=4,
    )


def _counterpart(model: Any) -> Any:
    """scikit-learn's estimator with the parameters that differ from margrove's defaults."""
    theirs = type(model)._original
    given = model.get_params(deep=False)
    defaults = type(model)().get_params(deep=False)
    shared = theirs().get_params(deep=False)
    changed = {
        key: given[key] for key in shared if key in given and _differ(given[key], defaults[key])
    }
    return theirs(**changed)


def _differ(value: Any, default: Any) -> bool:
    return value is not default and (type(value) is not type(default) or value != default)


def _count(name: str, library: str, start: float) -> None:
    count = _COUNTS.setdefault((name, library), FitCount(name, library))
    count.fits += 1
    count.seconds += time.perf_counter() - start


def __getattr__(name: str) -> Any:
    if name in PUBLIC_HOMES:
        return replacement(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
