"""The base class of all estimators: parameter checks, commit of fitted attributes, joint fits."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted

from margrove._runtime.slices import SUPPORTS_CALLBACKS
from margrove._version import __version__

__all__ = ["RANDOM_STATE", "RUN_CONTROL", "Estimator", "JointFits"]

_LARGEST_NUMBER = 2**1000

_PLAIN_TYPES = (bool, int, float, str, type(None))
_VALIDATED: set[tuple[Any, ...]] = set()
_MOST_VALIDATED = 1000

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


class JointFits(Protocol):
    """Fits copies of an estimator in three steps, of which only the second takes long.

    The first and the last are Python, on the thread of the caller. The second is compiled code for
    all copies, on several threads, which do not wait for Python's lock. The fitted copies are, bit
    for bit, those of `fit`. See `Estimator._joint_fits`.

    begin    the part of `fit` before the solution, with its errors and warnings
    solve    for each begun fit, whether it was solved
    finish   the rest of `fit`; a fit that was not solved is solved here, which may take long
    """

    def begin(self, estimator: Any, X: Any, y: Any, **params: Any) -> Any: ...
    def solve(self, begun: Sequence[Any], n_threads: int) -> list[bool]: ...
    def finish(self, begun: Any) -> None: ...


class Estimator(BaseEstimator):
    """Base class of the estimators: `fit` works on local variables and commits them at the end."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    if SUPPORTS_CALLBACKS:

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set callbacks of scikit-learn, which are then called after every round of a fit.

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
        """The fitted model as an estimator of scikit-learn that makes the same predictions.

        Trees of scikit-learn round X to float32. They agree if X contains float32 numbers. On other
        numbers they differ only if a threshold lies between a number and its rounded value.

        Returns
        -------
        estimator of scikit-learn
            It has the same name. Parameters that it does not have are left out.

        Raises
        ------
        ConversionError
            If scikit-learn has no estimator for this model. The message says why.
        """
        from margrove.exchange.scikit_learn import to_sklearn

        return to_sklearn(self)

    def _check_parameters(self) -> None:
        """Validate parameters as scikit-learn does, and refuse True and False as numbers.

        Plain values that passed once are not validated again, because validation takes as long as
        a small fit.
        """
        given = {name: getattr(self, name) for name in self._parameter_constraints}
        key = None
        if all(isinstance(value, _PLAIN_TYPES) for value in given.values()):
            key = (type(self), *((type(value), value) for value in given.values()))
            if key in _VALIDATED:
                return
        self._validate(given)
        if key is not None and len(_VALIDATED) < _MOST_VALIDATED:
            _VALIDATED.add(key)

    def _validate(self, given: dict[str, Any]) -> None:
        validate_parameter_constraints(self._parameter_constraints, given, type(self).__name__)
        for name, allowed in self._parameter_constraints.items():
            value = given[name]
            if isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} is too large for float64."
                )
            if isinstance(value, (bool, np.bool_)) and not {"boolean", "verbose"} & {
                option for option in allowed if isinstance(option, str)
            }:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a number. "
                    f"Got {value!r} instead."
                )

    def _require_fitted(self) -> None:
        """Raise NotFittedError if the estimator is not fitted.

        scikit-learn's check looks at tags and at all attributes, which takes as long as a quarter
        of a prediction of one row.
        """
        if "_committed" not in vars(self):
            check_is_fitted(self)

    def _joint_fits(self, X: Any, n_rows: int) -> JointFits | None:
        """What fits many copies of this estimator together, if that is faster than one by one.

        The copies differ in random states and class weights only. Each is fitted to about `n_rows`
        different rows of a table like X.
        """
        return None

    def _commit(self, attributes: dict[str, Any]) -> None:
        """Replace all attributes of the last fit in one step; a fit that failed changes nothing.

        Attributes that a subclass or a user has added stay.
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
