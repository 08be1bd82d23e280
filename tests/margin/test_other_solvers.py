"""Other ways to a support vector machine: nearest points of hulls, coordinates, subgradients."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.quadratic import objective, solve_qp

from margrove import watch
from margrove.exceptions import InvalidDataError, NotSeparableError
from margrove.margin.solvers.dual.coordinate_descent import CoordinateProcess, projected_gradient
from margrove.margin.solvers.dual.hull import HullProcess, project
from margrove.margin.solvers.dual.hull_margins import (
    HardMarginProcess,
    SoftMarginProcess,
    hard_margin,
    soft_margin,
)
from margrove.margin.solvers.dual.primal_sgd import SubgradientProcess, best_bias, primal_objective
from margrove.margin.svm.problems import c_svc, epsilon_svr, largest_feasible_nu, nu_svc

KERNELS = ("linear", "rbf", "poly")
XOR = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
XOR_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])

whole_numbers = st.integers(0, 2**32 - 1)


def gram(name, X):
    if name == "linear":
        return X @ X.T
    if name == "poly":
        return (X @ X.T / X.shape[1] + 1.0) ** 2
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))


def random_rows(seed, noise=0.7):
    """Rows, signs and weights: two overlapping classes of uneven sizes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 36))
    X = rng.normal(size=(n, int(rng.integers(2, 5))))
    signs = np.where(X[:, 0] + noise * rng.normal(size=n) > 0.2, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    return X, signs, rng.uniform(0.3, 2.0, size=n)


def separable_rows(seed):
    X, signs, _ = random_rows(seed, noise=0.0)
    X[:2, 0] = 1.0, -1.0
    X[:, 0] += 0.3 * signs
    return X, signs


def solved(process, work=np.inf):
    while not process.finished:
        process.advance(work)
    return process.result()


def signed_gram(K, problem):
    return K[np.ix_(problem.rows, problem.rows)] * np.outer(problem.y, problem.y)


def best_objective(K, problem):
    """By the interior-point method, with the equality constraints that the problem has."""
    Q = signed_gram(K, problem)
    if problem.keeps_sum:
        A = np.array([problem.y > 0, problem.y < 0], dtype=np.float64)
    elif problem.has_bias:
        A = problem.y[None]
    else:
        A = np.empty((0, len(problem)))
    return objective(Q, problem.p, solve_qp(Q, problem.p, A, A @ problem.start, problem.u))


def assert_best(result, K, problem, rel):
    """Feasible, stated honestly, and as low as the oracle's."""
    alpha = result.alpha
    assert (alpha >= 0).all()
    assert (alpha <= problem.u).all()
    if problem.has_bias:
        assert problem.y @ alpha == pytest.approx(
            problem.y @ problem.start, abs=1e-12 * alpha.sum()
        )
    if problem.keeps_sum:
        assert alpha.sum() == pytest.approx(problem.start.sum(), rel=1e-12)
    assert result.objective == pytest.approx(
        objective(signed_gram(K, problem), problem.p, alpha), rel=1e-9, abs=1e-12
    )
    rounding = 1e-12 * np.abs(K).max() * alpha.sum() ** 2  # of the oracle
    assert result.objective == pytest.approx(best_objective(K, problem), rel=rel, abs=rounding)


def relative_gap(K, problem, result):
    f = K @ (result.alpha * problem.y)
    primal = primal_objective(problem, result.alpha, f, -result.rho)
    return (primal + result.objective) / primal


# -- hulls --


@pytest.mark.parametrize(("tol", "rel"), [(1e-6, 1e-6), (1e-8, 1e-9)])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(8))
def test_nearest_points_of_reduced_hulls(seed, name, tol, rel) -> None:
    X, signs, weight = random_rows(seed)
    K = gram(name, X)
    share = np.random.default_rng(seed).uniform(0.1, 1.0)
    problem = nu_svc(signs, share * largest_feasible_nu(signs, weight), weight)
    result = solved(HullProcess(K, problem, tol=tol))
    assert result.converged
    assert result.violation < tol
    assert_best(result, K, problem, rel)
    f = K @ (result.alpha * signs)
    free = (result.alpha > 0) & (result.alpha < weight)
    for sign in (1.0, -1.0):
        offset = result.rho + sign * result.r
        own = free & (signs == sign)
        assert np.allclose(f[own], offset, atol=2 * tol)
        low = sign * f[(signs == sign) & (result.alpha == 0)]
        high = sign * f[(signs == sign) & (result.alpha == weight)]
        assert (low >= sign * offset - 2 * tol).all()
        assert (high <= sign * offset + 2 * tol).all()


@pytest.mark.parametrize("seed", range(6))
def test_the_nu_machine_over_r_is_a_c_machine(seed) -> None:
    X, signs, weight = random_rows(seed)
    K = gram("rbf", X)
    problem = nu_svc(signs, 0.4 * largest_feasible_nu(signs, weight), weight)
    result = solved(HullProcess(K, problem, tol=1e-10))
    other = soft_margin(K, signs, weight / result.r, tol=1e-8)
    assert other.converged
    assert np.allclose(
        other.alpha, result.alpha / result.r, rtol=1e-5, atol=1e-6 * other.alpha.max()
    )
    assert other.rho == pytest.approx(result.rho / result.r, abs=1e-6)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(6))
def test_hard_margin_is_the_plane_in_the_middle(seed, name) -> None:
    X, signs = separable_rows(seed)
    K = gram(name, X)
    result, separation = hard_margin(K, signs, tol=1e-8)
    assert result.converged
    assert not separation.is_doubtful
    coef = result.alpha * signs
    f = K @ coef
    squared_norm = coef @ f
    assert (signs * (f - result.rho)).min() == pytest.approx(1.0, abs=1e-6)
    assert separation.distance == pytest.approx(2.0 / np.sqrt(squared_norm), rel=1e-6)
    # Orthogonal to the segment between the nearest points, u.w and v.w, at its midpoint.
    weights = result.alpha / result.alpha[signs > 0].sum()
    ends = [f[signs == sign] @ weights[signs == sign] for sign in (1.0, -1.0)]
    assert (ends[0] + ends[1]) / 2.0 == pytest.approx(result.rho, abs=1e-6)
    # No alpha reaches twice the largest one: a finite bound there changes nothing.
    bounded = c_svc(signs, np.full(len(signs), 2.0 * result.alpha.max()))
    assert_best(result, K, bounded, 1e-9)
    soft = soft_margin(K, signs, bounded.u, tol=1e-8)
    assert soft.objective == pytest.approx(result.objective, rel=1e-9)


def common_point_distance(K, signs, error):
    s = np.zeros(len(signs))
    s[error.rows] = error.weights * signs[error.rows]
    assert (error.weights > 0).all()
    for sign in (1.0, -1.0):
        assert np.abs(s[signs == sign]).sum() == pytest.approx(1.0, abs=1e-12)
    return np.sqrt(max(0.0, s @ K @ s))


@pytest.mark.nojit
def test_xor_is_not_linearly_separable_and_why() -> None:
    with pytest.raises(
        NotSeparableError, match=r"0\.5 x\[0\] \+ 0\.5 x\[1\] = 0\.5 x\[2\]"
    ) as info:
        hard_margin(gram("linear", XOR), XOR_SIGNS)
    assert info.value.rows.tolist() == [0, 1, 2, 3]
    assert np.allclose(info.value.weights @ (XOR_SIGNS[:, None] * XOR), 0.0)


@pytest.mark.nojit
def test_xor_is_separable_by_squares() -> None:
    result, separation = hard_margin((XOR @ XOR.T + 1.0) ** 2, XOR_SIGNS)
    assert result.converged
    assert not separation.is_doubtful
    f = (XOR @ XOR.T + 1.0) ** 2 @ (result.alpha * XOR_SIGNS) - result.rho
    assert np.allclose(XOR_SIGNS * f, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_the_proof_of_inseparability_holds(seed) -> None:
    X, signs, _ = random_rows(seed, noise=3.0)
    X, signs = np.vstack([X, X[:1]]), np.r_[signs, -signs[0]]  # one row in both classes
    K = gram(KERNELS[seed % 3], X)
    process = HardMarginProcess(K, signs)
    with pytest.raises(NotSeparableError, match="finite C") as info:
        solved(process)
    bound = np.sqrt(16 * len(K) * np.finfo(float).eps * np.abs(K).max())
    assert process.separation.bound == pytest.approx(bound)
    assert common_point_distance(K, signs, info.value) <= bound
    assert len(str(info.value)) < 500


@pytest.mark.parametrize(
    ("gap", "doubtful"), [(1e-2, False), (1e-5, True), (1e-6, True), (1e-8, None), (0.0, None)]
)
def test_a_margin_lost_in_rounding_is_flagged_or_refused(gap, doubtful) -> None:
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(20, 2))) + 0.1
    X[0] = 0.0, 0.5
    signs = np.where(np.arange(20) % 2, 1.0, -1.0)
    X[:, 0] *= signs
    X[1] = gap, 0.5
    if doubtful is None:
        with pytest.raises(NotSeparableError):
            hard_margin(gram("linear", X), signs)
        return
    result, separation = hard_margin(gram("linear", X), signs, tol=1e-3)
    assert separation.is_doubtful is doubtful
    assert separation.distance == pytest.approx(gap, rel=1e-2)
    assert separation.distance > separation.bound
    assert np.isfinite(result.alpha).all()


def test_distances_need_an_inner_product() -> None:
    with pytest.raises(InvalidDataError, match="not positive semidefinite"):
        hard_margin(-np.eye(4), XOR_SIGNS)


@pytest.mark.parametrize(("tol", "rel"), [(1e-6, 1e-6), (1e-8, 1e-9)])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(8))
def test_soft_margin_by_reduced_hulls(seed, name, tol, rel) -> None:
    X, signs, weight = random_rows(seed)
    K = gram(name, X)
    C = 10.0 ** np.random.default_rng(seed).uniform(-2.0, 2.0) * weight
    result = soft_margin(K, signs, C, tol=tol)
    assert result.converged
    assert result.violation < tol
    assert result.r == 0.0
    assert_best(result, K, c_svc(signs, C), rel)
    assert relative_gap(K, c_svc(signs, C), result) < 100 * tol


@given(whole_numbers)
@settings(max_examples=40)
def test_soft_margin_of_lattices_of_ties(seed) -> None:
    """Equal rows in both classes, equal bounds: weights at their bounds all over, r may jump."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 20))
    X = rng.integers(-2, 3, size=(n, 2)).astype(np.float64)
    signs = rng.choice([-1.0, 1.0], size=n)
    signs[:2] = 1.0, -1.0
    C = 10.0 ** rng.uniform(-3.0, 3.0) * rng.integers(1, 4, size=n)
    K = gram(KERNELS[seed % 3], X)
    result = soft_margin(K, signs, C, tol=1e-6)
    assert result.converged
    assert relative_gap(K, c_svc(signs, C), result) < 1e-5


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1e8])
def test_soft_margin_far_from_the_middle_of_c(C) -> None:
    X, signs = separable_rows(3)
    K = gram("rbf", X)
    bounds = np.full(len(signs), C)
    result = soft_margin(K, signs, bounds, tol=1e-7)
    assert result.converged
    if C == 1e-6:  # all of the smaller class is at its bound
        smaller = min((signs > 0).sum(), (signs < 0).sum())
        assert result.alpha.sum() == pytest.approx(2 * smaller * C)
    if C == 1e8:
        assert result.objective == pytest.approx(hard_margin(K, signs, tol=1e-8)[0].objective)


# -- coordinates --


@pytest.mark.parametrize(("tol", "rel"), [(1e-6, 1e-6), (1e-8, 1e-9)])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(6))
def test_coordinates_without_a_bias(seed, name, tol, rel) -> None:
    X, signs, weight = random_rows(seed)
    K = gram(name, X)
    targets = np.sin(2.0 * X[:, 0]) + 0.1 * signs
    for problem in (
        c_svc(signs, 2.0 * weight, has_bias=False),
        epsilon_svr(targets, weight, 0.1, has_bias=False),
    ):
        result = solved(CoordinateProcess(K, problem, tol=tol, max_epochs=100_000))
        assert result.converged
        assert result.rho == result.r == 0.0
        assert_best(result, K, problem, rel)
        f = K @ problem.coefficients(result.alpha, len(K))
        assert np.abs(projected_gradient(problem, result.alpha, f)).max() < 1.01 * tol


@pytest.mark.nojit
def test_coordinates_without_curvature_go_to_their_bounds() -> None:
    problem = c_svc(np.array([1.0, -1.0, 1.0]), np.array([2.0, 3.0, 4.0]), has_bias=False)
    result = solved(CoordinateProcess(np.zeros((3, 3)), problem))
    assert result.converged
    assert result.alpha.tolist() == [2.0, 3.0, 4.0]
    concave = solved(CoordinateProcess(-np.eye(3), problem))
    assert concave.alpha.tolist() == [2.0, 3.0, 4.0]
    unbounded = c_svc(np.ones(3), np.full(3, np.inf), has_bias=False)
    endless = solved(CoordinateProcess(np.zeros((3, 3)), unbounded))
    assert not endless.converged
    assert np.isfinite(endless.alpha).all()


def test_coordinate_steps_add_up_to_the_solution() -> None:
    X, signs, weight = random_rows(7)
    problem = c_svc(signs, weight, has_bias=False)
    with watch(on_step=lambda step: None):
        process = CoordinateProcess(gram("poly", X), problem, tol=1e-3)
        solved(process)
    alpha, last, epoch = problem.start.copy(), problem.start.copy(), 0
    for step in process.read_steps():
        if step.epoch > epoch:
            last, epoch = alpha.copy(), step.epoch
        if step.variable >= 0:
            alpha[step.variable] += step.change
        else:
            alpha += step.change * (alpha - last)
    assert np.allclose(alpha, process.result().alpha, atol=1e-12)


# -- subgradients --


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(4))
def test_subgradients_keep_their_own_tolerance(seed, name, has_bias) -> None:
    X, signs, weight = random_rows(seed)
    K = gram(name, X)
    problem = c_svc(signs, weight, has_bias=has_bias)
    result = solved(SubgradientProcess(K, problem, tol_gap=1e-2))
    assert result.converged
    assert relative_gap(K, problem, result) < 1.01e-2
    assert_best(result, K, problem, 1.02e-2)
    assert result.objective >= best_objective(K, problem) * (1 + 1e-9)  # from above: it is < 0


@pytest.mark.nojit
@given(whole_numbers)
@settings(max_examples=25)
def test_the_lectures_scaling(seed) -> None:
    """lambda = 1 / C: the same objective but for the factor C, so the same minimiser."""
    X, signs, weight = random_rows(seed)
    rng = np.random.default_rng(seed)
    K = gram("rbf", X)
    C = 10.0 ** rng.uniform(-3.0, 3.0)
    problem = c_svc(signs, C * weight / weight.max())
    alpha, b = rng.uniform(0.0, 1.0, size=len(X)), rng.normal()
    f = K @ (alpha * signs)
    hinge = np.maximum(0.0, 1.0 - signs * (f + b))
    lecture = (1.0 / C) / 2.0 * (alpha * signs) @ f + weight / weight.max() @ hinge
    assert C * lecture == pytest.approx(primal_objective(problem, alpha, f, b))


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_minimisers_of_both_scalings_agree(C) -> None:
    """Of the primal problem over w and b themselves, by derivative-free search, and of the dual."""
    from scipy.optimize import minimize

    X, signs, _ = random_rows(5)
    X = X[:, :1]

    def regularised_hinge(wb):
        hinge = np.maximum(0.0, 1.0 - signs * (X @ wb[:1] + wb[1]))
        return (1.0 / C) / 2.0 * wb[0] ** 2 + hinge.sum()

    found = minimize(regularised_hinge, [0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-9})
    result = soft_margin(X @ X.T, signs, np.full(len(X), C), tol=1e-9)
    w = (result.alpha * signs) @ X
    assert w == pytest.approx(found.x[:1], abs=1e-4)
    assert C * found.fun == pytest.approx(-result.objective, rel=1e-6)
    process = SubgradientProcess(X @ X.T, c_svc(signs, np.full(len(X), C)), tol_gap=1e-3)
    assert (solved(process).alpha * signs) @ X == pytest.approx(w, abs=0.1)


@pytest.mark.nojit
@given(whole_numbers)
@settings(max_examples=50)
def test_the_best_bias_is_no_worse_than_any_other(seed) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    f = rng.integers(-3, 4, size=n).astype(np.float64)
    y = rng.choice([-1.0, 1.0], size=n)
    weight = rng.integers(1, 4, size=n).astype(np.float64)

    def loss(b):
        return weight @ np.maximum(0.0, 1.0 - y * (f + b))

    assert loss(best_bias(f, y, weight)) <= min(loss(b) for b in y - f) + 1e-12


# -- all of them --


@pytest.mark.parametrize("seed", range(3))
def test_all_agree_on_symmetric_data(seed) -> None:
    """With -x in the other class for each x, no bias is best: all solve the same problem."""
    X, signs, weight = random_rows(seed)
    X, signs, C = np.vstack([X, -X]), np.r_[signs, -signs], np.r_[weight, weight]
    K = gram("linear", X)
    by_hulls = soft_margin(K, signs, C, tol=1e-8)
    by_coordinates = solved(
        CoordinateProcess(K, c_svc(signs, C, has_bias=False), tol=1e-8, max_epochs=100_000)
    )
    by_steps = solved(SubgradientProcess(K, c_svc(signs, C), tol_gap=5e-3))
    assert by_hulls.objective == pytest.approx(by_coordinates.objective, rel=1e-9)
    assert by_hulls.objective == pytest.approx(by_steps.objective, rel=5e-3)
    normals = [(found.alpha * signs) @ X for found in (by_hulls, by_coordinates, by_steps)]
    assert normals[0] == pytest.approx(normals[1], abs=1e-5)
    assert normals[0] == pytest.approx(normals[2], abs=0.2 * np.linalg.norm(normals[0]))


def makers(seed=1):
    X, signs, weight = random_rows(seed)
    K = gram("rbf", X)
    apart, apart_signs = separable_rows(seed)
    return {
        "hull": lambda: HullProcess(K, nu_svc(signs, 0.3, np.ones(len(K))), tol=1e-9),
        "hard": lambda: HardMarginProcess(gram("rbf", apart), apart_signs, tol=1e-9),
        "soft": lambda: SoftMarginProcess(K, signs, 20.0 * weight, tol=1e-9),
        "coordinates": lambda: CoordinateProcess(
            K, c_svc(signs, weight, has_bias=False), tol=1e-9, seed=5
        ),
        "regression": lambda: CoordinateProcess(
            K, epsilon_svr(X[:, 0], weight, 0.05, has_bias=False), tol=1e-9
        ),
        "subgradients": lambda: SubgradientProcess(K, c_svc(signs, weight), tol_gap=1e-2, seed=5),
    }


@pytest.mark.parametrize("name", makers())
def test_slices_and_listeners_change_nothing(name) -> None:
    make = makers()[name]
    whole = solved(make())
    assert whole.converged
    sliced = solved(make(), work=1.0)
    steps = []
    with watch(on_step=steps.append):
        process = make()
        while not process.finished:
            rounds = process.rounds
            assert process.advance(300.0) >= 0.0
            assert process.rounds <= rounds + 1
            assert np.isfinite(process.result().objective)
            steps += process.read_steps()
    for other in (sliced, process.result()):
        assert np.array_equal(other.alpha, whole.alpha)
        assert (other.rho, other.r, other.objective) == (whole.rho, whole.r, whole.objective)
        assert (other.violation, other.iterations) == (whole.violation, whole.iterations)
    if name in {"coordinates", "regression"}:
        steps = [step for step in steps if step.variable >= 0]
    if name == "subgradients":
        assert 0 < len(steps) < whole.iterations
        assert all(step.value < 1.0 for step in steps)
    else:
        assert len(steps) == whole.iterations
    assert all(np.isfinite(list(process.figures().values())))
    assert "violation" in process.figures()


@pytest.mark.parametrize("name", makers())
def test_results_can_be_read_at_any_time_and_belong_to_the_caller(name) -> None:
    process = makers()[name]()
    before = process.result()
    first = before.alpha.copy()
    process.advance(1e4)
    assert np.array_equal(before.alpha, first)
    assert np.isfinite(before.alpha).all()
    assert np.isfinite([before.rho, before.objective, before.violation]).all()
    solved(process)
    trace = process.result().trace
    assert all(a.iterations <= b.iterations for a, b in pairwise(trace))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize("tol", [1e-300, 1e-6])
def test_always_an_end_and_always_finite(scale, tol) -> None:
    X, signs, weight = random_rows(2)
    K = gram("poly", X) * scale
    C = weight / scale
    for make in (
        lambda: HullProcess(K, nu_svc(signs, 0.3, np.ones(len(K))), tol=tol),
        lambda: SoftMarginProcess(K, signs, C, tol=tol),
        lambda: CoordinateProcess(K, c_svc(signs, C, has_bias=False), tol=tol, max_epochs=300),
        lambda: SubgradientProcess(K, c_svc(signs, C), tol_gap=tol, max_epochs=50),
    ):
        result = solved(make())
        assert np.isfinite(result.alpha).all()
        assert np.isfinite([result.rho, result.r, result.objective, result.violation]).all()
        assert tol > 1e-300 or not result.converged or result.violation == 0.0


def test_limits_are_kept_and_told() -> None:
    X, signs, weight = random_rows(8)
    K = gram("rbf", X)
    bounds = 100.0 * weight
    for process in (
        HullProcess(K, nu_svc(signs, 0.1, np.ones(len(K))), tol=1e-12, max_sweeps=1),
        SoftMarginProcess(K, signs, bounds, tol=1e-9, max_reductions=2),
        CoordinateProcess(K, c_svc(signs, bounds, has_bias=False), tol=1e-9, max_epochs=2),
        SubgradientProcess(K, c_svc(signs, bounds), tol_gap=1e-6, max_epochs=7),
    ):
        result = solved(process)
        assert process.rounds <= process.total
        assert not result.converged
        assert result.trace


def test_indefinite_kernels_end_too() -> None:
    X, signs, weight = random_rows(4)
    K = np.tanh(X @ X.T - 1.0)
    for process in (
        HullProcess(K, nu_svc(signs, 0.3, np.ones(len(K)))),
        SoftMarginProcess(K, signs, weight),
        CoordinateProcess(K, c_svc(signs, weight, has_bias=False), max_epochs=500),
        SubgradientProcess(K, c_svc(signs, weight), max_epochs=100),
    ):
        result = solved(process)
        assert np.isfinite(result.alpha).all()
        assert (result.alpha <= np.maximum(weight, 1.0)).all()


def test_inputs_are_left_alone_whatever_their_layout() -> None:
    X, signs, weight = random_rows(6)
    K = gram("rbf", X)
    expected = soft_margin(K, signs, weight).alpha
    for layout in (np.asfortranarray(K), np.repeat(K, 2, axis=1)[:, ::2]):
        arrays = (layout, signs.astype(np.int64), weight.copy())
        for array in arrays:
            array.flags.writeable = False
        assert np.array_equal(soft_margin(*arrays).alpha, expected)
        problem = c_svc(arrays[1], arrays[2], has_bias=False)
        start = problem.start.copy()
        solved(CoordinateProcess(layout, problem))
        solved(SubgradientProcess(layout, problem, max_epochs=10))
        assert np.array_equal(problem.start, start)


def test_problems_that_are_not_theirs_are_refused() -> None:
    K, C = np.eye(4), np.ones(4)
    with pytest.raises(ValueError, match="nu_svc"):
        HullProcess(K, c_svc(XOR_SIGNS, C))
    with pytest.raises(ValueError, match="infinite C"):
        soft_margin(K, XOR_SIGNS, np.full(4, np.inf))
    with pytest.raises(ValueError, match="no rows"):
        hard_margin(K, np.ones(4))
    with pytest.raises(ValueError, match="no rows"):
        soft_margin(K, np.ones(4), C)
    with pytest.raises(ValueError, match="without a fixed sum"):
        CoordinateProcess(K, c_svc(XOR_SIGNS, C))
    with pytest.raises(ValueError, match="K must be square"):
        CoordinateProcess(np.eye(3), c_svc(XOR_SIGNS, C, has_bias=False))
    with pytest.raises(ValueError, match="c_svc"):
        SubgradientProcess(K, epsilon_svr(C, C, 0.1))
    with pytest.raises(ValueError, match="finite C"):
        SubgradientProcess(K, c_svc(XOR_SIGNS, np.full(4, np.inf)))


@pytest.mark.nojit
@given(whole_numbers)
@settings(max_examples=50)
def test_projections_are_feasible_and_nearest(seed) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    low = -rng.uniform(0.0, 1.0, size=n)
    high = low + rng.uniform(0.1, 2.0, size=n)
    total = float(low.sum() + rng.uniform(0.0, 1.0) * (high - low).sum())
    z = rng.normal(size=n) * 10.0 ** rng.uniform(-3.0, 6.0)
    x = project(z, low, high, total)
    assert (x >= low).all()
    assert (x <= high).all()
    assert x.sum() == pytest.approx(total, abs=1e-12 * n)
    # z - x is the same where x is free, no larger at the lower and no smaller at the upper bounds.
    shift, slack = z - x, 1e-9 * (1.0 + np.abs(z).max())
    can_rise, can_fall = x < high, x > low
    assert shift[can_rise].max(initial=-np.inf) <= shift[can_fall].min(initial=np.inf) + slack
