"""Contents of the lectures without points: impurities, the bootstrap, and two tables.

answer_impurity    criteria of the library over the share of one of two classes
answer_bootstrap   `margrove.bootstrap` of a list of numbers
LECTURE_TABLES     two tables of categories: tennis, and the restaurant
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.datasets import load_play_tennis, load_restaurant
from margrove.ensemble.bootstrap import BootstrapResult, bootstrap
from margrove.grove import CRITERIA, DecisionTreeClassifier
from margrove.studio.content.checks import (
    LARGEST_SEED,
    StudioError,
    checked_number,
    checked_whole,
)
from margrove.teaching.facts import bootstrap_histogram

__all__ = [
    "LECTURE_TABLES",
    "STATISTICS",
    "LectureTable",
    "answer_bootstrap",
    "answer_impurity",
    "bootstrapped",
    "impurities_at",
    "lecture_table",
]

_POINTS = 201  # of each curve
_MOST_VALUES = 10_000
_MOST_RESAMPLES = 20_000
_LARGEST = 1e15  # squares and sums of such numbers are still numbers

STATISTICS: dict[str, Callable[..., Any]] = {"median": np.median, "mean": np.mean}


# -- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LectureTable:
    """A table of categories, and the tree that the lectures grow on it.

    rows     str (n, d)
    target   str (n,)
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: np.ndarray
    target: np.ndarray
    target_name: str

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(np.unique(self.target).tolist())

    def estimator(self, parameters: Any = None) -> DecisionTreeClassifier:
        """An unfitted tree: by default that of ID3, with a branch for each value."""
        given = {"criterion": "entropy", "split": "multiway"} | _tree_parameters(parameters)
        return DecisionTreeClassifier(**given)

    def fitted(self, parameters: Any = None) -> DecisionTreeClassifier:
        """The fitted tree, with the names of the columns."""
        tree = self.estimator(parameters).fit(self.rows, self.target)
        tree.feature_names_in_ = np.array(self.columns, dtype=object)
        return tree

    def as_dict(self) -> dict[str, Any]:
        """The field `table` of the protocol's Tree."""
        return {
            "columns": list(self.columns),
            "rows": self.rows.tolist(),
            "target": self.target.tolist(),
        }


def _loaded(name: str, title: str, load: Callable[[], Any], target_name: str) -> LectureTable:
    table = load()
    return LectureTable(
        name=name,
        title=title,
        columns=tuple(str(column) for column in table.feature_names),
        rows=np.asarray(table.data),
        target=np.asarray(table.target),
        target_name=target_name,
    )


LECTURE_TABLES: dict[str, LectureTable] = {
    table.name: table
    for table in (
        _loaded("play_tennis", "Tennis: fourteen days", load_play_tennis, "play"),
        _loaded("restaurant", "The restaurant: twelve guests", load_restaurant, "wait"),
    )
}


def lecture_table(name: Any) -> LectureTable:
    """A table by its name, or an error for the user."""
    found = LECTURE_TABLES.get(name) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(LECTURE_TABLES)
        raise StudioError(f"The lectures have the tables {known}. There is no {name!a:.60}.")
    return found


_CHOICES: dict[str, Callable[[], list[Any]]] = {
    "criterion": lambda: [name for name, criterion in CRITERIA.items() if criterion.for_classes],
    "split": lambda: ["multiway", "binary"],
}
_COUNTS = {"max_depth": 1, "min_samples_split": 2, "min_samples_leaf": 1, "max_leaf_nodes": 2}


def _tree_parameters(given: Any) -> dict[str, Any]:
    """The checked parameters of a tree on a lecture's table, as the page sends them."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise StudioError(f"parameters must be names and values. Got {type(given).__name__}.")
    return {str(name): _tree_parameter(name, value) for name, value in given.items()}


def _tree_parameter(name: Any, value: Any) -> Any:
    if name in _CHOICES:
        known = _CHOICES[name]()
        if value not in known:
            raise StudioError(f"{name} must be one of {', '.join(known)}. Got {value!a:.60}.")
        return value
    if name in _COUNTS:
        if value is None and name in ("max_depth", "max_leaf_nodes"):
            return None
        return checked_whole(value, name, _COUNTS[name], 1000)
    known = [*_CHOICES, *_COUNTS]
    raise StudioError(
        f"A tree of a lecture's table has the parameters {', '.join(known)}. Got {name!a:.60}."
    )


# -- impurity ------------------------------------------------------------------------------------


def impurities_at(share: float) -> dict[str, float]:
    """The value of each criterion for two classes, one with share `share`."""
    pair = np.array([[share, 1.0 - share]])
    return {name: float(of_shares(pair)[0]) for name, of_shares in _impurities().items()}


def _impurities() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """The functions by name; one that has two names is listed once."""
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
    for name, criterion in CRITERIA.items():
        if criterion.of_shares is not None and criterion.of_shares not in found.values():
            found[name] = criterion.of_shares
    return found


def answer_impurity(request: dict[str, Any], job: Any = None) -> dict[str, Any]:
    """Answer to "impurity": a curve for each criterion, and its value at `share`."""
    share = checked_number(request.get("share"), "share", 0.0, 1.0)
    shares = np.linspace(0.0, 1.0, _POINTS)
    both = np.stack([shares, 1.0 - shares], axis=1)
    at = impurities_at(share)
    return {
        "shares": shares.astype(np.float32),
        "curves": [
            {
                "name": name,
                "values": np.asarray(of_shares(both), dtype=np.float32),
                "at": at[name],
            }
            for name, of_shares in _impurities().items()
        ],
    }


# -- the bootstrap -------------------------------------------------------------------------------


def bootstrapped(values: Any, statistic: str, resamples: int, seed: int) -> BootstrapResult:
    """`margrove.bootstrap` with percentile intervals, which a histogram of resamples shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the histogram shows that all resamples are equal
        return bootstrap(
            np.asarray(values, dtype=np.float64),
            STATISTICS[statistic],
            n_resamples=resamples,
            method="percentile",
            vectorized=True,
            random_state=seed,
        )


def answer_bootstrap(request: dict[str, Any], job: Any = None) -> dict[str, Any]:
    """Answer to "bootstrap": estimate, interval, and a histogram of the resamples."""
    values = _numbers(request.get("values"))
    statistic = request.get("statistic")
    if not isinstance(statistic, str) or statistic not in STATISTICS:
        raise StudioError(f"statistic must be median or mean. Got {statistic!a:.60}.")
    resamples = checked_whole(request.get("resamples"), "resamples", 2, _MOST_RESAMPLES)
    seed = checked_whole(request.get("seed"), "seed", 0, LARGEST_SEED)
    found = bootstrapped(values, statistic, resamples, seed)
    histogram = bootstrap_histogram(found, bins=_bins(found.resamples))
    return {
        "estimate": histogram.estimate,
        "low": histogram.low,
        "high": histogram.high,
        "standardError": histogram.standard_error,
        "edges": histogram.edges.astype(np.float32),
        "counts": histogram.counts.astype(np.float32),
    }


def _bins(resamples: np.ndarray) -> int:
    """The number of bars: one for each distinct value, but 5 to 40."""
    return max(5, min(40, len(np.unique(resamples))))


def _numbers(values: Any) -> np.ndarray:
    if not isinstance(values, list) or not 2 <= len(values) <= _MOST_VALUES:
        raise StudioError(
            f"values must be a list of 2 to {_MOST_VALUES} numbers. Got "
            f"{f'{len(values)} of them' if isinstance(values, list) else type(values).__name__}."
        )
    return np.array([checked_number(value, "values", -_LARGEST, _LARGEST) for value in values])
