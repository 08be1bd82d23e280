"""Estimators: LinearSVC and LinearSVR on a Dask cluster."""

from __future__ import annotations

from typing import Any, Self

from margrove.dask.cluster_estimator import ClusterEstimator
from margrove.dask.linear_fit import fit_on_cluster
from margrove.dask.online import OnlineEstimator, partial_fit_partitions, require_y
from margrove.dask.partitions import is_collection, partitions_of
from margrove.margin.linear import LinearFacts
from margrove.margin.linear import LinearSVC as LocalLinearSVC
from margrove.margin.linear import LinearSVR as LocalLinearSVR
from margrove.margin.solvers.linear import Kind, LinearResult

__all__ = ["LinearSVC", "LinearSVR"]


class _ClusterLinearMachine(ClusterEstimator):
    """The mixin of both: the local solver on every worker, with sums over all of them."""

    def _fit_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, client: Any, **others: Any
    ) -> None:
        kind = self._kind_on_cluster()
        require_y(self, y)
        partitions = partitions_of(X, y, sample_weight, client, self)
        self._commit(fit_on_cluster(self, kind, partitions))  # type: ignore[attr-defined]

    def _kind_on_cluster(self) -> Kind:
        raise NotImplementedError

    def _learnt_on_cluster(self, facts: LinearFacts, result: LinearResult) -> dict[str, Any]:
        """The fitted attributes."""
        raise NotImplementedError


class LinearSVC(OnlineEstimator, _ClusterLinearMachine, LocalLinearSVC):
    """`margrove.LinearSVC` for tables on a Dask cluster.

    Parameters, attributes and predictions are those of `margrove.LinearSVC`. A fit to Dask
    collections runs the local solver on every worker, with Newton steps from sums over the rows of
    all workers. With up to 1500 features a step is exact, and its messages are as large as the
    square of the number of features; with more, it is found by conjugate gradients. Machines for
    several classes take steps together.

    The objective is that of the local fit, with the same certificate of the solution. The weights
    agree with the local ones up to `tol`, not bit for bit.

    See Also
    --------
    margrove.LinearSVC : parameters and attributes.

    Notes
    -----
    Not available on a cluster: ``multi_class="crammer_singer"``, ``solver="cd"``, ``solver="sgd"``,
    and ``penalty="l1"`` with more than 1500 features, unless ``solver="newton"`` is set and the
    memory of each worker suffices for its systems. `certificate_` has values of single rows only if
    there are few rows and the fit was not stopped early; its gap is always that of all rows. Rows
    that do not fit into the memory of the workers stay on their disks, and are read twice a step;
    then about 40 bytes a row, and y, are in memory.
    `warm_start` starts from the weights of the last fit with the same features and classes.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from margrove.dask import LinearSVC
    >>> client = Client(n_workers=2)  # doctest: +SKIP
    >>> X = da.random.default_rng(0).normal(size=(1_000_000, 20), chunks=(100_000, -1))
    >>> model = LinearSVC().fit(X, X[:, 0] > 0)  # doctest: +SKIP
    >>> model.certificate_.relative_gap < 1e-4  # doctest: +SKIP
    True
    """

    def _kind_on_cluster(self) -> Kind:
        kind = self._kind()
        if kind == "crammer_singer":
            raise ValueError(
                "multi_class='crammer_singer' processes rows one after the other and cannot be "
                "fitted on a cluster. Use multi_class='ovr', or fit X.compute() if it fits into "
                "memory."
            )
        _refuse_sequential(self.solver)
        return kind

    def _learnt_on_cluster(self, facts: LinearFacts, result: LinearResult) -> dict[str, Any]:
        assert facts.classes is not None
        return self._learnt(facts.scale, facts.classes, result)


class LinearSVR(_ClusterLinearMachine, LocalLinearSVR):
    """`margrove.LinearSVR` for tables on a Dask cluster.

    Parameters, attributes and predictions are those of `margrove.LinearSVR`; see
    `margrove.dask.LinearSVC` for what is different on a cluster.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from margrove.dask import LinearSVR
    >>> client = Client(n_workers=2)  # doctest: +SKIP
    >>> X = da.random.default_rng(0).normal(size=(1_000_000, 20), chunks=(100_000, -1))
    >>> model = LinearSVR(epsilon=0.1).fit(X, X.sum(axis=1))  # doctest: +SKIP
    """

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, *, client: Any = None) -> Self:
        """Learn from one more batch; of Dask collections each partition is a batch, in order.

        The model is sent from worker to worker, the rows stay.

        Parameters
        ----------
        X, y, sample_weight
            As `fit` takes them.
        client : distributed.Client, optional
            By default the current one.

        Returns
        -------
        self
        """
        if is_collection(X):
            partial_fit_partitions(self, X, y, sample_weight, client)
            return self
        return super().partial_fit(X, y, sample_weight)

    def _kind_on_cluster(self) -> Kind:
        self._check_parameters()
        _refuse_sequential(self.solver)
        return "l2"

    def _learnt_on_cluster(self, facts: LinearFacts, result: LinearResult) -> dict[str, Any]:
        return self._learnt(facts.scale, facts.target_scale, result)


def _refuse_sequential(solver: str) -> None:
    if solver in ("cd", "sgd"):
        way_out = " For stochastic descent call partial_fit(X, y)." if solver == "sgd" else ""
        raise ValueError(
            f"solver={solver!r} processes rows one after the other, but they are on several "
            f"workers. Use solver='auto' or 'newton'.{way_out}"
        )
