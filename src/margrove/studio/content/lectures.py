"""Contents of the lectures without points: impurities, the bootstrap, and two tables.

answer_impurity    criteria of the library over the share of one of two classes
answer_bootstrap   `margrove.bootstrap` of a list of numbers
LECTURE_TABLES     categories instead of coordinates: tennis, and the restaurant
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.datasets import load_play_tennis, load_restaurant
from margrove.ensemble.bootstrap import BootstrapResult, bootstrap
from margrove.grove import CRITERIA, DecisionTreeClassifier
from margrove.studio.content.scenes import StudioError
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
_LARGEST_SEED = 2**32 - 1

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
        """A tree, not grown: by default ID3's, with a branch for each value."""
        given = {"criterion": "entropy", "split": "multiway"} | _tree_parameters(parameters)
        return DecisionTreeClassifier(**given)

    def fitted(self, parameters: Any = None) -> DecisionTreeClassifier:
        """The tree, grown, with the names of the columns; no package for frames is needed."""
        tree = self.estimator(parameters).fit(self.rows, self.target)
        tree.feature_names_in_ = np.array(self.columns, dtype=object)
        return tree

    def as_dict(self) -> dict[str, Any]:
        """`table` of the protocol's Tree."""
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
    "criterion": lambda: [name for name, one in CRITERIA.items() if one.for_classes],
    "split": lambda: ["multiway", "binary"],
}
_COUNTS = {"max_depth": 1, "min_samples_split": 2, "min_samples_leaf": 1, "max_leaf_nodes": 2}


def _tree_parameters(given: Any) -> dict[str, Any]:
    """Those of a tree of categories that may be chosen on the page."""
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
        least = _COUNTS[name]
        if not _is_whole(value) or not least <= value <= 1000:
            raise StudioError(
                f"{name} must be a whole number from {least} to 1000. Got {value!a:.60}."
            )
        return int(value)
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
    """By name; names of the same function count once."""
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
    for name, criterion in CRITERIA.items():
        if criterion.of_shares is not None and criterion.of_shares not in found.values():
            found[name] = criterion.of_shares
    return found


def answer_impurity(request: dict[str, Any], job: Any = None) -> dict[str, Any]:
    """Answer to "impurity": a curve for each criterion, and its value at `share`."""
    share = _number(request.get("share"), "share", 0.0, 1.0)
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
    """`margrove.bootstrap` with the interval that can be read off a histogram."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that all resamples are alike can be seen
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
    resamples = _whole(request.get("resamples"), "resamples", 2, _MOST_RESAMPLES)
    seed = _whole(request.get("seed"), "seed", 0, _LARGEST_SEED)
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
    """A bar for each value where there are few, else as many as can be told apart."""
    return max(5, min(40, len(np.unique(resamples))))


# -- checks --------------------------------------------------------------------------------------


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is_whole(value) or not least <= value <= most:
        raise StudioError(
            f"{name} must be a whole number from {least} to {most}. Got {value!a:.60}."
        )
    return int(value)


def _number(value: Any, name: str, least: float, most: float) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise StudioError(f"{name} must be a number from {least:g} to {most:g}. Got {value!a:.60}.")
    return float(value)


def _numbers(values: Any) -> np.ndarray:
    if not isinstance(values, list) or not 2 <= len(values) <= _MOST_VALUES:
        raise StudioError(
            f"values must be a list of 2 to {_MOST_VALUES} numbers. Got "
            f"{f'{len(values)} of them' if isinstance(values, list) else type(values).__name__}."
        )
    checked = [_number(value, "values", -_LARGEST, _LARGEST) for value in values]
    assert all(math.isfinite(value) for value in checked)
    return np.array(checked)
