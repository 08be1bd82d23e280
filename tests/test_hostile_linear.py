"""Odd things that users, programs and operating systems do to linear machines."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from margrove import SVC, LinearSVC, LinearSVR, watch
from margrove.datasets import load_iris
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
    MalformedSparseError,
    NumericalOverflowError,
)
from tests.interrupts import interrupt_after, within_slices
from tests.oracles.linear import best_joint, best_l1, best_l2

# A fit that stops short says so, which is an answer; where it matters tests look for it themselves.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

INTERCEPTS = {
    "free": {},
    "priced": {"intercept_scaling": 1.0},
    "none": {"fit_intercept": False},
}
LOSSES = ("hinge", "squared_hinge")
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")
X, Y = load_iris(return_X_y=True)


def _settings():
    found = {}
    for intercept, own in INTERCEPTS.items():
        for solver in ("cd", "newton"):
            for loss in LOSSES:
                model = LinearSVC(loss=loss, solver=solver, n_jobs=1, **own)
                found[f"{loss} {solver} {intercept}"] = model
            found[f"l1 {solver} {intercept}"] = LinearSVC("l1", solver=solver, n_jobs=1, **own)
            for loss in TUBES:
                name = "tube" if loss == TUBES[0] else "squared_tube"
                found[f"{name} {solver} {intercept}"] = LinearSVR(
                    loss=loss, solver=solver, n_jobs=1, **own
                )
        found[f"joint cd {intercept}"] = LinearSVC(
            loss="hinge", multi_class="crammer_singer", n_jobs=1, **own
        )
    for loss in LOSSES:
        found[f"{loss} auto free"] = LinearSVC(loss=loss, n_jobs=1)
    return found


SETTINGS = _settings()
FREE = [name for name in SETTINGS if name.endswith("free")]
CLASSIFIERS = [name for name in SETTINGS if "tube" not in name]
REGRESSORS = [name for name in SETTINGS if "tube" in name]
ALL = list(SETTINGS)
# All solvers and losses, and most of them with each kind of intercept.
MOST = [name for name in FREE if "auto" not in name] + [
    f"{name} {intercept}"
    for name, intercept in (
        ("hinge cd", "priced"),
        ("squared_hinge newton", "priced"),
        ("l1 cd", "priced"),
        ("tube newton", "priced"),
        ("squared_tube cd", "priced"),
        ("hinge newton", "none"),
        ("squared_hinge cd", "none"),
        ("l1 newton", "none"),
        ("tube cd", "none"),
    )
]


def machine(name, **changes):
    model = clone(SETTINGS[name])
    if not model.fit_intercept:
        changes.pop("intercept_scaling", None)
    return model.set_params(**changes)


@contextmanager
def only_warnings(*allowed):
    """Named warnings of ours are an answer, stray ones of NumPy are not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    strangers = [
        f"{w.filename}:{w.lineno}: {w.message}"
        for w in caught
        if not issubclass(w.category, allowed) and "unique classes" not in str(w.message)
    ]
    assert not strangers


def values_of(model, data):
    values = getattr(model, "decision_function", model.predict)(data)
    assert np.isfinite(values).all()
    return values


def answer(name, data, target, weight=None, **changes):
    """Fit and hold the result to the law: in time, finite, warned of, and with a true proof."""
    model = machine(name, **changes)
    target = target.astype(float) if isinstance(model, LinearSVR) else target
    with within_slices(), only_warnings(ConvergenceWarning, DataWarning) as caught:
        model.fit(data, target, weight)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    if not model.fit_intercept:
        assert not model.intercept_.any()
    with only_warnings():
        values_of(model, data)
        proof = model.certificate_
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    for part in proof.machines:
        figures = (part.primal, part.dual, part.gap, part.violation, part.norm)
        assert np.isfinite(figures).all()
        assert part.primal >= 0.0
        assert part.dual <= part.primal * (1 + 1e-9)
        assert warned or part.gap <= (1.5 * model.tol + 1e-14) * part.primal
    return model


# -- numerics: any setting, any data ---------------------------------------------------------------


def _noise(seed, n, d):
    return np.random.default_rng(seed).standard_normal((n, d))


NOISE = _noise(0, 40, 4)
TWO = (NOISE[:, 0] + 0.5 * _noise(1, 40, 1)[:, 0] > 0).astype(int)
THREE = np.random.default_rng(2).integers(0, 3, 40)
TWENTY = np.arange(40) % 20
APART = np.vstack([_noise(3, 20, 3) + 4.0, _noise(4, 20, 3) - 4.0])
SIDES = np.repeat([0, 1], 20)
THINNED = NOISE * (np.random.default_rng(5).random(NOISE.shape) < 0.3)
LINE = NOISE @ [1.0, -2.0, 0.5, 0.0] + 0.1 * _noise(6, 40, 1)[:, 0]


def _weights(**odd):
    weight = np.ones(40)
    for row, value in odd.items():
        weight[int(row[1:])] = value
    return weight


# name: data, target, weight, parameters
CASES = {
    **{
        f"C={C:g}{name}": (data, target, None, {"C": C})
        for C in (1e-20, 1e-10, 1e10, 1e100)
        for name, data, target in (
            ("", NOISE, TWO), (", three", NOISE, THREE), (", apart", APART, SIDES),
        )
    },
    "C=1e-100": (NOISE, TWO, None, {"C": 1e-100}),
    "C=1e10, coin flips": (_noise(7, 60, 4), _noise(8, 60, 1)[:, 0] > 0, None, {"C": 1e10}),
    **{
        f"X*{factor:g}{', three' if target is THREE else ''}": (NOISE * factor, target, None, {})
        for factor in (1e100, 1e20, 1e10, 1e-10)
        for target in (TWO, THREE)
    },
    "X*1e-20": (NOISE * 1e-20, TWO, None, {}),
    "X*1e10, sparse": (sp.csr_array(THINNED * 1e10), TWO, None, {}),
    "X*1e-10, sparse": (sp.csr_array(THINNED * 1e-10), THREE, None, {}),
    "largest of float32": ((NOISE / 4 * 3e38).astype(np.float32), TWO, None, {}),
    "largest of float32, three": ((NOISE / 4 * 3e38).astype(np.float32), THREE, None, {}),
    "smallest of float32": ((NOISE * 1e-37).astype(np.float32), TWO, None, {}),
    "X+1e8": (NOISE + 1e8, TWO, None, {}),
    "X+1e8, three": (NOISE + 1e8, THREE, None, {}),
    "constant feature": (np.column_stack([NOISE, np.full(40, 7.0)]), TWO, None, {}),
    "zeros": (np.zeros((40, 3)), TWO, None, {}),
    "zeros, three": (np.zeros((40, 3)), THREE, None, {}),
    "sparse zeros": (sp.csr_array((40, 3)), TWO, None, {}),
    "sparse zeros, twenty": (sp.csr_array((40, 3)), TWENTY, None, {}),
    "ones": (np.ones((40, 3)), TWO, None, {}),
    "ones, three": (np.ones((40, 3)), THREE, None, {}),
    "feature of 1e-20": (np.column_stack([NOISE, NOISE[:, 0] * 1e-20]), TWO, None, {}),
    "a row each": (np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1]), None, {}),
    "a row each, one of zeros": (np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([0, 1]), None, {}),
    "a row each, three": (np.array([[0.0, 1], [1, 0], [3, 3]]), np.arange(3), None, {}),
    "a row each, twenty": (_noise(9, 20, 3), np.arange(20), None, {}),
    "both labels": (np.vstack([NOISE, NOISE]), np.r_[TWO, 1 - TWO], None, {}),
    "two labels of three": (np.vstack([NOISE, NOISE]), np.r_[THREE, (THREE + 1) % 3], None, {}),
    "one feature": (NOISE[:, :1], TWO, None, {}),
    "one feature, three": (NOISE[:, :1], THREE, None, {}),
    "lattice": (np.arange(60)[:, None] % 4.0, np.arange(60) % 7 % 2, None, {}),
    "wide": (_noise(10, 8, 400), np.arange(8) % 2, None, {}),
    "wide, three": (_noise(10, 8, 400), np.arange(8) % 3, None, {}),
    "twenty": (NOISE, TWENTY, None, {}),
    "twenty, sparse": (sp.csr_array(THINNED), TWENTY, None, {}),
    "rows without nonzeros": (sp.csr_array(THINNED), TWO, None, {}),
    "rows without nonzeros, three": (sp.csr_array(THINNED), THREE, None, {}),
    **{
        f"weights {weight:g}{', three' if target is THREE else ''}": (
            NOISE, target, np.full(40, weight), {},
        )
        for weight in (1e-320, 1e-20, 1e200)
        for target in (TWO, THREE)
    },
    "one weight 1e20": (NOISE, TWO, _weights(_3=1e20), {}),
    "one weight 1e-20": (NOISE, TWO, _weights(_3=1e-20), {}),
    "weights of all sizes": (NOISE, TWO, 10.0 ** np.linspace(-8, 8, 40), {}),
    "weights of all sizes, three": (NOISE, THREE, 10.0 ** np.linspace(-8, 8, 40), {}),
    "one round": (NOISE, TWO, None, {"max_iter": 1}),
    "one round, three": (NOISE, THREE, None, {"max_iter": 1}),
    "one round, twenty": (NOISE, TWENTY, None, {"max_iter": 1}),
    "tol=1e-15": (NOISE, TWO, None, {"tol": 1e-15}),
    "tol=1e-300": (NOISE, TWO, None, {"tol": 1e-300}),
    "tol=1e-300, three": (NOISE, THREE, None, {"tol": 1e-300}),
    "tol=1e6": (NOISE, THREE, None, {"tol": 1e6}),
    "intercept of 1e5": (NOISE, TWO, None, {"intercept_scaling": 1e5}),
    "intercept of 1e-5": (NOISE, TWO, None, {"intercept_scaling": 1e-5}),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Kernels are compiled before anybody is timed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in map(SETTINGS.get, FREE):
            for given in (NOISE, NOISE.astype(np.float32), sp.csr_array(NOISE)):
                for target in (TWO, THREE):
                    for C, tol in ((1e-10, 1e-4), (1e3, 1e-9)):
                        clone(model).set_params(C=C, tol=tol, max_iter=100).fit(given, target)


def lawless(names, data, target, weight=None, **changes):
    """Which settings break the law, and how."""
    found = {}
    for name in names:
        try:
            answer(name, data, target, weight, **changes)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"[:300]
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_law_holds(case) -> None:
    data, target, weight, changes = CASES[case]
    assert not lawless(MOST, data, target, weight, **changes)


TARGETS = {
    **{
        f"y*{unit:g}": (NOISE, LINE / 4 * unit, {})
        for unit in (1e100, 1e30, 1e15, 1e-15, 1e-30, 1e-100)
    },
    "constant": (NOISE, np.full(40, 3.0), {}),
    "zero": (NOISE, np.zeros(40), {}),
    "tube of 100": (NOISE, LINE, {"epsilon": 100.0}),
    "tube of 1e300": (NOISE, LINE, {"epsilon": 1e300}),
    "tube that just holds all": (NOISE, LINE, {"epsilon": float(np.ptp(LINE)) / 2}),
    "tube of 1e-300": (NOISE, LINE, {"epsilon": 1e-300}),
    "outlier of 1e15": (NOISE, np.r_[LINE[:-1], 1e15], {}),
    "outlier of 1e100": (NOISE, np.r_[LINE[:-1], 1e100], {}),
}  # fmt: skip


@pytest.mark.parametrize("case", TARGETS)
def test_targets_of_any_kind(case) -> None:
    data, target, changes = TARGETS[case]
    assert not lawless(REGRESSORS, data, target, **changes)


def test_a_constant_target_is_predicted_as_it_is() -> None:
    for name in REGRESSORS:
        if name.endswith("free"):
            model = answer(name, NOISE, np.full(40, 3.0))
            assert np.abs(model.predict(NOISE) - 3.0).max() <= 1e-9


@pytest.mark.parametrize("name", [name for name in REGRESSORS if name.endswith("free")])
def test_a_tube_wider_than_the_targets_is_flat(name) -> None:
    model = answer(name, NOISE, LINE, epsilon=100.0)
    assert not model.coef_.any()
    assert np.abs(model.predict(NOISE) - LINE).max() <= 100.0
    assert model.certificate_.primal == 0.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e6, 1e20, 1e100])
def test_an_extreme_price_on_separable_classes_is_the_hard_margin(loss, C) -> None:
    hard = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(APART, SIDES)
    model = LinearSVC(loss=loss, solver="cd", C=C, tol=1e-8)
    with within_slices(), only_warnings(ConvergenceWarning):
        model.fit(APART, SIDES)
    assert np.abs(model.coef_ - hard.coef_).max() <= 1e-5
    assert np.abs(model.intercept_ - hard.intercept_).max() <= 1e-5


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("power", [-100, -40, 40, 100])
def test_units_of_features_do_not_matter(name, power) -> None:
    """X times s at C / s^2, or at C / s for the L1 penalty, is the same problem: w is w / s."""
    unit = 2.0**power
    price = 1.0 / unit if name.startswith("l1") else 1.0 / unit**2
    scaling = {} if name.endswith("free") else {"intercept_scaling": unit}
    plain = answer(name, NOISE, THREE, tol=1e-7, C=0.1)
    scaled = answer(name, NOISE * unit, THREE, tol=1e-7, C=0.1 * price, **scaling)
    if "joint" in name:
        return  # which may stop short of so small a gap
    size = max(1.0, np.abs(plain.coef_).max())
    assert np.abs(scaled.coef_ * unit - plain.coef_).max() <= 2e-3 * size


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("unit", [2.0**-80, 2.0**40, 2.0**80])
def test_units_of_targets_do_not_matter(name, unit) -> None:
    price = 1.0 if name.startswith("squared") else unit
    plain = answer(name, NOISE, LINE, tol=1e-7, C=0.1, epsilon=0.1)
    scaled = answer(name, NOISE, LINE * unit, tol=1e-7, C=0.1 * price, epsilon=0.1 * unit)
    assert np.abs(scaled.coef_ / unit - plain.coef_).max() <= 2e-3


# -- numerics: against the best possible objective -------------------------------------------------

SMALL = {
    "constant feature": (np.column_stack([NOISE[:20], np.full(20, 7.0)]), TWO[:20], None),
    "rows without nonzeros": (THINNED[:20], TWO[:20], None),
    "zeros": (np.zeros((10, 2)), np.arange(10) % 5 == 0, None),
    "both labels": (np.vstack([NOISE[:9]] * 2), np.arange(18) < 9, None),
    "a row each": (np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1]), None),
    "one feature": (NOISE[:20, :1], TWO[:20], None),
    "wide": (_noise(10, 8, 60), np.arange(8) % 2, None),
    "weights": (NOISE[:20], TWO[:20], 10.0 ** np.linspace(-3, 2, 20)),
    "apart": (APART[::2], SIDES[::2], None),
}
OF_ORACLE = {"free": "free", "priced": 1.0, "none": "none"}


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("name", MOST)
def test_no_odd_table_is_worse_than_the_best(name, case) -> None:
    data, target, weight = SMALL[case]
    kind, _, intercept = name.split()
    intercept = OF_ORACLE[intercept]
    model = answer(name, data, target, weight, tol=1e-6, max_iter=100_000)
    prices = np.ones(len(data)) if weight is None else weight
    signs = np.where(target > 0, 1.0, -1.0)
    squared = kind.startswith("squared")
    bound = np.full(len(data), np.inf) if squared else prices
    damping = 0.5 / prices if squared else np.zeros(len(data))
    if kind == "l1":
        best = best_l1(data, signs, prices, intercept=intercept)
    elif kind == "joint":
        best = best_joint(data, target.astype(int), prices, 2, intercept=intercept)
    elif "tube" in kind:
        terms = target.astype(float), -bound, bound, damping, 0.0
        best = best_l2(data, *terms, intercept=intercept)
    else:
        low, high = np.where(signs > 0, 0.0, -bound), np.where(signs > 0, bound, 0.0)
        best = best_l2(data, signs, low, high, damping, 0.0, intercept=intercept)
    proof = model.certificate_
    assert proof.primal == pytest.approx(best, rel=1e-4, abs=1e-6)
    assert proof.dual <= best + 1e-5 * abs(best) + 1e-6


def test_identical_rows_are_the_majority() -> None:
    data, target = np.ones((10, 3)), np.arange(10) < 7
    for name in CLASSIFIERS:
        with pytest.warns(DataWarning, match="All features are constant"):
            model = machine(name).fit(data, target)
        assert model.predict(np.ones((1, 3))).tolist() == [True]


@pytest.mark.parametrize("name", FREE)
def test_a_feature_that_drowns_the_others_is_named(name) -> None:
    for given in (np.column_stack([X, X[:, 0] * 1e20]), sp.csr_array(X * [1, 1, 1, 1e20])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            with pytest.warns(DataWarning, match=r"Feature \d is .*e\+\d\d times .*StandardScaler"):
                model = machine(name, max_iter=20).fit(given, Y)
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("name", ["hinge cd free", "squared_hinge auto free", "tube cd free"])
def test_a_hundred_thousand_times_as_many_features_as_rows(name) -> None:
    wide = sp.random_array((10, 10**6), density=1e-4, rng=np.random.default_rng(0), format="csr")
    model = answer(name, wide, np.arange(10) % 2, max_iter=300)
    assert np.abs(values_of(model, wide) - np.where(np.arange(10) % 2, 1, 0)).max() < 3.0


# -- weights and the order of rows -----------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL if "squared_tube" not in name])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
def test_a_weight_is_a_count(name, kind, target) -> None:
    """k is the row k times, 0 is the row removed, and the order of rows means nothing."""
    rng = np.random.default_rng(0)
    data = np.round(2 * NOISE) / 2
    weight = rng.integers(0, 4, 40).astype(float)
    rows = rng.permutation(np.repeat(np.arange(40), weight.astype(int)))
    model = answer(name, kind(data), target, weight)
    repeated = answer(name, kind(data[rows]), target[rows])
    assert np.abs(repeated.coef_ - model.coef_).max() <= 1e-7
    assert np.abs(repeated.intercept_ - model.intercept_).max() <= 1e-7
    kept = rng.permutation(np.flatnonzero(weight))
    removed = answer(name, kind(data[kept]), target[kept], weight[kept])
    assert np.abs(removed.coef_ - model.coef_).max() <= 1e-7
    assert removed.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in FREE if "joint" not in name])
def test_a_weight_is_a_factor_of_the_price(name) -> None:
    plain = answer(name, NOISE, TWO, C=0.25, tol=1e-8)
    for weight, C in ((0.25, 1.0), (1e12, 0.25e-12), (1e-12, 0.25e12)):
        model = answer(name, NOISE, TWO, np.full(40, weight), C=C, tol=1e-8)
        assert np.abs(model.coef_ - plain.coef_).max() <= 1e-4


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_weights_of_classes(name) -> None:
    weight = np.where(TWO == 1, 3.0, 0.5)
    given = answer(name, NOISE, TWO, weight)
    by_class = answer(name, NOISE, TWO, class_weight={0: 0.5, 1: 3.0})
    assert np.abs(given.coef_ - by_class.coef_).max() <= 1e-7
    counts = np.bincount(THREE)
    balanced = answer(name, NOISE, THREE, class_weight="balanced")
    by_hand = answer(name, NOISE, THREE, (40 / (3 * counts))[THREE])
    assert np.abs(balanced.coef_ - by_hand.coef_).max() <= 1e-6 * max(
        1, np.abs(by_hand.coef_).max()
    )
    for extreme in ({0: 1e20}, {0: 1e-20}):
        answer(name, NOISE, TWO, class_weight=extreme)
    for wrong in ({0: 0.0}, {0: -1.0}, {0: np.nan}, "Balanced", {7: 1.0}):
        with pytest.raises(ValueError, match="class_weight"):
            machine(name, class_weight=wrong).fit(NOISE, TWO)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_class_without_weight_is_left_out_and_said_so(name) -> None:
    with pytest.warns(DataWarning, match="class 1 have sample_weight 0"):
        model = machine(name).fit(NOISE, THREE, np.where(THREE == 1, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 2]
    only = machine(name).fit(NOISE[THREE != 1], THREE[THREE != 1])
    assert np.array_equal(model.coef_, only.coef_)


# -- data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_failed_fits_leave_the_old_machine(name) -> None:
    model = machine(name).fit(NOISE, TWO)
    before, attributes = values_of(model, NOISE), dict(vars(model))
    spoiled = NOISE.copy()
    spoiled[17, 2] = np.nan
    sparse = sp.csr_array(spoiled)
    for wrong, message in (
        (spoiled, r"NaN.*column 2.*row 17|NaN.*row 17.*column 2"),
        (sparse, "NaN"),
        (np.where(np.isnan(spoiled), np.inf, spoiled), "infinity"),
        (NOISE[:0], "0 sample"),
        (NOISE[:, :0], "0 feature"),
        (NOISE[0], "1D array"),
        (NOISE[:, :, None], "dim 3|3D|found array with dim"),
        (NOISE + 0j, "[Cc]omplex"),
        (np.abs(NOISE).astype("datetime64[s]"), "datetime64"),
        (np.ma.masked_array(NOISE, NOISE > 1), "masked"),
        (np.full(NOISE.shape, "a"), "."),
        ({"a": 1}, "."),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(wrong, TWO[: wrong.shape[0]] if hasattr(wrong, "ndim") else TWO)
    for wrong in (TWO[:-1], np.where(TWO == 0, np.nan, 1.0), np.where(TWO == 0, np.inf, 1.0), None):
        with pytest.raises(ValueError, match=r"[Yy]"):
            model.fit(NOISE, wrong)
    for weight, message in (
        (np.zeros(40), "zero for all rows"),
        (np.full(40, -1.0), "positive for no row"),
        (np.full(40, np.nan), "NaN"),
        (np.full(40, np.inf), "infinity"),
        (np.ones(39), "39"),
        (np.ones((40, 1)), "1D"),
        (2.0, "1D"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(NOISE, TWO, sample_weight=weight)
    assert vars(model).keys() == attributes.keys()
    assert all(vars(model)[key] is value for key, value in attributes.items())
    assert np.array_equal(values_of(model, NOISE), before)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_that_are_none(name) -> None:
    with pytest.raises(ValueError, match=r"1 class.*2 classes"):
        machine(name).fit(NOISE, np.zeros(40))
    with pytest.raises(ValueError, match=r"belong to the same class.*1 class.*2 classes"):
        machine(name).fit(NOISE, TWO, np.where(TWO, 1.0, 0.0))
    with pytest.raises(ValueError, match=r"Unknown label type|continuous"):
        machine(name).fit(NOISE, NOISE[:, 0] + 0.01)
    with pytest.raises(ValueError, match="mixes"):
        machine(name).fit(NOISE, ["a", 1] * 20)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_any_type(name) -> None:
    numbers = machine(name).fit(NOISE, THREE)
    for classes in (
        np.array(["a", "b", "c"]),
        np.array([-5.0, 1.0, 2.0]),
        np.array(["", "é", "☃"]),
    ):
        model = machine(name).fit(NOISE, classes[THREE])
        assert np.array_equal(model.coef_, numbers.coef_)
        assert np.array_equal(model.predict(NOISE), classes[numbers.predict(NOISE)])
    truths = machine(name).fit(NOISE, TWO.astype(bool))
    assert truths.predict(NOISE).dtype == bool
    assert np.array_equal(truths.coef_, machine(name).fit(NOISE, TWO).coef_)


PARAMETERS = {
    "C": [0, -1, np.nan, np.inf, -np.inf, "1", True, None, np.array([1.0]), [1.0]],
    "tol": [0, 0.0, np.inf, np.nan, -1.0, "1", None, True],
    "max_iter": [0, -1, 1.5, np.inf, True, None],
    "max_time": [0, -1, np.nan, np.inf, "1"],
    "intercept_scaling": [0, -1.0, np.nan, np.inf, "1", True],
    "n_jobs": [0, 1.5, "2"],
    "random_state": [-1, 2**32, 1.5, "a"],
    "solver": ["lbfgs", None, 1],
    "loss": ["logistic", None],
    "on_interrupt": ["ignore", None],
}


@pytest.mark.parametrize("cls", [LinearSVC, LinearSVR])
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_parameters_that_are_none(cls, parameter) -> None:
    model = cls().fit(NOISE, TWO)
    before = values_of(model, NOISE)
    for value in PARAMETERS[parameter]:
        model.set_params(**{parameter: value})
        with pytest.raises(ValueError, match=f"'{parameter}' parameter"):
            model.fit(NOISE, TWO)
    model.set_params(n_jobs=None)
    assert np.array_equal(values_of(model, NOISE), before)


@pytest.mark.parametrize("epsilon", [-1.0, np.inf, np.nan, "1", True, None])
def test_a_tube_that_is_none(epsilon) -> None:
    with pytest.raises(ValueError, match="'epsilon' parameter of LinearSVR must be"):
        LinearSVR(epsilon=epsilon).fit(NOISE, LINE)


def test_settings_that_contradict_each_other() -> None:
    for changes, message in (
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' and loss='hinge' is not supported"),
        ({"multi_class": "crammer_singer", "solver": "newton"}, "use solver='cd' or 'auto'"),
        ({"penalty": "l3"}, "'penalty' parameter"),
        ({"multi_class": "ovo"}, "'multi_class' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearSVC(**changes).fit(NOISE, THREE)


@pytest.mark.parametrize("name", ALL)
def test_layouts_and_types_that_hold_the_same_numbers(name) -> None:
    data = np.round(X[::3] * 10)
    expected = machine(name, C=1e-3).fit(data, Y[::3])
    wide = np.zeros((50, 8))
    wide[:, ::2] = data
    locked = data.copy()
    locked.flags.writeable = False
    shifted = np.frombuffer(b"\0" + data.tobytes(), dtype=np.uint8)[1:].view(np.float64)
    for same in (
        np.asfortranarray(data),
        data[::-1].copy()[::-1],
        wide[:, ::2],
        locked,
        shifted.reshape(50, 4),
        data.astype(">f8"),
        data.astype(np.int8),
        data.astype(np.uint64),
        data.astype(object),
        data.tolist(),
    ):
        model = machine(name, C=1e-3).fit(same, Y[::3])
        assert np.array_equal(model.coef_, expected.coef_)
        assert np.array_equal(values_of(model, same), values_of(expected, data))
    narrow = machine(name, C=1e-3, tol=1e-8).fit(data.astype(np.float32), Y[::3])
    exact = machine(name, C=1e-3, tol=1e-8).fit(data, Y[::3])
    assert np.abs(narrow.coef_ - exact.coef_).max() <= 1e-4


@pytest.mark.parametrize("name", ALL)
def test_signed_zeros_are_equal(name) -> None:
    data = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
    signed = np.where(data == 0, -0.0, data)
    models = [machine(name).fit(rows, [0, 0, 1, 1]) for rows in (data, signed)]
    assert np.array_equal(values_of(models[0], data), values_of(models[1], signed))


def _twins(data):
    """The same sparse table, said in other ways."""
    good = sp.csr_array(data)
    wide = good.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    doubled = sp.csr_array(
        (np.repeat(good.data, 2) / 2, np.repeat(good.indices, 2), 2 * good.indptr), shape=good.shape
    )
    turned = good.copy()
    for i in range(len(data)):
        own = slice(good.indptr[i], good.indptr[i + 1])
        turned.indices[own], turned.data[own] = good.indices[own][::-1], good.data[own][::-1]
    turned.has_sorted_indices = False
    zeros = good.copy()
    zeros.data[::5] = 0.0
    yield good, (wide, doubled, turned, good.tocsc(), good.tocoo(), sp.csr_matrix(good))
    pruned = zeros.copy()
    pruned.eliminate_zeros()
    yield pruned, (zeros,)


@pytest.mark.parametrize("name", FREE)
def test_sparse_tables_said_in_other_ways(name) -> None:
    for good, twins in _twins(THINNED):
        expected = machine(name).fit(good, THREE)
        for twin in twins:
            model = machine(name).fit(twin, THREE)
            assert np.array_equal(model.coef_, expected.coef_)
            assert np.array_equal(values_of(model, twin), values_of(expected, good))
        dense = answer(name, good.toarray(), THREE, tol=1e-7)
        sparse = answer(name, good, THREE, tol=1e-7)
        assert dense.certificate_.primal == pytest.approx(sparse.certificate_.primal, rel=1e-4)


@pytest.mark.parametrize("name", FREE)
def test_malformed_sparse_matrices_never_reach_compiled_code(name) -> None:
    good = sp.csr_array(NOISE)
    model = machine(name).fit(good, TWO)
    for part, value in (("indices", 2**30), ("indices", -1), ("indptr", 2**30), ("indptr", -5)):
        bad = good.copy()
        getattr(bad, part)[len(getattr(bad, part)) // 2] = value
        with pytest.raises(MalformedSparseError):
            machine(name).fit(bad, TWO)
        with pytest.raises(MalformedSparseError):
            model.predict(bad)


@pytest.mark.parametrize("name", FREE)
def test_data_frames(name) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = ["a", "b", "c", "d"]
    frame = pd.DataFrame(NOISE, columns=columns)
    expected = machine(name).fit(NOISE, THREE).coef_
    model = machine(name).fit(frame, pd.Series(THREE, index=np.arange(40)[::-1]))
    assert np.array_equal(model.coef_, expected)
    assert model.feature_names_in_.tolist() == columns
    for wrong in (frame[["b", "a", "c", "d"]], frame.rename(columns={"a": "z"})):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="feature"):
        model.predict(frame[["a", "b", "c"]])
    other = machine(name).fit(pl.DataFrame(NOISE, schema=columns), pl.Series(THREE))
    assert np.array_equal(other.coef_, expected)


# -- after the fit ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_predicting_uses_what_was_fitted(name) -> None:
    with pytest.raises(NotFittedError):
        machine(name).predict(NOISE)
    with pytest.raises(NotFittedError):
        _ = machine(name).certificate_
    model = machine(name).fit(NOISE, THREE)
    before = values_of(model, NOISE)
    gap = model.certificate_.relative_gap
    model.set_params(C=-1.0, tol=-1.0, loss="nonsense", solver=None, max_iter=-9)
    assert np.array_equal(values_of(model, NOISE), before)
    assert model.certificate_.relative_gap == gap
    with pytest.raises(ValueError, match="3 features"):
        model.predict(NOISE[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(NOISE[:0])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((2, 4), np.nan))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ALL)
def test_predictions_refuse_bad_cells_that_have_no_weight(name, form) -> None:
    model = machine(name).fit(NOISE, THREE)
    model.coef_ = np.zeros_like(model.coef_)
    spoiled = NOISE.copy()
    spoiled[17, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.predict(form(spoiled))


@pytest.mark.parametrize("name", ALL)
def test_altered_machines_are_noticed(name) -> None:
    fitted = machine(name).fit(NOISE, THREE)
    for attribute, value in (
        ("coef_", fitted.coef_[..., :-1]),
        ("coef_", np.vstack([fitted.coef_] * 2)),
        ("coef_", None),
        ("coef_", "nonsense"),
        ("intercept_", fitted.intercept_[:-1]),
        ("intercept_", 0.0),
        ("classes_", np.arange(2)),
    ):
        model = copy.copy(fitted)
        if hasattr(model, attribute):
            setattr(model, attribute, value)
            with pytest.raises(ValueError, match="fitted state was altered"):
                model.predict(NOISE)
    model = copy.copy(fitted)
    model.coef_ = fitted.coef_ * np.nan
    with pytest.raises(NumericalOverflowError, match="beyond floating point"):
        model.predict(NOISE)


@pytest.mark.parametrize("name", FREE)
def test_values_beyond_floating_point_are_an_error(name) -> None:
    model = machine(name).fit(NOISE, TWO)
    model.coef_ = np.full_like(model.coef_, 1e10)
    with pytest.raises(NumericalOverflowError, match="row 0"):
        model.predict(np.full((2, 4), 1e300))


@pytest.mark.parametrize("name", ALL)
def test_copies_and_pickles(name) -> None:
    model = machine(name).fit(NOISE, THREE)
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(values_of(twin, NOISE), values_of(model, NOISE))
    with pytest.raises(AttributeError, match=r"margrove\.certificate\(model, X, y"):
        _ = pickle.loads(pickle.dumps(model)).certificate_
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(NOISE)
    again = model.set_params(C=0.5).fit(NOISE[:, :2], TWO)
    assert np.array_equal(again.coef_, machine(name, C=0.5).fit(NOISE[:, :2], TWO).coef_)


@pytest.mark.parametrize("name", ALL)
def test_nothing_of_the_users_is_changed(name) -> None:
    data, target, weight = NOISE.copy(), THREE.copy(), np.linspace(0, 2, 40)
    kept = data.copy(), target.copy(), weight.copy()
    model = machine(name).fit(data, target, sample_weight=weight)
    values_of(model, data)
    assert all(np.array_equal(a, b) for a, b in zip((data, target, weight), kept, strict=True))
    expected = values_of(model, NOISE)
    data[:] = 0.0
    assert np.array_equal(values_of(model, NOISE), expected)


@pytest.mark.parametrize("name", FREE)
def test_a_warm_start_from_anything(name) -> None:
    """What was fitted before may be a good start or a bad one, but it changes no answer."""
    if "joint" in name:
        data = sp.csr_array(THINNED)
    else:
        data = NOISE
    model = machine(name, warm_start=True, tol=1e-6)
    model.fit(data, THREE)
    for changes, target in (
        ({"C": 10.0}, THREE),
        ({"C": 1e-3}, THREE),
        ({"C": 1.0}, (THREE + 1) % 3),
        ({"intercept_scaling": 1.0}, THREE),
        ({"intercept_scaling": None}, TWO),
    ):
        model.set_params(**changes)
        with within_slices(), only_warnings(ConvergenceWarning) as caught:
            model.fit(data, target)
        proof = model.certificate_
        assert caught or proof.relative_gap <= 2e-6
        cold = clone(model).set_params(warm_start=False)
        with only_warnings(ConvergenceWarning) as caught_cold:
            cold.fit(data, target)
        if not caught and not caught_cold:
            assert proof.primal == pytest.approx(cold.certificate_.primal, rel=1e-5)


# -- threads, budgets, interrupts ------------------------------------------------------------------


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_number_of_threads_changes_no_bit(name, kind) -> None:
    rng = np.random.default_rng(0)
    data, target = kind(rng.standard_normal((1500, 20))), rng.integers(0, 20, 1500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, two, eight = (machine(name, n_jobs=n, max_iter=4).fit(data, target) for n in (1, 2, 8))
    for other in (two, eight):
        assert np.array_equal(one.coef_, other.coef_)
        assert np.array_equal(one.intercept_, other.intercept_)
        assert np.array_equal(values_of(one, data), values_of(other, data))


@pytest.mark.parametrize("name", FREE)
def test_seeds(name) -> None:
    models = [
        machine(name, random_state=seed, tol=1e-6).fit(NOISE, TWO)
        for seed in (
            3,
            3,
            np.int64(3),
            np.random.RandomState(0),
            np.random.default_rng(0),
            2**32 - 1,
        )
    ]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].coef_, models[2].coef_)
    for model in models:
        assert model.certificate_.primal == pytest.approx(models[0].certificate_.primal, rel=1e-5)


@pytest.mark.parametrize("name", FREE)
def test_many_threads_at_once(name) -> None:
    model = machine(name).fit(NOISE, THREE)
    expected, coef = values_of(model, NOISE), model.coef_
    outcomes = []

    def work():
        own = machine(name).fit(NOISE, THREE)
        outcomes.append(np.array_equal(own.coef_, coef))
        outcomes.append(np.array_equal(values_of(model, NOISE), expected))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [True] * 16


@pytest.mark.parametrize("cls", [LinearSVC, LinearSVR])
def test_inside_workers_of_joblib(cls) -> None:
    from joblib import parallel_backend

    with parallel_backend("threading", n_jobs=2):
        found = cross_val_score(cls(), X, Y, cv=3, n_jobs=2)
    assert np.array_equal(found, cross_val_score(cls(), X, Y, cv=3, n_jobs=1))


def _overwrite(given, rng):
    if sp.issparse(given):
        given.indices[:] = rng.integers(-(2**31), 2**31 - 1, len(given.indices))
        given.indptr[:] = rng.integers(-(2**31), 2**31 - 1, len(given.indptr))
    else:
        given[:] = rng.standard_normal(given.shape)


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_another_thread_may_write_to_the_data(name, kind) -> None:
    """The result means nothing then, but nothing crashes: no index is read from their array."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 3, 200)
    given = kind(rng.integers(0, 5, (200, 6)).astype(float))
    stop = threading.Event()

    def vandal():
        while not stop.is_set():
            _overwrite(given, rng)

    thread = threading.Thread(target=vandal)
    thread.start()
    try:
        with warnings.catch_warnings(), within_slices():
            warnings.simplefilter("ignore")
            for _ in range(5):
                with suppress(ValueError):  # a spoiled table was noticed
                    model = machine(name, max_iter=20).fit(given, target)
                    assert np.isfinite(model.coef_).all()
    finally:
        stop.set()
        thread.join()


def _slow(name):
    """A fit of seconds: noise, a high price and a gap that takes long."""
    rng = np.random.default_rng(0)
    n, d = {"l1 newton free": (1500, 350)}.get(
        name, (1500, 700) if "newton" in name else (6000, 60)
    )
    data, target = rng.standard_normal((n, d)), rng.integers(0, 3, n)
    own = {} if name.startswith(("squared", "l1")) else {"C": 1e4}
    return machine(name, tol=1e-13, **own), data, target + 0.1 * ("tube" in name) * data[:, 0]


# Smooth problems are solved before anybody could stop them.
SLOW = [name for name in FREE if not name.startswith("squared") and "auto" not in name]
SLOW += ["squared_hinge cd free"]


@pytest.mark.parametrize("name", SLOW)
def test_time_is_a_budget(name) -> None:
    model, data, target = _slow(name)
    model.set_params(max_time=1e-9)
    with within_slices(2), only_warnings(ConvergenceWarning) as caught:
        model.fit(data, target)
    assert "max_time" in str(caught[0].message)
    values_of(model, data)
    assert all(part.dual <= part.primal * (1 + 1e-9) for part in model.certificate_.machines)


@pytest.mark.parametrize("name", SLOW)
def test_cancelling_leaves_the_old_machine(name) -> None:
    model, data, target = _slow(name)
    model.fit(NOISE, TWO)
    before = values_of(model, NOISE)
    stop = threading.Event()
    stop.set()
    with watch(cancel=stop), pytest.raises(FitCancelled, match="as it was before"):
        model.fit(data, target)
    assert np.array_equal(values_of(model, NOISE), before)


@pytest.mark.parametrize("name", SLOW)
def test_listeners_may_end_a_fit_or_break_it(name) -> None:
    model, data, target = _slow(name)
    seen = []

    def enough(progress):
        seen.append(progress)
        return len(seen) == 2

    with watch(on_progress=enough), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data, target)
    assert len(seen) == 2
    assert seen[0].learner == type(model).__name__
    before = values_of(model, data)
    assert all(part.dual <= part.primal * (1 + 1e-9) for part in model.certificate_.machines)

    def broken(progress):
        raise LookupError("mine")

    with watch(on_progress=broken), pytest.raises(LookupError, match="mine"):
        model.fit(data[::2], target[::2])
    again = watch(on_progress=lambda progress: model.fit(data, target))
    with again, pytest.raises(RuntimeError, match="clone"):
        model.fit(data[::2], target[::2])
    assert np.array_equal(values_of(model, data), before)


@pytest.mark.parametrize("name", SLOW)
def test_interrupts_leave_the_old_machine_or_keep_what_is_learnt(name) -> None:
    model, data, target = _slow(name)
    model.fit(NOISE, TWO)
    before = values_of(model, NOISE)
    with interrupt_after(2):
        with pytest.raises(KeyboardInterrupt):
            model.fit(data, target)
        assert np.array_equal(values_of(model, NOISE), before)
        with pytest.warns(InterruptedFitWarning):
            model.set_params(on_interrupt="keep").fit(data, target)
    assert np.isfinite(values_of(model, data)).all()
    assert all(part.dual <= part.primal * (1 + 1e-9) for part in model.certificate_.machines)
