"""Losses of gradient boosting against scikit-learn, and finite where its losses are not."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn._loss import loss as peers
from sklearn.utils.stats import _weighted_percentile
from tests.members import run_members
from tests.oracles.quantiles import weighted_quantile

from margrove.ensemble.gradient.losses import (
    GRADIENT_LOSSES,
    AbsoluteError,
    Exponential,
    Gamma,
    GradientLoss,
    Huber,
    LogLoss,
    MulticlassLogLoss,
    Poisson,
    Quantile,
    SquaredError,
    Tweedie,
    gradient_loss,
    gradient_loss_of,
    loss_names,
    register_gradient_loss,
)
from margrove.ensemble.gradient.losses.exact_means import mean_of_rows
from margrove.ensemble.gradient.losses.exponentials import exp_of, log_from_one, log_of_one_plus
from margrove.ensemble.gradient.losses.log_link import LogLinkLoss
from margrove.ensemble.gradient.losses.quantiles import quantile_of, quantiles_of_leaves
from margrove.exceptions import InvalidDataError

pytestmark = pytest.mark.nojit

LARGEST = np.finfo(np.float64).max


def log_cosh(y, raw):
    return math.log(math.cosh(raw - y))


def log_cosh_slope(y, raw):
    return math.tanh(raw - y)


def log_cosh_bend(y, raw):
    return 1.0 - math.tanh(raw - y) ** 2


PAIRS = {
    "squared_error": (SquaredError(), peers.HalfSquaredError()),
    "absolute_error": (AbsoluteError(), peers.AbsoluteError()),
    "huber": (Huber(0.8, delta=0.7), peers.HuberLoss(quantile=0.8, delta=0.7)),
    "quantile": (Quantile(0.3), peers.PinballLoss(quantile=0.3)),
    "poisson": (Poisson(), peers.HalfPoissonLoss()),
    "gamma": (Gamma(), peers.HalfGammaLoss()),
    "tweedie": (Tweedie(1.3), peers.HalfTweedieLoss(power=1.3)),
    "log_loss": (LogLoss(), peers.HalfBinomialLoss()),
    "log_loss of 4": (MulticlassLogLoss(4), peers.HalfMultinomialLoss(n_classes=4)),
    "exponential": (Exponential(), peers.ExponentialLoss()),
}
OWN = GradientLoss.of_functions(log_cosh, log_cosh_slope, log_cosh_bend, name="log_cosh")
EVERY = GRADIENT_LOSSES | {name: ours for name, (ours, _) in PAIRS.items()} | {"own": OWN}
KINKED = ("absolute_error", "quantile", "huber")  # its second derivative is a convention
RENEWING = [name for name, loss in EVERY.items() if loss.differs_from_mean]

every_loss = pytest.mark.parametrize("loss", EVERY.values(), ids=EVERY)
every_pair = pytest.mark.parametrize(("loss", "peer"), PAIRS.values(), ids=PAIRS)
every_mean = pytest.mark.parametrize("name", [name for name in PAIRS if name not in KINKED])


def targets(loss, n, seed=0):
    rng = np.random.default_rng(seed)
    if loss.for_classes:
        y = rng.integers(0, max(loss.n_scores, 2), n).astype(float)
        y[: max(loss.n_scores, 2)] = np.arange(max(loss.n_scores, 2))
        return y
    y = 2.0 * rng.standard_normal(n)
    if not isinstance(loss, LogLinkLoss):
        return y
    return np.abs(y) + 0.1 if "strictly" in loss.required else np.where(y > 0.0, y, 0.0)


def case(loss, n=60, seed=0):
    """Targets, scores and weights; some weights are 0."""
    rng = np.random.default_rng(seed + 1)
    raw = 1.5 * rng.standard_normal((loss.n_scores, n))
    return targets(loss, n, seed), raw, rng.integers(0, 4, n).astype(float)


def derivatives(loss, y, raw, weight=None):
    gradient, hessian = np.full((2, *raw.shape), np.nan)
    loss.derive(y, raw, weight, gradient, hessian)
    return gradient, hessian


def together(loss, y, raw, weight=None):
    """The result of `derivatives`, and the mean of the losses."""
    gradient, hessian = np.full((2, *raw.shape), np.nan)
    losses = np.empty(len(y))
    loss.derive(y, raw, weight, gradient, hessian, losses)
    return (gradient, hessian), mean_of_rows(losses, weight)


def for_peer(raw):
    return np.ascontiguousarray(raw[0] if len(raw) == 1 else raw.T)


def close(a, b, tolerance=1e-12):
    return np.allclose(a, b, rtol=tolerance, atol=tolerance)


# -- scikit-learn's --------------------------------------------------------------------------------


def test_every_loss_is_known_by_its_name() -> None:
    assert {loss.name for loss, _ in PAIRS.values()} <= set(GRADIENT_LOSSES)
    for name, loss in GRADIENT_LOSSES.items():
        assert loss.name == name


@every_pair
@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_those_of_the_peer(loss, peer, weighted) -> None:
    y, raw, weight = case(loss)
    if not weighted:
        weight = None
    gradient, hessian = peer.gradient_hessian(y, for_peer(raw), weight)
    ours = derivatives(loss, y, raw, weight)
    assert close(for_peer(ours[0]), gradient)
    assert close(for_peer(ours[1]), hessian)


@every_pair
def test_values_are_those_of_the_peer(loss, peer) -> None:
    y, raw, weight = case(loss)
    assert close(loss.value(y, raw, None), peer(y, for_peer(raw)))
    assert close(loss.value(y, raw, weight), peer(y, for_peer(raw), weight))


@every_mean
@pytest.mark.parametrize("n", [4, 59, 60])
def test_starts_are_those_of_the_peer(name, n) -> None:
    loss, peer = PAIRS[name]
    y, _, weight = case(loss, n)
    weight[0] = 2.0
    for given in (None, weight, np.ones(n)):
        start = loss.start(y, given)
        assert start.shape == (loss.n_scores,)
        assert close(start, peer.fit_intercept_only(y, given))


@every_pair
def test_predictions_are_those_of_the_peer(loss, peer) -> None:
    _, raw, _ = case(loss)
    inverse = peer.predict_proba if loss.for_classes else peer.link.inverse
    assert close(loss.link_inverse(raw), inverse(for_peer(raw)))


@every_pair
def test_what_is_constant_and_what_renews_is_what_the_peer_says(loss, peer) -> None:
    assert loss.is_constant_hessian == peer.constant_hessian
    assert loss.differs_from_mean == (not peer.differentiable)


@pytest.mark.parametrize("n", [1, 2, 30, 31])
def test_leaves_are_worth_what_the_peer_says(n) -> None:
    """scikit-learn interpolates only without weights, so it is made to interpolate."""
    rng = np.random.default_rng(n)
    residuals, weights = rng.standard_normal(n), rng.uniform(0.0, 2.0, n)
    assert AbsoluteError().leaf_value(residuals, None) == np.median(residuals)
    assert Huber(delta=0.0).leaf_value(residuals, None) == np.median(residuals)
    for given in (None, weights, np.ones(n)):
        used = np.ones(n) if given is None else given
        median = _weighted_percentile(residuals, used, 50, average=True)
        quantile = _weighted_percentile(residuals, used, 30, average=True)
        step = np.average(np.clip(residuals - median, -0.7, 0.7), weights=given)
        assert AbsoluteError().leaf_value(residuals, given) == median
        assert Quantile(0.3).leaf_value(residuals, given) == quantile
        assert close(Huber(delta=0.7).leaf_value(residuals, given), median + step)


def test_only_classes_that_are_missing_are_clipped() -> None:
    y = np.array([0.0, 0.0, 2.0])
    peer = peers.HalfMultinomialLoss(n_classes=3)
    assert close(MulticlassLogLoss(3).start(y, None), peer.fit_intercept_only(y))
    for loss in (LogLoss(), Exponential()):
        peer = PAIRS[loss.name][1]
        for y in (np.zeros(3), np.ones(3)):
            assert close(loss.start(y, None), peer.fit_intercept_only(y))


# -- derivatives -----------------------------------------------------------------------------------


@every_loss
def test_gradients_are_slopes_of_the_value(loss) -> None:
    y, raw, weight = case(loss, 12)
    weight[:2] = 1.0, 3.0
    gradient, _ = derivatives(loss, y, raw, weight)
    step = 1e-6
    for k in range(loss.n_scores):
        for i in range(len(y)):
            up, down = raw.copy(), raw.copy()
            up[k, i] += step
            down[k, i] -= step
            slope = (loss.value(y, up, weight) - loss.value(y, down, weight)) / (2 * step)
            assert slope * weight.sum() == pytest.approx(gradient[k, i], abs=1e-7, rel=1e-7)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in KINKED])
def test_hessians_are_slopes_of_the_gradient(name) -> None:
    loss = EVERY[name]
    y, raw, weight = case(loss)
    _, hessian = derivatives(loss, y, raw, weight)
    step = 1e-6
    for k in range(loss.n_scores):
        up, down = raw.copy(), raw.copy()
        up[k] += step
        down[k] -= step
        slope = derivatives(loss, y, up, weight)[0] - derivatives(loss, y, down, weight)[0]
        assert close(slope[k] / (2 * step), hessian[k], 1e-7)


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_shares_are_the_whole(loss, weighted, monkeypatch) -> None:
    y, raw, weight = case(loss, 50)
    weight = weight if weighted else None
    whole, mean = together(loss, y, raw, weight)
    assert np.array_equal(derivatives(loss, y, raw, weight), whole)
    assert loss.value(y, raw, weight) == mean
    monkeypatch.setattr(gradient_loss, "_SCORES_OF_A_SHARE", 1)
    monkeypatch.setattr(gradient_loss, "_LEAST_ROWS", 7)
    monkeypatch.setattr(gradient_loss, "_ROWS_AT_ONCE", 20)
    assert len(list(loss._batches(50, 1))) == 4
    assert np.array_equal(derivatives(loss, y, raw, weight), whole)
    assert np.array_equal(together(loss, y, raw, weight)[0], whole)
    assert together(loss, y, raw, weight)[1] == mean
    assert loss.value(y, raw, weight) == mean


# -- means of the losses ---------------------------------------------------------------------------


def exact_mean(values, weight):
    """Of the products as they are rounded."""
    weight = np.ones(len(values)) if weight is None else weight
    total = sum(Fraction(float(value)) for value in (values * weight)[weight > 0.0])
    return float(total / sum(map(Fraction, weight.tolist())))


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 300),
    spread=st.sampled_from([0.0, 1.0, 8.0]),
    size=st.sampled_from([1e-300, 1.0, 1e290]),
    is_weighted=st.booleans(),
)
def test_means_are_exact(seed, n, spread, size, is_weighted) -> None:
    rng = np.random.default_rng(seed)
    values = size * 10.0 ** rng.uniform(-spread, spread, n) * rng.choice([0.0, 1.0, -1.0], n)
    weight = 2.0 ** rng.integers(-3, 4, n) * rng.integers(0, 2, n) if is_weighted else None
    if weight is not None:
        weight[0] = 1.0
    wanted = exact_mean(values, weight)
    found = mean_of_rows(values.copy(), weight)
    assert found == pytest.approx(wanted, rel=1e-15, abs=1e-20 * np.abs(values).max())
    order = rng.permutation(n)
    reordered = None if weight is None else weight[order]
    assert mean_of_rows(values[order], reordered) == found


def test_means_of_many_rows_do_not_depend_on_tiles_and_members() -> None:
    rng = np.random.default_rng(0)
    values, weight = rng.exponential(size=50_000), rng.uniform(0.1, 3.0, 50_000)
    wanted = mean_of_rows(values.copy(), weight)
    assert wanted == pytest.approx(exact_mean(values, weight), rel=1e-15)
    for n_threads in (1, 2, 5):
        assert mean_of_rows(values.copy(), weight, n_threads=n_threads) == wanted
    for borders in ([0], [1, 20_000], [50_000]):
        parts = zip(np.split(values.copy(), borders), np.split(weight, borders), strict=True)
        found = run_members(
            lambda collective, own, own_weight: mean_of_rows(
                own.copy(), own_weight, collective=collective
            ),
            list(parts),
        )
        assert found == [wanted] * len(found)


def test_means_of_odd_values() -> None:
    assert mean_of_rows(np.empty(0), None) == 0.0
    assert mean_of_rows(np.ones(3), np.zeros(3)) == 0.0
    assert mean_of_rows(np.array([np.inf, 1.0]), np.array([0.0, 1.0])) == 1.0
    assert mean_of_rows(np.array([np.inf, 1.0]), None) == np.inf
    assert np.isnan(mean_of_rows(np.array([np.nan, np.inf]), None))
    assert mean_of_rows(np.array([5e-324] * 3), None) == 5e-324
    assert mean_of_rows(np.full(1000, 1.7e308), None) == 1.7e308


def test_losses_of_very_different_sizes_are_added_up_exactly() -> None:
    rng = np.random.default_rng(0)
    y, raw = np.zeros(5000), (10.0 ** rng.uniform(-8.0, 8.0, (1, 5000)))
    weight = 2.0 ** rng.integers(-3, 3, 5000)
    for given_weight in (None, weight):
        found = AbsoluteError().value(y, raw, given_weight)
        assert found == exact_mean(raw[0], given_weight)


def test_an_infinite_sum_is_no_nan() -> None:
    y, raw = np.zeros(200), np.full((1, 200), 1.0)
    raw[0, [3, 67, 68]] = 1e300
    for loss in (SquaredError(), Poisson(), Exponential()):
        assert loss.value(y, raw, None) == math.inf
    weight = (raw[0] == 1.0).astype(float)
    assert SquaredError().value(y, raw, weight) == 0.5


# -- extremes --------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("size", [30.0, 40.0, 709.0, 710.0, 800.0, 1e10, 1e300])
@pytest.mark.parametrize("weight", [None, 1e-300, 0.0, 1e300])
def test_derivatives_stay_finite(loss, size, weight) -> None:
    y = np.repeat(targets(loss, 4), 2)
    raw = np.zeros((loss.n_scores, len(y)))
    raw[0] = np.tile([size, -size], 4)
    given = None if weight is None else np.full(len(y), weight)
    gradient, hessian = derivatives(loss, y, raw, given)
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert (hessian >= 0.0).all()
    assert np.isfinite(gradient.sum())
    if loss is not OWN:  # its value is infinity minus infinity
        assert np.array_equal(together(loss, y, raw, given)[0], (gradient, hessian))
    if loss is not OWN:
        assert np.isfinite(loss.link_inverse(raw)).all()


@pytest.mark.parametrize("name", ["squared_error", "huber", "poisson", "gamma", "tweedie"])
def test_derivatives_of_extreme_targets_stay_finite(name) -> None:
    loss = EVERY[name]
    y = np.full(4, LARGEST)
    raw = np.array([[-LARGEST, -1e300, 0.0, LARGEST]])
    gradient, hessian = derivatives(loss, y, raw, np.full(4, 1e10))
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert np.array_equal(together(loss, y, raw, np.full(4, 1e10))[0], (gradient, hessian))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("size", [40.0, 700.0, 800.0, 1e150, 1e300])
def test_values_are_never_nan(name, size) -> None:
    loss = EVERY[name]
    y = np.repeat(targets(loss, 4), 2)
    raw = np.zeros((loss.n_scores, len(y)))
    raw[0] = np.tile([size, -size], 4)
    for weight in (None, np.arange(8.0)):
        assert not math.isnan(loss.value(y, raw, weight))


def test_values_are_infinite_only_where_they_are() -> None:
    one, far = np.ones(1), np.full((1, 1), 1e300)
    finite = {
        AbsoluteError(): (1e300, 1e300),
        Quantile(0.25): (0.75e300, 0.25e300),
        LogLoss(): (0.0, 1e300),
        Gamma(): (1e300, math.inf),
        SquaredError(): (math.inf, math.inf),
        Poisson(): (math.inf, 1e300),
        Tweedie(): (math.inf, math.inf),
        Exponential(): (0.0, math.inf),
    }
    for loss, (above, below) in finite.items():
        assert loss.value(one, far, None) == pytest.approx(above)
        assert loss.value(one, -far, None) == pytest.approx(below)
    assert Tweedie().value(0.0 * one, -far, None) == 0.0


def test_a_mean_is_finite_where_the_sum_is_not() -> None:
    y, raw = np.zeros(1000), np.full((1, 1000), 1e308)
    assert AbsoluteError().value(y, raw, None) == pytest.approx(1e308)
    assert AbsoluteError().value(y, raw, np.full(1000, 3.0)) == pytest.approx(1e308)
    assert SquaredError().start(np.full(1000, 1e308), None) == pytest.approx(1e308)
    assert SquaredError().start(np.full(1000, 1e308), np.full(1000, 1e200)) == pytest.approx(1e308)


def test_an_infinite_loss_of_weight_zero_does_not_count() -> None:
    y, raw = np.array([1.0, 1.0]), np.array([[1e300, 1.0]])
    value = SquaredError().value(y, raw + np.array([[0.0, 1.0]]), np.array([0.0, 2.0]))
    assert value == 0.5
    assert SquaredError().value(y, raw, np.zeros(2)) == 0.0


def test_small_probabilities_of_either_class_keep_their_digits() -> None:
    shares = LogLoss().link_inverse(np.array([[-100.0, 100.0]]))
    assert shares[0, 1] == pytest.approx(math.exp(-100.0), rel=1e-12)
    assert shares[1, 0] == pytest.approx(math.exp(-100.0), rel=1e-12)


def test_losses_of_sure_classes_keep_their_digits() -> None:
    for raw, y in ((60.0, 1.0), (-60.0, 0.0)):
        value = LogLoss().value(np.array([y]), np.array([[raw]]), None)
        assert value == pytest.approx(math.exp(-60.0), rel=1e-12)


def test_derivatives_of_sure_classes_keep_their_digits() -> None:
    raw = np.array([[60.0, -60.0, 60.0, -60.0]])
    gradient, hessian = derivatives(LogLoss(), np.array([1.0, 0.0, 0.0, 1.0]), raw)
    tiny = math.exp(-60.0)
    assert gradient[0] == pytest.approx([-tiny, tiny, 1.0, -1.0], rel=1e-14, abs=0.0)
    assert hessian[0] == pytest.approx(np.full(4, tiny), rel=1e-14, abs=0.0)


def test_classes_far_apart() -> None:
    raw = np.array([[1e6, 1e6], [1e6 - 1.0, -LARGEST], [-1e6, LARGEST]])
    y = np.array([1.0, 0.0])
    (gradient, hessian), _ = together(MulticlassLogLoss(3), y, raw)
    share = 1.0 / (1.0 + math.e)
    assert close(gradient, [[1.0 - share, -1.0], [share - 1.0, 0.0], [0.0, 1.0]], 1e-15)
    assert close(hessian, [[share - share**2, 0.0], [share - share**2, 0.0], [0.0, 0.0]], 1e-15)
    value = MulticlassLogLoss(3).value(y[:1], raw[:, :1].copy(), None)
    assert value == pytest.approx(1.0 + math.log1p(math.exp(-1.0)), rel=1e-15)


# -- weights ---------------------------------------------------------------------------------------


@every_loss
def test_a_weight_is_so_many_rows(loss) -> None:
    y, raw, weight = case(loss)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    ones = np.ones(len(rows))
    repeated = loss.value(y[rows], np.ascontiguousarray(raw[:, rows]), None)
    assert loss.value(y, raw, weight) == pytest.approx(repeated, rel=1e-14)
    assert loss.value(y, raw, 3.0 * weight) == pytest.approx(repeated, rel=1e-14)
    tolerance = 1e-12 if loss is OWN else 0.0  # it sums rounded products
    for given in (None, ones, 0.1 * ones):
        assert close(loss.start(y, weight), loss.start(y[rows], given), tolerance)


@pytest.mark.parametrize("name", RENEWING)
@pytest.mark.parametrize("n", [2, 7, 60])
def test_a_weight_in_a_leaf_is_so_many_rows(name, n) -> None:
    loss = EVERY[name]
    y, _, weight = case(loss, n)
    weight[0] = 2.0
    rows = np.repeat(np.arange(n), weight.astype(int))
    repeated = loss.leaf_value(y[rows], None)
    assert loss.leaf_value(y, weight) == repeated
    assert loss.leaf_value(y[rows], np.ones(len(rows))) == repeated
    assert loss.leaf_value(y[rows], np.full(len(rows), 0.1)) == repeated
    assert loss.leaf_value(y, np.zeros(n)) == 0.0


@every_loss
def test_the_order_of_rows_does_not_matter(loss) -> None:
    y, raw, _ = case(loss, 300)
    y[5:40] = y[:35]
    weight = np.random.default_rng(3).uniform(0.1, 5.0, 300)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(300)
        for given in (None, weight):
            ordered = None if given is None else given[order]
            assert np.array_equal(loss.start(y, given), loss.start(y[order], ordered))
            if loss.differs_from_mean:
                assert loss.leaf_value(y, given) == loss.leaf_value(y[order], ordered)
            shuffled = np.ascontiguousarray(raw[:, order])
            assert loss.value(y, raw, given) == pytest.approx(
                loss.value(y[order], shuffled, ordered), rel=1e-15
            )


@pytest.mark.parametrize("constant", [0.1, 1 / 3, -1e-310, 1e308, LARGEST, 0.0])
def test_the_mean_of_equal_targets_is_no_other(constant) -> None:
    for n in range(1, 40):
        y, weight = np.full(n, constant), np.linspace(0.1, 3.0, n)
        assert SquaredError().start(y, None) == constant
        assert SquaredError().start(y, weight) == constant
        y[0], weight[0] = 1.0, 0.0
        assert n == 1 or SquaredError().start(y, weight) == constant


def test_read_only_arrays_are_welcome() -> None:
    y, raw, weight = case(LogLoss())
    expected = LogLoss().value(y, raw, weight)
    for array in (y, raw, weight):
        array.flags.writeable = False
    assert LogLoss().value(y, raw, weight) == expected
    assert np.isfinite(derivatives(LogLoss(), y, raw, weight)).all()


# -- quantiles and leaves --------------------------------------------------------------------------

QUANTILES = (0.01, 0.1, 0.25, 0.3, 0.5, 0.55, 0.7, 0.9, 0.999)


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 20, 100])
def test_quantiles_are_those_of_sorted_rows(quantile, n) -> None:
    rng = np.random.default_rng(n)
    for values in (rng.standard_normal(n), rng.integers(0, 4, n).astype(float), np.arange(n) - 3.0):
        whole, fractions = rng.integers(0, 4, n).astype(float), rng.uniform(0.0, 2.0, n)
        for weight in (None, whole, fractions, 1e-310 * whole, 1e300 * whole, 2.0**40 * whole):
            found = quantile_of(values, weight, quantile)
            assert found == weighted_quantile(values, weight, quantile)


def test_quantiles_of_all_orders_of_rows() -> None:
    rising = np.arange(1001.0)
    pipe = np.concatenate([rising[::2], rising[1::2][::-1]])
    for values in (rising, rising[::-1].copy(), pipe, pipe[::-1].copy()):
        assert quantile_of(values, None, 0.5) == 500.0
        assert quantile_of(values, None, 0.9) == 900.0
        assert quantile_of(values[values < 1000.0], None, 0.9) == 899.5


def test_quantiles_of_extreme_values() -> None:
    assert quantile_of(np.array([LARGEST, LARGEST]), None, 0.5) == LARGEST
    assert quantile_of(np.array([-LARGEST, LARGEST]), None, 0.5) == 0.0
    assert quantile_of(np.array([3.0, 4.0]), None, 1.0 - 1e-16) == 4.0
    assert quantile_of(np.array([3.0, 4.0]), None, 1e-300) == 3.0
    assert quantile_of(np.array([3.0, 4.0, 5.0]), np.array([1.0, 1e-30, 1.0]), 0.5) in (3.5, 4.0)


def test_one_quantile_however_the_share_was_computed() -> None:
    values = np.arange(10.0)
    for quantile in (0.1, 1.0 - 0.9, 0.3 / 3.0, np.nextafter(0.1, 1.0)):
        assert quantile_of(values, None, quantile) == 0.5
    assert quantile_of(values, None, 0.1 + 1e-12) == 1.0
    assert quantile_of(values, None, 0.1 - 1e-12) == 0.0


@pytest.mark.parametrize("name", RENEWING)
@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_together_are_the_leaves_one_by_one(name, weighted) -> None:
    loss = EVERY[name]
    rng = np.random.default_rng(0)
    residual, weight = rng.standard_normal(90), rng.integers(0, 4, 90).astype(float)
    weight = weight if weighted else None
    rows = rng.permutation(90).astype(np.int32)
    starts = np.array([0, 1, 3, 40, 83])  # the last seven rows are in no leaf
    found = loss.leaf_values(residual, weight, rows, starts)
    assert found.shape == (4,)
    for leaf, (start, end) in enumerate(pairwise(starts)):
        own = rows[start:end]
        given = None if weight is None else weight[own]
        assert found[leaf] == loss.leaf_value(residual[own], given)


def test_leaves_without_rows_or_weight_are_worth_nothing() -> None:
    rows, starts = np.arange(3, dtype=np.int32), np.array([0, 0, 2, 3])
    weight = np.array([0.0, 0.0, 1.0])
    found = quantiles_of_leaves(np.array([5.0, 6.0, 7.0]), weight, 0.5, rows, starts)
    assert np.array_equal(found, [0.0, 0.0, 7.0])


# -- exponentials and logarithms -------------------------------------------------------------------


def units_off(found, exact):
    """The error of a number in units of the last place."""
    return float(abs(Decimal(float(found)) - exact) / Decimal(math.ulp(float(exact))))


def test_exponentials_to_the_last_digits() -> None:
    rng = np.random.default_rng(0)
    halves = (np.arange(-1020.0, 1021.0, 97.0) + 0.5) * math.log(2.0)  # where 2^k changes
    points = [rng.uniform(-708.0, 708.0, 500), rng.uniform(-1.0, 1.0, 300), halves]
    points += [np.nextafter(halves, np.inf), 10.0 ** -rng.uniform(1.0, 320.0, 50)]
    points.append(np.array([-708.0, 708.0]))
    for x in np.concatenate(points):
        assert units_off(exp_of(x), Decimal(float(x)).exp()) <= 2.0


def test_exponentials_at_the_ends() -> None:
    assert exp_of(0.0) == exp_of(-0.0) == 1.0
    largest = 709.782712893384
    assert units_off(exp_of(largest), Decimal(largest).exp()) <= 2.0
    for x in (np.nextafter(largest, np.inf), 710.0, 1e10, 1e300, LARGEST, math.inf):
        assert exp_of(x) == math.inf
    for x in np.linspace(-745.1, -708.0, 100):  # subnormal results have fewer digits
        assert units_off(exp_of(x), Decimal(float(x)).exp()) <= 2.0
    assert exp_of(-745.13) == 5e-324
    for x in (-745.14, -746.0, -1e10, -LARGEST, -math.inf):
        assert exp_of(x) == 0.0
    assert math.isnan(exp_of(math.nan))


def test_logarithms_to_the_last_digits() -> None:
    rng = np.random.default_rng(0)
    shares = np.concatenate([rng.uniform(0.0, 1.0, 300), 10.0 ** -rng.uniform(0.0, 300.0, 100)])
    for x in shares:
        with localcontext(prec=60):
            exact = (1 + Decimal(float(x))).ln() if x > 1e-20 else Decimal(float(x))
        assert units_off(log_of_one_plus(x), exact) <= 3.0
    assert log_of_one_plus(0.0) == 0.0
    assert log_of_one_plus(1.0) == math.log(2.0)
    for x in np.concatenate([1.0 + shares[shares > 1e-15], 10.0 ** rng.uniform(0.0, 300.0, 300)]):
        with localcontext(prec=60):
            exact = Decimal(float(x)).ln()
        assert units_off(log_from_one(x), exact) <= 3.0
    assert log_from_one(1.0) == 0.0


def test_machine_code_has_the_digits_of_plain_arithmetic() -> None:
    for x in np.random.default_rng(0).uniform(0.0, 1.0, 100):
        for function in (exp_of, log_of_one_plus):
            assert function(x) == getattr(function, "py_func", function)(x)


# -- the bend of Huber's loss ----------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_hubers_bend_is_a_quantile_of_the_errors(weighted) -> None:
    loss = Huber(0.7)
    y, raw, weight = case(loss)
    given = weight if weighted else None
    used = weight if weighted else np.ones(len(y))
    delta = _weighted_percentile(np.abs(y - raw[0]), used, 70, average=True)
    round_loss, peer = loss.for_round(y, raw, given), peers.HuberLoss(quantile=0.7, delta=delta)
    assert round_loss == Huber(0.7, delta=delta)
    assert loss.delta == 0.0
    assert close(round_loss.value(y, raw, given), peer(y, raw[0], given))


def test_hubers_first_score_is_the_median() -> None:
    y = np.array([1.0, 2.0, 40.0])
    assert Huber().start(y, None) == 2.0
    assert Huber().start(y, np.array([1.0, 1.0, 5.0])) == 40.0


def test_other_losses_are_the_same_in_all_rounds() -> None:
    y, raw, weight = case(Poisson())
    assert Poisson().for_round(y, raw, weight) == Poisson()


# -- targets and parameters ------------------------------------------------------------------------


@every_loss
def test_good_targets_become_float64(loss) -> None:
    y = targets(loss, 20)
    assert np.array_equal(loss.check_targets(y.tolist()), y)
    checked = loss.check_targets(np.ones(3, np.int32))
    assert checked.dtype == np.float64


@every_loss
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_targets_are_finite(loss, bad) -> None:
    with pytest.raises(InvalidDataError, match=r"row 1 \(1 such rows\).*requires finite numbers"):
        loss.check_targets([1.0, bad, 1.0])


@every_loss
def test_targets_are_one_column(loss) -> None:
    with pytest.raises(InvalidDataError, match=r"shape \(2, 1\).*one target for each row"):
        loss.check_targets(np.ones((2, 1)))


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (Poisson(), [1, -2, -3], r"y is -2.0 in row 1 \(2 such rows\), but loss='poisson'"),
        (Tweedie(), [1, -2, 3], r"requires non-negative y and sum\(y\) > 0\."),
        (Gamma(), [1, -2, 3], r"loss='gamma' requires strictly positive y\."),
        (Gamma(), [1, 2, 0], "y is 0.0 in row 2.*requires strictly positive y.*loss='poisson'"),
        (Poisson(), [0, 0], r"0 in all 2 rows.*requires non-negative y and sum\(y\) > 0\."),
        (LogLoss(), [0, 1, 2], "y is 2.0 in row 2.*the classes 0 and 1"),
        (Exponential(), [-1, 1], "the classes 0 and 1"),
        (MulticlassLogLoss(3), [0, 1, 3], r"the classes 0 \.\. 2"),
        (MulticlassLogLoss(3), [0, 0.5, 1], "y is 0.5 in row 1"),
        (MulticlassLogLoss(3), [0, -1, 1], "y is -1.0 in row 1"),
    ],
)
def test_targets_out_of_range(loss, y, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        loss.check_targets(y)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("quantile", {"quantile": 0.0}),
        ("quantile", {"quantile": 1.0}),
        ("quantile", {"quantile": np.nan}),
        ("huber", {"alpha": 1.5}),
        ("tweedie", {"power": 1.0}),
        ("tweedie", {"power": 2.0}),
    ],
)
def test_parameters_out_of_range(name, parameters) -> None:
    with pytest.raises(ValueError, match="both excluded"):
        gradient_loss_of(name, **parameters)


def test_losses_by_name() -> None:
    assert gradient_loss_of("tweedie", power=1.2) == Tweedie(1.2)
    assert gradient_loss_of(Quantile(0.2)) == Quantile(0.2)
    with pytest.raises(ValueError, match="loss='poisson' has no parameter 'quantile'"):
        gradient_loss_of("poisson", quantile=0.5)
    for unknown in ("nonsense", 3):
        with pytest.raises(ValueError, match="loss must be one of"):
            gradient_loss_of(unknown)
    assert loss_names(for_classes=True) == ["log_loss", "exponential"]
    assert set(loss_names(for_classes=False)) == set(GRADIENT_LOSSES) - {"log_loss", "exponential"}


def test_losses_for_a_number_of_classes() -> None:
    assert gradient_loss_of("log_loss", n_classes=2) == LogLoss()
    assert gradient_loss_of("log_loss", n_classes=5) == MulticlassLogLoss(5)
    assert MulticlassLogLoss(5).with_classes(2) == LogLoss()
    assert gradient_loss_of("exponential", n_classes=2) == Exponential()
    with pytest.raises(InvalidDataError, match=r"two classes, but y has 3.*log_loss"):
        gradient_loss_of("exponential", n_classes=3)
    with pytest.raises(ValueError, match="n_classes must be at least 2"):
        MulticlassLogLoss(1)


@every_loss
def test_losses_are_values(loss) -> None:
    copy = pickle.loads(pickle.dumps(loss))
    assert copy == loss
    assert hash(copy) == hash(loss)


# -- own losses ------------------------------------------------------------------------------------


@pytest.fixture
def registered():
    yield register_gradient_loss("log_cosh", log_cosh, log_cosh_slope, log_cosh_bend)
    del GRADIENT_LOSSES["log_cosh"]


def test_a_registered_loss_is_found_by_its_name(registered) -> None:
    assert gradient_loss_of("log_cosh") is registered
    assert registered == OWN
    assert "log_cosh" in loss_names(for_classes=False)
    assert not registered.differs_from_mean
    with pytest.raises(ValueError, match="A loss named 'log_cosh' exists already"):
        register_gradient_loss("log_cosh", log_cosh, log_cosh_slope, log_cosh_bend)


def test_own_poisson_is_ours() -> None:
    own = GradientLoss.of_functions(
        value=lambda y, raw: math.exp(raw) - y * raw,
        gradient=lambda y, raw: math.exp(raw) - y,
        hessian=lambda y, raw: math.exp(raw),
        link_inverse=lambda raw: math.exp(min(raw, 500.0)),
        start=lambda y, weight: np.log(np.average(y, weights=weight)),
    )
    y, raw, weight = case(Poisson())
    for given in (None, weight):
        assert close(derivatives(own, y, raw, given), derivatives(Poisson(), y, raw, given))
        assert close(own.value(y, raw, given), Poisson().value(y, raw, given))
        assert close(own.start(y, given), Poisson().start(y, given))
    assert close(own.link_inverse(raw), Poisson().link_inverse(raw))


def test_own_log_loss_is_ours() -> None:
    own = GradientLoss.of_functions(
        value=lambda y, raw: math.log1p(math.exp(raw)) - y * raw,
        gradient=lambda y, raw: 1.0 / (1.0 + math.exp(-raw)) - y,
        hessian=lambda y, raw: 0.25 / math.cosh(0.5 * raw) ** 2,
        for_classes=True,
    )
    y, raw, weight = case(LogLoss())
    assert own.for_classes
    assert close(derivatives(own, y, raw, weight), derivatives(LogLoss(), y, raw, weight))
    assert close(own.start(y, weight), LogLoss().start(y, weight))
    assert close(own.link_inverse(raw), LogLoss().link_inverse(raw))
    with pytest.raises(InvalidDataError, match="the classes 0 and 1"):
        own.check_targets([0, 2])
    with pytest.raises(InvalidDataError, match="two classes, but y has 3"):
        own.with_classes(3)


def test_own_probabilities() -> None:
    own = GradientLoss.of_functions(
        log_cosh, log_cosh_slope, log_cosh_bend, link_inverse=lambda raw: 0.25, for_classes=True
    )
    assert np.array_equal(own.link_inverse(np.zeros((1, 2))), [[0.75, 0.25], [0.75, 0.25]])


def quadratic(y, raw):
    return 0.5 * (raw - y) ** 2


def difference(y, raw):
    return raw - y


def one(y, raw):
    return 1.0


@pytest.mark.parametrize("offset", [-1e9, -3.0, 0.0, 0.7, 1e6])
def test_own_losses_start_where_gradients_add_up_to_zero(offset) -> None:
    own = GradientLoss.of_functions(quadratic, difference, one)
    y, _, weight = case(own)
    y += offset
    assert own.start(y, weight) == pytest.approx(SquaredError().start(y, weight), rel=1e-12)


def test_own_losses_may_start_at_a_whole_number() -> None:
    own = GradientLoss.of_functions(quadratic, difference, one)
    assert own.start(np.array([-2.0, 2.0]), None) == 0.0
    assert own.start(np.array([1.0]), None) == 1.0


def test_own_losses_that_have_no_best_constant_start_at_zero() -> None:
    for slope in (lambda y, raw: 1.0, lambda y, raw: math.nan if raw else 1.0):
        own = GradientLoss.of_functions(quadratic, slope, one)
        assert own.start(np.ones(3), None) == 0.0


def test_own_leaves() -> None:
    own = GradientLoss.of_functions(
        quadratic, difference, one, leaf_value=lambda r, w: np.average(r, weights=w)
    )
    assert own.differs_from_mean
    assert own.leaf_value(np.array([1.0, 4.0]), None) == 2.5
    assert own.leaf_value(np.array([1.0, 4.0]), np.array([2.0, 1.0])) == 2.0


def test_own_functions_are_checked() -> None:
    with pytest.raises(TypeError, match=r"hessian must be callable\. Got 1\.0 instead"):
        GradientLoss.of_functions(quadratic, difference, 1.0)
    with pytest.raises(TypeError, match="start must be callable"):
        GradientLoss.of_functions(quadratic, difference, one, start=0.0)
    y, raw = np.ones(3), np.array([[0.5, -2.0, -3.0]])
    for second in (lambda y, raw: raw, lambda y, raw: math.nan):
        own = GradientLoss.of_functions(quadratic, difference, second, name="mine")
        with pytest.raises(ValueError, match=r"loss='mine' has the gradient .* the hessian"):
            derivatives(own, y, raw)
    own = GradientLoss.of_functions(lambda y, raw: math.nan, difference, one, name="mine")
    with pytest.raises(ValueError, match="value of loss='mine' is NaN for y="):
        own.value(y, raw, None)
