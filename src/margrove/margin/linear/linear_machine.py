"""The base class of LinearSVC and LinearSVR: scaling, intercept penalty, solvers, warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from margrove._data import (
    CanonicalForm,
    ScannedTable,
    canonical_form,
    check_and_scan,
    kernel_rows,
    seed_of,
)
from margrove._runtime import (
    RANDOM_STATE,
    RUN_CONTROL,
    Ending,
    Estimator,
    drive,
    require_memory,
    resolve_n_jobs,
    single_threaded_blas,
    using_checkpoints,
)
from margrove.exceptions import ConvergenceWarning, InvalidDataError
from margrove.margin.decisions import dense_coefficients
from margrove.margin.kernels import largest_value, row_norms
from margrove.margin.linear.problems import LinearProblem, OneVsRest
from margrove.margin.linear.row_facts import exact_scale
from margrove.margin.solvers.dual import Solver
from margrove.margin.solvers.linear import (
    Kind,
    LinearDemand,
    LinearResult,
    SgdRows,
    SgdState,
    StochasticProcess,
    linear_process,
)
from margrove.margin.svm import TargetScale, warn_of_unequal_scales

__all__ = [
    "LINEAR_PARAMETERS",
    "LinearMachine",
    "LinearRecord",
    "LinearTraining",
    "require_memory_of_systems",
]

LINEAR_PARAMETERS: dict[str, list[Any]] = {
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "C": [Interval(Real, 0.0, None, closed="neither")],
    "dual": ["boolean", StrOptions({"auto"})],
    "fit_intercept": ["boolean"],
    "intercept_scaling": [Interval(Real, 0, None, closed="neither"), None],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}

_LEAST_PRICE, _LARGEST_PRICE = 1e-280, 1e120  # within these limits all sums stay finite
_FEW_CELLS = 20_000  # the fit of a smaller table takes less time than starting a thread


@dataclass(frozen=True)
class LinearTraining:
    """Checked rows; equal rows are merged, and extreme ones are scaled by a power of two.

    X         the table for kernels, times `scale`; None if it is read later
    rows      int64 (m,)  representatives of the groups of equal rows
    norms     float64 (m,)  their squared norms
    n_cells   cells of X that are kept
    """

    X: Any
    n_features: int
    form: CanonicalForm
    norms: np.ndarray
    scale: float
    n_cells: int = 0

    @property
    def rows(self) -> np.ndarray:
        return self.form.rows


@dataclass
class LinearRecord:
    """The arguments and the result of a fit, for a certificate and for a warm start.

    `problem` and `result` are in the units of the solver. Its features are those of the data times
    `units[0]`, and its targets are scaled by `target_scale`. Its objective times all `units`,
    divided by the squared factor of the targets, is the objective of the data.
    """

    X: Any
    y: Any
    sample_weight: Any
    parameters: dict[str, Any]
    problem: LinearProblem | OneVsRest
    kind: Kind
    form: CanonicalForm
    result: LinearResult
    units: tuple[float, ...]
    target_scale: TargetScale
    certificate: Any = None


class LinearMachine(Estimator):
    """A machine whose decision values are X @ coef_.T + intercept_."""

    C: float
    tol: float
    fit_intercept: bool
    intercept_scaling: float | None
    solver: str
    max_iter: int
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    max_time: float | None
    on_interrupt: Any
    verbose: int
    coef_: Any
    intercept_: np.ndarray
    _record: LinearRecord

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_record"}

    @property
    def certificate_(self) -> Any:
        """A proof of how good the last fit is; see `margrove.certificate`.

        It is computed at the first access, from the data of `fit`. The estimator keeps a reference
        to them, not a copy, and a pickled estimator does not contain them.
        """
        from margrove.margin.linear.certificates import certificate_of_linear, certificate_of_record

        check_is_fitted(self)
        if "_record" not in vars(self):
            raise AttributeError(
                "The training data are not available after pickling or partial_fit. Use "
                "margrove.certificate(model, X, y, sample_weight)."
            )
        record = self._record
        if record.certificate is None:
            if record.parameters["solver"] == "sgd":  # it has no dual variables
                given = record.X, record.y, record.sample_weight
                record.certificate = certificate_of_linear(self, *given)
            else:
                record.certificate = certificate_of_record(self, record)
        return record.certificate

    # -- the steps of fit --

    def _checked(self, X: Any) -> ScannedTable:
        self._check_parameters()
        is_small = getattr(X, "size", 0) < _FEW_CELLS and self.n_jobs != 0
        n_threads = 1 if is_small else resolve_n_jobs(self.n_jobs, unset="all")
        table = check_and_scan(X, self, n_threads=n_threads)
        warn_of_unequal_scales(table.X)
        return table

    def _training(
        self, table: ScannedTable, target: np.ndarray, weight: np.ndarray
    ) -> LinearTraining:
        form = canonical_form(table.X, target, weight, table.scan)
        norms, X = table.scan.squared_norms, table.X
        longest = float(np.sqrt(norms.max(initial=0.0)))
        scale = exact_scale(longest, lambda: largest_value(X))
        if scale != 1.0:
            X = X.astype(np.float64, copy=False) * scale
            norms = row_norms(X)
        d, n_cells = int(X.shape[1]), int(X.size)
        return LinearTraining(kernel_rows(X), d, form, norms[form.rows], scale, n_cells)

    def _prices(self, weight: np.ndarray, *units: float) -> np.ndarray:
        """C of each row in the units of the solver, which are applied one by one."""
        prices = np.clip(weight, _LEAST_PRICE, _LARGEST_PRICE)
        with np.errstate(over="ignore", under="ignore"):
            for factor in (float(self.C), *(1.0 / unit for unit in units)):
                if factor != 1.0:
                    prices = np.clip(prices * factor, _LEAST_PRICE, _LARGEST_PRICE)
        return prices

    def _bias_price(self, scale: float, power: int) -> float:
        """The penalty of the intercept in the units of the solver; see `problems`."""
        if not self.fit_intercept:
            return np.inf
        if self.intercept_scaling is None:
            return 0.0
        price = np.float64(1.0)
        with np.errstate(over="ignore", under="ignore"):
            for _ in range(power):
                price = np.clip(price / scale, _LEAST_PRICE, _LARGEST_PRICE)
                price = np.clip(price / self.intercept_scaling, _LEAST_PRICE, _LARGEST_PRICE)
        return float(price)

    def _threads(self, training: LinearTraining) -> int:
        if training.n_cells < _FEW_CELLS:
            return 1
        return resolve_n_jobs(self.n_jobs, unset="all")

    def _solve(
        self,
        problem: LinearProblem | OneVsRest,
        kind: Kind,
        training: LinearTraining,
        given: tuple[Any, Any, Any],
        learnt: Callable[[LinearResult], dict[str, Any]],
        units: tuple[float, ...],
        target_scale: TargetScale | None = None,
    ) -> LinearRecord:
        """Solve a problem; `given` are X, y and sample_weight, `learnt` makes fitted attributes."""
        n_machines = problem.n_machines if isinstance(problem, OneVsRest) else 1
        if self.solver == "newton":
            require_memory_of_systems(problem.n_features, "Use solver='cd' or 'auto'.")
        require_memory(
            3.0 * 8 * n_machines * (problem.n_features + len(problem)),
            f"{type(self).__name__} with {n_machines} machines of {problem.n_features} features",
            "Merge classes, or hash the features to fewer, for example with "
            "sklearn.feature_extraction.FeatureHasher.",
        )
        demand = self._demand()
        with _blas_of(problem):
            return self._solved(problem, kind, training, given, learnt, units, target_scale, demand)

    def _demand(self) -> LinearDemand:
        seed = 0 if self.random_state is None else seed_of(self.random_state)
        return LinearDemand(float(self.tol), int(self.max_iter), seed)

    def _solved(
        self,
        problem: LinearProblem | OneVsRest,
        kind: Kind,
        training: LinearTraining,
        given: tuple[Any, Any, Any],
        learnt: Callable[[LinearResult], dict[str, Any]],
        units: tuple[float, ...],
        target_scale: TargetScale | None,
        demand: LinearDemand,
    ) -> LinearRecord:
        process: Solver
        if self.solver == "sgd":
            data = _rows_of(problem, self._bias_gain(training.scale))
            process = StochasticProcess(data, demand, _fresh_state(data))
        else:
            process = linear_process(
                problem,
                demand,
                kind=kind,
                solver=self.solver,
                start=self._start(problem, training, kind),
                n_threads=self._threads(training),
            )
        ending = drive(
            process,
            self,
            max_time=self.max_time,
            on_interrupt=self.on_interrupt,
            verbose=int(self.verbose),
            X=given[0],
            y=given[1],
            fitted=lambda: learnt(process.result()),
            given={"sample_weight": given[2]},
        )
        result = process.result()
        name = getattr(process, "name", type(process).__name__)
        self._warn_unless_converged(ending, result, name)
        parameters = {name: getattr(self, name) for name in self._parameter_constraints}
        target_scale = TargetScale(0.0, 1.0) if target_scale is None else target_scale
        return LinearRecord(
            *given, parameters, problem, kind, training.form, result, units, target_scale
        )

    def _bias_gain(self, scale: float = 1.0) -> tuple[float, bool]:
        """By how much a step of stochastic descent moves b, and whether b is not penalised."""
        if not self.fit_intercept:
            return 0.0, False
        if self.intercept_scaling is None:
            return 1.0, True
        return (scale * float(self.intercept_scaling)) ** 2, False

    def _learn_batch(
        self, data: SgdRows, given: tuple[Any, Any], learnt: Callable[[SgdState], dict[str, Any]]
    ) -> dict[str, Any]:
        """Run one epoch over a batch of a stream and return the fitted attributes that change."""
        state = self._stream_state(data)
        seed = 0 if self.random_state is None else seed_of(self.random_state)
        demand = LinearDemand(float(self.tol), 1, seed)
        seen = state.seen + float(data.weight.sum())
        process = StochasticProcess(data, demand, state, total_weight=seen)
        with using_checkpoints(None):  # no checkpoint for each batch of a stream
            drive(
                process,
                self,
                max_time=self.max_time,
                on_interrupt=self.on_interrupt,
                verbose=int(self.verbose),
                X=given[0],
                y=given[1],
                fitted=lambda: learnt(state),
            )
        return learnt(state) | {"_stream": state, "t_": 1.0 + state.seen, "n_iter_": 1}

    def _stream_state(self, data: SgdRows) -> SgdState:
        """The state of the stream; without a stream, the result of `fit`, or zeros."""
        if not hasattr(self, "coef_"):
            return _fresh_state(data)
        coef, intercept = np.atleast_2d(dense_coefficients(self)), np.ravel(self.intercept_)
        if coef.shape != (data.n_machines, data.n_features):
            raise InvalidDataError(
                f"partial_fit: the earlier fit had weights of shape {coef.shape}, but these data "
                f"need {(data.n_machines, data.n_features)}. Fit a clone instead."
            )
        last = getattr(self, "_stream", None)
        if last is not None:
            known = last.mean()
            if np.array_equal(known[0], coef) and np.array_equal(known[1], intercept):
                return last.copy()
        return SgdState.at(coef, intercept, _fresh_state(data).length)

    def _start(
        self, problem: LinearProblem | OneVsRest, training: LinearTraining, kind: Kind
    ) -> LinearResult | None:
        """The last solution, if `warm_start` is set and its rows were the same."""
        if not self.warm_start or "_record" not in vars(self):
            return None
        last = self._record
        same = (
            last.kind == kind
            and type(last.problem) is type(problem)
            and len(last.problem) == len(problem)
            and last.problem.n_features == problem.n_features
            and np.array_equal(last.problem.rows, problem.rows)
        )
        return _started_from(last.problem, problem, last.result) if same else None

    def _warn_unless_converged(self, ending: Ending, result: LinearResult, solver: str) -> None:
        if ending != "finished" or result.converged.all():
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(result.primal > 0, result.gap / result.primal, 0.0)
        worst = int(np.argmax(np.where(result.converged, -1.0, relative)))
        spent = result.epochs >= self.max_iter
        reason = (
            f"max_iter={self.max_iter} was reached"
            if spent
            else "floating point allows no further progress"
        )
        remedy = "Raise max_iter, or s" if spent else "S"
        warnings.warn(
            f"{type(self).__name__} did not reach the tolerance: {reason} after "
            f"{result.epochs} rounds of {_METHODS[solver]}. The duality gap of machine {worst} is "
            f"{result.gap[worst]:.3g}, {relative[worst]:.2g} of its objective (tol={self.tol:g}). "
            f"{remedy}cale the features, for example with StandardScaler, or lower C.",
            ConvergenceWarning,
            stacklevel=4,
        )


def require_memory_of_systems(n_features: int, way_out: str) -> None:
    """Raise MemoryError if the systems of Newton steps do not fit."""
    what = f"solver='newton' with {n_features} features"
    require_memory(4.0 * 8 * (n_features + 1.0) ** 2, what, way_out)


# What a warning calls the processes, by class.
_METHODS = {
    "NewtonMachines": "Newton steps",
    "CoordinateDescent": "dual coordinate descent",
    "CrammerSingerProcess": "dual coordinate descent over classes",
    "L1ColumnsProcess": "coordinate descent over features",
    "L1NewtonProcess": "proximal Newton steps",
    "NewtonProcess": "Newton steps",
    "SmallNewton": "Newton steps",
    "LinearMachines": "machines",
    "StochasticProcess": "stochastic gradient steps",
}


def _started_from(
    before: LinearProblem | OneVsRest, problem: LinearProblem | OneVsRest, result: LinearResult
) -> LinearResult:
    """A solution as the start of the same problem with another C.

    Dual variables at their bound move with it, because their rows will probably be at the new bound
    as well.
    """
    if isinstance(problem, OneVsRest) and isinstance(before, OneVsRest):
        factor = (problem.C / before.C)[:, None]
        beta = result.beta * factor if not problem.squared else result.beta
        return replace(result, beta=beta)
    if isinstance(problem, LinearProblem) and isinstance(before, LinearProblem):
        with np.errstate(invalid="ignore"):
            factor = np.where(np.isfinite(problem.loss.high), problem.loss.high, 1.0)
            factor = factor / np.where(np.isfinite(before.loss.high), before.loss.high, 1.0)
        return replace(result, beta=result.beta * factor[:, None])
    return result


def _blas_of(problem: LinearProblem | OneVsRest) -> AbstractContextManager[None]:
    """One BLAS thread, on which sums are the same for any number of our threads.

    A single machine on few rows has no such sums, and setting the limit would take it long.
    """
    is_small = len(problem) * problem.n_features < _FEW_CELLS
    is_single = isinstance(problem, LinearProblem) or problem.n_machines == 1
    return nullcontext() if is_small and is_single else single_threaded_blas()


def _rows_of(problem: LinearProblem | OneVsRest, bias_gain: tuple[float, bool]) -> SgdRows:
    """A problem as the input of stochastic descent."""
    if isinstance(problem, OneVsRest):
        targets, prices, tube = problem.codes.astype(np.float64), problem.C, 0.0
        n_machines, squared = problem.n_machines, problem.squared
    else:
        loss = problem.loss
        squared = problem.is_smooth
        prices = 0.5 / loss.damping if squared else loss.high
        targets, n_machines, tube = np.asarray(loss.target), 1, loss.tube
    largest = float(prices.max())
    return SgdRows(
        problem.X, problem.n_features, problem.rows, problem.norms, targets, prices / largest,
        n_machines, largest, squared, tube, isinstance(problem, LinearProblem), *bias_gain,
    )  # fmt: skip


def _fresh_state(data: SgdRows) -> SgdState:
    gain = data.bias_gain
    mean = float(np.average(data.norms, weights=data.weight)) + gain
    length = mean if 0.0 < mean < np.inf else 1.0
    return SgdState.zeros(data.n_features, data.n_machines, length)
