"""Losses on rows held out: of ours, and of peers in their own defaults, on the same splits."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn.datasets
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from data import FOLDER, HAS_REAL

__all__ = ["TABLES", "Contestant", "PairedTable", "comparison"]

SPLITS = 5
QUANTILE = 2.776  # of Student's t with four degrees of freedom, 97.5 %
VERDICTS = ("better", "within noise", "worse")
_HEAD = f"""\
The mean {{}} of classes, or squared error of numbers, on the rows held out by {SPLITS}-fold
cross-validation. The difference is ours minus theirs on the same splits, in % of theirs. Its
standard error is the larger one of those over splits and over rows; the difference is within noise
if it is less than {QUANTILE:.2f} standard errors. Seconds are processor time of a fit, one thread.

| table | rows x columns | ours | peer | theirs | difference % | error | ours is | s, ours | peer |
|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class PairedTable:
    """A table by its name; `load(with_labels)` gives X and y, and X a dataframe if it has labels
    of categories and they are wanted."""

    name: str
    is_classes: bool
    load: Callable[[bool], tuple[Any, np.ndarray]]


@dataclass(frozen=True)
class Contestant:
    """A library: functions that make a classifier and a regressor, on one thread."""

    name: str
    classifier: Callable[[], Any]
    regressor: Callable[[], Any]


@dataclass
class Seen:
    """Of one contestant on one table: on each split the losses of rows, and seconds of a fit."""

    losses: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return float(np.concatenate(self.losses).mean())


def comparison(
    ours: Contestant,
    peers: Sequence[Contestant],
    *,
    with_labels: bool,
    with_probabilities: bool,
) -> list[str]:
    """Markdown: a row for each table and peer, and how often we are better or worse."""
    lines = [_HEAD.format("log loss" if with_probabilities else "error rate")]
    counts = {peer.name: dict.fromkeys(VERDICTS, 0) for peer in peers}
    for table in TABLES:
        X, y = table.load(with_labels)
        seen = _measured(table, X, y, [ours, *peers], with_probabilities)
        own = seen[ours.name]
        for peer in peers:
            other = seen[peer.name]
            mean, error = _difference(own, other)
            verdict = VERDICTS[1]
            if abs(mean) > QUANTILE * error:
                verdict = VERDICTS[0] if mean < 0.0 else VERDICTS[2]
            counts[peer.name][verdict] += 1
            lines.append(
                f"| {table.name} | {X.shape[0]} x {X.shape[1]} | {own.mean:.4g} | "
                f"{peer.name} | {other.mean:.4g} | {mean:+.2f} | {error:.2f} | {verdict} | "
                f"{np.median(own.seconds):.3g} | {np.median(other.seconds):.3g} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    for name, count in counts.items():
        described = ", ".join(f"{verdict} on {number}" for verdict, number in count.items())
        lines += ["", f"Beside {name}: {described}."]
    return lines


def _difference(own: Seen, other: Seen) -> tuple[float, float]:
    """The mean difference and its standard error, in % of the other's loss."""
    of_splits = [ours - theirs for ours, theirs in zip(own.losses, other.losses, strict=True)]
    of_rows, means = np.concatenate(of_splits), np.array([split.mean() for split in of_splits])
    error = max(values.std(ddof=1) / len(values) ** 0.5 for values in (of_rows, means))
    return 100.0 * float(of_rows.mean()) / other.mean, 100.0 * float(error) / other.mean


def _measured(
    table: PairedTable,
    X: Any,
    y: np.ndarray,
    contestants: Sequence[Contestant],
    with_probabilities: bool,
) -> dict[str, Seen]:
    seen = {contestant.name: Seen() for contestant in contestants}
    folds = (StratifiedKFold if table.is_classes else KFold)(SPLITS, shuffle=True, random_state=0)
    take = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for train, test in folds.split(X, y):
            for contestant in contestants:
                make = contestant.classifier if table.is_classes else contestant.regressor
                model, rows, start = make(), take(train), time.process_time()
                model.fit(rows, y[train])
                seen[contestant.name].seconds.append(time.process_time() - start)
                seen[contestant.name].losses.append(
                    _losses(model, take(test), y[test], table.is_classes, with_probabilities)
                )
    return seen


def _losses(
    model: Any, X: Any, y: np.ndarray, is_classes: bool, with_probabilities: bool
) -> np.ndarray:
    """The loss of each row; y are codes of classes, or numbers."""
    if is_classes and with_probabilities:
        chances = model.predict_proba(X)[np.arange(len(y)), y]
        return -np.log(np.clip(chances, np.finfo(np.float32).tiny, 1.0))
    found = np.asarray(model.predict(X)).ravel()
    return (found != y) * 1.0 if is_classes else (found - y) ** 2


# -- tables --


def _real(name: str, most_rows: int | None = None) -> Callable[[bool], tuple[Any, np.ndarray]]:
    def load(with_labels: bool) -> tuple[Any, np.ndarray]:
        sys.path.insert(0, FOLDER)
        import load

        has_labels = bool(load.categorical(name))
        own = {"codes": True} if has_labels and not with_labels else {}
        X, y = load.load(name, **own, encode=load.info(name)["task"] != "regression")
        if most_rows is not None:
            rows = np.random.default_rng(0).choice(len(y), most_rows, replace=False)
            X, y = (X.iloc[rows] if hasattr(X, "iloc") else X[rows]), y[rows]
        if not hasattr(X, "iloc"):
            X = np.ascontiguousarray(X, dtype=np.float64)
        return X, np.asarray(y)

    return load


def _of_sklearn(name: str) -> Callable[[bool], tuple[Any, np.ndarray]]:
    return lambda with_labels: getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)


TABLES = [
    PairedTable("breast_cancer", True, _of_sklearn("breast_cancer")),
    PairedTable("digits", True, _of_sklearn("digits")),
    PairedTable("diabetes", False, _of_sklearn("diabetes")),
    PairedTable(
        "friedman1",
        False,
        lambda with_labels: sklearn.datasets.make_friedman1(2000, noise=1.0, random_state=0),
    ),
]
if HAS_REAL:
    TABLES += [
        PairedTable("spambase", True, _real("spambase")),
        PairedTable("higgs_11k", True, _real("higgs_11k")),
        PairedTable("adult", True, _real("adult")),
        PairedTable("bike_hour", False, _real("bike_hour")),
        PairedTable("california", False, _real("california")),
        PairedTable("diamonds, 20000 rows", False, _real("diamonds", 20_000)),
    ]
TABLES.sort(key=lambda table: not table.is_classes)
