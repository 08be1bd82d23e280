"""Best objectives of linear machines, by methods that know nothing of coordinates or of gaps.

Machines with the L2 penalty are quadratic problems in their dual variables, given to a general
interior-point method; those with the L1 penalty are smooth problems in w = u - v, u, v >= 0, given
to L-BFGS-B; Crammer and Singer's is a quadratic problem with a constraint for each row and class.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from tests.oracles.quadratic import solve_qp


def best_l2(X, target, low, high, damping, tube, *, intercept):
    """min 1/2 ||w||^2 + k/2 b^2 + sum loss_i; intercept: "free", "none", or a feature's size."""
    size = {"free": 0.0, "none": 0.0}.get(intercept, intercept)
    K = X @ X.T + size**2 + np.diag(damping)
    far = 100.0 * (1.0 + np.abs(target).max()) / np.where(damping > 0, damping, 1.0)
    up, down = np.minimum(high, far), np.minimum(-low, far)
    signs = np.r_[np.ones(len(target)), -np.ones(len(target))]
    rows = np.tile(np.arange(len(target)), 2)
    width = np.r_[up, down]
    used = width > 0
    signs, rows, width = signs[used], rows[used], width[used]
    Q = signs[:, None] * signs * K[np.ix_(rows, rows)]
    p = tube - signs * target[rows]
    A = signs[None] if intercept == "free" else np.zeros((0, len(signs)))
    a = solve_qp(Q, p, A, np.zeros(len(A)), width)
    return -(0.5 * a @ Q @ a + p @ a)


def primal_l2(X, target, low, high, damping, tube, w, b, *, intercept):
    residual = target - X @ w - b
    above, below = np.maximum(residual - tube, 0), np.maximum(-residual - tube, 0)
    if damping[0] > 0:
        slack = np.where(high > 0, above, 0) + np.where(low < 0, below, 0)
        loss = (0.5 * slack**2 / damping).sum()
    else:
        loss = (high * above - low * below).sum()
    price = 0.0 if isinstance(intercept, str) else 1.0 / intercept**2
    return 0.5 * w @ w + 0.5 * price * b**2 + loss


def best_l1(X, signs, C, *, intercept):
    """min ||w||_1 + |b| / s + sum C_i max(0, 1 - y f)^2"""
    d = X.shape[1]
    with_bias = intercept != "none"
    price = 0.0 if isinstance(intercept, str) else 1.0 / intercept

    def objective(z):
        w, b = z[:d] - z[d : 2 * d], z[2 * d] - z[2 * d + 1]
        slack = np.maximum(0.0, 1.0 - signs * (X @ w + b))
        pull = -2.0 * C * slack * signs
        gradient = X.T @ pull
        value = z[: 2 * d].sum() + price * z[2 * d :].sum() + (C * slack**2).sum()
        ends = np.array([pull.sum() + price, -pull.sum() + price]) if with_bias else np.zeros(2)
        return value, np.r_[gradient + 1.0, 1.0 - gradient, ends]

    z = np.zeros(2 * d + 2)
    bounds = [(0, None)] * (2 * d) + [(0, None if with_bias else 0)] * 2
    for _ in range(5):
        found = minimize(
            objective, z, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": 10**5, "maxfun": 10**5, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 50},
        )  # fmt: skip
        z = found.x
    return float(found.fun)


def best_joint(X, codes, C, n_classes, *, intercept):
    """Crammer and Singer's best objective."""
    n, d = X.shape
    size = n_classes * d
    with_bias = intercept != "none"
    price = 0.0 if isinstance(intercept, str) else 1.0 / intercept**2

    def scores(z):
        return X @ z[:size].reshape(n_classes, d).T + with_bias * z[size : size + n_classes]

    def objective(z):
        return (
            0.5 * z[:size] @ z[:size]
            + 0.5 * price * (z[size : size + n_classes] @ z[size : size + n_classes])
            + C @ z[size + n_classes :]
        )

    def gradient(z):
        return np.r_[z[:size], price * z[size : size + n_classes], C]

    own = np.arange(n), codes

    def room(z):
        f = scores(z)
        gaps = f[own][:, None] - f - 1.0 + z[size + n_classes :][:, None]
        gaps[own] = z[size + n_classes :]
        return gaps.ravel()

    def jacobian(z):
        J = np.zeros((n, n_classes, len(z)))
        for i in range(n):
            for k in range(n_classes):
                J[i, k, size + n_classes + i] = 1.0
                if k != codes[i]:
                    J[i, k, codes[i] * d : (codes[i] + 1) * d] += X[i]
                    J[i, k, k * d : (k + 1) * d] -= X[i]
                    J[i, k, size + codes[i]] += with_bias
                    J[i, k, size + k] -= with_bias
        return J.reshape(n * n_classes, -1)

    z = np.zeros(size + n_classes + n)
    z[size + n_classes :] = 1.0
    found = minimize(
        objective, z, jac=gradient, method="SLSQP", options={"maxiter": 2000, "ftol": 1e-15},
        constraints={"type": "ineq", "fun": room, "jac": jacobian},
    )  # fmt: skip
    return float(found.fun)
