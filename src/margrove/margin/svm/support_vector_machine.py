"""The base class of the five support vector machines: parameters, solvers, warnings."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from margrove._data import CanonicalForm, canonical_form, given_order, seed_of
from margrove._runtime import (
    RUN_CONTROL,
    Ending,
    drive,
    require_memory,
    resolve_n_jobs,
    single_threaded_blas,
)
from margrove.exceptions import ConvergenceWarning, DataWarning
from margrove.margin.kernels import (
    LARGEST_TILE,
    Linear,
    SharedGram,
    TrainingObjects,
    cache_bytes_of,
    dual_coefficients,
    gram_of,
    like_table,
    symmetric_gram,
)
from margrove.margin.solvers.dual import (
    DENSE_SOLVERS,
    Demand,
    ManyProblems,
    SmoProcess,
    SmoRule,
    Solver,
    SolverResult,
    TracePoint,
    solve_at_once,
)
from margrove.margin.svm.certificates import Certificate, certificate
from margrove.margin.svm.joint_fits import JointMachines, StatedFit, can_be_joint, solved_alone
from margrove.margin.svm.kernel_machine import KERNEL_PARAMETERS, KernelMachine, TrainingSet
from margrove.margin.svm.machine_tasks import Machine, SolverPlan, SpreadMachines, spread_machines
from margrove.margin.svm.problems import LARGEST_BOUND, DualProblem, duality_gap

__all__ = [
    "SVM_PARAMETERS",
    "FitRecord",
    "Machine",
    "StatedFit",
    "SupportVectorMachine",
    "power_of_two_near",
]

SVM_PARAMETERS: dict[str, list[Any]] = {
    **KERNEL_PARAMETERS,
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "shrinking": ["boolean"],
    "cache_size": [Interval(Real, 0, None, closed="neither"), None],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    **RUN_CONTROL,
}

_FEW_MACHINES = 3  # fewer machines than a third of the threads are solved one after the other
_FEW = 1000  # a problem with fewer points takes less time than starting a thread


def power_of_two_near(weight: np.ndarray) -> float:
    """1 for weights of ordinary size, else the power of two near the largest."""
    largest = float(weight.max())
    if 1e-6 < largest < 1e6:
        return 1.0
    return float(np.ldexp(1.0, int(np.frexp(largest)[1])))


@dataclass
class FitRecord:
    """The arguments and the trace of a fit, for a certificate that is computed on demand.

    `scales` are, for each machine, the factor by which the dual variables of the solver are larger
    than its coefficients, divided by C. `parameters` are the parameters of the fit.
    """

    X: Any
    y: Any
    sample_weight: Any
    traces: list[list[TracePoint]]
    scales: list[float]
    parameters: dict[str, Any]
    certificate: Certificate | None = None

    def certificate_of(self, model: Any) -> Certificate:
        if self.certificate is None:
            as_fitted = copy(model)
            as_fitted.__dict__ |= self.parameters  # they may have changed since the fit
            found = certificate(as_fitted, self.X, self.y, self.sample_weight)
            machines = zip(found.machines, self.traces, strict=True)
            self.certificate = Certificate(
                tuple(replace(machine, trace=trace) for machine, trace in machines)
            )
        return self.certificate


class SupportVectorMachine(KernelMachine):
    """A kernel machine that is fitted by solving dual problems."""

    C: float
    tol: float
    shape_fit_: tuple[int, ...]
    cache_size: float | None
    max_iter: int
    warm_start: bool
    max_time: float | None
    on_interrupt: Any
    verbose: int
    dual_coef_: Any
    intercept_: np.ndarray
    _record: FitRecord

    @property
    def coef_(self) -> Any:
        """The normal vectors in the space of the features, for the linear kernel.

        An ndarray of shape (n_machines, n_features), or a CSR array if X was sparse.
        """
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        scale = self._scale()
        vectors = self.support_vectors_ * scale
        rows = []
        for coef in self._machine_coefs():
            used = np.flatnonzero(coef)
            rows.append(like_table(coef[None, used], vectors) @ vectors[used])
        if sp.issparse(vectors):
            sparse = sp.csr_array(sp.vstack(rows)) * scale
            sparse.data.flags.writeable = False
            return sparse
        dense = np.concatenate(rows) * scale
        dense.flags.writeable = False
        return dense

    def _machine_coefs(self) -> Iterator[np.ndarray]:
        """The coefficients of the support vectors, for each machine."""
        return iter(dual_coefficients(self))

    def _vectors(self, X: Any, support: np.ndarray) -> Any:
        return np.empty((0, 0)) if self._is_precomputed() else X[support]

    @property
    def certificate_(self) -> Certificate:
        """A proof of how good the last fit is; see `margrove.certificate`.

        It is computed at the first access, from the data of `fit`. The estimator keeps a reference
        to them, not a copy, and a pickled estimator does not contain them.
        """
        check_is_fitted(self)
        if "_record" not in vars(self):
            raise AttributeError(
                "The training data are not available after pickling. Use "
                "margrove.certificate(model, X, y, sample_weight)."
            )
        return self._record.certificate_of(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_record"}

    # -- the steps of fit --

    def _fit_to_objects(self, X: Any, **given: Any) -> Self:
        """Learn from objects that are not rows of numbers, by the Gram matrix of their kernel."""
        self._check_parameters()
        objects = TrainingObjects(self.kernel, X)  # type: ignore[arg-type]
        model = clone(self).set_params(kernel="precomputed").fit(objects.gram(X), **given)
        learnt = {name: getattr(model, name) for name in model._committed}
        self._commit(learnt | {"_objects": objects})
        return self

    def _canonical_rows(self, X: Any, target: np.ndarray, weight: np.ndarray) -> CanonicalForm:
        """The canonical form of the rows; rows of a Gram matrix keep their order."""
        if self._is_precomputed():
            return given_order(weight)
        return canonical_form(X, target, weight)

    def _bounds(self, training: TrainingSet, weight: np.ndarray) -> np.ndarray:
        """C times the weights; for the linear kernel, C follows the scale of the features."""
        if np.isinf(self.C):
            return np.full(len(weight), np.inf)
        bounds = np.minimum(float(self.C) * weight, LARGEST_BOUND)
        if isinstance(training.kernel, Linear):
            with np.errstate(over="ignore"):
                bounds = bounds / training.scale / training.scale
        return np.clip(bounds, 1.0 / LARGEST_BOUND, LARGEST_BOUND)

    def _parameters(self) -> dict[str, Any]:
        """The current values of the parameters, which a certificate needs later."""
        return {name: getattr(self, name) for name in self._parameter_constraints}

    def _price(self) -> float:
        """C, to which bounds and coefficients are proportional; 1 if there is none."""
        price = float(getattr(self, "C", 1.0))
        return min(LARGEST_BOUND, price) if np.isfinite(price) else 1.0

    def _warm_started(
        self, training: TrainingSet, machines: list[Machine], coefs: Iterable[np.ndarray]
    ) -> list[Machine]:
        """The machines, started from the coefficients (of all rows of X) of the last fit.

        Coefficients are scaled with C, so that variables at their bound stay there.
        """
        scales = [1.0] * len(machines)
        if "_record" in vars(self) and len(self._record.scales) == len(machines):
            scales = [self._price() * scale for scale in self._record.scales]
        started = []
        for machine, coef, scale in zip(machines, coefs, scales, strict=True):
            problem = machine.problem
            signed = training.summed(coef)[machine.members] * scale
            alpha = np.maximum(signed[problem.rows] * problem.y, 0.0)
            started.append(replace(machine, problem=problem.starting_near(alpha)))
        return started

    @abstractmethod
    def _stated(self, X: Any, y: Any, sample_weight: Any = None) -> StatedFit:
        """Check the arguments of `fit` and state the dual problems."""

    def _joint_fits(self, X: Any, n_rows: int) -> JointMachines | None:
        return JointMachines() if can_be_joint(self, X, n_rows) else None

    def _solve(self, stated: StatedFit) -> list[SolverResult]:
        """Solve all machines."""
        found = solved_alone(self, stated)
        if found is not None:
            return found
        training, machines = stated.training, stated.machines
        with single_threaded_blas():
            process = self._process(training, machines)
            ending = drive(
                process,
                self,
                max_time=self.max_time,
                on_interrupt=self.on_interrupt,
                verbose=int(self.verbose),
                X=stated.X,
                y=stated.y,
                fitted=lambda: stated.learnt(process.results()),
                given={"sample_weight": training.form.weight},
            )
            results = process.results()
        self._warn_unless_converged(ending, training, machines, results)
        return results

    def _process(
        self, training: TrainingSet, machines: list[Machine]
    ) -> ManyProblems | SpreadMachines:
        """The process that solves all machines, on threads or in other processes."""
        plan = self._plan(training, machines)
        tasks = spread_machines(self, training, machines, plan)
        if tasks is not None:
            return tasks
        n_threads = self._threads(len(training.points))
        return self._many_problems(
            training, machines, plan, n_threads,
            gap_of=lambda k, result: self._gap(training, machines[k], result),
        )  # fmt: skip

    def _plan(self, training: TrainingSet, machines: list[Machine]) -> SolverPlan:
        solver = self._solver_for(machines[0].problem)  # machines differ in their rows only
        n_points = len(training.points)
        if self.cache_size is None and n_points <= SmoRule.block:
            cache_bytes = 8 * SmoRule.block**2
        else:
            cache_bytes = cache_bytes_of(self.cache_size)
        largest = max(len(machine.members) for machine in machines)
        is_small = largest <= LARGEST_TILE or (
            largest == n_points and largest**2 * 4 <= cache_bytes
        )
        in_order = all((m.members[1:] > m.members[:-1]).all() for m in machines)
        is_alone = len(machines) == 1 and len(machines[0].problem) > SmoRule.block
        return SolverPlan(solver, is_small and in_order and not is_alone, is_alone, cache_bytes)

    def _many_problems(
        self,
        training: TrainingSet,
        machines: list[Machine],
        plan: SolverPlan,
        n_threads: int,
        *,
        gap_of: Callable[[int, SolverResult], float] | None = None,
    ) -> ManyProblems:
        """The machines as one process: for each a function that makes its solver."""
        sizes = [len(machine.problem) for machine in machines]
        as_process = partial(ManyProblems, gap_of=gap_of, sizes=sizes)
        if plan.solver != "smo":
            dense = partial(self._dense_solver, training, DENSE_SOLVERS[plan.solver], n_threads)
            return as_process([partial(dense, machine) for machine in machines])
        rules = [self._rule(machine) for machine in machines]
        if not plan.is_shared:
            make = partial(self._alone, training, plan, n_threads)
            return as_process(
                [partial(make, *given) for given in zip(machines, rules, strict=True)]
            )
        shared = SharedGram(
            training.kernel,
            training.points,
            [machine.members for machine in machines],
            cache_bytes=plan.cache_bytes,
            n_threads=n_threads,
        )
        # Of few large machines the rows are shared by the threads, not the machines.
        is_few = max(sizes) > LARGEST_TILE and _FEW_MACHINES * len(machines) < n_threads
        side_by_side = 1 if is_few else n_threads
        inner_threads = 1 if side_by_side > 1 else n_threads

        def make_sharing(machine: Machine, rule: SmoRule) -> SmoProcess:
            names, gram = training.rows[machine.members], shared.of_points(machine.members)
            return SmoProcess(machine.problem, gram, rule, names=names, n_threads=inner_threads)

        def solve_easy(numbers: list[int], n_threads: int) -> list[SolverResult | Solver]:
            found = solve_at_once(
                [machines[k].problem for k in numbers],
                [rules[k] for k in numbers],
                [shared.tile(machines[k].members) for k in numbers],
                [len(machines[k].members) for k in numbers],
                shared.diagonal,
                n_threads=n_threads,
            )
            return [
                outcome if isinstance(outcome, SolverResult)
                else make_sharing(machines[k], rules[k]).go_on(outcome)
                for k, outcome in zip(numbers, found, strict=True)
            ]  # fmt: skip

        is_easy = shared.is_whole and max(sizes) <= SmoRule.block
        return as_process(
            [partial(make_sharing, *given) for given in zip(machines, rules, strict=True)],
            side_by_side=side_by_side,
            solve_easy=solve_easy if is_easy else None,
        )

    def _rule(self, machine: Machine) -> SmoRule:
        return SmoRule(tol=float(self.tol) * machine.unit, max_iter=int(self.max_iter))

    def _alone(
        self,
        training: TrainingSet,
        plan: SolverPlan,
        n_threads: int,
        machine: Machine,
        rule: SmoRule,
    ) -> Solver:
        """A solver that computes the kernel values of its own machine."""
        points = training.points
        gram = gram_of(
            training.kernel,
            points if plan.is_alone else points.take(machine.members),
            cache_bytes=plan.cache_bytes,
            n_threads=n_threads,
        )
        names = training.rows[machine.members]
        return SmoProcess(machine.problem, gram, rule, names=names, n_threads=n_threads)

    def _dense_solver(
        self,
        training: TrainingSet,
        solver: Callable[[np.ndarray, DualProblem, Demand], Solver],
        n_threads: int,
        machine: Machine,
    ) -> Solver:
        K = self._dense_gram(training, machine, n_threads)
        tol, names = float(self.tol) * machine.unit, training.rows[machine.members]
        seed = seed_of(getattr(self, "random_state", 0))
        return solver(
            K, machine.problem, Demand(tol, int(self.max_iter), seed, names, machine.name)
        )

    def _solver_for(self, problem: DualProblem) -> str:
        """The name of the solver that the parameters choose, or ValueError."""
        wanted = getattr(self, "solver", "auto")
        is_hard = bool(np.isinf(problem.u).all())
        best = "hull" if is_hard else "smo" if problem.has_bias else "cd"
        if wanted == "auto" or (wanted == "smo" and is_hard):
            return best
        if wanted == "cd" and problem.has_bias:
            raise ValueError("solver='cd' is for machines without a bias: use fit_intercept=False.")
        if wanted in ("smo", "hull") and not problem.has_bias and not is_hard:
            raise ValueError(
                f"solver={wanted!r} is for machines with a bias. With fit_intercept=False use "
                "solver='cd' or 'auto'."
            )
        if is_hard and wanted != "hull":
            raise ValueError(
                f"solver={wanted!r} needs a finite C. Use solver='hull' or 'auto' for C=inf."
            )
        return str(wanted)

    def _dense_gram(self, training: TrainingSet, machine: Machine, n_threads: int) -> np.ndarray:
        n = len(machine.members)
        require_memory(
            3.0 * 8 * n * n,
            f"The full Gram matrix of {n} rows, for C=inf and the solvers 'hull', 'cd' and 'sgd',",
            "Use solver='smo' with a large finite C, or fewer rows.",
        )
        points = training.points.take(machine.members)
        return symmetric_gram(training.kernel, points, n_threads=n_threads)

    def _threads(self, n_points: int) -> int:
        """The threads that `n_jobs` allows; one for a small problem."""
        return 1 if n_points < _FEW else resolve_n_jobs(self.n_jobs, unset="all")

    def _warn_unless_converged(
        self,
        ending: Ending,
        training: TrainingSet,
        machines: list[Machine],
        results: list[SolverResult],
    ) -> None:
        for machine, result in zip(machines, results, strict=True):
            if result.doubt:
                warnings.warn(
                    f"{machine.name}{machine.name and ': '}{result.doubt}",
                    DataWarning,
                    stacklevel=4,
                )
        unfinished = [k for k, result in enumerate(results) if not result.converged]
        if not unfinished or ending != "finished":
            return
        worst = max(unfinished, key=lambda k: results[k].violation)
        machine, result = machines[worst], results[worst]
        gap = self._gap(training, machine, result)
        spent = 0 <= self.max_iter <= result.iterations
        reason = (
            f"Solver terminated early (max_iter={self.max_iter})."
            if spent
            else "The solver did not reach the tolerance: floating point, or its limit of steps, "
            "allows no further progress."
        )
        remedy = "Or raise max_iter, use" if spent else "Or use"
        warnings.warn(
            f"{reason}  Consider pre-processing your data with StandardScaler or MinMaxScaler. "
            f"{remedy} a smaller C or gamma, or a larger tol. "
            f"{machine.name + ': t' if machine.name else 'T'}he largest KKT violation is "
            f"{result.violation:.3g} (tol={self.tol:g}) and the duality gap {gap:.3g} of "
            f"{-result.objective:.6g}.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _gap(self, training: TrainingSet, machine: Machine, result: SolverResult) -> float:
        points = training.points.take(machine.members)
        gram = gram_of(training.kernel, points, cache_bytes=0)
        coef = machine.problem.coefficients(result.alpha, len(points))
        values = gram.values(coef, np.arange(len(points)))
        return duality_gap(machine.problem, result.alpha, values, result.rho, result.r)
