"""What all estimators have in common: parameter checks, one-step commits, versions."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from margrove._runtime.slices import SUPPORTS_CALLBACKS
from margrove._version import __version__

__all__ = ["RANDOM_STATE", "RUN_CONTROL", "Estimator"]

_LARGEST_NUMBER = 2**1000

_PLAIN = (bool, int, float, str, type(None))
_FOUND_GOOD: set[tuple[Any, ...]] = set()
_MOST_REMEMBERED = 1000

RANDOM_STATE: dict[str, list[Any]] = {
    "random_state": [
        Interval(Integral, 0, 2**32 - 1, closed="both"),
        np.random.RandomState,
        np.random.Generator,
        None,
    ]
}

RUN_CONTROL: dict[str, list[Any]] = {
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "on_interrupt": [StrOptions({"raise", "keep"})],
    "verbose": ["verbose"],
}


class Estimator(BaseEstimator):
    """Base of the estimators: fits into locals and commits at the end, in one step."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    if SUPPORTS_CALLBACKS:

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set scikit-learn's callbacks, which then hear of every round of a fit.

            Parameters
            ----------
            *callbacks : callback instances

            Returns
            -------
            self
            """
            from sklearn.callback import CallbackSupportMixin

            CallbackSupportMixin.set_callbacks(self, *callbacks)
            return self

    def to_sklearn(self) -> Any:
        """The fitted model as an estimator of scikit-learn's, which predicts the same.

        Trees of scikit-learn's compare X rounded to float32: they agree wherever X holds float32
        numbers, and on other numbers unless a threshold lies between one and what it is rounded to.

        Returns
        -------
        estimator of scikit-learn
            Of the same name. Parameters that it does not have are left out.

        Raises
        ------
        ConversionError
            If scikit-learn has nothing that could hold this model. It says why.
        """
        from margrove.exchange.scikit_learn import to_sklearn

        return to_sklearn(self)

    def _check_parameters(self) -> None:
        """scikit-learn's parameter validation; in addition, True is not a number.

        Plain values that were found good once are good again: a small fit takes no longer than
        looking through them.
        """
        given = {name: getattr(self, name) for name in self._parameter_constraints}
        known = None
        if all(isinstance(value, _PLAIN) for value in given.values()):
            known = (type(self), *((type(value), value) for value in given.values()))
            if known in _FOUND_GOOD:
                return
        self._validate(given)
        if known is not None and len(_FOUND_GOOD) < _MOST_REMEMBERED:
            _FOUND_GOOD.add(known)

    def _validate(self, given: dict[str, Any]) -> None:
        validate_parameter_constraints(self._parameter_constraints, given, type(self).__name__)
        for name, allowed in self._parameter_constraints.items():
            value = given[name]
            if isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} is beyond floating point."
                )
            if isinstance(value, (bool, np.bool_)) and not {"boolean", "verbose"} & {
                option for option in allowed if isinstance(option, str)
            }:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a number. "
                    f"Got {value!r} instead."
                )

    def _commit(self, attributes: dict[str, Any]) -> None:
        """Replace what the last fit left at once; a fit that failed has changed nothing.

        What a subclass or a user has added stays.
        """
        outdated = set(vars(self).get("_committed", ()))
        kept = {name: value for name, value in vars(self).items() if name not in outdated}
        self.__dict__ = kept | attributes | {"_committed": tuple(attributes)}

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"_margrove_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.pop("_margrove_version", "unknown")
        if version != __version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=f"margrove {__version__}",
                    original_sklearn_version=f"margrove {version}",
                ),
                stacklevel=2,
            )
        super().__setstate__(state)
