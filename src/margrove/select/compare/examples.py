"""The rows of a comparison, their folds, and the fit of a model to some of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline

from margrove._data import check_labels, check_targets, check_weights
from margrove.ensemble.bootstrap import Sample, check_sample, label_codes, stream, warn
from margrove.select.held_out import Fold, k_folds, strata_of

__all__ = [
    "Examples",
    "Task",
    "check_examples",
    "fit",
    "folds_of_examples",
    "make_splits",
]

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class Examples:
    """X as given, y (n,) or (n, n_outputs), and weights and group codes (n,), or None."""

    rows: Sample
    y: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None

    @property
    def X(self) -> Any:  # noqa: N802, as everywhere
        return self.rows.parts[0]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> Examples:
        return Examples(
            Sample(self.rows.take(rows), len(rows)),
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            None if self.groups is None else self.groups[rows],
        )

    def with_targets(self, y: np.ndarray) -> Examples:
        return Examples(self.rows, y, self.weight, self.groups)


def check_examples(X: Any, y: Any, sample_weight: Any, groups: Any, task: Task) -> Examples:
    """The checked arguments of `compare`; errors name the argument."""
    rows = check_sample(X, as_arrays=False, name="X")
    if task == "classification":
        labels = check_labels(y, rows.n_rows)
        if len(labels.classes) < 2:
            raise ValueError(
                f"y has one class only, {labels.classes.tolist()[0]!r}. At least two are needed."
            )
        target = labels.classes[labels.codes]
    else:
        target = check_targets(y, rows.n_rows, multi_output=True)
        target = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
    weight = None if sample_weight is None else check_weights(sample_weight, rows.n_rows)
    codes = None if groups is None else label_codes(groups, rows.n_rows, "groups")
    return Examples(rows, target, weight, codes)


# -- folds ----------------------------------------------------------------------------------------


def make_splits(
    examples: Examples, task: Task, cv: Any, repeats: int | None, seed: int
) -> list[Fold]:
    """The folds of all repetitions, the same for all models."""
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        return _repeated_folds(examples, task, int(cv), 2 if repeats is None else repeats, seed)
    if repeats is not None:
        raise ValueError(
            f"repeats={repeats} needs a number of folds as cv. This cv makes its own splits: use "
            "RepeatedStratifiedKFold or RepeatedKFold of scikit-learn, or leave out repeats."
        )
    if (
        cv is None
        or isinstance(cv, (bool, str))
        or not (hasattr(cv, "split") or hasattr(cv, "__iter__"))
    ):
        raise ValueError(
            "cv must be a number of folds, a splitter of scikit-learn or an iterable of (train, "
            f"test) rows. Got {cv!r} instead."
        )
    splitter = check_cv(cv, examples.y, classifier=task == "classification")
    made = splitter.split(examples.X, examples.y, examples.groups)
    return [_checked(train, test, k, len(examples)) for k, (train, test) in enumerate(made)]


def _checked(train: Any, test: Any, number: int, n_rows: int) -> Fold:
    split = Fold(np.asarray(train), np.asarray(test))
    for name, rows in zip(split._fields, split, strict=True):
        if rows.ndim != 1 or not len(rows):
            raise ValueError(f"cv has no rows to {name} in fold {number}.")
        if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_rows:
            raise ValueError(
                f"cv must give row indices from 0 to {n_rows - 1}. Got {rows!r} to {name} in fold "
                f"{number}."
            )
    if len(np.intersect1d(split.train, split.test)):
        raise ValueError(
            f"cv tests models on rows that they were trained on, in fold {number}. Use disjoint "
            "rows: such scores say nothing about new rows."
        )
    return split


def _repeated_folds(
    examples: Examples, task: Task, n_folds: int, repeats: int, seed: int
) -> list[Fold]:
    _check_folds(examples, task, n_folds)
    splits = [
        split
        for repeat in range(repeats)
        for split in folds_of_examples(examples, task, n_folds, int(stream(seed, repeat)) >> 33)
    ]
    return [_checked(train, test, k, len(examples)) for k, (train, test) in enumerate(splits)]


def folds_of_examples(examples: Examples, task: Task, n_folds: int, seed: int) -> Iterator[Fold]:
    """Shuffled folds; classes keep their shares where possible, groups stay together."""
    strata = strata_of(examples.y, n_folds) if task == "classification" else None
    return k_folds(len(examples), n_folds, strata=strata, groups=examples.groups, seed=seed)


def _check_folds(examples: Examples, task: Task, n_folds: int) -> None:
    n_units, units = len(examples), "rows"
    if examples.groups is not None:
        n_units, units = int(examples.groups.max()) + 1, "groups"
    if not 2 <= n_folds <= n_units:
        raise ValueError(
            f"cv={n_folds} folds cannot be made of {n_units} {units}. Use at least 2 and at most "
            f"{n_units}."
        )
    if task == "regression":
        return
    classes, counts = np.unique(examples.y, return_counts=True)
    if counts.min() < n_folds:
        rare = classes.tolist()[int(np.argmin(counts))]
        warn(
            f"The class {rare!r} of y has {counts.min()} row{'s' if counts.min() > 1 else ''} for "
            f"{n_folds} folds, so some folds have no test row of it"
            + (", and one has no training row of it." if counts.min() == 1 else ".")
            + " Use fewer folds if it matters.",
            stacklevel=6,
        )


# -- fitting -------------------------------------------------------------------------------------


def fit(model: Any, examples: Examples) -> Any:
    """Fit a model to the examples, with their weights if there are any."""
    if examples.weight is None:
        return model.fit(examples.X, examples.y)
    return model.fit(examples.X, examples.y, **_weight_arguments(model, examples.weight))


def _weight_arguments(model: Any, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Keyword arguments of `fit` that pass weights on, in a pipeline to the last step."""
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return {f"{name}__{key}": value for key, value in _weight_arguments(last, weight).items()}
    parameters = inspect.signature(model.fit).parameters.values()
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    if not takes_any and "sample_weight" not in {parameter.name for parameter in parameters}:
        raise ValueError(
            f"{type(model).__name__} does not take sample_weight. Compare without weights, or "
            "without this model."
        )
    return {"sample_weight": weight}
