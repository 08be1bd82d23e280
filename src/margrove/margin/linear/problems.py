"""The problem of linear machines, primal and dual, and short builders for each loss.

    primal   min_{w, b}  1/2 ||w||^2 + k/2 b^2 + sum_i loss_i(t_i - w.x_i - b)
    dual     max_beta   -1/2 ||X'beta||^2 - (sum_i beta_i)^2 / 2k
                        + sum_i  t_i beta_i - e |beta_i| - 1/2 d_i beta_i^2,   l_i <= beta_i <= h_i

loss_i(r) is the largest value of  beta r - e |beta| - 1/2 d_i beta^2  within the bounds. So each
loss is given by four numbers for each row, and w = X'beta at the solution:

    hinge                  e = 0    d = 0           [0, C] for t = 1, [-C, 0] for t = -1
    squared hinge          e = 0    d = 1 / 2C      [0, inf] for t = 1, [-inf, 0] for t = -1
    epsilon-insensitive    e        d = 0           [-C, C]
    its square             e        d = 1 / 2C      [-inf, inf]

k is the penalty of the intercept (`bias_price`): 0 leaves it free (then sum_i beta_i = 0), infinity
removes it, and 1 / s^2 is LIBLINEAR's constant feature of size s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margrove._data import Rows, read_only
from margrove._runtime import kernel

__all__ = [
    "LinearProblem",
    "LossOfRows",
    "OneVsRest",
    "balanced",
    "hinge_loss",
    "row_dual",
    "row_loss",
    "tube_loss",
]


class LossOfRows(NamedTuple):
    """The loss of each row, for kernels.

    target, low, high, damping   float64 (m,): t, l, h and d of the module's problem
    tube                         e
    """

    target: np.ndarray
    low: np.ndarray
    high: np.ndarray
    damping: np.ndarray
    tube: float

    def in_order(self, order: np.ndarray) -> LossOfRows:
        target, low, high, damping, tube = self
        return LossOfRows(target[order], low[order], high[order], damping[order], tube)


@dataclass(frozen=True)
class LinearProblem:
    """One machine over some rows of X.

    X             the table, dense or CSR
    rows          int64 (m,)  the rows of X that are used
    norms         float64 (m,)  their squared norms
    loss          their losses
    bias_price    k: 0 for a free intercept, inf for none
    """

    X: Rows
    n_features: int
    rows: np.ndarray
    norms: np.ndarray
    loss: LossOfRows
    bias_price: float

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_smooth(self) -> bool:
        """Whether the loss has a gradient everywhere."""
        return bool(self.loss.damping[0] > 0.0)

    @property
    def price(self) -> float:
        """The largest C of a row: the unit of the objective."""
        loss = self.loss
        if self.is_smooth:
            return float(0.5 / loss.damping.min())
        return float(max(loss.high.max(), -loss.low.min()))


@dataclass(frozen=True)
class OneVsRest:
    """Machines over the same rows, one for each class against the other classes.

    codes   int64 (m,)  the class of each row; two classes are one machine, "is it the second?"
    C       float64 (m,)  the penalty on the error of each row
    """

    X: Rows
    n_features: int
    rows: np.ndarray
    norms: np.ndarray
    codes: np.ndarray
    C: np.ndarray
    n_machines: int
    squared: bool
    bias_price: float

    def __len__(self) -> int:
        return len(self.rows)

    def machine(self, k: int) -> LinearProblem:
        """The problem of the k-th machine."""
        positive = self.codes == (1 if self.n_machines == 1 else k)
        loss = hinge_loss(np.where(positive, 1.0, -1.0), self.C, squared=self.squared)
        return LinearProblem(self.X, self.n_features, self.rows, self.norms, loss, self.bias_price)


def hinge_loss(signs: np.ndarray, C: np.ndarray, *, squared: bool) -> LossOfRows:
    """C max(0, 1 - y f), or its square."""
    bound = np.full(len(C), np.inf) if squared else C
    return LossOfRows(
        read_only(signs),
        read_only(np.where(signs > 0, 0.0, -bound)),
        read_only(np.where(signs > 0, bound, 0.0)),
        read_only(0.5 / C if squared else np.zeros(len(C))),
        0.0,
    )


def tube_loss(targets: np.ndarray, C: np.ndarray, epsilon: float, *, squared: bool) -> LossOfRows:
    """C max(0, |t - f| - epsilon), or its square."""
    bound = np.full(len(C), np.inf) if squared else C
    return LossOfRows(
        read_only(targets),
        read_only(-bound),
        read_only(bound),
        read_only(0.5 / C if squared else np.zeros(len(C))),
        float(epsilon),
    )


def balanced(beta: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Scale dual variables to a sum of zero, as a free intercept requires, within their bounds.

    The sign with the larger sum is scaled down. If possible, only its free variables are scaled, so
    that variables at a bound stay there.
    """
    total = float(beta.sum())
    heavier = beta > 0.0 if total > 0.0 else beta < 0.0
    free = heavier & (beta > low) & (beta < high)
    for chosen in (free, heavier):
        weight = float(np.abs(beta[chosen]).sum())
        if weight >= abs(total) and weight > 0.0:
            return np.where(chosen, beta * (1.0 - abs(total) / weight), beta)
    return beta


@kernel
def row_dual(residual, low, high, damping, tube):
    """The beta within its bounds at which  beta r - e |beta| - 1/2 d beta^2  is largest; d > 0."""
    if residual > tube:
        return min((residual - tube) / damping, high)
    if residual < -tube:
        return max((residual + tube) / damping, low)
    return 0.0


@kernel
def row_loss(residual, low, high, damping, tube):
    """loss(r), the loss of a residual r."""
    excess = 0.0
    bound = 0.0
    if residual > tube:
        excess, bound = residual - tube, high
    elif residual < -tube:
        excess, bound = -residual - tube, -low
    if excess == 0.0 or bound == 0.0:
        return 0.0
    if damping > 0.0:
        return 0.5 * excess * excess / damping
    return bound * excess
