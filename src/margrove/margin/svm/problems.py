"""The support vector machines as one quadratic problem, five builders of it, the duality gap.

    minimise    1/2 a'Qa + p'a
    subject to  y'a = d,   0 <= a_i <= u_i          Q_ij = y_i y_j K(x_i, x_j)
    and, for the nu machines, e'a = s

A formulation defines y, p and u and a feasible starting point, which determines d and s. A solver
changes pairs of variables so that the constraints stay satisfied: any pair can keep y'a, and a pair
with equal y keeps e'a as well (Chang and Lin, "Training nu-support vector classifiers", 2001). The
machine without a bias has no constraint y'a = d.

Regression has two variables for each row, a_i for targets above the tube and a_i* for targets below
it, so variables are mapped to `rows` of the data.

**Duality gap.** For phi(a) = 1/2 a'Qa + p'a with gradient G = Qa + p, any multipliers rho of
y'a = d and r of e'a = s, and g = G - rho y - r e, convexity gives

    phi(a) - min phi  <=  sum_i  a_i g_i + u_i max(0, -g_i)

Every term is >= 0, and zero if the KKT conditions hold. For C-SVC the sum is exactly the primal
objective 1/2 ||w||^2 + sum C_i xi_i minus the dual one, with b = -rho; similarly for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from margrove.exceptions import InfeasibleNuError

__all__ = [
    "LARGEST_BOUND",
    "DualProblem",
    "c_svc",
    "duality_gap",
    "epsilon_svr",
    "largest_feasible_nu",
    "nu_svc",
    "nu_svr",
    "one_class",
]

LARGEST_BOUND = 1e100  # has no effect, and products with it do not overflow


@dataclass(frozen=True)
class DualProblem:
    """One dual problem; arrays have one entry for each variable.

    y          float64, +1 or -1; if the sum is kept, sorted by sign
    p          float64, the linear term
    u          float64, upper bounds > 0, possibly infinite
    rows       int64, the row of the data behind each variable
    start      float64, a feasible point
    has_bias   whether y'a is fixed; if not, the decision function has no offset
    keeps_sum  whether e'a is fixed too, so that only pairs of equal y may change
    """

    y: np.ndarray
    p: np.ndarray
    u: np.ndarray
    rows: np.ndarray
    start: np.ndarray
    has_bias: bool = True
    keeps_sum: bool = False

    def __len__(self) -> int:
        return len(self.y)

    def starting_near(self, alpha: np.ndarray) -> DualProblem:
        """The same problem, started from a feasible point near `alpha` (>= 0)."""
        with np.errstate(invalid="ignore"):
            start = np.where(alpha >= self.u * (1.0 - 1e-9), self.u, alpha)
        positive = self.y > 0
        if self.keeps_sum or positive.all():
            for side in (positive, ~positive):
                total = float(self.start[side].sum())
                if start[side].sum() > total * (1.0 + 1e-7):
                    return self  # it is not known which variables at a bound should leave it
                start[side] = _with_sum(start[side], self.u[side], total)
        elif self.has_bias:  # y'a = 0: the side with the larger sum is scaled down
            above, below = float(start[positive].sum()), float(start[~positive].sum())
            if above > below * (1.0 + 1e-9):
                start[positive] *= below / above
            elif below > above * (1.0 + 1e-9):
                start[~positive] *= above / below
        return replace(self, start=start)

    def is_feasible(self, alpha: np.ndarray) -> bool:
        """Whether a point is within the bounds and, up to rounding, has the sums of the start."""
        if not np.all((alpha >= 0.0) & (alpha <= self.u)):
            return False
        sums = [self.y] if self.has_bias else []
        sums += [np.ones(len(alpha))] if self.keeps_sum else []
        rounding = 1e-6 * float(alpha.sum() + self.start.sum())
        return all(abs(float(factors @ (alpha - self.start))) <= rounding for factors in sums)

    def coefficients(self, alpha: np.ndarray, n_rows: int) -> np.ndarray:
        """The coefficient of each row of the data in f(x) = sum_i c_i K(x_i, x) - rho."""
        coef = np.bincount(self.rows, weights=alpha * self.y, minlength=n_rows)
        if len(self) > n_rows:  # the rounding error of a_i - a_i* is not a support vector
            coef[np.abs(coef) <= 1e-15 * float(alpha.max(initial=0.0))] = 0.0
        return coef


def c_svc(signs: np.ndarray, C: np.ndarray, *, has_bias: bool = True) -> DualProblem:
    """Soft margin: maximise sum a - 1/2 ||sum a_i y_i phi(x_i)||^2 with 0 <= a_i <= C_i."""
    n = len(signs)
    return DualProblem(
        y=np.asarray(signs, dtype=np.float64),
        p=np.full(n, -1.0),
        u=np.asarray(C, dtype=np.float64),
        rows=np.arange(n),
        start=np.zeros(n),
        has_bias=has_bias,
    )


def nu_svc(signs: np.ndarray, nu: float, weight: np.ndarray) -> DualProblem:
    """nu in place of C: at most a share nu of margin errors, at least nu of support vectors.

    In Chang and Lin's scaling 0 <= a_i <= w_i and each class sums to nu * sum(w) / 2; alpha / r
    is the solution of the C-SVC with C_i = w_i / r.
    """
    feasible = largest_feasible_nu(signs, weight)
    if nu > feasible * (1.0 + 1e-12):
        raise InfeasibleNuError(nu, feasible)
    start = np.zeros(len(signs))
    for sign in (1.0, -1.0):
        members = np.flatnonzero(signs == sign)
        start[members] = _filled(weight[members], nu * float(weight.sum()) / 2.0)
    return DualProblem(
        y=np.asarray(signs, dtype=np.float64),
        p=np.zeros(len(signs)),
        u=np.asarray(weight, dtype=np.float64),
        rows=np.arange(len(signs)),
        start=start,
        keeps_sum=True,
    )


def largest_feasible_nu(signs: np.ndarray, weight: np.ndarray) -> float:
    """The largest feasible nu: each class needs a weight of at least nu * sum(w) / 2."""
    smaller = min(float(weight[signs > 0].sum()), float(weight[signs < 0].sum()))
    return min(1.0, 2.0 * smaller / float(weight.sum()))


def epsilon_svr(
    targets: np.ndarray, C: np.ndarray, epsilon: float, *, has_bias: bool = True
) -> DualProblem:
    """Regression with a tube of half-width epsilon; a_i - a_i* are the coefficients."""
    n = len(targets)
    return DualProblem(
        y=np.repeat((1.0, -1.0), n),
        p=np.concatenate([epsilon - targets, epsilon + targets]),
        u=np.concatenate([C, C], dtype=np.float64),
        rows=np.concatenate([np.arange(n)] * 2),
        start=np.zeros(2 * n),
        has_bias=has_bias,
    )


def nu_svr(targets: np.ndarray, C: np.ndarray, nu: float) -> DualProblem:
    """Regression with the narrowest tube that has at most a share nu of the rows outside."""
    n = len(targets)
    bounds = np.asarray(C, dtype=np.float64)
    share = _filled(bounds, nu * float(bounds.sum()) / 2.0)
    return DualProblem(
        y=np.repeat((1.0, -1.0), n),
        p=np.concatenate([-targets, targets]),
        u=np.concatenate([bounds, bounds]),
        rows=np.concatenate([np.arange(n)] * 2),
        start=np.concatenate([share, share]),
        keeps_sum=True,
    )


def one_class(weight: np.ndarray, nu: float) -> DualProblem:
    """The half-space farthest from the origin that contains all but a share nu of the rows."""
    bounds = np.asarray(weight, dtype=np.float64)
    n = len(bounds)
    return DualProblem(
        y=np.ones(n),
        p=np.zeros(n),
        u=bounds,
        rows=np.arange(n),
        start=_filled(bounds, nu * float(bounds.sum())),
    )


def _with_sum(alpha: np.ndarray, bounds: np.ndarray, total: float) -> np.ndarray:
    """Scale the free variables so that alpha sums to `total`; if needed, fill the others."""
    free = (alpha > 0) & (alpha < bounds)
    missing = total - float(alpha.sum())
    present = float(alpha[free].sum())
    scaled = alpha.copy()
    if present > 0.0:
        scaled[free] = np.minimum(alpha[free] * max(0.0, 1.0 + missing / present), bounds[free])
    missing = max(0.0, total - float(scaled.sum()))
    return scaled + _filled(bounds - scaled, missing)


def _filled(bounds: np.ndarray, total: float) -> np.ndarray:
    """Fill variables to their bounds, one after the other, until they sum to `total`."""
    before = np.concatenate([[0.0], np.cumsum(bounds)[:-1]])
    return np.clip(total - before, 0.0, bounds)


def duality_gap(
    problem: DualProblem, alpha: np.ndarray, values: np.ndarray, rho: float, r: float = 0.0
) -> float:
    """A bound on how far alpha is from optimal; `values` (n,) are (K c)_i of the rows."""
    gradient = problem.y * values[problem.rows] + problem.p
    reduced = gradient - rho * problem.y - r
    missing = np.maximum(-reduced, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        at_bound = np.where(missing > 0, problem.u * missing, 0.0)
    return float(np.maximum(alpha * reduced + at_bound, 0.0).sum())
