"""X, y and weights of a cross-validation: folds, fits to some rows, weights for pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import has_fit_parameter

from margrove._data import check_labels, check_weights, collected, count_rows, seed_of
from margrove.select.held_out.folds import Fold, k_folds

__all__ = [
    "Folds",
    "LearningRows",
    "final_step",
    "require_estimator",
    "weight_arguments",
]

Folds = list[Fold]


@dataclass(frozen=True)
class LearningRows:
    """The checked X, y and weights (None or float64 (n,)) of a function that cross-validates.

    For a classifier, y is an array of labels and `codes` are their indices in `classes`. For a
    regressor, y is an array of numbers and both are None.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    codes: np.ndarray | None
    classes: np.ndarray | None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> LearningRows:
        X = _indexable(X)
        n_rows = count_rows(X)
        weight = None if sample_weight is None else check_weights(sample_weight, n_rows)
        if weight is not None:
            weight_arguments(estimator, weight)  # raises now if the estimator takes no weights
        if is_classifier(estimator):
            labels = check_labels(y, n_rows)
            return cls(X, labels.classes[labels.codes], weight, labels.codes, labels.classes)
        target = np.asarray(y)
        if target.ndim == 0 or len(target) != n_rows:
            raise ValueError(
                f"y must be a number for each of the {n_rows} rows of X. Got "
                f"{f'{len(target)} of them' if target.ndim else repr(y)}."
            )
        return cls(X, target, weight, None, None)

    def __len__(self) -> int:
        return len(self.y)

    def fitted(self, estimator: Any, rows: np.ndarray | None = None) -> Any:
        """A clone fitted to some rows, or to all."""
        if rows is None:
            return clone(estimator).fit(self.X, self.y, **weight_arguments(estimator, self.weight))
        X, y = _safe_split(estimator, self.X, self.y, rows)
        weight = None if self.weight is None else self.weight[rows]
        return clone(estimator).fit(X, y, **weight_arguments(estimator, weight))

    def held_out(self, estimator: Any, train: np.ndarray, test: np.ndarray) -> Any:
        """X of the rows `test` for an estimator fitted to `train`; a Gram matrix needs both."""
        return _safe_split(estimator, self.X, None, test, train)[0]

    def weights_of(self, rows: np.ndarray) -> np.ndarray:
        return np.ones(len(rows)) if self.weight is None else self.weight[rows]

    def folds(self, cv: Any, groups: Any, random_state: Any) -> Folds:
        """Pairs of train and test rows.

        If `cv` is a number, the folds are shuffled and stratified by class, and the rows of a group
        stay together.
        """
        n_rows = len(self)
        is_number = isinstance(cv, (Real, str))
        is_integer = isinstance(cv, Integral) and not isinstance(cv, bool)
        is_count = is_integer and 2 <= int(cv) <= n_rows
        if is_number and not is_count:
            raise ValueError(
                f"cv must be a number of folds from 2 to the {n_rows} rows of X, a splitter, or "
                f"pairs of train and test rows. Got {cv!r}."
            )
        groups = _checked_groups(groups, n_rows)
        target = self.y if self.codes is None else self.codes
        rows = np.arange(n_rows)  # folds may be masks
        if is_count:
            self._require_enough(int(cv), groups)
            found = list(
                k_folds(
                    n_rows, int(cv), strata=self.codes, groups=groups, seed=seed_of(random_state)
                )
            )
        else:
            splitter = check_cv(cv, target, classifier=self.codes is not None)
            found = [
                Fold(rows[train], rows[test])
                for train, test in splitter.split(np.zeros((n_rows, 1)), target, groups)
            ]
        for k, (train, test) in enumerate(found):
            self._require_usable(k, train, test)
        return found

    def _require_enough(self, n_folds: int, groups: Any) -> None:
        """Raise if there are fewer groups, or fewer rows of a class, than folds."""
        if groups is not None and len(np.unique(groups)) < n_folds:
            raise ValueError(
                f"cv={n_folds} folds need as many groups. Got {len(np.unique(groups))}: use fewer "
                "folds."
            )
        if groups is None and self.codes is not None:
            sizes = np.bincount(self.codes)
            if sizes.min() < n_folds:
                raise ValueError(
                    f"cv={n_folds} folds need as many rows of each class, and class "
                    f"{self._named_class(int(sizes.argmin()))} has {sizes.min()}. Use fewer folds, "
                    "or leave the class out."
                )

    def _named_class(self, code: int) -> str:
        assert self.classes is not None
        return repr(self.classes[code : code + 1].tolist()[0])

    def _require_usable(self, k: int, train: np.ndarray, test: np.ndarray) -> None:
        if not len(train) or not len(test):
            raise ValueError(f"Fold {k} of cv has no rows to train on or none to test on.")
        if len(np.intersect1d(train, test)):
            raise ValueError(
                f"Fold {k} of cv tests on rows that it trains on. Use disjoint rows: such a score "
                "says nothing about new rows."
            )
        self.require_classes(train, f"Fold {k} of cv")

    def require_classes(self, train: np.ndarray, which: str) -> None:
        """Raise if y has classes and one is missing among the training rows."""
        if self.codes is None or self.classes is None:
            return
        used = train if self.weight is None else train[self.weight[train] > 0]
        missing = np.setdiff1d(np.arange(len(self.classes)), self.codes[used])
        if len(missing):
            raise ValueError(
                f"{which} has no row of class {self._named_class(int(missing[0]))} to train on. "
                "Use fewer folds, other groups, or leave the class out."
            )


def require_estimator(estimator: Any, function: str) -> None:
    """Raise a TypeError unless this is an instance with `fit` and `get_params`."""
    if isinstance(estimator, type):
        raise TypeError(
            f"{function} needs an estimator, such as {estimator.__name__}(). Got the class "
            f"{estimator.__name__}."
        )
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"{function} needs an estimator, with fit and get_params. Got "
            f"{type(estimator).__name__}."
        )


def final_step(estimator: Any) -> tuple[str, Any]:
    """The prefix of the parameters of a pipeline's last step ('svc__', or ''), and that step."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def weight_arguments(estimator: Any, weight: np.ndarray | None) -> dict[str, Any]:
    """Keyword arguments of `fit` that pass weights on, in a pipeline to the last step."""
    if weight is None:
        return {}
    prefix, last = final_step(estimator)
    if isinstance(last, FrozenEstimator):  # its fit does nothing
        return {}
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"sample_weight was given, but {type(last).__name__} does not take it in fit. Leave it "
            "out, or use an estimator that does."
        )
    return {f"{prefix}sample_weight": weight}


def _indexable(X: Any) -> Any:
    """X as a frame, a CSR matrix or an array, whose rows can be indexed."""
    X = collected(X)
    if sp.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)


def _checked_groups(groups: Any, n_rows: int) -> np.ndarray | None:
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.shape != (n_rows,):
        raise ValueError(
            f"groups must name a group for each of the {n_rows} rows of X. Got shape {found.shape}."
        )
    return found
