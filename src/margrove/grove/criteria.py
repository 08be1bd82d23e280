"""The registry of criteria: how the impurity of a node is measured.

One entry of CRITERIA holds all that the library knows about a criterion. Everything else reads it:
`criterion=` of trees, forests and boosting, the command line, the studio, model files, tuning, the
table of the docs, and the tests. So adding a criterion is adding one entry:

- with `impurity`, a function of a node's sums. It is compiled, and every split is judged by calling
  it; `register_criterion` adds such an entry while a program runs;
- with `code`, if the loops over rows have the criterion built in. They are faster, and find ties
  in whole numbers: see `margrove.grove.grow.search.scores`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.fixes import parse_version

from margrove.exceptions import InvalidDataError
from margrove.grove.grow.search import scores

__all__ = [
    "CRITERIA",
    "Criterion",
    "CriterionNames",
    "class_criteria",
    "criteria_table",
    "criterion_saved_as",
    "entropy",
    "impurity",
    "number_criteria",
    "powers_of_scale",
    "register_criterion",
    "without_friedman",
]


@dataclass(frozen=True)
class Criterion:
    """What `criterion=name` means.

    name
    for_classes    for classification, or for regression
    summary        one line, for menus and docs
    formula        the impurity in symbols, for docs
    code           of the compiled score, see `grow.search.scores`; CUSTOM: use `impurity`
    exact_ties     whether two splits are compared in whole numbers, so that ties are exact
    of_shares      the impurity of class shares (along the last axis), None for regression
    impurity       function(sums, weight, *parameters): the impurity of a node. sums float64: the
                   weights of the classes, or the weighted sum and sum of squares of the targets
    parameters     names and numbers, which `impurity` gets and model files keep
    same_as        if this is a second name: the first name of the criterion
    in_forests     whether forests take it
    in_menus       whether menus offer it; deprecated names are not offered
    targets        which numbers it takes: "all", "non-negative" or "positive"
    has_medians    whether a leaf predicts the median of its targets, not the mean
    scale_powers   p, if targets times c have an impurity times c^p
    error_name     what the impurity of a regression is called
    scoring        the score that tuning maximises
    """

    name: str
    for_classes: bool
    summary: str
    formula: str = ""
    code: int = scores.CUSTOM
    exact_ties: bool = False
    of_shares: Callable[[np.ndarray], np.ndarray] | None = None
    impurity: Callable[..., float] | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    same_as: str | None = None
    in_forests: bool = True
    in_menus: bool = True
    targets: str = "all"
    has_medians: bool = False
    scale_powers: int = 1
    error_name: str = "impurity"
    scoring: str = "neg_mean_squared_error"

    def impurity_of(self, sums: np.ndarray, weight: float) -> float:
        """`impurity` with its parameters, run by Python."""
        if self.impurity is None:
            raise TypeError(f"criterion={self.name!r} is not a function of sums and weight.")
        return float(self.impurity(sums, weight, *self.parameters.values()))

    def check_targets(self, y: np.ndarray) -> None:
        """Refuse targets, (n, outputs), that the criterion is not for."""
        kind = self.name.capitalize()
        if self.targets == "non-negative" and y.min() < 0:
            raise InvalidDataError(
                f"Some value(s) of y are negative which is not allowed for {kind} regression. Use "
                "criterion='squared_error'."
            )
        if self.targets == "non-negative" and (y.sum(axis=0) <= 0).any():
            raise InvalidDataError(
                f"Sum of y is not strictly positive which is necessary for {kind} regression: all "
                "values of an output are zero. Use criterion='squared_error'."
            )
        if self.targets == "positive" and y.min() <= 0:
            raise InvalidDataError(f"criterion={self.name!r} needs targets above zero.")

    def saved(self) -> dict[str, Any]:
        """What a model file contains; `criterion_saved_as` reads it."""
        return {"name": self.name, "parameters": dict(self.parameters)}


def entropy(shares: np.ndarray, base: float = 2.0) -> np.ndarray:
    """- sum p log p along the last axis; 0 log 0 is 0. The base is 2, e, 10 or any above 1."""
    shares = np.asarray(shares, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0.0, -shares * np.log(shares), 0.0)
    return np.asarray(terms.sum(axis=-1) / np.log(base))


def _gini(shares: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 - (np.asarray(shares) ** 2).sum(axis=-1))


def _error(shares: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 - np.asarray(shares).max(axis=-1))


_ENTRIES = (
    Criterion(
        "gini", True, "Gini index, 1 - sum p^2", "1 - Σ p²",
        code=scores.GINI, exact_ties=True, of_shares=_gini,
    ),
    Criterion(
        "entropy", True, "entropy in bits: information gain",
        "-Σ p log2 p, in bits: the gain is the information gain",
        code=scores.ENTROPY, exact_ties=True, of_shares=entropy,
    ),
    Criterion(
        "log_loss", True, "another name of entropy",
        code=scores.ENTROPY, exact_ties=True, of_shares=entropy, same_as="entropy",
    ),
    Criterion(
        "gain_ratio", True, "C4.5: gain over split information",
        "entropy; of the splits with at least the average gain, the best gain for its split "
        "information (C4.5)",
        code=scores.GAIN_RATIO, of_shares=entropy, in_forests=False,
    ),
    Criterion(
        "error", True, "classification error, 1 - max p", "1 - max p",
        code=scores.ERROR, exact_ties=True, of_shares=_error,
    ),
    Criterion(
        "squared_error", False, "variance around the mean",
        "mean (t - mean)²; Friedman's improvement is the gain of this",
        code=scores.SQUARED, exact_ties=True, scale_powers=2, error_name="mean squared error",
    ),
    Criterion(
        "friedman_mse", False, "the same: its gain is Friedman's",
        code=scores.SQUARED, exact_ties=True, scale_powers=2, error_name="mean squared error",
        same_as="squared_error", in_menus=False,
    ),
    Criterion(
        "absolute_error", False, "mean distance from the median",
        "mean \\|t - median\\|; a leaf predicts the median",
        code=scores.ABSOLUTE, exact_ties=True, has_medians=True, error_name="mean absolute error",
        scoring="neg_mean_absolute_error",
    ),
    Criterion(
        "poisson", False, "half the Poisson deviance", "half the mean Poisson deviance; for counts",
        code=scores.POISSON, targets="non-negative", error_name="half the mean Poisson deviance",
    ),
    Criterion(
        "gamma", False, "half the gamma deviance",
        "half the mean gamma deviance; for amounts above zero",
        code=scores.GAMMA, targets="positive", scale_powers=0,
        error_name="half the mean gamma deviance",
    ),
)  # fmt: skip

CRITERIA = {one.name: one for one in _ENTRIES}


def class_criteria(*, in_forests: bool = False, distinct: bool = False) -> list[str]:
    """The names for classification.

    in_forests: only those that forests take; distinct: without other names of the same criterion.
    """
    return _names(True, in_forests, distinct)


def number_criteria(*, in_forests: bool = False, distinct: bool = False) -> list[str]:
    """The names for regression; see `class_criteria`."""
    return _names(False, in_forests, distinct)


def _names(for_classes: bool, in_forests: bool, distinct: bool) -> list[str]:
    return [
        name
        for name, one in CRITERIA.items()
        if one.for_classes == for_classes
        and (one.in_forests or not in_forests)
        and (one.same_as is None or not distinct)
    ]


def powers_of_scale(code: int) -> int:
    """`Criterion.scale_powers` by the code of the score."""
    return next((one.scale_powers for one in CRITERIA.values() if one.code == code), 1)


def criteria_table() -> list[str]:
    """The table of criteria in the docs: lines of Markdown."""
    lines = ["| `criterion=` | of | impurity of a node with class shares p, or targets t |",
             "|---|---|---|"]  # fmt: skip
    for one in CRITERIA.values():
        if one.same_as is None:
            aliases = [other.name for other in CRITERIA.values() if other.same_as == one.name]
            names = ", ".join(f'`"{name}"`' for name in (one.name, *aliases))
            kind = "classes" if one.for_classes else "numbers"
            lines.append(f"| {names} | {kind} | {one.formula or one.summary} |")
    return lines


def without_friedman(criterion: str) -> str:
    """The criterion; "squared_error" for "friedman_mse" if scikit-learn has deprecated that."""
    if not isinstance(criterion, str) or criterion != "friedman_mse":
        return criterion
    if parse_version(sklearn.__version__) < parse_version("1.9"):
        return criterion
    warnings.warn(
        'Value `"friedman_mse"` for `criterion` is deprecated and will be removed, as in 1.11 of '
        'scikit-learn. It maps to `"squared_error"` as both were always equivalent. Use '
        '`criterion="squared_error"` to remove this warning.',
        FutureWarning,
        stacklevel=3,
    )
    return "squared_error"


class CriterionNames(StrOptions):
    """The names that are registered now, for classes or for numbers; checks `criterion=`."""

    def __init__(self, for_classes: bool) -> None:
        self._for_classes = for_classes
        super().__init__({"gini"})

    @property
    def options(self) -> set[str]:
        return set(class_criteria() if self._for_classes else number_criteria())

    @options.setter
    def options(self, given: set[str]) -> None:
        """Ignored: scikit-learn sets options, but the registry has them."""


def register_criterion(
    name: str,
    function: Callable[..., float],
    *,
    for_classes: bool = True,
    parameters: Mapping[str, float] | None = None,
) -> Criterion:
    """Make `criterion=name` mean your own impurity.

    Decision trees, random forests and extremely randomised trees take it. Model files keep its name
    and parameters, not the function: register it before you load one.

    Parameters
    ----------
    name : str
        A new name.
    function : callable
        `function(sums, weight)` returns the impurity of a node: `sums` are the weights of its
        classes, or the weighted sum and sum of squares of its targets. It is compiled, unless it
        is compiled already. The first line of its docstring is shown in menus and docs.
    for_classes : bool, default=True
        Whether it is for classification or for regression.
    parameters : dict of str to float, optional
        Numbers that the function gets after `weight`, in this order.

    Examples
    --------
    >>> import numpy as np, margrove
    >>> def root_of_gini(sums, weight):
    ...     return np.sqrt(1.0 - np.sum((sums / weight) ** 2))
    >>> _ = margrove.register_criterion("root_of_gini", root_of_gini)
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> margrove.DecisionTreeClassifier(criterion="root_of_gini").fit(X, y).score(X, y)
    1.0
    >>> del margrove.grove.criteria.CRITERIA["root_of_gini"]
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name must be a string that is not empty. Got {name!r} instead.")
    if name in CRITERIA:
        raise ValueError(f"A criterion named {name!r} exists already: {sorted(CRITERIA)}.")
    if not callable(function):
        raise TypeError(f"function must be callable. Got {function!r} instead.")
    numbers = {str(key): float(value) for key, value in (parameters or {}).items()}
    summary = (function.__doc__ or "a registered criterion").strip().splitlines()[0]

    def of_shares(shares: np.ndarray) -> np.ndarray:
        return np.apply_along_axis(
            lambda row: function(row, 1.0, *numbers.values()), -1, np.asarray(shares)
        )

    CRITERIA[name] = Criterion(
        name,
        for_classes,
        summary,
        of_shares=of_shares if for_classes else None,
        impurity=function,
        parameters=numbers,
    )
    return CRITERIA[name]


def criterion_saved_as(saved: Mapping[str, Any]) -> Criterion:
    """The criterion that `Criterion.saved` wrote; LookupError if it is not registered."""
    name, parameters = saved["name"], dict(saved["parameters"])
    known = CRITERIA.get(name)
    if known is None:
        raise LookupError(
            f"criterion={name!r} is not registered here: margrove.register_criterion({name!r}, "
            f"function{', parameters=' + repr(parameters) if parameters else ''}) makes it known"
        )
    if dict(known.parameters) != parameters:
        raise LookupError(
            f"criterion={name!r} is registered with parameters={dict(known.parameters)}, and "
            f"{parameters} are needed: register it with those under this name"
        )
    return known


def impurity(name: str, counts: np.ndarray) -> float:
    """The impurity of a node from the number of rows of each class.

    Examples
    --------
    >>> from margrove.grove.criteria import impurity
    >>> round(impurity("entropy", [9, 5]), 3)
    0.94
    """
    criterion = CRITERIA[name]
    if criterion.of_shares is None:
        raise ValueError(f"{name!r} is a criterion of numbers, not of classes.")
    weights = np.asarray(counts, dtype=np.float64)
    return float(criterion.of_shares(weights / weights.sum()))
