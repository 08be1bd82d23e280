"""Labels of few rows from bounded sums: those of the tiles, with bounds that hold and are small."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.margin.test_kernels import rows

from margrove import SVC, NuSVC, OneClassSVM
from margrove.exceptions import NumericalOverflowError
from margrove.margin.kernels import (
    RBF,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    bounded_sums,
    kernel_sums,
)
from margrove.margin.svm import kernel_machine
from margrove.margin.svm.multiclass import pairs_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
KERNELS = [
    RBF(0.3),
    RBF(40.0),
    Linear(),
    Polynomial(0.5, 3, 1.0),
    Polynomial(0.5, 7, -0.5),
    Sigmoid(0.2, -0.4),
]
NAMES = ["rbf", "linear", "poly", "sigmoid"]


def problem(n=70, d=6, size=1.0, centre=0.0, seed=0):
    """Rows, support vectors of three groups, coefficients of two machines."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(9, d)) * size + centre
    vectors = generator.normal(size=(n, d)) * size + centre
    coef = np.ascontiguousarray(generator.normal(size=(2, n)) * 10)
    return X, vectors, coef, np.array([0, n // 3, n // 3, n])


def exact_sums(kernel, X, vectors, coef, edges):
    """In 80 bits, from the formulas; only for kernels of this test."""
    X, vectors, coef = (each.astype(np.longdouble) for each in (X, vectors, coef))
    if isinstance(kernel, RBF):
        K = np.exp(-kernel.gamma * ((X[:, None] - vectors) ** 2).sum(axis=2))
    else:
        K = X @ vectors.T
        if isinstance(kernel, Polynomial):
            K = (kernel.gamma * K + kernel.coef0) ** kernel.degree
        elif isinstance(kernel, Sigmoid):
            K = np.tanh(kernel.gamma * K + kernel.coef0)
    return np.array([K[:, a:b] @ coef[:, a:b].T for a, b in pairwise(edges)])


def sums_of_tiles(kernel, X, vectors, coef, edges):
    shift = kernel.centre(vectors, X)
    points = kernel.points(X, shift=shift), kernel.points(vectors, shift=shift)
    return kernel_sums(kernel, *points, coef.T, edges)


def voted(model, X):
    """Labels by the definition, from decision values of all rows of X and others."""
    others = np.r_[X, np.tile(X, (64, 1))]
    shape = model.decision_function_shape
    pairs = model.set_params(decision_function_shape="ovo").decision_function(others)[: len(X)]
    votes = np.zeros((len(X), len(model.classes_)))
    for number, (i, j) in enumerate(pairs_of(len(model.classes_))):
        votes[np.arange(len(X)), np.where(pairs[:, number] > 0, i, j)] += 1
    model.set_params(decision_function_shape=shape)
    if model.break_ties:
        return model.classes_[model.decision_function(X).argmax(axis=1)]
    return model.classes_[votes.argmax(axis=1)]


@pytest.fixture
def without_tiles(monkeypatch):
    """Predictions fail if they need tiles."""

    def fail(*arguments, **options):
        raise AssertionError("tiles were used")

    monkeypatch.setattr(kernel_machine, "kernel_sums_at", fail)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("size", [1e-4, 1.0, 20.0])
@pytest.mark.parametrize("centre", [0.0, 300.0])
@pytest.mark.parametrize("d", [1, 6, 150])
def test_bounds_hold(kernel, size, centre, d) -> None:
    given = problem(d=d, size=size, centre=centre)
    sums, bounds = bounded_sums(kernel, *given)
    of_tiles = sums_of_tiles(kernel, *given)
    assert sums.shape == bounds.shape == of_tiles.shape
    with np.errstate(over="ignore", invalid="ignore"):
        assert not (np.abs(sums - of_tiles) > bounds).any()
        assert not (np.abs(sums - exact_sums(kernel, *given)) > bounds).any()
    assert (bounds[0] > 0).all()


@pytest.mark.parametrize("kernel", KERNELS[:1] + KERNELS[2:], ids=repr)
def test_bounds_are_small_for_ordinary_rows(kernel) -> None:
    given = problem()
    sizes = np.abs(exact_sums(kernel, given[0], given[1], np.abs(given[2]), given[3]))
    bounds = bounded_sums(kernel, *given)[1]
    assert (bounds[[0, 2]] < 1e-9 * sizes[[0, 2]].max()).all()


@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("size", [1e-12, 1e-5, 1.0, 1e4, 1e12])
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), n_rows=st.sampled_from([1, 3, 32, 33]), ties=st.booleans())
def test_labels_are_those_of_decision_values(kernel, size, seed, n_rows, ties) -> None:
    generator = np.random.default_rng(seed)
    X = generator.integers(-3, 4, size=(40, 3)) * size  # coarse: many values on a boundary
    y = generator.integers(0, 4, size=40)
    given = {"kernel": kernel, "gamma": 0.5 / size**2, "coef0": 0.5, "max_iter": 2000}
    Z = generator.integers(-3, 4, size=(n_rows, 3)) * size
    model = SVC(break_ties=ties, **given).fit(X, y)
    assert np.array_equal(model.predict(Z), voted(model, Z))
    model = SVC(**given).fit(X, y > 1)
    assert np.array_equal(model.predict(Z), model.decision_function(Z) >= 0)
    model = SVC(multi_class="ovr", **given).fit(X, y)
    assert np.array_equal(model.predict(Z), model.decision_function(Z).argmax(axis=1))
    del given["coef0"]
    one = OneClassSVM(**given).fit(X)
    assert np.array_equal(one.predict(Z), np.where(one.decision_function(Z) >= 0, 1, -1))


@pytest.mark.parametrize("kernel", NAMES)
def test_ordinary_rows_need_no_tiles(without_tiles, kernel) -> None:
    X, y = rows(120, 5), np.arange(120) % 3
    for machine in (
        SVC(kernel=kernel),
        NuSVC(kernel=kernel),
        SVC(kernel=kernel, multi_class="ovr"),
    ):
        for labels in (y, y == 0):
            model = machine.fit(X, labels)
            assert set(model.predict(X[:32] + 0.01)) <= set(model.classes_)
            with pytest.raises(AssertionError, match="tiles were used"):
                model.predict(X[:33])
    assert OneClassSVM(kernel=kernel).fit(X).predict(X[:1] + 0.01).shape == (1,)


def between_two_points(**parameters):
    """A machine of two points, and rows exactly between them or next to that."""
    model = SVC(C=10.0, **parameters).fit([[0.0, 0.0], [2.0, 0.0]], [0, 1])
    nudged = [np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0), 1.0 + 1e-15, 1.0 - 1e-14]
    return model, np.array([[1.0, 0.0], *([place, 0.0] for place in nudged)])


@pytest.mark.parametrize("kernel", NAMES)
def test_rows_on_the_boundary_take_tiles(monkeypatch, kernel) -> None:
    model, X = between_two_points(kernel=kernel, gamma=0.5)
    model.intercept_ = model.intercept_ - model.decision_function(X[:1])
    decisions = model.decision_function(X)
    assert decisions[0] == 0.0
    assert np.array_equal(model.predict(X), decisions >= 0)
    calls, before = [], kernel_machine.kernel_sums_at

    def counted(*arguments, **options):
        calls.append(1)
        return before(*arguments, **options)

    monkeypatch.setattr(kernel_machine, "kernel_sums_at", counted)
    for k in range(3):
        assert model.predict(X[k : k + 1]) == (decisions[k] >= 0)
    assert len(calls) == 3
    assert model.predict([[1.5, 0.0]]) == 1
    assert len(calls) == 3
    assert np.array_equal([model.predict(X[k : k + 1])[0] for k in (3, 4)], decisions[3:] >= 0)


def test_equal_values_of_one_vs_rest_take_tiles() -> None:
    model = SVC(multi_class="ovr", kernel="linear").fit(rows(60, 4), np.arange(60) % 3)
    model.dual_coef_[:] = model.dual_coef_[0]
    model.intercept_ = np.array([0.1, 0.3, 0.3])
    assert (model.predict(rows(20, 4, seed=1)) == 1).all()
    model.intercept_ = np.array([0.3, 0.3, 0.1]) * 1e17
    assert (model.predict(rows(20, 4, seed=1)) == 0).all()


def test_ties_of_votes_take_tiles_where_they_are_broken() -> None:
    X = rows(90, 2)
    model = SVC(break_ties=True).fit(X, np.arange(90) % 5)
    model.intercept_ = np.random.default_rng(1).normal(size=10)  # cycles of winners
    grid = rows(400, 2, seed=3)
    singly = [model.predict(grid[k : k + 1])[0] for k in range(len(grid))]
    assert np.array_equal(singly, model.decision_function(grid).argmax(axis=1))
    model.set_params(break_ties=False)
    assert not np.array_equal(singly, model.predict(grid))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e100, 1e200])
def test_extreme_rows_are_as_among_others(kernel, size) -> None:
    X, y = rows(60, 4), np.arange(60) % 2
    model = SVC(kernel=kernel).fit(X, y)
    few, many = np.full((2, 4), size), np.r_[np.full((2, 4), size), X]
    try:
        decisions = model.decision_function(many)[:2]
    except NumericalOverflowError:
        with pytest.raises(NumericalOverflowError, match="row 0 of X"):
            model.predict(few)
    else:
        assert np.array_equal(model.predict(few), (decisions >= 0).astype(int))


def test_overflow_and_nan_are_never_proved() -> None:
    X, vectors, coef, edges = problem()
    for kernel in KERNELS:
        for value in (1e160, 1e300, np.inf, np.nan):
            for target in (X, vectors, coef):
                before = target.flat[3]
                target.flat[3] = value
                with np.errstate(all="ignore"):
                    sums, bounds = bounded_sums(kernel, X, vectors, coef, edges)
                    of_tiles = sums_of_tiles(kernel, X, vectors, coef, edges)
                is_proved = np.abs(sums) > bounds
                assert np.isfinite(of_tiles[is_proved]).all()
                assert (np.sign(of_tiles[is_proved]) == np.sign(sums[is_proved])).all()
                target.flat[3] = before


def test_other_kernels_and_arrays_are_left_to_tiles() -> None:
    X, vectors, coef, edges = problem()
    narrow, columns = X.astype(np.float32), np.asfortranarray(coef)
    assert bounded_sums(RBF(1.0), X, vectors, coef, edges) is not None
    for other in ((narrow, vectors, coef), (X, vectors, columns), (X, vectors, coef.tolist())):
        assert bounded_sums(RBF(1.0), *other, edges) is None
    assert bounded_sums(Laplacian(1.0), X, vectors, coef, edges) is None
    assert bounded_sums(RBF(1.0), np.tile(X, (4, 1)), vectors, coef, edges) is None
    assert bounded_sums(RBF(1.0), X, vectors, np.tile(coef, (100, 1)), edges) is None


def test_altered_state_is_noticed_by_one_row() -> None:
    X, y = rows(60), np.arange(60) % 2
    model = SVC().fit(X, y)
    label = model.predict(X[:1])
    model.dual_coef_ *= -1.0
    model.intercept_ *= -1.0
    assert model.predict(X[:1]) != label
    model.dual_coef_ = model.dual_coef_[:, 1:]
    with pytest.raises(ValueError, match="dual_coef_ has shape"):
        model.predict(X[:1])
    with pytest.raises(ValueError, match="features"):
        SVC().fit(X, y).predict(X[:1, :2])
