"""Probabilities that agree with predictions: fits, coupling, projection, and their price."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit
from sklearn.metrics import log_loss as sklearn_log_loss
from tests.oracles.coupling import couple, coupling_terms, nearest_agreeing
from tests.oracles.coupling import negative_log_likelihood as loss

from margrove.margin.svm.calibration import (
    PriceOfAgreement,
    agree_with,
    couple_pairs,
    fit_platt,
    fit_slope,
    log_loss,
)

pytestmark = pytest.mark.nojit

MODERATE = st.floats(-5, 5).map(lambda f: round(f, 3))
EXTREME = st.sampled_from(
    [s * f for s in (1, -1) for f in (0, 5e-324, 1e-300, 1e-8, 1, 1e8, 1.7e308)]
)
INNER, ANY = st.floats(0.01, 0.99), st.floats(0, 1)
FITS = pytest.mark.parametrize("fit", [fit_slope, fit_platt])


@st.composite
def scored_rows(draw, values=MODERATE):
    """Decision values, labels and whole weights of at least one row."""
    n = draw(st.integers(1, 12))
    labels = draw(arrays(bool, n))
    weight = draw(arrays(np.float64, n, elements=st.integers(0, 3).map(float)))
    weight[0] = max(weight[0], 1.0)
    return draw(arrays(np.float64, n, elements=values)), labels, weight


@st.composite
def simplex_rows(draw, max_classes=5):
    """Probabilities of few distinct values, so that ties abound, and a predicted class a row."""
    shape = draw(st.integers(1, 6)), draw(st.integers(2, max_classes))
    counts = draw(arrays(np.int64, shape, elements=st.integers(0, 4)))
    counts[counts.sum(axis=1) == 0, 0] = 1
    predicted = draw(arrays(np.int64, shape[0], elements=st.integers(0, shape[1] - 1)))
    return counts / counts.sum(axis=1, keepdims=True), predicted


def overlapping(seed=0, n=200, shift=0.0):
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.4
    return np.where(labels, 1.0, -1.0) + random.normal(shift, 1.5, n), labels


def slope_gradient(decision, labels, weight, slope):
    """d loss / d slope without cancellation, and the sum of what is added and subtracted in it."""
    doubt = 1 / (np.where(labels, weight[labels].sum(), weight[~labels].sum()) + 2)
    margin = np.where(labels, decision, -decision)
    wrong = expit(-slope * margin)
    gradient = (weight * margin * (doubt - wrong)).sum()
    return gradient, (weight * np.abs(margin) * (doubt + wrong)).sum()


@given(rows=scored_rows())
def test_slope_is_where_the_likelihood_is_stationary(rows) -> None:
    slope = fit_slope(*rows)
    largest = np.abs(rows[0][rows[2] > 0]).max()
    if largest == 0:
        assert slope == 1.0
        return
    gradient, size = slope_gradient(*rows, slope)
    at_the_floor = slope == pytest.approx(1e-6 / largest, rel=1e-12)
    assert abs(gradient) <= 1e-12 * size or (at_the_floor and gradient > 0)


@pytest.mark.parametrize("seed", range(3))
def test_slope_is_where_scipy_finds_it(seed) -> None:
    decision, labels = overlapping(seed)
    weight = np.random.default_rng(seed).uniform(0, 3, len(decision))
    found = minimize_scalar(
        lambda slope: loss(decision, labels, weight, slope),
        bounds=(0, 50),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert fit_slope(decision, labels, weight) == pytest.approx(found.x, rel=1e-6)


@given(rows=scored_rows())
def test_weights_repeat_rows(rows) -> None:
    decision, labels, weight = rows
    repeats = np.repeat(np.arange(len(weight)), weight.astype(int))
    repeated = decision[repeats], labels[repeats], np.ones(len(repeats))
    assert fit_slope(*rows) == pytest.approx(fit_slope(*repeated), rel=1e-9)
    a, b = fit_platt(*rows)
    other_a, other_b = fit_platt(*repeated)
    assert loss(*rows, a, b) == pytest.approx(loss(*rows, other_a, other_b), rel=1e-12)


@FITS
@pytest.mark.parametrize("exponent", [-300, -27, 27, 300])
def test_slope_scales_with_the_decision_values(fit, exponent) -> None:
    decision, labels = overlapping()
    weight = np.ones(len(decision))
    a, *_ = np.atleast_1d(fit(decision, labels, weight))
    scaled, *_ = np.atleast_1d(fit(decision * 2.0**exponent, labels, weight))
    assert scaled * 2.0**exponent == pytest.approx(a, rel=1e-12)


def test_slope_of_separated_rows_reaches_the_smoothed_targets() -> None:
    """Two values only: p(f = 2) is the target (N + 1) / (N + 2) itself."""
    labels = np.repeat([True, False], 10)
    slope = fit_slope(np.where(labels, 2.0, -2.0), labels, np.ones(20))
    assert expit(2 * slope) == pytest.approx(11 / 12, rel=1e-14)


def test_slope_of_reversed_rows_keeps_the_order() -> None:
    decision = np.linspace(-1e8, 1e8, 10_001)
    slope = fit_slope(decision, decision < 0, np.ones(len(decision)))
    p = expit(slope * decision)
    assert slope > 0
    assert (np.diff(p) > 0).all()
    assert np.abs(p - 0.5).max() < 1e-6


@given(rows=scored_rows(), other=st.floats(-5, 5))
def test_a_binary_probability_never_contradicts_the_sign(rows, other) -> None:
    p = expit(fit_slope(*rows) * other)
    assert (p >= 0.5) if other > 0 else (p <= 0.5)


@FITS
@given(
    rows=scored_rows(EXTREME),
    unit=st.sampled_from([5e-324, 1e-300, 1e-8, 1.0, 1e8, 1e300, 5e307]),
)
def test_fits_of_extreme_numbers_are_finite(fit, rows, unit) -> None:
    decision, labels, weight = rows
    fitted = np.atleast_1d(fit(decision, labels, weight * unit))
    assert np.isfinite(fitted).all()
    if fit is fit_slope:
        assert fitted[0] > 0


@pytest.mark.parametrize("distance", [1e5, 1e15, 1e200])
@pytest.mark.parametrize("light", [1e-200, 1e-30, 1e-12, 1.0])
def test_slope_beside_a_distant_row(distance, light) -> None:
    """The root may lie anywhere over hundreds of powers of ten, where Newton alone gets lost."""
    decision, labels = overlapping(4, 50)
    rows = np.append(decision, distance), np.append(labels, True), np.append(np.ones(50), light)
    root = brentq(lambda log: slope_gradient(*rows, np.exp(log))[0], -600, 10, xtol=1e-13)
    least = 1e-6 / distance
    assert fit_slope(*rows) == pytest.approx(max(np.exp(root), least), rel=1e-9)


@FITS
def test_rows_without_weight_are_not_there(fit) -> None:
    decision, labels = overlapping()
    with_ghost = fit(np.append(decision, 1e9), np.append(labels, False), np.r_[np.ones(200), 0.0])
    assert with_ghost == fit(decision, labels, np.ones(200))


def test_fits_of_nothing() -> None:
    nothing = np.empty(0)
    assert fit_slope(nothing, nothing, nothing) == 1.0
    assert fit_platt(nothing, nothing, nothing) == (0.0, 0.0)


@pytest.mark.parametrize("shift", [-2.0, 0.0, 3.0])
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_platt_is_where_scipy_finds_it(shift, sense) -> None:
    decision, labels = overlapping(1, 100, shift)
    weight = np.random.default_rng(1).uniform(0, 3, len(decision))
    found = minimize(lambda at: loss(sense * decision, labels, weight, *at), np.zeros(2), tol=1e-7)
    assert fit_platt(sense * decision, labels, weight) == pytest.approx(found.x, abs=1e-4)


@given(rows=scored_rows())
def test_platt_is_where_the_likelihood_is_stationary(rows) -> None:
    decision, labels, weight = rows
    a, b = fit_platt(*rows)
    n_positive, n_negative = weight[labels].sum(), weight[~labels].sum()
    target = np.where(labels, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    pull = weight * (expit(a * decision + b) - target)
    assert abs(pull.sum()) <= 1e-9 * weight.sum()
    assert abs((pull * decision).sum()) <= 1e-9 * np.abs(weight * decision).sum()


def pairs_of(p):
    return np.stack([p[:, i] / (p[:, i] + p[:, j])
                     for i, j in combinations(range(p.shape[1]), 2)], axis=1)  # fmt: skip


@st.composite
def pair_rows(draw, elements=INNER):
    n_classes = draw(st.integers(2, 6))
    n_pairs = n_classes * (n_classes - 1) // 2
    return draw(arrays(np.float64, (draw(st.integers(1, 4)), n_pairs), elements=elements))


@settings(max_examples=50)
@given(r=pair_rows())
def test_coupling_is_the_least_sum_of_squares(r) -> None:
    coupled = couple_pairs(r)
    for p, row in zip(coupled, r, strict=True):
        assert p == pytest.approx(couple(row, len(p)), abs=1e-8)


@given(r=pair_rows(ANY))
def test_coupled_probabilities_are_optimal(r) -> None:
    """All partial derivatives are equal, which with p >= 0 is optimality over the simplex."""
    coupled = couple_pairs(r)
    assert (coupled >= 0).all()
    assert np.abs(coupled.sum(axis=1) - 1).max() <= 1e-12
    for p, row in zip(coupled, np.clip(r, 1e-7, 1 - 1e-7), strict=True):
        gradient = sum((v @ p) * v for v in coupling_terms(row, len(p)))
        assert np.ptp(gradient) <= 1e-13


@pytest.mark.parametrize("n_classes", [2, 3, 10, 40])
def test_coupling_recovers_consistent_probabilities(n_classes) -> None:
    p = np.random.default_rng(n_classes).dirichlet(np.ones(n_classes), 20) + 1e-4
    p /= p.sum(axis=1, keepdims=True)
    assert np.abs(couple_pairs(pairs_of(p)) - p).max() <= 1e-12


def test_coupling_of_two_classes_is_the_pair_itself() -> None:
    r = np.array([0.0, 1e-7, 0.25, 0.5, 1.0])
    assert couple_pairs(r[:, None])[:, 0] == pytest.approx(np.clip(r, 1e-7, 1 - 1e-7), abs=1e-15)


def test_coupling_of_one_class_and_of_no_rows() -> None:
    assert (couple_pairs(np.empty((3, 0))) == 1).all()
    assert couple_pairs(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("n_classes", [2, 3, 9, 20])
def test_coupling_of_a_row_does_not_see_its_neighbours(n_classes) -> None:
    """One row at a time, all at once and beyond a chunk, from either memory order: same bits."""
    random = np.random.default_rng(0)
    r = random.random((6000, n_classes * (n_classes - 1) // 2))
    together = couple_pairs(np.asfortranarray(r))
    assert (couple_pairs(r[::-1])[::-1] == together).all()
    for i in random.integers(0, len(r), 20):
        assert (couple_pairs(r[i : i + 1])[0] == together[i]).all()


@given(rows=simplex_rows())
def test_agreement_is_in_the_argmax(rows) -> None:
    p, predicted = rows
    q = agree_with(p, predicted)
    assert (q.argmax(axis=1) == predicted).all()
    assert (np.log(np.maximum(q, 1e-300)).argmax(axis=1) == predicted).all()
    assert (q >= 0).all()
    assert np.abs(q.sum(axis=1) - 1).max() <= 1e-12
    agreed = p.argmax(axis=1) == predicted
    assert (q[agreed] == p[agreed]).all()
    for row, winner in zip(q[~agreed], predicted[~agreed], strict=True):
        assert (row[winner] > np.delete(row, winner)).all()


@given(rows=simplex_rows(max_classes=4))
def test_agreement_is_the_projection(rows) -> None:
    p, predicted = rows
    for q, row, winner in zip(agree_with(p, predicted), p, predicted, strict=True):
        assert q == pytest.approx(nearest_agreeing(row, winner), abs=1e-9)


@given(rows=simplex_rows())
def test_agreement_leaves_its_argument_and_its_own_answer_alone(rows) -> None:
    p, predicted = rows
    before = p.copy()
    q = agree_with(p, predicted)
    assert (p == before).all()
    assert (agree_with(q, predicted) == q).all()


def test_agreement_of_two_classes_is_one_half() -> None:
    p = np.array([[0.7, 0.3], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    q = agree_with(p, [1, 1, 1, 0])
    assert q == pytest.approx(np.full((4, 2), 0.5), abs=1e-9)
    assert q.argmax(axis=1).tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("n_classes", [2, 9, 300])
def test_agreement_of_a_row_does_not_see_its_neighbours(n_classes) -> None:
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(n_classes, 0.3), 500)
    predicted = random.integers(0, n_classes, len(p))
    together = agree_with(np.asfortranarray(p), predicted)
    assert (together.argmax(axis=1) == predicted).all()
    for i in range(20):
        assert (agree_with(p[i : i + 1], predicted[i : i + 1])[0] == together[i]).all()


def test_agreement_of_no_rows_and_of_one_class() -> None:
    assert agree_with(np.empty((0, 3)), np.empty(0)).shape == (0, 3)
    assert agree_with(np.ones((2, 1)), [0, 0]).tolist() == [[1.0], [1.0]]


@given(rows=simplex_rows(), seed=st.integers(0, 99))
def test_log_loss_is_scikit_learns(rows, seed) -> None:
    p, codes = rows
    weight = np.random.default_rng(seed).uniform(0.1, 3, len(codes))
    theirs = sklearn_log_loss(codes, p, sample_weight=weight, labels=range(p.shape[1]))
    assert log_loss(p, codes, weight) == pytest.approx(theirs, rel=1e-12, abs=1e-14)


def test_log_loss_of_certain_mistakes_and_heavy_rows_is_finite() -> None:
    p = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert log_loss(p, [1, 1], [1e308, 1e308]) == pytest.approx(-np.log(np.finfo(float).eps))


def test_price_of_agreement_is_what_the_offset_would_gain() -> None:
    """Platt's family contains every slope, so the offset cannot lose on the smoothed targets."""
    decision, labels = overlapping(2, shift=1.0)
    weight = np.ones(len(decision))
    slope, (a, b) = fit_slope(decision, labels, weight), fit_platt(decision, labels, weight)
    assert loss(decision, labels, weight, a, b) < loss(decision, labels, weight, slope)
    returned, free = (np.column_stack([expit(-z), expit(z)])
                      for z in (slope * decision, a * decision + b))  # fmt: skip
    changed = int((free.argmax(axis=1) != (decision > 0)).sum())
    price = PriceOfAgreement(
        log_loss(returned, labels, weight), log_loss(free, labels, weight), changed
    )
    assert price.difference == price.log_loss - price.log_loss_unconstrained
    assert price.difference > 0
