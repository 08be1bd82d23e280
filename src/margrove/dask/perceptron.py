"""Estimator: Perceptron on a Dask cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._data import check_labels, scan_rows
from margrove._runtime import drive, using_checkpoints
from margrove.dask.cluster import gathered
from margrove.dask.online import (
    OnlineEstimator,
    PartitionPass,
    attributes_of,
    classes_of_partitions,
    model_to_send,
    require_y,
)
from margrove.dask.partitions import Partitions, partitions_of
from margrove.margin.perceptron import Perceptron as LocalPerceptron
from margrove.margin.perceptron import separation_attributes
from margrove.margin.solvers.perceptron import measure_separation

__all__ = ["Perceptron"]


class Perceptron(OnlineEstimator, LocalPerceptron):  # type: ignore[misc]
    """`margrove.Perceptron` for tables on a Dask cluster.

    Parameters, attributes and predictions are those of `margrove.Perceptron`. It learns from Dask
    collections partition by partition, in their order: the weights are sent from worker to worker,
    the rows stay. An epoch gives, bit for bit, the result of `partial_fit` of the local class with
    one partition after the other; rows are shuffled within their partition.

    See Also
    --------
    margrove.Perceptron : parameters and attributes.

    Notes
    -----
    `fit` runs such epochs until one is without a mistake, until the share of mistakes has not
    fallen by `tol` in `n_iter_no_change` of them, or `max_iter` times. Learning is sequential, so
    more workers can hold more rows but do not make it faster. Not available on a cluster:
    ``early_stopping=True``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from margrove.dask import Perceptron
    >>> client = Client(n_workers=2)  # doctest: +SKIP
    >>> X = da.random.default_rng(0).normal(size=(1_000_000, 20), chunks=(100_000, -1))
    >>> model = Perceptron(max_iter=5, tol=None).fit(X, X[:, 0] > 0)  # doctest: +SKIP
    """

    def _fit_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, client: Any, **others: Any
    ) -> None:
        self._check_parameters()
        if self.early_stopping:
            raise ValueError(
                "early_stopping=True needs rows of all partitions at once. On a cluster set "
                "early_stopping=False, and max_iter or tol to end in time."
            )
        require_y(self, y)
        partitions = partitions_of(X, y, sample_weight, client, self)
        labels = classes_of_partitions(partitions, self.class_weight)
        names = labels.classes.tolist()
        factors = dict(zip(names, labels.factors.tolist(), strict=True))
        model = self._begun(partitions, factors, labels.classes, **others)
        is_fresh = not hasattr(model, "coef_")
        epochs = _Epochs(model, partitions, labels.classes, self)
        with using_checkpoints(None):
            ending = drive(
                epochs,
                self,
                max_time=self.max_time,
                on_interrupt=self.on_interrupt,
                verbose=int(self.verbose),
                X=X,
                y=y,
            )
        learnt = epochs.learnt()
        found = attributes_of(learnt, partitions) | {"n_iter_": max(1, epochs.rounds)}
        separation = _separation(learnt, partitions, self, is_fresh=is_fresh)
        self._commit(found | separation)
        self._warn_unless_converged(ending, epochs)  # type: ignore[arg-type]

    def _begun(
        self,
        partitions: Partitions,
        factors: dict[Any, float],
        classes: np.ndarray,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> Any:
        """The local perceptron to start from: that of the last fit with `warm_start`, else new."""
        model = (
            model_to_send(self, partitions)
            if self.warm_start
            else LocalPerceptron(**self.get_params())
        )
        if self.class_weight is not None:
            model.class_weight = factors
        if coef_init is not None or intercept_init is not None:
            shape = partitions.n_features
            start = model._starting_state(classes, shape, coef_init, intercept_init)
            model.coef_, model.intercept_ = start.coef, start.intercept
        return model


class _Epochs:
    """Passes over all partitions until convergence; see `slices.Process`."""

    unit = "epoch"

    def __init__(
        self, model: Any, partitions: Partitions, classes: np.ndarray, settings: Any
    ) -> None:
        self._partitions, self._classes, self._settings = partitions, classes, settings
        self.total: int | None = int(settings.max_iter)
        self.rounds = 0
        self._mistakes = np.zeros(1)
        self._presented = 0.0
        self._best_share = np.inf
        self._idle = 0
        self.converged = np.zeros(1, dtype=bool)
        self._model = model
        self._pass = PartitionPass(model, partitions, classes)
        self._before = _count(model)

    @property
    def finished(self) -> bool:
        return bool(self.converged[0]) or self.rounds >= int(self._settings.max_iter)

    def advance(self, work: float) -> float:
        """One partition."""
        self._pass.advance()
        if self._pass.finished:
            self._end_epoch()
        return work

    def learnt(self) -> Any:
        """The model after the last complete epoch, or else after the partitions so far."""
        return self._model if self.rounds else self._pass.learnt()

    def figures(self) -> dict[str, float]:
        return {"mistakes": float(self._before[0])}

    def read_steps(self) -> list[Any]:
        return []

    def _end_epoch(self) -> None:
        self._model = self._pass.learnt()
        self.rounds += 1
        mistakes, presented = _count(self._model)
        new_mistakes, rows = mistakes - self._before[0], presented - self._before[1]
        self._before = mistakes, presented
        share = new_mistakes / rows if rows > 0 else 0.0
        tol = self._settings.tol
        if tol is not None:
            self._idle = self._idle + 1 if share > self._best_share - tol else 0
        self._best_share = min(self._best_share, share)
        is_idle = tol is not None and self._idle >= self._settings.n_iter_no_change
        self.converged[0] = new_mistakes == 0.0 or is_idle
        if not self.finished:
            self._pass = PartitionPass(self._model, self._partitions, self._classes)


def _count(model: Any) -> tuple[float, float]:
    """The numbers of mistakes and of presented rows so far."""
    mistakes = float(getattr(model, "mistakes_", 0.0))
    return mistakes, float(getattr(model, "t_", 1.0)) - 1.0


def _separation(
    model: Any, partitions: Partitions, settings: Any, *, is_fresh: bool
) -> dict[str, Any]:
    """Attributes about separation, as in a local fit: smallest margins and largest radius."""
    assert partitions.y is not None
    weights = partitions.weight or [None] * len(partitions.X)
    given = model.coef_, model.intercept_, model.classes_, settings.fit_intercept
    pairs = zip(partitions.y, weights, strict=True)
    tasks = partitions.map_each(
        _separation_of_partition, [(y, weight, *given) for y, weight in pairs]
    )
    found_pairs = [pair for pair in gathered(partitions.client, tasks) if pair is not None]
    return separation_attributes(
        np.min([margin for margin, _ in found_pairs], axis=0),
        max(radius for _, radius in found_pairs),
        extra_room=2.0 * settings.margin / settings.eta0,
        theorem_applies=is_fresh and settings.penalty is None,
    )


def _separation_of_partition(
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    coef: np.ndarray,
    intercept: np.ndarray,
    classes: np.ndarray,
    fit_intercept: bool,
) -> tuple[np.ndarray, float] | None:
    weight = np.ones(X.shape[0]) if weight is None else weight
    if not (weight > 0).any():
        return None
    codes = np.maximum(check_labels(y, len(y)).codes_among(classes), 0)
    norms = scan_rows(X).squared_norms
    found = measure_separation(
        X, codes, weight, norms, coef, intercept, fit_intercept=fit_intercept, n_threads=1
    )
    return found.margin, found.radius
