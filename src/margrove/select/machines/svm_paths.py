"""The sequence of kernel machines over C, each found from the one before."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._data import TrainingLabels, data_frame
from margrove._runtime import drive, resolve_n_jobs, single_threaded_blas
from margrove.margin.solvers.dual import SolverResult
from margrove.margin.svm import SVC, SVR, FitRecord, epsilon_svr
from margrove.select.held_out import Fold
from margrove.select.machines.gram_series import GramSeries
from margrove.select.machines.grids import check_grid, logarithmic
from margrove.select.machines.machine_paths import (
    FoldMachine,
    FoldPaths,
    MachinePath,
    PathRule,
    PathSearch,
)
from margrove.select.machines.svm_problems import ClassifierTask, RegressorTask, SvmTask

__all__ = ["SvmPath", "SvmPathPoint", "svm_path"]

_PRICES = (-2.0, 4.0)


@dataclass(frozen=True)
class SvmPathPoint:
    """The machines at one price, summed up.

    Attributes
    ----------
    C : float
    n_support : int
        Support vectors: rows of the training set, or groups of alike ones, that some machine needs.
    n_bounded : int
        Those of them that are at their bound in some machine: inside the margin, or wrong.
    margin : float
        Width of the margin, 2 / ||w||; the narrowest where there are several machines.
    objective : float
        Dual objective, to be minimised; the sum where there are several machines.
    violation : float
        The largest KKT violation.
    n_steps : int
        Pair steps from the point before.
    """

    C: float
    n_support: int
    n_bounded: int
    margin: float
    objective: float
    violation: float
    n_steps: int


@dataclass(frozen=True)
class SvmPath:
    """Machines of ascending C: figures of each as `points`, and each as a fitted estimator.

    Attributes
    ----------
    points : tuple of SvmPathPoint
    """

    points: tuple[SvmPathPoint, ...]
    _estimator: Any = field(repr=False)
    _given: tuple[Any, Any, Any] = field(repr=False)
    _task: SvmTask = field(repr=False)
    _paths: list[MachinePath] = field(repr=False)

    def __len__(self) -> int:
        return len(self.points)

    def machine(self, number: int) -> Any:
        """One of them as a fitted `SVC` or `SVR`, with its certificate.

        Parameters
        ----------
        number : int
            Of the point, from 0.

        Returns
        -------
        fitted estimator
        """
        point = self.points[number]
        model = clone(self._estimator).set_params(C=point.C)
        number = range(len(self))[number]
        learn: Any = _learnt_classes if isinstance(self._task, ClassifierTask) else _learnt_values
        model._commit(learn(model, self._task, self._paths, number, self._given))
        return model

    def frame(self) -> Any:
        """The points as a pandas DataFrame, one row each."""
        names = [own.name for own in fields(SvmPathPoint)]
        return data_frame({name: [getattr(p, name) for p in self.points] for name in names})

    def plot(self, axes: Any = None) -> Any:
        """Support vectors, margin and objective against C; see `margrove.plot.svm_path`."""
        from margrove.plot.models import svm_path as draw

        return draw(self, axes=axes)


def svm_path(
    estimator: SVC | SVR, X: Any, y: Any, Cs: Any = 20, sample_weight: Any = None
) -> SvmPath:
    """Kernel machines for ascending prices C, each started from the one before.

    Each is solved to the estimator's `tol`, as if it had been fitted alone.

    Parameters
    ----------
    estimator : SVC or SVR
        Its other parameters hold for all machines; it is left as it is.
    X, y, sample_weight : as for `fit`
    Cs : int or array-like, default=20
        Prices, or how many from 0.01 to 10000, evenly on a logarithmic scale.

    Returns
    -------
    SvmPath

    Examples
    --------
    >>> from margrove import SVC, svm_path
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svm_path(SVC(), X, y == 1, [0.1, 1.0, 10.0])
    >>> [point.n_support for point in path.points]
    [100, 60, 28]
    >>> bool(path.machine(1).certificate_.violation < 1e-3)
    True
    """
    if not isinstance(estimator, (SVC, SVR)):
        raise TypeError(
            f"svm_path is for SVC and SVR. Got {type(estimator).__name__}; for LinearSVC and "
            "LinearSVR there is linear_path."
        )
    if not estimator.fit_intercept:
        raise ValueError("svm_path is for machines with a bias. Use fit_intercept=True.")
    estimator._check_parameters()
    given = check_grid("Cs", Cs, "svm_path")
    prices = logarithmic(*_PRICES, given) if isinstance(given, int) else given
    task: SvmTask
    if isinstance(estimator, SVC):
        task = ClassifierTask.of(estimator, X, y, sample_weight)
    else:
        task = RegressorTask.of(estimator, X, y, sample_weight)
    paths = _followed(estimator, task, prices)
    points = tuple(_point(paths, number, float(C)) for number, C in enumerate(prices))
    return SvmPath(points, clone(estimator), (X, y, sample_weight), task, paths)


def _followed(estimator: Any, task: SvmTask, prices: np.ndarray) -> list[MachinePath]:
    """The path of every machine, fitted to all rows."""
    everyone = np.flatnonzero(task.weight > 0)
    fold = Fold(everyone, everyone[:0])
    found: list[MachinePath] = []

    def keep(kernel: int, fold: int, K: np.ndarray, paths: FoldPaths) -> None:
        found.extend(path for path in paths if path is not None)

    n_threads = resolve_n_jobs(estimator.n_jobs, unset="all")
    rule = PathRule(prices, float(estimator.tol), int(estimator.max_iter))
    with single_threaded_blas():
        kernels = [task.training.kernel]
        series = GramSeries(kernels, task.training.points, n_loans=1, n_threads=n_threads)
        search = PathSearch(series, 1, [task.machines(fold)], rule, keep, n_threads=n_threads)
        drive(search, estimator, verbose=int(estimator.verbose))
    return found


def _point(paths: list[MachinePath], number: int, C: float) -> SvmPathPoint:
    supports, bounded, norms = set(), set(), []
    for path in paths:
        machine = path.machine
        alpha = path.alphas[[number]].toarray()[0]
        points = np.concatenate([np.arange(run.start, run.stop) for run in machine.runs])
        own = points[machine.rows]
        supports.update(own[alpha > 0].tolist())
        bounded.update(own[alpha >= C * machine.weight * (1 - 1e-12)].tolist())
        norms.append(2.0 * (path.objectives[number] - float(machine.p @ alpha)))
    largest = max(0.0, *norms)
    return SvmPathPoint(
        C,
        len(supports),
        len(bounded),
        2.0 / float(np.sqrt(largest)) if largest > 0 else np.inf,
        float(sum(path.objectives[number] for path in paths)),
        float(max(path.violations[number] for path in paths)),
        int(sum(path.steps[number] for path in paths)),
    )


def _result(path: MachinePath, number: int) -> SolverResult:
    return SolverResult(
        alpha=path.alphas[[number]].toarray()[0],
        rho=float(path.rhos[number]),
        r=0.0,
        objective=float(path.objectives[number]),
        violation=float(path.violations[number]),
        iterations=int(path.steps[number]),
        converged=bool(path.converged[number]),
    )


def _learnt_classes(
    model: SVC,
    task: ClassifierTask,
    paths: list[MachinePath],
    number: int,
    given: tuple[Any, Any, Any],
) -> dict[str, Any]:
    everyone = Fold(np.flatnonzero(task.weight > 0), np.empty(0, dtype=np.int64))
    labels = TrainingLabels(task.target, task.classes, task.weight, task.factors(everyone))
    codes = np.repeat(np.arange(len(task.classes)), np.diff(task.edges))
    training = task.training
    bounds = model._bounds_of(training, labels.counted(training.form)[training.order])
    machines = model._machines(codes, task.classes, bounds)
    results = [_result(path, number) for path in paths]
    record = FitRecord(
        *given, [[] for _ in results], model._scales(machines, results), model._given()
    )
    learnt = model._learnt(training, labels, codes, machines, results)
    return task.attributes | learnt | {"_record": record}


def _learnt_values(
    model: SVR,
    task: RegressorTask,
    paths: list[MachinePath],
    number: int,
    given: tuple[Any, Any, Any],
) -> dict[str, Any]:
    machine: FoldMachine = paths[0].machine
    targets = task.scale.apply(task.target[task.training.rows])
    bounds = model.C * machine.weight[: len(targets)]
    problem = epsilon_svr(targets, bounds, task.epsilon * task.scale.factor)
    record = FitRecord(*given, [[]], [1.0 / model._price()], model._given())
    learnt = model._learnt(task.training, problem, _result(paths[0], number), task.scale)
    return task.attributes | learnt | {"_record": record}
