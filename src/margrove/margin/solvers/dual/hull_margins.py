"""Hard and soft margins by geometry: the nearest points of full and of reduced convex hulls.

The hard margin is the distance of the full hulls; if they intersect, there is none.

**Soft margin.** A C-SVC with bounds C c_i, max c = 1, is a pair of hulls with bounds mu c_i and
total 1: alpha = (C / mu) b for a certain mu. If r is half the difference of the offsets of the
classes, the margin is 1 when (C / mu) r = 1. As mu grows, the hulls grow and r falls, down to 0
when they intersect. So h(mu) = mu / C - r(mu) rises strictly and has one root for every C. r may
jump if no weight is strictly inside its bounds. Therefore a candidate with weights near a bound
moved onto the bound is tried as well. The KKT violation of the C-SVC decides which candidate is
better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove.exceptions import InvalidDataError, NotSeparableError
from margrove.margin.solvers.dual.hull import HullProcess, HullStep, project, row_sums, svc_result
from margrove.margin.solvers.dual.result import SolverResult, TracePoint
from margrove.margin.svm import DualProblem, c_svc

__all__ = ["HardMarginProcess", "HullDistance", "SoftMarginProcess", "hard_margin", "soft_margin"]

_EPS = float(np.finfo(np.float64).eps)
_DOUBTFUL = 1000.0  # times the bound; the squared distance then has at most three exact digits
_TERMS_SHOWN = 3


@dataclass(frozen=True)
class HullDistance:
    """The distance of two hulls, and the bound below which it may be rounding only.

    distance <= bound means that the hulls may intersect; `is_doubtful` means that the distance is
    above the bound, but so little that the margin has less than three exact digits.
    """

    distance: float
    bound: float
    is_doubtful: bool


class HardMarginProcess(HullProcess):
    """The C-SVC without an upper bound on alpha, from the nearest points of the full hulls.

    For weights b the best multiple is alpha = 2 b / distance^2, for which the functional margin of
    the nearest points is 1. `tol` is on the KKT violation of the C-SVC.

    Within float64 the hulls intersect if distance^2 <= 16 n eps max|K|, the possible rounding error
    of n products. `result` then raises `NotSeparableError`.
    """

    def __init__(
        self,
        K: np.ndarray,
        signs: np.ndarray,
        *,
        tol: float = 1e-6,
        max_sweeps: int = 10_000,
        names: np.ndarray | None = None,
        title: str = "",
    ) -> None:
        self._title = title
        self._names = np.arange(len(signs)) if names is None else names
        self._svc = c_svc(signs, np.full(len(signs), np.inf))
        super().__init__(K, _hulls(signs, self._svc.u, None), tol=tol, max_sweeps=max_sweeps)

    @property
    def _bound(self) -> float:
        return 16.0 * len(self.s) * _EPS

    @property
    def separation(self) -> HullDistance:
        is_doubtful = self._bound < 2.0 * self.objective <= _DOUBTFUL * self._bound
        return HullDistance(self.distance, float(np.sqrt(self._bound * self.largest)), is_doubtful)

    def _is_solved(self) -> bool:
        # An error v of f is at most 6 v / distance^2 for the C-SVC: both offsets and the scale.
        squared = 2.0 * self.objective
        return squared <= self._bound or 8.0 * self.violation < self._tol * squared

    def result(self) -> SolverResult:
        squared = 2.0 * self.objective
        if squared < -self._bound:
            raise InvalidDataError(
                "The Gram matrix is not positive semidefinite: the squared distance between two "
                f"points is {squared * self.largest:g}. Use a positive definite kernel."
            )
        if squared <= self._bound:
            raise _not_separable(self.s, self.separation, self._names, self._title)
        alpha = np.abs(self.s) / (self.objective * self.largest)
        f = row_sums(self.K, alpha * self._svc.y)
        found = svc_result(self._svc, alpha, f, self._tol, self.steps, self._trace)
        separation = self.separation
        if not separation.is_doubtful:
            return found
        return replace(
            found,
            doubt="The distance of the classes in feature space is "
            f"{separation.distance:.2g}, close to the rounding error ({separation.bound:.2g}): "
            "they may not be separable.",
        )


class HardMarginThroughOrigin(HardMarginProcess):
    """The hard margin without a bias: the distance of the origin from the hull of y_i phi(x_i).

    The origin is the other class. The margin is measured from the origin, not from the midpoint.
    """

    def __init__(self, K: np.ndarray, signs: np.ndarray, **settings: Any) -> None:
        n = len(signs)
        extended = np.zeros((n + 1, n + 1))
        extended[:n, :n] = signs[:, None] * K * signs
        names = settings.pop("names", None)
        names = np.append(np.arange(n) if names is None else names, -1)
        super().__init__(extended, np.append(np.ones(n), -1.0), names=names, **settings)
        self._signs = np.asarray(signs, dtype=np.float64)

    def result(self) -> SolverResult:
        found = super().result()
        alpha = found.alpha[:-1] / 2.0
        margins = row_sums(self.K[:-1, :-1], alpha)  # y f(x)
        return replace(
            found,
            alpha=alpha,
            rho=0.0,
            objective=0.5 * float(alpha @ margins) - float(alpha.sum()),
            violation=max(
                float(np.maximum(1.0 - margins, 0.0).max()),
                float(np.abs(1.0 - margins[alpha > 0]).max(initial=0.0)),
            ),
        )


class SoftMarginProcess:
    """The C-SVC with finite bounds C (n,), by a search for mu, the reduction of the hulls.

    A round is one pair of reduced hulls, started from the nearest points of the previous pair.
    """

    unit = "reduction"

    def __init__(
        self,
        K: np.ndarray,
        signs: np.ndarray,
        C: np.ndarray,
        *,
        tol: float = 1e-6,
        max_sweeps: int = 10_000,
        max_reductions: int = 200,
    ) -> None:
        if not np.isfinite(C).all():
            raise ValueError("An infinite C is a hard margin: use HardMarginProcess.")
        self._svc = c_svc(signs, C)
        self._K = np.ascontiguousarray(K, dtype=np.float64)
        self._tol = tol
        self._max_sweeps = max_sweeps
        self.total: int | None = max_reductions
        self._C = float(self._svc.u.max())
        self._shares = self._svc.u / self._C
        self._fullest = 1.0 / float(self._shares.min())  # from here on the hulls are not reduced
        self._root = _Root()
        self._best: SolverResult | None = None
        self._steps = 0
        self._records: list[HullStep] = []
        self._trace: list[TracePoint] = []
        self._ended = False
        smaller = min(float(self._shares[signs == sign].sum()) for sign in (1, -1))
        self._reduce(1.0 / smaller if smaller > 0.0 else 1.0, None)

    @property
    def rounds(self) -> int:
        return len(self._trace)

    @property
    def finished(self) -> bool:
        return self._ended

    def figures(self) -> dict[str, float]:
        best = np.inf if self._best is None else self._best.violation
        return {"mu": self._mu, "violation": best}

    def read_steps(self) -> list[HullStep]:
        records, self._records = self._records + self._hulls.read_steps(), []
        return records

    def advance(self, work: float) -> float:
        spent = self._hulls.advance(work)
        if self._hulls.finished:
            spent += self._end_round()
        return spent

    def result(self) -> SolverResult:
        best = self._best or self._as_result(self._scaled())
        return replace(best, iterations=self._steps, trace=list(self._trace))

    def _reduce(self, mu: float, start: np.ndarray | None) -> None:
        self._mu = mu
        hulls = _hulls(self._svc.y, mu * self._shares, start)
        tol = self._tol * mu / (8.0 * self._C)
        self._hulls = HullProcess(self._K, hulls, tol=tol, max_sweeps=self._max_sweeps)

    def _end_round(self) -> float:
        """Keep the solution of these hulls if it is the best so far, and choose the next mu."""
        hulls = self._hulls
        self._steps += hulls.steps
        self._records += hulls.read_steps()
        alpha = self._scaled()
        snapped = _moved_onto_bounds(self._svc, alpha, self._root.resolution(len(alpha)))
        found = [self._as_result(alpha), self._as_result(snapped)] + (
            [self._best] if self._best else []
        )
        best = self._best = min(found, key=lambda result: result.violation)
        self._root.narrow(self._mu, self._excess())
        mu = self._root.guess(self._mu - self._C * hulls.largest * self._excess(), self._fullest)
        self._trace.append(TracePoint(self._steps, best.objective, best.violation))
        self._ended = best.converged or mu is None or self.rounds >= (self.total or 0)
        if mu is not None and not self._ended:
            self._reduce(mu, hulls.s)
        return 4.0 * len(alpha) ** 2

    def _scaled(self) -> np.ndarray:
        weights = np.abs(self._hulls.s)
        at_bound = weights >= self._mu * self._shares  # they must stay there in spite of rounding
        return np.where(at_bound, self._svc.u, weights * (self._C / self._mu))

    def _as_result(self, alpha: np.ndarray) -> SolverResult:
        f = row_sums(self._hulls.K, alpha * self._svc.y)
        return svc_result(self._svc, alpha, f, self._tol, self._steps, [])

    def _excess(self) -> float:
        """h = mu / C - r, for the r nearest to mu / C that the offsets of the hulls allow."""
        (low_plus, high_plus), (low_minus, high_minus) = self._hulls.intervals
        ends = (low_plus - high_minus) / 2.0, (high_plus - low_minus) / 2.0
        wanted = self._mu / self._C / self._hulls.largest
        return wanted - float(np.clip(wanted, min(ends), max(ends)))


class _Root:
    """The root of a rising function, from its lower end: regula falsi, bisection if it is slow."""

    def __init__(self) -> None:
        self._below: tuple[float, float] | None = None
        self._above: tuple[float, float] | None = None
        self._width = np.inf
        self._is_slow = False

    def narrow(self, x: float, h: float) -> None:
        if h < 0.0:
            self._below = (x, h)
        else:
            self._above = (x, h)
        if self._below is not None and self._above is not None:
            width = self._above[0] - self._below[0]
            self._is_slow = not self._is_slow and width > 0.5 * self._width
            self._width = width

    def resolution(self, n: int) -> float:
        """Weights closer to a bound than this share of it may be at the bound."""
        if self._below is None or self._above is None:
            return 1e-12
        return max(1e-12, min(1e-3, n * self._width / self._above[0]))

    def guess(self, upper: float, cap: float) -> float | None:
        """The next x; `upper` is known not to be below the root. None if no float is left."""
        if self._below is None:
            return None
        (a, low) = self._below
        if self._above is None:
            return cap if a < cap < upper else (upper if upper > a else None)
        (b, high) = self._above
        x = float(np.sqrt(a) * np.sqrt(b)) if self._is_slow else a - low * (b - a) / (high - low)
        return x if a < x < b else None


def hard_margin(
    K: np.ndarray, signs: np.ndarray, *, tol: float = 1e-6, max_sweeps: int = 10_000
) -> tuple[SolverResult, HullDistance]:
    """Solve `c_svc` with C = inf; raises `NotSeparableError` with the common point of the hulls."""
    process = HardMarginProcess(K, signs, tol=tol, max_sweeps=max_sweeps)
    while not process.finished:
        process.advance(np.inf)
    return process.result(), process.separation


def soft_margin(
    K: np.ndarray, signs: np.ndarray, C: np.ndarray, *, tol: float = 1e-6, max_sweeps: int = 10_000
) -> SolverResult:
    """Solve `c_svc` with finite bounds C (n,)."""
    process = SoftMarginProcess(K, signs, C, tol=tol, max_sweeps=max_sweeps)
    while not process.finished:
        process.advance(np.inf)
    return process.result()


def _hulls(signs: np.ndarray, u: np.ndarray, near: np.ndarray | None) -> DualProblem:
    """The hulls, with sums of one; the start is the nearest point to the signed weights `near`."""
    if not ((signs > 0).any() and (signs < 0).any()):
        raise ValueError("A margin needs two classes, and one of them has no rows.")
    start = np.zeros(len(signs)) if near is None else np.abs(near)
    for members in (signs > 0, signs < 0):
        start[members] = project(start[members], 0.0, u[members], 1.0)
    y = np.asarray(signs, dtype=np.float64)
    zeros = np.zeros(len(y))
    return DualProblem(y=y, p=zeros, u=u, rows=np.arange(len(y)), start=start, keeps_sum=True)


def _moved_onto_bounds(problem: DualProblem, alpha: np.ndarray, near: float) -> np.ndarray:
    """Move variables within a share `near` of a bound onto it; the free ones keep the sum."""
    share = alpha / problem.u
    alpha = np.where(share < near, 0.0, np.where(share > 1.0 - near, problem.u, alpha))
    free = (alpha > 0.0) & (alpha < problem.u)
    if free.any():
        signed = problem.y * alpha
        low = np.where(problem.y > 0, 0.0, -problem.u)[free]
        rest = -float(signed[~free].sum())
        signed[free] = project(signed[free], low, low + problem.u[free], rest)
        alpha = np.abs(signed)
    return alpha


def _not_separable(
    s: np.ndarray, separation: HullDistance, names: np.ndarray, title: str
) -> NotSeparableError:
    rows = np.flatnonzero(s)
    sides = []
    for sign in (1.0, -1.0):
        members = rows[s[rows] * sign > 0]
        members = members[np.argsort(-np.abs(s[members]), kind="stable")]
        terms = [f"{abs(s[i]):.4g} x[{names[i]}]" for i in members[:_TERMS_SHOWN]]
        more = len(members) - len(terms)
        sides.append(" + ".join(terms) + (f" + {more} more" if more > 0 else ""))
    return NotSeparableError(
        f"No hyperplane separates the classes{title and f' ({title})'}: in feature space their "
        f"convex hulls share the point {sides[0]} = {sides[1]} (up to a distance of "
        f"{separation.distance:.2g}; below {separation.bound:.2g} it is rounding). Use a finite C, "
        "or a kernel with more features.",
        names[rows],
        np.abs(s[rows]),
    )
