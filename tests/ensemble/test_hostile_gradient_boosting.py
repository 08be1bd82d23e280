"""Odd things that users, programs and operating systems do to gradient boosting.

Four outcomes are allowed: the right answer; the right answer and a named warning; an error that
names what was wrong, raised before anything fitted has changed; or an interrupt that leaves the
old model, or keeps the rounds so far where that was asked for.
"""

from __future__ import annotations

import copy
import inspect
import math
import multiprocessing
import pickle
import threading
import tracemalloc
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn.ensemble
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.utils.fixes import parse_version
from tests.interrupts import lines_until_interrupt, steady_clock, within_slices

from margrove import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    GradientLoss,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    register_gradient_loss,
    watch,
)
from margrove._data import rows as data_rows
from margrove.ensemble.gradient import early_stopping as gradient_monitor
from margrove.ensemble.gradient import training_data as gradient_data
from margrove.ensemble.gradient.exact import rounds as exact_rounds
from margrove.ensemble.gradient.exact import trees as exact_gradient_trees
from margrove.ensemble.gradient.hist import local_trees, packing
from margrove.ensemble.gradient.hist import rounds as gradient_rounds
from margrove.ensemble.gradient.hist.binning import bin_refinement as gradient_cells
from margrove.ensemble.gradient.hist.short_rounds import rounds_at_once
from margrove.ensemble.gradient.losses import (
    GRADIENT_LOSSES,
    Huber,
    Quantile,
    Tweedie,
    gradient_loss,
)
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
    InvalidDataError,
)
from margrove.grove.table.encoding import TreeTable

HIST = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
CLASSIC = (GradientBoostingClassifier, GradientBoostingRegressor)
OF_CLASSES = (HistGradientBoostingClassifier, GradientBoostingClassifier)
OF_NUMBERS = (HistGradientBoostingRegressor, GradientBoostingRegressor)
EVERY = (*HIST, *CLASSIC)


def each(classes):
    return pytest.mark.parametrize("cls", classes, ids=[cls.__name__ for cls in classes])


X = np.random.default_rng(0).standard_normal((120, 4))
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + np.random.default_rng(1).standard_normal(120)
LABELS = np.digitize(NUMBERS, [-1.0, 1.0])


def target_for(cls, labels=LABELS, numbers=NUMBERS):
    return labels if issubclass(cls, OF_CLASSES) else numbers


def rounds_of(cls):
    return "max_iter" if issubclass(cls, HIST) else "n_estimators"


def boosted(cls, rounds=5, **settings):
    defaults = {"random_state": 0, "n_jobs": 1, rounds_of(cls): rounds}
    if issubclass(cls, HIST):
        defaults["min_samples_leaf"] = 5
    return cls(**(defaults | settings))


def answers(model, data):
    return getattr(model, "predict_proba", model.predict)(data)


def raw_of(model, data):
    return getattr(model, "decision_function", model.predict)(data)


def nodes_of(model):
    return [[tree.nodes.tobytes() for tree in own] for own in model._rounds]


@contextmanager
def only_warnings(*allowed):
    """Warnings of this library are allowed, other warnings are errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    strangers = [
        f"{w.filename}:{w.lineno}: {w.message}"
        for w in caught
        if not issubclass(w.category, allowed)
    ]
    assert not strangers


def answer(model, data, target, weight=None, warns=(DataWarning, ConvergenceWarning)):
    """Fit, and check that the result is finite and consistent; named warnings are allowed."""
    with only_warnings(*warns):
        model.fit(data, target, weight)
        assert np.isfinite(answers(model, data)).all()
        assert np.isfinite(raw_of(model, data)).all()
        assert not np.isnan(model.history_.training_loss).any()
        importances = model.feature_importances_
        assert np.isfinite(importances).all()
        assert importances.sum() == pytest.approx(1.0) or not importances.any()
    if isinstance(model, OF_CLASSES):
        assert model.predict_proba(data).sum(axis=1) == pytest.approx(np.ones(data.shape[0]))
    return model


@contextmanager
def unchanged(model):
    """A failed fit does not change the model."""
    before, said = model._rounds, raw_of(model, X)
    yield
    assert model._rounds is before
    assert np.array_equal(raw_of(model, X), said)


# -- parameters ------------------------------------------------------------------------------------


REFUSED = {
    "learning_rate": [-1, np.nan, "a", None, True],
    "max_iter": [0, -1, 1.5, "a", None, True, np.nan],
    "n_estimators": [0, -1, 1.5, "a", None, True, np.nan],
    "max_leaf_nodes": [1, 0, -1, 2.5, "a", True],
    "max_depth": [0, -1, 1.5, "a", True],
    "min_samples_leaf": [0, -1, 1.5, "a", None, True],
    "min_samples_split": [1, 0.0, 1.5, "a", None],
    "min_weight_fraction_leaf": [-0.1, 0.6, np.nan],
    "min_impurity_decrease": [-1, np.nan],
    "ccp_alpha": [-1, np.nan],
    "l2_regularization": [-1, np.nan, "a", None, True],
    "max_features": [0, -1, 1.5, np.nan, "a", True],
    "max_bins": [1, 0, 256, 2.5, "a", None, True],
    "categorical_features": ["some", [9], [-5], [1.5], [True], 5, ["a"], {}],
    "monotonic_cst": [[1], [2, 0, 0, 0], "up", [np.nan, 0, 0, 0], {"a": 1}, 5, [[1, 0, 0, 0]]],
    "interaction_cst": [[1], [(0, 9)], "pair", [[-1]], [[0.5]], 5, [["a"]], [None], [(True,)]],
    "warm_start": ["yes", None, 1],
    "early_stopping": ["yes", None, 1],
    "scoring": ["nonsense", 5, lambda model, data, y: np.nan],
    "validation_fraction": [0, 1.0, 1.5, -1, "a", np.nan, 0.999, True],
    "n_iter_no_change": [0, -1, 1.5, "a", True],
    "tol": [-1, np.nan, "a", None, True],
    "subsample": [0, -1, 1.5, np.nan, "a", None, True],
    "growth": ["wide", None, 5],
    "n_jobs": [0, 1.5, "all", True],
    "random_state": [-1, 2**32, "seed", 0.5, True],
    "max_time": [0, -1, "soon", np.nan, True],
    "on_interrupt": ["ignore", None],
    "verbose": [-1, "a", None],
    "loss": ["nonsense", None, 5, GradientLoss],
    "quantile": [-1, 2, np.nan, "a", 0, 1, None],
    "alpha": [-1, 2, 0, 1, np.nan, "a", None],
    "criterion": ["nonsense", None],
    "init": ["nonsense", 5, object()],
    "class_weight": ["heavy", {0: -1.0}, {0: np.nan}, {0: 0}, [1, 2], {9: 1}, 5],
}
NEEDED_FOR = {
    "quantile": {"loss": "quantile"},
    "alpha": {"loss": "huber"},
    "scoring": {"early_stopping": True},
    "validation_fraction": {"early_stopping": True, "n_iter_no_change": 3},
}
OTHER_NAMES = {"interaction_cst": "Interaction constraints|interaction_cst"}


@each(EVERY)
def test_nonsense_is_refused_and_named(cls) -> None:
    model = boosted(cls, 2).fit(X, target_for(cls))
    for name, given in REFUSED.items():
        known = model.get_params()
        if name not in known:
            continue
        needed = {key: value for key, value in NEEDED_FOR.get(name, {}).items() if key in known}
        for value in given:
            if issubclass(cls, CLASSIC) and (name, value) == ("validation_fraction", 0.999):
                continue  # scikit-learn uses another name
            other = copy.copy(model).set_params(**(needed | {name: value}))
            with (
                unchanged(other),
                pytest.raises((ValueError, TypeError), match=OTHER_NAMES.get(name, name)),
            ):
                other.fit(X, target_for(cls))


@each(OF_CLASSES)
def test_losses_of_numbers_are_not_for_classes(cls) -> None:
    for loss in ("squared_error", "poisson", "quantile", Huber()):
        with pytest.raises(ValueError, match=r"is for regression\. Use one of"):
            boosted(cls, loss=loss).fit(X, LABELS)
    with pytest.raises(ValueError, match="two classes, but y has 3"):
        boosted(cls, loss="exponential").fit(X, LABELS)


@each(OF_NUMBERS)
def test_losses_of_classes_are_not_for_numbers(cls) -> None:
    for loss in ("log_loss", "exponential"):
        with pytest.raises(ValueError, match=r"is for classification\. Use one of"):
            boosted(cls, loss=loss).fit(X, NUMBERS)
    for make in (
        lambda: Huber(alpha=2),
        lambda: Quantile(0),
        lambda: Tweedie(2),
        lambda: Tweedie(1),
    ):
        with pytest.raises(ValueError, match="both excluded"):
            make()


@each(EVERY)
def test_numbers_of_any_size_that_mean_no_limit(cls) -> None:
    y = target_for(cls)
    plain = boosted(cls, 3, max_depth=4, max_leaf_nodes=None).fit(X, y)
    for settings in ({"max_leaf_nodes": 2**40}, {"max_leaf_nodes": 2**70}, {"n_jobs": 1000},
                     {"n_jobs": -1000}, {"max_time": 1e300}):  # fmt: skip
        model = answer(clone(plain).set_params(**settings), X, y)
        assert np.allclose(raw_of(model, X), raw_of(plain, X), rtol=1e-12, atol=1e-12)
    deep = boosted(cls, 3, max_depth=None, max_leaf_nodes=None).fit(X, y)
    model = answer(clone(deep).set_params(max_depth=2**70), X, y)
    assert np.array_equal(raw_of(model, X), raw_of(deep, X))
    for settings in ({"min_samples_leaf": 2**70}, {"min_samples_leaf": 1000}):
        model = answer(clone(plain).set_params(**settings), X, y)
        assert model.history_.n_leaves.max() <= model.n_trees_per_iteration_


@each(EVERY)
@pytest.mark.parametrize("many", [10**9, 2**70])
def test_rounds_without_end_end_with_the_time(cls, many) -> None:
    with steady_clock(), pytest.warns(ConvergenceWarning, match=r"used up max_time=0.25 s"):
        model = boosted(cls, many, max_time=0.25).fit(X, target_for(cls))
    assert 1 <= len(model) <= 5  # slices, which never go on after a round
    assert model.history_.outcome == "max_time"
    whole = boosted(cls, len(model)).fit(X, target_for(cls))
    assert nodes_of(model) == nodes_of(whole)


def test_most_leaves_and_least_memory() -> None:
    """A limit that has no effect does not need a histogram for every leaf."""
    rng = np.random.default_rng(0)
    data, y = rng.standard_normal((30_000, 4)), rng.standard_normal(30_000)
    model = boosted(HIST[1], 1, min_samples_leaf=10, early_stopping=False)
    models, peaks = [], []
    for most in (None, 2**40):
        tracemalloc.start()
        models.append(clone(model).set_params(max_leaf_nodes=most).fit(data, y))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert models[1].predict(data[:100]) == pytest.approx(models[0].predict(data[:100]), rel=1e-12)
    assert peaks[1] < 2 * peaks[0]


# -- scikit-learn ----------------------------------------------------------------------------------


@each(EVERY)
def test_parameters_are_those_of_scikit_learn(cls) -> None:
    peer = getattr(sklearn.ensemble, cls.__name__)
    theirs, ours = (inspect.signature(one).parameters for one in (peer, cls))
    assert [name for name in ours if name in theirs] == list(theirs)
    assert {name: theirs[name].default for name in theirs} == {
        name: ours[name].default for name in theirs
    }
    assert all(ours[name].kind == theirs[name].kind for name in theirs)
    assert not {name for name in dir(peer) if not name.startswith("_")} - set(dir(cls))
    for method in ("fit", "predict", "score"):
        names = inspect.signature(getattr(peer, method)).parameters
        assert list(inspect.signature(getattr(cls, method)).parameters) == list(names)


MISUSED = {
    "NaN": (np.where(X > 2, np.nan, X), None, None),
    "infinity": (np.where(X > 2, np.inf, X), None, None),
    "one dimension": (X[:, 0], None, None),
    "few targets": (X, NUMBERS[:5] > 0, None),
    "two columns of targets": (X, np.c_[LABELS, LABELS], None),
    "no targets": (X, "nothing", None),
    "weights of zero": (X, None, np.zeros(120)),
    "weights of NaN": (X, None, np.full(120, np.nan)),
    "few weights": (X, None, np.ones(3)),
    "a table of weights": (X, None, np.ones((120, 2))),
}


@each(CLASSIC)
@pytest.mark.parametrize("name", MISUSED)
def test_what_scikit_learn_refuses(cls, name) -> None:
    """With an error of the same kind."""
    data, y, weight = MISUSED[name]
    y = target_for(cls) if y is None else y
    for one in (getattr(sklearn.ensemble, cls.__name__), cls):
        with pytest.raises(ValueError, match=r"."):
            one(n_estimators=2).fit(data, None if isinstance(y, str) else y, weight)


@each(CLASSIC)
@pytest.mark.parametrize(
    "settings", [{}, {"subsample": 0.5}, {"n_iter_no_change": 3}, {"init": "zero"}]
)
def test_what_is_fitted_has_the_names_of_scikit_learn(cls, settings) -> None:
    peer = getattr(sklearn.ensemble, cls.__name__)
    theirs, ours = (one(n_estimators=4, random_state=0, **settings) for one in (peer, cls))
    for model in (theirs, ours):
        model.fit(X, target_for(cls))
    fitted = {name for name in dir(theirs) if name.endswith("_") and not name.startswith("_")}
    assert not {name for name in fitted if not hasattr(ours, name)}
    for name in fitted:
        assert np.shape(getattr(theirs, name)) == np.shape(getattr(ours, name))
    if "subsample" not in settings and "n_iter_no_change" not in settings:
        assert answers(ours, X) == pytest.approx(answers(theirs, X), rel=1e-12)


# -- tables ----------------------------------------------------------------------------------------


def with_cell(value, row=3, column=2):
    changed = X.copy()
    changed[row, column] = value
    return changed


@each(EVERY)
def test_tables_that_are_none(cls) -> None:
    y = target_for(cls)
    model = boosted(cls).fit(X, y)
    for data, target in (
        (X[:, 0], y), (X[None], y), (X[:0], y[:0]), (X[:, :0], y), (X * 1j, y), (X, y[:10]),
        (X, None), (None, y), ("X", y), ({"a": 1}, y), ({1, 2}, y), ((row for row in X), y),
        (X, np.empty((120, 0))), (X, np.c_[y, y]), (np.ma.masked_array(X, X > 1), y),
        (X.astype("M8[s]"), y), ((X * 9).astype("m8[s]"), y), (np.zeros(120, [("a", float)]), y),
        (pd.DataFrame(X, columns=list("abca")), y), (pd.DataFrame(X, columns=["a", 1, "b", 2]), y),
        (pd.DataFrame({"a": pd.date_range("2020", periods=120)}), y),
    ):  # fmt: skip
        with unchanged(model), pytest.raises((ValueError, TypeError)):
            model.fit(data, target)


@each(CLASSIC)
def test_what_only_the_other_pair_takes(cls) -> None:
    for value, named in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        for data in (with_cell(value), sp.csr_array(with_cell(value))):
            with pytest.raises(InvalidDataError, match=rf"{named} \(first at row 3, column 2"):
                boosted(cls).fit(data, target_for(cls))
    for data in (pd.DataFrame({"a": ["x", "y", "z"] * 40}), X.astype(str)):
        with pytest.raises(InvalidDataError, match=r"not a number|Convert"):
            boosted(cls).fit(data, target_for(cls))


@each(OF_NUMBERS)
def test_targets_that_are_no_numbers(cls) -> None:
    model = boosted(cls).fit(X, NUMBERS)
    for y in (
        np.where(np.arange(120) == 5, np.nan, NUMBERS), np.where(NUMBERS > 1, np.inf, NUMBERS),
        [None] * 120, ["a"] * 120, NUMBERS * 1j, np.arange(120).astype("M8[s]"),
    ):  # fmt: skip
        with unchanged(model), pytest.raises((ValueError, TypeError)):
            model.fit(X, y)
    for loss, y, named in (
        ("poisson", NUMBERS, "row [0-9]+ .*requires non-negative y"),
        ("gamma", np.maximum(NUMBERS, 0), "row [0-9]+ .*requires strictly positive y"),
        ("tweedie", np.zeros(120), "0 in all 120 rows"),
    ):  # fmt: skip
        with unchanged(model), pytest.raises(InvalidDataError, match=named):
            copy.copy(model).set_params(loss=loss).fit(X, y)


@each(OF_CLASSES)
def test_labels_that_are_none(cls) -> None:
    model = boosted(cls).fit(X, LABELS)
    one_class = [] if cls in HIST else [np.ones(120)]  # the histogram estimators learn it
    for y in (NUMBERS, np.where(LABELS == 0, np.nan, 1.0), [None] * 120, *one_class,
              np.array([1, "a"] * 60, dtype=object), LABELS * 1j,
              np.arange(120).astype("M8[s]")):  # fmt: skip
        with unchanged(model), pytest.raises((ValueError, TypeError)):
            model.fit(X, y)


@each(OF_CLASSES)
def test_labels_of_any_type(cls) -> None:
    plain = boosted(cls).fit(X, LABELS)
    looking_alike = ["e\u0301", "\u00e9", "\U0001f333"]
    for names in (["low", "middle", "top"], [-7, 0, 2**40], [-1.0, 0.0, 3.0], looking_alike):
        labels = np.array(sorted(names))
        model = answer(boosted(cls), X, labels[LABELS])
        assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))
        assert np.array_equal(model.predict(X), labels[plain.predict(X)])
    two = boosted(cls).fit(X, LABELS > 0)
    assert two.predict(X).dtype == bool
    assert np.array_equal(
        two.predict_proba(X), boosted(cls).fit(X, 1 * (LABELS > 0)).predict_proba(X)
    )


def tables_alike():
    """The same numbers in other containers."""
    rounded = np.round(X)
    backwards = np.asfortranarray(rounded[::-1])[::-1]
    csr = sp.csr_array(rounded)
    wide = sp.csr_array((csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)),
                        shape=csr.shape)  # fmt: skip
    pair = sp.coo_array(rounded)
    double = sp.coo_array(
        (np.r_[0.25 * pair.data, 0.75 * pair.data], (np.r_[pair.row, pair.row],
         np.r_[pair.col, pair.col])), shape=pair.shape,
    )  # fmt: skip
    frame = pd.DataFrame(rounded, columns=list("abcd"))
    return rounded, {
        "Fortran": np.asfortranarray(rounded), "backwards": backwards,
        "byte-swapped": rounded.astype(">f8"), "float32": rounded.astype(np.float32),
        "float16": rounded.astype(np.float16), "int8": rounded.astype(np.int8),
        "int64": rounded.astype(np.int64), "objects": rounded.astype(object),
        "lists": rounded.tolist(), "longdouble": rounded.astype(np.longdouble),
        "strided": np.repeat(rounded, 2, axis=1)[:, ::2],
        "csr": csr, "csc": csr.tocsc(), "coo": pair, "lil": csr.tolil(), "dok": csr.todok(),
        "bsr": csr.tobsr(), "wide indices": wide, "duplicates": double,
        "pandas": frame, "nullable": frame.astype("Int64"), "polars": pl.DataFrame(frame),
        "lazy": pl.DataFrame(frame).lazy(), "arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
    }  # fmt: skip


@each(EVERY)
def test_the_same_numbers_in_other_clothes(cls) -> None:
    rounded, others = tables_alike()
    y = target_for(cls)
    plain = boosted(cls, 3).fit(rounded, y)
    for name, data in others.items():
        model = boosted(cls, 3).fit(data, y)
        assert nodes_of(model) == nodes_of(plain), name
        assert np.array_equal(answers(model, data), answers(plain, rounded)), name


@each(EVERY)
def test_tables_are_not_written_to(cls) -> None:
    early = {"early_stopping": True} if cls in HIST else {"n_iter_no_change": 2}
    for data in (X.copy(), np.asfortranarray(X), sp.csr_array(np.round(X))):
        parts = (data.data, data.indices, data.indptr) if sp.issparse(data) else (data,)
        y, weight = np.array(target_for(cls)), np.full(120, 0.5)
        for part in (*parts, y, weight):
            part.flags.writeable = False
        for settings in ({}, {"subsample": 0.5}, early):
            model = boosted(cls, 3, **settings).fit(data, y, weight)
            assert np.array_equal(answers(model, data), answers(model, data.copy()))


EDGES = {
    "neighbours": np.nextafter(1.0, 2.0) ** np.arange(8),
    "denormals": np.arange(1, 9) * 5e-324,
    "largest": np.array([-1.7e308, -1e308, -1.0, 0.0, 1.0, 1e308, 1.7e308, 1.79e308]),
    "all sizes": 10.0 ** np.linspace(-307, 308, 8),
    "beyond single precision": 2.0**52 + np.arange(8.0),
    "around zero": np.array([-1e-300, -5e-324, 0.0, 5e-324, 1e-300, 1e-200, 1.0, 1e300]),
    "infinities": np.array([-np.inf, -1.79e308, -1.0, 0.0, 1.0, 1.79e308, np.inf, np.nan]),
}


@each(EVERY)
@pytest.mark.parametrize("case", EDGES)
def test_values_however_close_or_far(cls, case) -> None:
    y = np.repeat(np.arange(8) % 3, 5)
    y = y if cls in OF_CLASSES else y.astype(float)
    if case == "infinities" and cls in CLASSIC:  # these do not support them
        with pytest.raises(ValueError, match="infinity"):
            boosted(cls, 2).fit(np.repeat(EDGES[case], 5)[:, None], y)
        return
    for sign in (1.0, -1.0):
        data = sign * np.repeat(EDGES[case], 5)[:, None]
        model = answer(boosted(cls, 60, learning_rate=0.5, min_samples_leaf=1), data, y)
        assert model.predict(data) == pytest.approx(y, abs=1e-6)
        assert np.array_equal(raw_of(model, sp.csr_array(data)), raw_of(model, data))
    zeros = boosted(cls, 3, min_samples_leaf=1)
    answer(zeros, np.where(np.arange(40) % 2, 0.0, -0.0)[:, None], y)
    assert zeros.history_.n_leaves.max() == zeros.n_trees_per_iteration_


@each(EVERY)
def test_nothing_to_learn(cls) -> None:
    y = target_for(cls)
    for data in (np.ones((120, 3)), np.broadcast_to(X[:1], (120, 4)), sp.csr_array((120, 2))):
        model = answer(boosted(cls), data, y)
        assert np.ptp(answers(model, data), axis=0).max() == 0.0
    if cls in HIST:
        with pytest.warns(DataWarning, match="no split"):
            boosted(cls).fit(np.full((120, 2), np.nan), y)
        with pytest.warns(DataWarning, match="no split"):
            boosted(cls, min_samples_leaf=61).fit(X, y)
    if cls in OF_NUMBERS:
        for constant in (0.0, 7.0, -1e300, 1e-300):
            same = answer(boosted(cls), X, np.full(120, constant))
            assert same.predict(X) == pytest.approx(np.full(120, constant), rel=1e-15, abs=0.0)


@each(EVERY)
def test_one_and_two_rows(cls) -> None:
    settings = {"learning_rate": 1.0, "min_samples_leaf": 1}
    two = answer(boosted(cls, **settings), X[:2], [0, 1])
    assert two.predict(X[:2]) == pytest.approx([0, 1])
    if cls is GradientBoostingClassifier:
        with pytest.raises(InvalidDataError, match="1 class"):
            boosted(cls).fit(X[:1], [3])
    else:
        one = answer(boosted(cls, **settings), X[:1], [3])
        assert one.predict(X[:2]).tolist() == [3, 3]
    for share in (1e-300, 0.5):
        answer(boosted(cls, subsample=share, **settings), X[:2], [0, 1])


# -- categories ------------------------------------------------------------------------------------


@each(HIST)
@pytest.mark.parametrize("many", [2, 254, 255, 256, 300, 70_000])
def test_any_number_of_categories(cls, many) -> None:
    rng = np.random.default_rng(0)
    codes = np.arange(max(3000, 2 * many)) % many
    effect = rng.permutation(many) % 2
    y = effect[codes] if cls in OF_CLASSES else effect[codes].astype(float)
    data = codes[:, None].astype(float)
    model = boosted(cls, 20, categorical_features=[0], learning_rate=0.5, early_stopping=False)
    with only_warnings(DataWarning):
        model.fit(data, y)
    if many <= 300:
        assert model.score(data, y) > 0.8
    with pytest.warns(DataWarning, match="not seen"):
        unseen = answers(model, np.array([[many + 5.0], [-1.0]]))
    assert np.array_equal(unseen, answers(model, np.full((2, 1), np.nan)))


@each(HIST)
def test_categories_by_name(cls) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": np.array(["x", "y", "z", None])[rng.integers(0, 4, 300)],
                          "b": rng.standard_normal(300)})  # fmt: skip
    y = (frame.a == "x").astype(int)
    model = answer(boosted(cls, 30, learning_rate=0.3), frame, y)
    mixed = pd.DataFrame({"a": pd.Categorical(["z", "x", None]), "b": 0.0})
    assert np.round(model.predict(mixed)).tolist() == [0, 1, 0]
    with pytest.warns(DataWarning, match="'new' in column 'a'"):
        unseen = model.predict(mixed.assign(a=["new", "x", "y"]))
    assert np.round(unseen).tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="names"):
        model.predict(mixed[["b", "a"]])
    with pytest.raises(InvalidDataError, match="infinity"):
        boosted(cls, categorical_features=[2]).fit(with_cell(np.inf), target_for(cls))
    with pytest.raises(ValueError, match="Categorical features cannot have monotonic"):
        boosted(cls, categorical_features=[0], monotonic_cst=[1, 0, 0, 0]).fit(X, LABELS > 0)
    with pytest.raises(InvalidDataError, match="dense"):
        boosted(cls, categorical_features=[0]).fit(sp.csr_array(X), LABELS > 0)


# -- weights ---------------------------------------------------------------------------------------


@each(EVERY)
@pytest.mark.parametrize(
    ("weight", "named"),
    [
        (-np.ones(120), "negative at row 0"), (np.full(120, np.nan), "NaN"),
        (np.full(120, np.inf), "infinity"), (np.zeros(120), "zero for all"),
        (-np.zeros(120), "zero for all"), (np.ones(3), "shape"), (np.ones((120, 1)), "1D"),
        (2.0, "1D"), (["a"] * 120, "could not convert|weight"),
        (np.ma.masked_array(np.ones(120), X[:, 0] > 0), "masked"),
    ],
)  # fmt: skip
def test_weights_that_are_none(cls, weight, named) -> None:
    model = boosted(cls).fit(X, target_for(cls))
    with unchanged(model), pytest.raises(ValueError, match=named):
        model.fit(X, target_for(cls), weight)


@each(CLASSIC)
@pytest.mark.parametrize(
    "weight", [5e-324, 1e-300, 1e-100, 1e-30, 1e-10, 0.3, 3.0, 1e9, 1e15, 1e200, 1.7e308]
)
def test_weights_of_any_size(cls, weight) -> None:
    """Equal weights for all rows are the same as no weights."""
    y = target_for(cls)
    plain = boosted(cls).fit(X, y)
    for settings in ({}, {"max_leaf_nodes": 5}):
        plain.set_params(**settings).fit(X, y)
        model = answer(clone(plain), X, y, np.full(120, weight))
        assert raw_of(model, X) == pytest.approx(raw_of(plain, X), rel=1e-9, abs=1e-9)


@each(HIST)
@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e-100, 0.01, 0.5, 2.0**40, 1e200, 1.7e308])
def test_weights_of_any_size_where_splits_are_rounded(cls, weight) -> None:
    y = target_for(cls)
    model = answer(boosted(cls, 40), X, y, np.full(120, weight))
    assert model.score(X, y) == pytest.approx(boosted(cls, 40).fit(X, y).score(X, y), abs=0.03)


@each(EVERY)
@pytest.mark.parametrize(
    "weight", [10.0 ** np.linspace(-200, 200, 120), np.where(np.arange(120) == 3, 1e20, 1.0)]
)
def test_weights_of_all_sizes_at_once(cls, weight) -> None:
    y, heaviest = target_for(cls), int(np.argmax(weight))
    model = answer(boosted(cls, 60, learning_rate=0.5), X, y, weight)
    assert model.predict(X)[heaviest] == pytest.approx(y[heaviest], rel=1e-3)


@each(EVERY)
@pytest.mark.parametrize("settings", [{}, {"subsample": 0.5}])
def test_a_row_that_stands_for_a_billion(cls, settings) -> None:
    """Neither memory nor time grows with the weights."""
    weight = np.where(np.arange(120) == 3, 1e9, 1.0)
    for heavy in (weight, np.full(120, 1e5), np.full(120, 1.6e7)):
        with within_slices(10):
            model = answer(boosted(cls, 3, **settings), X, target_for(cls), heavy)
        assert len(model) == 3
        assert model.n_features_in_ == 4


@each(HIST)
def test_weights_of_a_validation_set(cls) -> None:
    y = target_for(cls)
    given = {"X_val": X[:40], "y_val": y[:40]}
    plain = boosted(cls, early_stopping=True).fit(X, y, **given)
    for weight in (5e-324, 1e-300, 0.3, 1e9, 1e308):
        with only_warnings():
            model = boosted(cls, early_stopping=True)
            model.fit(X, y, **given, sample_weight_val=np.full(40, weight))
        assert model.validation_score_ == pytest.approx(plain.validation_score_, rel=1e-12)
    for weight, named in (
        (-np.ones(40), "negative"), (np.full(40, np.nan), "NaN"), (np.zeros(40), "zero"),
        (np.ones(3), "shape"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=named):
            boosted(cls, early_stopping=True).fit(X, y, **given, sample_weight_val=weight)


# -- numbers at the edge ---------------------------------------------------------------------------


@each(OF_NUMBERS)
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_targets_of_any_size(cls, loss) -> None:
    """Twice the targets are twice the predictions, to the last bit."""
    settings = {"loss": loss} | ({"quantile": 0.7} if (cls, loss) == (HIST[1], "quantile") else {})
    plain = boosted(cls, 8, **settings).fit(X, NUMBERS)
    square = 1 if loss in ("absolute_error", "quantile") else 2
    for power in (-1000, -664, -400, -333, -200, 30, 331, 400, 664, 1000, 1020):
        model = answer(boosted(cls, 8, **settings), X, np.ldexp(NUMBERS, power))
        assert np.array_equal(model.predict(X), np.ldexp(plain.predict(X), power))
        assert model.feature_importances_ == pytest.approx(plain.feature_importances_, rel=1e-9)
        if abs(power) <= 400:
            losses = np.ldexp(model.history_.training_loss, -square * power)
            assert losses == pytest.approx(plain.history_.training_loss, rel=1e-12)


@each(OF_NUMBERS)
def test_targets_far_from_zero(cls) -> None:
    plain = boosted(cls, 8).fit(X, NUMBERS)
    for offset in (1e6, 1e9, -1e12):
        model = answer(boosted(cls, 8), X, NUMBERS + offset)
        expected = plain.predict(X) + offset
        assert model.predict(X) == pytest.approx(expected, rel=1e-15, abs=1e-15 * abs(offset))


@each(OF_NUMBERS)
@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_positive_targets_of_any_size(cls, loss) -> None:
    """The right answer, or an error about the size of targets."""
    y = np.exp(NUMBERS)
    for size in (5e-324, 1e-300, 1e-10, 1.0, 1e10, 1e90, 1e305):
        target = np.maximum(y * size / y.max(), 5e-324)
        model = boosted(cls, 60, loss=loss, learning_rate=0.2)
        try:
            with only_warnings(DataWarning):
                model.fit(X, target)
        except InvalidDataError as error:
            assert "Multiply y by a constant" in str(error)  # noqa: PT017
            assert not 1e-6 <= size <= 1e90
            continue
        found = model.predict(X)
        assert np.isfinite(found).all()
        assert (found > 0.0).all()
        assert np.log(found / target.mean()).std() > 0.5  # it has learned something
        near = np.argsort(target)[-3:]
        assert found[near] == pytest.approx(target[near], rel=0.7)
        losses = model.history_.training_loss
        assert losses[-1] < losses[0]


@each(OF_CLASSES)
@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("rate", [0.1, 1.0, 50.0, 1e300])
@pytest.mark.sampled(5)
def test_classes_without_overlap(cls, loss, rate) -> None:
    """Scores grow, but stay finite."""
    data = np.linspace(0.0, 1.0, 200)[:, None]
    for k in (2, 3) if loss == "log_loss" else (2,):
        y = np.minimum((k * data[:, 0]).astype(int), k - 1)
        model = answer(boosted(cls, 300, learning_rate=rate, loss=loss), data, y)
        assert model.score(data, y) == 1.0
        losses = model.history_.training_loss
        assert np.isfinite(losses).all()
        assert losses[-1] < 0.01
        for share in model.staged_predict_proba(data[::50]):
            assert np.isfinite(share).all()


@each(EVERY)
def test_learning_rates_of_any_size(cls) -> None:
    y = target_for(cls)
    for rate in (1e-320, 1e10, 1e300, 1.7e308):
        answer(boosted(cls, 10, learning_rate=rate), X, y)
    if cls in CLASSIC:  # as in scikit-learn
        still = answer(boosted(cls, learning_rate=0), X, y)
        assert np.ptp(answers(still, X), axis=0).max() == 0.0
    else:
        with pytest.raises(ValueError, match="learning_rate"):
            boosted(cls, learning_rate=0).fit(X, y)


@each(HIST)
def test_what_gets_worse_is_said(cls) -> None:
    y = target_for(cls)
    with pytest.warns(ConvergenceWarning, match=r"increased.*learning_rate"):
        boosted(cls, 20, learning_rate=1000.0).fit(X, y)
    for size in (1e300, 1.7e308):
        model = answer(boosted(cls, l2_regularization=size), X, y)
        assert np.ptp(answers(model, X), axis=0).max() < 1e-200


@each(HIST)
@pytest.mark.parametrize(
    "settings",
    [{"max_bins": 2}, {"max_leaf_nodes": 2}, {"max_depth": 1}, {"max_features": 1e-300},
     {"subsample": 1e-300}, {"interaction_cst": [[]]}, {"interaction_cst": []},
     {"interaction_cst": ((0, 0), {1, 2})}, {"monotonic_cst": [0, 0, 0, 0]}],
)  # fmt: skip
def test_settings_at_the_edge(cls, settings) -> None:
    y = LABELS > 0 if cls in OF_CLASSES else NUMBERS
    model = answer(boosted(cls, 4, **settings), X, y)
    if {"max_leaf_nodes", "max_depth", "max_bins"} & set(settings):
        assert model.history_.n_leaves[0] >= 2
    if {"max_leaf_nodes", "max_depth"} & set(settings):
        assert model.history_.n_leaves.max() == 2


# -- losses of one's own ---------------------------------------------------------------------------


def value(y, raw):
    return 0.5 * (y - raw) ** 2


def gradient(y, raw):
    return raw - y


def hessian(y, raw):
    return 1.0


def of_functions(cls, value=value, gradient=gradient, hessian=hessian, **more):
    return GradientLoss.of_functions(
        value, gradient, hessian, for_classes=cls in OF_CLASSES, name="mine", **more
    )


def always_nan(y, raw):
    return math.nan


def always_less(y, raw):
    return -1.0


def one_argument(y):
    return 0.0


def always_text(y, raw):
    return "text"


OWN = {
    "NaN gradients": ({"gradient": always_nan}, r"loss='mine' has the gradient np.float64\(nan\)"),
    "negative hessians": ({"hessian": always_less}, "hessian a number >= 0"),
    "NaN values": ({"value": always_nan}, "value of loss='mine' is NaN"),
    "no callable": ({"gradient": 5}, "gradient must be callable"),
    "one argument": ({"gradient": one_argument}, "gradient"),
    "text": ({"hessian": always_text}, "hessian"),
    "a start of text": ({"start": lambda y, w: "text"}, "start|text"),
    "a start of NaN": ({"start": lambda y, w: math.nan}, "nan"),
    "a start of infinity": ({"start": lambda y, w: math.inf}, "start|inf"),
    "leaves of NaN": ({"leaf_value": lambda r, w: math.nan}, "leaf_value|nan"),
    "leaves of text": ({"leaf_value": lambda r, w: "text"}, "leaf_value|text"),
}


@each(EVERY)
@pytest.mark.parametrize("name", OWN)
def test_own_losses_that_are_none(cls, name) -> None:
    functions, named = OWN[name]
    y = LABELS > 0 if cls in OF_CLASSES else NUMBERS
    model = boosted(cls, 2).fit(X, y)
    with unchanged(model), pytest.raises((ValueError, TypeError), match=named):
        model.set_params(loss=of_functions(cls, **functions)).fit(X, y)


@each(EVERY)
def test_own_losses_that_raise(cls) -> None:
    y = LABELS > 0 if cls in OF_CLASSES else NUMBERS
    model = boosted(cls, 2).fit(X, y)

    def broken(*given):
        raise ArithmeticError("broken on purpose")

    for functions in ({"start": broken}, {"leaf_value": broken}):
        with unchanged(model), pytest.raises(ArithmeticError, match="on purpose"):
            copy.copy(model).set_params(loss=of_functions(cls, **functions)).fit(X, y)


@each(OF_NUMBERS)
def test_own_losses_do_not_write_to_what_they_are_given(cls) -> None:
    def meddling(y, weight):
        with suppress(ValueError):
            y[:] = 0.0
        with suppress(ValueError):
            weight[:] = 0.0
        return 0.0

    y = NUMBERS.copy()
    honest = boosted(cls, loss=of_functions(cls, start=lambda y, weight: 0.0)).fit(X, y)
    model = boosted(cls, loss=of_functions(cls, start=meddling)).fit(X, y)
    assert np.array_equal(model.predict(X), honest.predict(X))
    assert np.array_equal(y, NUMBERS)


def test_names_of_losses() -> None:
    known = dict(GRADIENT_LOSSES)
    try:
        register_gradient_loss("mine", value, gradient, hessian)
        for name in ("mine", "log_loss"):
            with pytest.raises(ValueError, match="exists already"):
                register_gradient_loss(name, value, gradient, hessian)
        for name in (5, None, "", ("a",)):
            with pytest.raises((ValueError, TypeError), match="name"):
                register_gradient_loss(name, value, gradient, hessian)
        with pytest.raises(TypeError, match="hessian must be callable"):
            register_gradient_loss("other", value, gradient, 1.0)
        assert set(GRADIENT_LOSSES) == {*known, "mine"}
        by_name = boosted(HIST[1], loss="mine").fit(X, NUMBERS)
        assert np.array_equal(by_name.predict(X), boosted(HIST[1]).fit(X, NUMBERS).predict(X))
    finally:
        GRADIENT_LOSSES.clear()
        GRADIENT_LOSSES.update(known)
    with pytest.raises(ValueError, match=r"loss must be one of.*'mine'"):
        by_name.fit(X, NUMBERS)
    assert np.isfinite(by_name.predict(X)).all()


# -- when to stop ----------------------------------------------------------------------------------


@each(HIST)
@pytest.mark.parametrize("n", [2, 3, 5, 11])
@pytest.mark.parametrize("share", [0.1, 0.5, 1])
def test_early_stopping_with_few_rows(cls, n, share) -> None:
    y = np.r_[[0, 1], np.zeros(n - 2, int)] if cls in OF_CLASSES else NUMBERS[:n]
    model = boosted(cls, 3, early_stopping=True, validation_fraction=share, min_samples_leaf=1)
    answer(model, X[:n], y)
    assert len(model) == 3
    assert np.isfinite(model.validation_score_).all()
    with pytest.raises(ValueError, match="leaves none to train on"):
        model.set_params(validation_fraction=n).fit(X[:n], y)


@each(CLASSIC)
@pytest.mark.parametrize("n", [2, 3, 5, 11])
def test_few_rows_of_the_classic_pair(cls, n) -> None:
    y = np.r_[[0, 1], np.zeros(n - 2, int)] if cls in OF_CLASSES else NUMBERS[:n]
    model = boosted(cls, 3, n_iter_no_change=3)
    if n == 2 and cls in OF_CLASSES:
        with pytest.raises(ValueError, match="missing some classes"):
            model.fit(X[:n], y)
    else:
        answer(model, X[:n], y)


@each(OF_CLASSES)
def test_the_only_row_of_a_class_is_trained_on(cls) -> None:
    early = {"early_stopping": True} if cls in HIST else {"n_iter_no_change": 3}
    for seed in range(20):
        model = boosted(cls, 3, random_state=seed, validation_fraction=0.1, **early)
        answer(model, X[:4], np.array([0, 0, 0, 1]))
        assert model.classes_.tolist() == [0, 1]


@each(OF_NUMBERS)
@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson"]
)
def test_scores_of_rows_set_apart_are_scores(cls, loss) -> None:
    y = np.exp(NUMBERS / 2) if loss == "poisson" else NUMBERS
    early = {"early_stopping": True} if cls in HIST else {"n_iter_no_change": 10}
    more = {"quantile": 0.5} if (cls, loss) == (HIST[1], "quantile") else {}
    model = answer(boosted(cls, 30, loss=loss, **early, **more), X, y)
    score = model.history_.validation_score
    assert len(model) > 10
    assert score[5:].max() > score[0]
    assert model.history_.training_loss[0] > model.history_.training_loss[-1]


class Splitter:
    """A splitter with given splits."""

    def __init__(self, *pairs):
        self.pairs = pairs

    def split(self, X, y=None, groups=None):
        return iter(self.pairs)

    def get_n_splits(self, *given):
        return len(self.pairs)


ROWS = np.arange(120)


@each(HIST)
@pytest.mark.parametrize(
    "pairs",
    [(), ((ROWS, ROWS[:0]),), ((ROWS[:0], ROWS),), ((ROWS[:100], [500]),), ((None, ROWS[:5]),),
     ((ROWS[:50] + 0.5, ROWS[50:]),), ((ROWS[:9], ROWS[9:20], ROWS[20:]),), (5,)],
)  # fmt: skip
def test_splitters_that_are_none(cls, pairs) -> None:
    model = boosted(cls, 2).fit(X, target_for(cls))
    model.set_params(early_stopping=True, validation_fraction=Splitter(*pairs))
    with unchanged(model), pytest.raises((ValueError, TypeError), match="validation_fraction"):
        model.fit(X, target_for(cls))


@each(HIST)
def test_splitters_speak_of_the_rows_that_were_given(cls) -> None:
    """Splits refer to the original rows, not to rows dropped or repeated by weights."""
    y = target_for(cls)
    apart = PredefinedSplit(np.where(ROWS < 90, -1, 0))
    model = boosted(cls, 3, early_stopping=True, validation_fraction=apart)
    for weight in (np.full(120, 2.0), np.where(ROWS % 3 == 0, 0.0, 1.0)):
        kept = weight > 0
        own = clone(model).fit(X, y, weight)
        train, test = kept & (ROWS < 90), kept & (ROWS >= 90)
        twin = boosted(cls, 3, early_stopping=True)
        twin.fit(X[train], y[train], weight[train], X_val=X[test], y_val=y[test])
        assert nodes_of(own) == nodes_of(twin)
        assert own.validation_score_ == pytest.approx(twin.validation_score_, rel=1e-12)


@each(HIST)
def test_validation_sets_that_are_none(cls) -> None:
    y = target_for(cls)
    model = boosted(cls, 3, early_stopping=True).fit(X, y)
    for given in (
        {"X_val": X}, {"y_val": y}, {"X_val": X[:30], "y_val": y[:20]},
        {"X_val": X[:30, :2], "y_val": y[:30]}, {"X_val": X[:30], "y_val": np.full(30, np.nan)},
        {"X_val": X[:0], "y_val": y[:0]}, {"X_val": X[:30, 0], "y_val": y[:30]},
        {"X_val": X[:30], "y_val": np.c_[y, y][:30]}, {"X_val": X[:30], "y_val": ["a"] * 30},
        {"sample_weight_val": np.ones(30)},
    ):  # fmt: skip
        with unchanged(model), pytest.raises(ValueError, match=r"."):
            model.fit(X, y, **given)
    if cls in OF_CLASSES:
        with pytest.raises(ValueError, match="y_val has the class 9, which y does not have"):
            model.fit(X, y, X_val=X[:30], y_val=np.full(30, 9))
    with pytest.raises(ValueError, match="early_stopping"):
        boosted(cls, early_stopping=False).fit(X, y, X_val=X, y_val=y)
    for few in (1, 5):
        model.fit(X, y, X_val=X[LABELS == 0][:few], y_val=y[LABELS == 0][:few])
        assert np.isfinite(model.validation_score_).all()


# -- going on from an earlier model ----------------------------------------------------------------


@each(EVERY)
def test_warm_starts_that_go_down_or_elsewhere(cls) -> None:
    y, rounds = target_for(cls), rounds_of(cls)
    model = boosted(cls, 4, warm_start=True).fit(X, y)
    elsewhere = [
        ({rounds: 2}, X, y), ({rounds: 8}, X[:, :2], y), ({rounds: 8}, np.c_[X, X], y),
        ({rounds: 8}, X[:, 0], y), ({rounds: 8}, X, y[:5]),
    ]  # fmt: skip
    if cls in OF_CLASSES:
        elsewhere += [({rounds: 8}, X, y + 1), ({rounds: 8}, X, y > 0)]
        elsewhere += [({rounds: 8, "loss": "exponential"}, X, y)]
    else:
        elsewhere += [({rounds: 8, "loss": "absolute_error"}, X, y)]
        elsewhere += [({rounds: 8, "loss": "poisson"}, X, np.abs(y))]
    if cls in HIST:
        elsewhere += [({rounds: 8, "categorical_features": [0]}, X, y)]
    for settings, data, target in elsewhere:
        other = copy.copy(model).set_params(**settings)
        with unchanged(other), pytest.raises(ValueError, match=r"."):
            other.fit(data, target)
    anew = copy.copy(model).set_params(warm_start=False, **{rounds: 2}).fit(X[:50, :2], y[:50])
    assert (anew.n_features_in_, len(anew)) == (2, 2)


@each(EVERY)
@pytest.mark.parametrize("name", ["plain", "subsample", "early", "drawn features", "largest"])
def test_a_warm_start_is_the_whole_fit(cls, name) -> None:
    early = {"early_stopping": True} if cls in HIST else {"n_iter_no_change": 9}
    settings = {"plain": {}, "subsample": {"subsample": 0.5}, "early": early,
                "drawn features": {"max_features": 0.5}, "largest": {}}[name]  # fmt: skip
    y = target_for(cls, numbers=NUMBERS * (1e200 if name == "largest" else 1.0))
    whole = boosted(cls, 9, **settings).fit(X, y)
    model = boosted(cls, 4, warm_start=True, **settings).fit(X, y)
    model.fit(X, y)  # nothing to do
    assert nodes_of(model) == nodes_of(whole)[:4]
    model.set_params(**{rounds_of(cls): 9}).fit(X, y)
    assert nodes_of(model) == nodes_of(whole)
    assert np.array_equal(raw_of(model, X), raw_of(whole, X))
    for figure in ("training_loss", "validation_score", "n_leaves"):
        assert np.array_equal(getattr(model.history_, figure), getattr(whole.history_, figure))
    for fitted in ("oob_scores_", "oob_improvement_", "train_score_"):
        if hasattr(whole, fitted):
            assert np.array_equal(getattr(model, fitted), getattr(whole, fitted))


@each(CLASSIC)
def test_a_warm_start_with_other_settings(cls) -> None:
    """Trees have their own parameters, and rounds without out-of-bag rows no out-of-bag loss."""
    y = target_for(cls, labels=LABELS > 0)
    model = boosted(cls, 4, max_depth=1, warm_start=True).fit(X, y)
    model.set_params(n_estimators=7, max_depth=2, subsample=0.5).fit(X, y)
    for other in (model, pickle.loads(pickle.dumps(model))):
        depths = [tree.max_depth for tree in other.set_params(max_depth=9).estimators_[:, 0]]
        assert depths == [1] * 4 + [2] * 3
    for figures in (model.oob_scores_, model.oob_improvement_):
        assert len(figures) == 7
        assert (figures[:4] == 0.0).all()
        assert (figures[4:] != 0.0).all()
    assert model.oob_score_ == model.oob_scores_[-1]
    assert model.oob_improvement_[5:] == pytest.approx(-np.diff(model.oob_scores_[4:]))


@each(CLASSIC)
def test_losses_out_of_bag_are_those_of_the_rows_left_out(cls) -> None:
    y = target_for(cls, labels=(LABELS > 0).astype(int))
    model = boosted(cls, 4, subsample=0.5).fit(X, y)
    drawn = gradient_data.RowDraws(
        gradient_data.class_data(TreeTable(X, None, {}), y, None, None)
        if cls in OF_CLASSES
        else gradient_data.number_data(TreeTable(X, None, {}), y, None, model._loss),
        0,
    )
    for t, raw in enumerate(model._staged_raw(X)):
        left_out = np.setdiff1d(np.arange(120), drawn.subsample(t, 60))
        loss = 2 * model._loss.value(y[left_out].astype(float), raw[:, left_out].copy(), None)
        assert model.oob_scores_[t] == pytest.approx(loss)


@each(CLASSIC)
def test_verbose_prints_the_table_of_scikit_learn(cls, capsys) -> None:
    y = target_for(cls)
    model = boosted(cls, 120, max_depth=1, verbose=1, subsample=0.5).fit(X, y)
    told = capsys.readouterr()
    header, *lines = told.out.splitlines()
    assert header.split() == ["Iter", "Train", "Loss", "OOB", "Improve", "Remaining", "Time"]
    assert [int(line.split()[0]) for line in lines] == [*range(1, 11), *range(20, 101, 10)]
    for line in lines:
        number, loss, improvement, left = line.split()
        assert float(loss) == pytest.approx(model.train_score_[int(number) - 1], abs=1e-4)
        assert float(improvement) == pytest.approx(
            model.oob_improvement_[int(number) - 1], abs=1e-4
        )
        assert left[-1] in "sm"
    assert not told.err
    model.set_params(verbose=2, subsample=1.0, n_estimators=7, warm_start=False).fit(X, y)
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["Iter", "Train", "Loss", "Remaining", "Time"]
    assert [int(line.split()[0]) for line in lines] == [*range(1, 8)]


@each(CLASSIC)
def test_criterion_is_deprecated_where_scikit_learn_deprecates_it(cls) -> None:
    y = target_for(cls)
    expected = nodes_of(boosted(cls).fit(X, y))
    model = boosted(cls, criterion="friedman_mse")
    if parse_version(sklearn.__version__).release >= (1, 9):
        with pytest.warns(FutureWarning, match="`criterion` is deprecated"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    assert nodes_of(model) == expected


# -- models to start from --------------------------------------------------------------------------


class Says(RegressorMixin, BaseEstimator):
    """Always predicts the same."""

    def __init__(self, what=0.0, shape=()):
        self.what = what
        self.shape = shape

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full((X.shape[0], *self.shape), self.what)

    predict_proba = predict


def test_models_to_start_from_that_are_none() -> None:
    model = boosted(GradientBoostingRegressor).fit(X, NUMBERS)
    for init in (Says(np.nan), Says(np.inf), Says(0.0, (2,)), Says("a"), Says(None)):
        with unchanged(model), pytest.raises((ValueError, TypeError), match=r"init|number"):
            copy.copy(model).set_params(init=init).fit(X, NUMBERS)
    for weight in (np.arange(120), np.ones(120)):
        with pytest.raises(ValueError, match="does not support sample weights"):
            boosted(GradientBoostingRegressor, init=Says()).fit(X, NUMBERS, weight)
    with pytest.raises(ValueError, match="implementing 'fit' and 'predict_proba'"):
        boosted(GradientBoostingClassifier, init=LinearRegression()).fit(X, LABELS)
    of_classes = boosted(GradientBoostingClassifier).fit(X, LABELS)
    for init in (Says(np.nan, (3,)), Says(0.5, (1,)), Says(0.5, (2,)), LinearRegression()):
        with unchanged(of_classes), pytest.raises(ValueError, match="init"):
            copy.copy(of_classes).set_params(init=init).fit(X, LABELS)


@each(CLASSIC)
def test_another_model_to_start_from_after_the_fit(cls) -> None:
    """Predictions use the fitted model."""
    y = target_for(cls, numbers=NUMBERS + 100.0)
    own = LogisticRegression() if cls in OF_CLASSES else LinearRegression()
    for init in (None, "zero", own):
        model = boosted(cls, init=init).fit(X, y)
        expected, stages = raw_of(model, X), [own.copy() for own in model.staged_predict(X)]
        for other in (None, "zero", own, "nonsense"):
            model.set_params(init=other)
            assert np.array_equal(raw_of(model, X), expected)
            assert all(map(np.array_equal, model.staged_predict(X), stages))


def test_a_warm_start_with_another_model_to_start_from() -> None:
    y = NUMBERS + 100.0
    for init, other in ((None, DummyRegressor()), (LinearRegression(), None), (None, "zero")):
        model = boosted(GradientBoostingRegressor, 4, init=init, warm_start=True).fit(X, y)
        expected = model.score(X, y)
        model.set_params(init=other, n_estimators=8)
        with suppress(ValueError):  # either is right
            assert model.fit(X, y).score(X, y) > expected


def test_a_model_to_start_from_sees_what_was_checked() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    plain = boosted(GradientBoostingRegressor, init=LinearRegression()).fit(X, NUMBERS)
    for data in (frame, pl.DataFrame(frame), X.tolist(), sp.coo_array(X)):
        with only_warnings():
            model = boosted(GradientBoostingRegressor, init=LinearRegression()).fit(data, NUMBERS)
            assert model.predict(data) == pytest.approx(plain.predict(X), abs=1e-9)
    positive = np.exp(NUMBERS / 2)
    model = boosted(GradientBoostingRegressor, 30, init=LinearRegression(), loss="poisson")
    with suppress(ValueError):  # it may raise an error, but must not be used as logarithms
        assert model.fit(X, positive).score(X, positive) > 0.5


# -- prediction ------------------------------------------------------------------------------------


METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "apply",
           "staged_predict", "staged_predict_proba", "staged_decision_function")  # fmt: skip


def called(model, method, data):
    found = getattr(model, method)(data)
    return list(found) if method.startswith("staged") else found


@each(EVERY)
def test_nothing_works_before_the_fit(cls) -> None:
    model = boosted(cls)
    for method in METHODS:
        if hasattr(cls, method):
            with pytest.raises(NotFittedError):
                called(model, method, X)
    for use in (len, lambda m: m.importances(), lambda m: m.tree(0), lambda m: m.n_iter_,
                lambda m: m.feature_importances_, lambda m: m.score(X, LABELS)):  # fmt: skip
        with pytest.raises(NotFittedError):
            use(model)


@each(EVERY)
def test_rows_that_are_none(cls) -> None:
    model = boosted(cls).fit(X, target_for(cls))
    for data in (X[:, :3], np.c_[X, X], X[0], X[None], X[:0], None, "X", X * 1j,
                 sp.csr_array(X[:, :3]), np.array([["a"] * 4])):  # fmt: skip
        for method in ("predict", "apply", "staged_predict"):
            with pytest.raises((ValueError, TypeError)):
                called(model, method, data)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        model.predict(X[:, :3])
    if cls in CLASSIC:
        for value, named in ((np.nan, "NaN"), (np.inf, "infinity")):
            with pytest.raises(InvalidDataError, match=rf"{named} \(first at row 3, column 2"):
                model.predict(with_cell(value))


@each(EVERY)
def test_rows_never_seen_before(cls) -> None:
    model = boosted(cls).fit(X, target_for(cls))
    rows = np.array([[1.79e308] * 4, [-1.79e308] * 4, [5e-324] * 4, [1e308, -1e308, 0.0, -0.0]])
    if cls in HIST:
        odd = [[np.nan] * 4, [np.inf] * 4, [-np.inf] * 4, [np.nan, np.inf, -np.inf, 0.0]]
        rows = np.r_[rows, odd]
        assert np.array_equal(answers(model, rows[5:7]), answers(model, rows[:2]))
    with only_warnings():
        one_by_one = np.concatenate([raw_of(model, rows[k : k + 1]) for k in range(len(rows))])
        assert np.isfinite(one_by_one).all()
        assert np.array_equal(raw_of(model, rows), one_by_one)
        assert np.array_equal(raw_of(model, sp.csr_array(rows)), one_by_one)
        many = np.tile(rows, (300, 1))
        assert np.array_equal(raw_of(model, many), np.tile(one_by_one.T, 300).T)
        *_, last = model.staged_predict(rows)
        assert np.array_equal(last, model.predict(rows))


@each(EVERY)
def test_malformed_sparse_tables(cls) -> None:
    model = boosted(cls).fit(X, target_for(cls))
    good = sp.csr_array(np.round(X))
    for name, at, word in (
        ("indices", 0, 99), ("indices", 0, -1), ("indptr", 3, 10**6), ("indptr", 3, -5),
    ):  # fmt: skip
        bad = good.copy()
        getattr(bad, name)[at] = word
        for use in (model.predict, model.apply, lambda data: model.fit(data, target_for(cls))):
            with unchanged(model), pytest.raises(ValueError, match=r"sparse|index|indices|indptr"):
                use(bad)


@each(EVERY)
def test_names_of_columns(cls) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = boosted(cls).fit(frame, target_for(cls))
    for other in (frame[list("dcba")], frame[list("abc")], frame.assign(e=1.0),
                  frame.rename(columns={"a": "z"})):  # fmt: skip
        with pytest.raises(ValueError, match="feature names"):
            model.predict(other)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        unnamed = model.predict(X)
    assert np.array_equal(model.predict(pl.DataFrame(frame)), unnamed)


@each(EVERY)
def test_other_parameters_after_the_fit_change_no_prediction(cls) -> None:
    model = boosted(cls, 6).fit(X, target_for(cls))
    expected, leaves, importances = raw_of(model, X), model.apply(X), model.feature_importances_
    nonsense = {"learning_rate": -1, "loss": "nonsense", "max_depth": "x", "random_state": "x",
                "subsample": -1, "max_features": 99, "warm_start": None, "quantile": 9, "alpha": 9,
                "categorical_features": "x", "monotonic_cst": "x", "early_stopping": "x",
                rounds_of(cls): 2}  # fmt: skip
    for name, given in nonsense.items():
        if name in model.get_params():
            model.set_params(**{name: given})
    assert np.array_equal(raw_of(model, X), expected)
    assert np.array_equal(model.apply(X), leaves)
    assert np.array_equal(model.feature_importances_, importances)
    assert len(model) == 6
    assert np.array_equal(raw_of(pickle.loads(pickle.dumps(model)), X), expected)


# -- copies ----------------------------------------------------------------------------------------


@each(EVERY)
def test_copies_say_the_same(cls) -> None:
    model = boosted(cls).fit(X, target_for(cls))
    for use in (copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)),
                lambda m: pickle.loads(pickle.dumps(m, protocol=2))):  # fmt: skip
        other = use(model)
        assert np.array_equal(answers(other, X), answers(model, X))
        assert np.array_equal(other.apply(X), model.apply(X))
    assert not hasattr(clone(model), "_rounds")
    state = model.__getstate__() | {"_margrove_version": "0.0.1"}
    other = cls.__new__(cls)
    with pytest.warns(InconsistentVersionWarning, match=r"0\.0\.1"):
        other.__setstate__(state)
    assert np.array_equal(answers(other, X), answers(model, X))


@each(EVERY)
def test_subclasses(cls) -> None:
    class Own(cls):
        def fit(self, X, y):
            self.seen_ = len(y)
            return super().fit(X, y)

        def __sklearn_clone__(self):
            return type(self)(**self.get_params())

    model = Own(**boosted(cls).get_params()).fit(X, target_for(cls))
    assert model.seen_ == 120
    again = clone(model).fit(X, target_for(cls))
    expected = boosted(cls).fit(X, target_for(cls))
    assert np.array_equal(answers(again, X), answers(expected, X))


# -- altered state ---------------------------------------------------------------------------------


@each(EVERY)
def test_rounds_that_are_none(cls) -> None:
    model = boosted(cls).fit(X, target_for(cls))
    wide = boosted(cls).fit(np.c_[X, X, X], target_for(cls))
    for rounds in ([], None, "abc", [None], [[None]], model._rounds[:2], model._rounds * 2):
        other = copy.copy(model)
        other._rounds = rounds
        for method in ("predict", "apply", "staged_predict"):
            with pytest.raises((ValueError, TypeError)):
                called(other, method, X)
    for name, state in (
        ("_scores", wide._scores), ("_scores", None), ("n_features_in_", 12),
        ("n_features_in_", 1),
    ):  # fmt: skip
        other = copy.copy(model)
        setattr(other, name, state)
        for method in ("predict", "apply"):
            with pytest.raises((ValueError, TypeError, AttributeError)):
                called(other, method, X[:, : other.n_features_in_])


ALTERED = {
    "a child beyond the end": lambda tree, inner, leaf: (2 * inner + 1, 10**7),
    "back to the root": lambda tree, inner, leaf: (2 * inner + 1, 0),
    "a feature too many": lambda tree, inner, leaf: (
        2 * inner + 1, int(tree.left[inner]) | (4 << 32)
    ),
    "a feature far too many": lambda tree, inner, leaf: (
        2 * inner + 1, int(tree.left[inner]) | (0xFFFFFF << 32)
    ),
    "a leaf that asks": lambda tree, inner, leaf: (2 * leaf + 1, leaf | (0xFFFFFFF << 32)),
    "the sign": lambda tree, inner, leaf: (2 * inner + 1, int(tree.left[inner]) - 2**63),
    "no value": lambda tree, inner, leaf: (2 * leaf, int(np.float64(np.nan).view(np.int64))),
}  # fmt: skip


@each(EVERY)
@pytest.mark.parametrize("name", ALTERED)
def test_altered_trees_are_found_out(cls, name) -> None:
    """Wherever they are used, because compiled loops do not check them."""
    y = target_for(cls)
    model = boosted(cls).fit(X, y)
    tree = model._rounds[0][0]
    inner, leaf = np.flatnonzero(~tree.is_leaf)[-1], np.flatnonzero(tree.is_leaf)[0]
    place, word = ALTERED[name](tree, int(inner), int(leaf))
    nodes = tree.nodes.copy()
    nodes[place] = word
    model._rounds = [[replace(tree, nodes=nodes), *model._rounds[0][1:]], *model._rounds[1:]]
    uses = {
        "tree": lambda: model.tree(0),
        "apply": lambda: model.apply(X),
        "predict": lambda: model.predict(X),
        "importances": lambda: model.importances("split"),
        "pickle": lambda: pickle.loads(pickle.dumps(model)).predict(X),
        "warm start": lambda: (
            copy.copy(model).set_params(warm_start=True, **{rounds_of(cls): 7}).fit(X, y)
        ),
    }
    for use in ("tree", "apply", "warm start"):
        with pytest.raises(ValueError, match=r"not sound|altered"):
            uses[use]()
    for use in ("predict", "importances", "pickle"):  # other arrays may be right
        with suppress(ValueError):
            assert np.isfinite(uses[use]()).all()


def test_arrays_of_trees_cannot_be_written_to() -> None:
    tree = boosted(HIST[0]).fit(X, LABELS)._rounds[0][0]
    for name in ("nodes", "weight", "decrease"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(tree, name)[0] = 1


# -- listeners -------------------------------------------------------------------------------------


OWN_TREES = {"max_leaf_nodes": 5, "max_features": 0.5}


@each(EVERY)
@pytest.mark.parametrize("settings", [{}, OWN_TREES])
def test_listeners(cls, settings) -> None:
    y = target_for(cls)
    plain = boosted(cls, **settings).fit(X, y)
    heard = []
    with watch(on_progress=lambda progress: heard.append(progress.learner)):
        watched = boosted(cls, **settings).fit(X, y)
    assert set(heard) == {cls.__name__}
    assert nodes_of(watched) == nodes_of(plain)
    with watch(on_progress=lambda progress: True):
        stopped = boosted(cls, **settings).fit(X, y)
    assert stopped.history_.outcome == "callback"
    assert nodes_of(stopped) == nodes_of(plain)[:1]
    cancel = threading.Event()
    cancel.set()
    with unchanged(plain), watch(cancel=cancel), pytest.raises(FitCancelled, match=cls.__name__):
        plain.fit(X[:50], y[:50])


@each(EVERY)
def test_listeners_that_misbehave(cls) -> None:
    y = target_for(cls)
    model = boosted(cls).fit(X, y)

    def broken(progress):
        raise ArithmeticError("broken on purpose")

    with unchanged(model), watch(on_progress=broken), pytest.raises(ArithmeticError):
        model.fit(X[:60], y[:60])
    with (
        unchanged(model),
        watch(on_progress=lambda progress: model.fit(X, y) and None),
        pytest.raises(RuntimeError, match="is being fitted already"),
    ):
        model.fit(X[:60], y[:60])
    with watch(on_progress=lambda progress: boosted(cls, 2).fit(X[:60], y[:60]) and None):
        assert nodes_of(boosted(cls).fit(X, y)) == nodes_of(model)
    with watch(on_progress=lambda progress: vars(model).pop("_rounds", None) and None):
        assert nodes_of(model.fit(X, y)) == nodes_of(boosted(cls).fit(X, y))


@each(CLASSIC)
def test_monitors(cls) -> None:
    y = target_for(cls)
    whole, heard = boosted(cls, 9).fit(X, y), []

    def monitor(number, model, variables):
        heard.append((number, len(model), model.estimators_.shape[0], len(model.train_score_)))
        assert np.array_equal(model.predict(X[:5]), expected[number][:5])
        return number == 2

    expected = [own.copy() for own in whole.staged_predict(X)]
    model = boosted(cls, 9).fit(X, y, monitor=monitor)
    assert heard == [(0, 1, 1, 1), (1, 2, 2, 2), (2, 3, 3, 3)]
    assert nodes_of(model) == nodes_of(whole)[:3]
    assert model.history_.outcome == "callback"


@each(CLASSIC)
def test_monitors_that_misbehave(cls) -> None:
    y = target_for(cls)
    model = boosted(cls).fit(X, y)

    def broken(number, standing, variables):
        raise ArithmeticError("broken on purpose")

    for monitor, error in (
        (broken, ArithmeticError), (5, TypeError), (lambda: False, TypeError),
        (lambda number, standing, variables: model.fit(X, y), RuntimeError),
    ):  # fmt: skip
        with unchanged(model), pytest.raises(error):
            model.fit(X[:60], y[:60], monitor=monitor)
    for meddling in (
        lambda number, standing, variables: standing.fit(X[:60], y[:60]) and False,
        lambda number, standing, variables: standing._rounds.clear(),
        lambda number, standing, variables: standing.set_params(n_estimators=1) and False,
    ):
        other = boosted(cls).fit(X, y, monitor=meddling)
        assert nodes_of(other) == nodes_of(model)


# -- threads and processes -------------------------------------------------------------------------


WIDE = np.random.default_rng(0).standard_normal((5000, 8))
WIDE_NUMBERS = WIDE[:, 0] + WIDE[:, 1] * WIDE[:, 2]
WIDE_LABELS = np.digitize(WIDE_NUMBERS, [-1.0, 1.0])


def wide_fit(cls, n_jobs=2):
    model = boosted(cls, 3, n_jobs=n_jobs)
    return model.fit(WIDE, target_for(cls, WIDE_LABELS, WIDE_NUMBERS))


def nodes_of_wide_fit(cls):
    return nodes_of(wide_fit(cls))


def run_at_once(task, n_threads=6):
    errors = []

    def run():
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


@each(EVERY)
def test_many_threads_at_once(cls) -> None:
    expected, found = nodes_of(wide_fit(cls, 1)), []
    run_at_once(lambda: found.append(nodes_of(wide_fit(cls))))
    assert found == [expected] * 6
    model = wide_fit(cls)
    run_at_once(lambda: model.fit(WIDE, target_for(cls, WIDE_LABELS, WIDE_NUMBERS)))
    assert nodes_of(model) == expected
    said = answers(model, WIDE)
    agreed = []
    run_at_once(lambda: agreed.append(np.array_equal(answers(model, WIDE), said)))
    assert agreed == [True] * 6


@each(EVERY)
def test_joblib_and_forks(cls) -> None:
    expected = nodes_of(wide_fit(cls))
    for backend in ("threading", "multiprocessing"):
        jobs = (joblib.delayed(nodes_of_wide_fit)(cls) for _ in range(2))
        assert joblib.Parallel(2, backend=backend)(jobs) == [expected] * 2
    if "fork" in multiprocessing.get_all_start_methods():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks of threaded programs
            with multiprocessing.get_context("fork").Pool(1) as pool:
                assert pool.apply_async(nodes_of_wide_fit, (cls,)).get(60) == expected


@each(EVERY)
def test_a_table_that_changes_under_way(cls) -> None:
    """Neither crash nor NaN; the model is arbitrary."""
    data, stop = WIDE.copy(), threading.Event()

    def meddle():
        rng = np.random.default_rng(0)
        while not stop.is_set():
            rows = rng.integers(0, len(data), 300)
            data[rows, rng.integers(0, 8)] = rng.choice([7.0, 1e300, 0.0, -1.0])

    thread = threading.Thread(target=meddle)
    thread.start()
    try:
        for settings in ({}, {"subsample": 0.5}, {"n_jobs": 2}):
            model = boosted(cls, 3, **settings)
            model.fit(data, target_for(cls, WIDE_LABELS, WIDE_NUMBERS))
            assert np.isfinite(answers(model, data)).all()
    finally:
        stop.set()
        thread.join()


# -- what must not matter --------------------------------------------------------------------------


def random_case(seed):
    """A random model and its data."""
    rng = np.random.default_rng(seed)
    cls = EVERY[rng.integers(4)]
    n, d = int(rng.choice([5, 20, 60, 200])), int(rng.integers(1, 5))
    columns = [
        [rng.standard_normal(n), rng.integers(0, 4, n) * 1.0, np.round(rng.standard_normal(n), 1),
         np.where(rng.random(n) < 0.8, 0.0, rng.integers(1, 5, n))][rng.integers(4)]
        for _ in range(d)
    ]  # fmt: skip
    data = np.stack(columns, axis=1)
    settings = {"learning_rate": float(rng.choice([0.1, 0.5, 1.0]))}
    choices = {
        "subsample": [0.6], "max_depth": [1, 2, 6], "min_samples_leaf": [1, 2, 5, 20],
        "max_leaf_nodes": [2, 5],
    } | (
        {"max_bins": [2, 3, 16], "l2_regularization": [0.1, 10.0], "growth": ["level"],
         "early_stopping": [True], "interaction_cst": ["no_interactions"]}
        if cls in HIST
        else {"max_features": [0.5], "min_impurity_decrease": [0.01], "n_iter_no_change": [3],
              "min_weight_fraction_leaf": [0.1], "min_samples_split": [0.2], "init": ["zero"]}
    )  # fmt: skip
    for name, values in choices.items():
        if rng.random() < 0.3:
            settings[name] = values[rng.integers(len(values))]
    if cls in OF_CLASSES:
        k = int(rng.choice([2, 3]))
        y = rng.integers(0, k, n)
        y[: 2 * k] = np.resize(np.arange(k), 2 * k)[: len(y)]
    else:
        y = data[:, 0] + rng.standard_normal(n)
        loss = ("squared_error", "absolute_error", "huber", "poisson", "gamma")[rng.integers(5)]
        settings["loss"] = loss
        if loss in ("poisson", "gamma"):
            y = np.exp(np.clip(y, -2.0, 2.0))
    weight = [None, rng.integers(0, 4, n) * 1.0, rng.random(n) + 0.01][rng.integers(3)]
    if weight is not None:
        weight[: min(n, 6)] = np.maximum(weight[: min(n, 6)], 1.0)
    return boosted(cls, 5, **settings), data, y, weight, rng


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.sampled(40)
def test_what_must_not_matter(seed) -> None:
    """Threads, the order of rows, rows of weight 0, copies instead of weights, sparse tables."""
    model, data, y, weight, rng = random_case(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data, y, weight)
    except ValueError as error:
        assert "missing some classes" in str(error)  # noqa: PT017
        return
    expected = raw_of(model, data)
    assert np.isfinite(expected).all()
    *_, last = model.staged_predict(data)
    assert np.array_equal(last, model.predict(data))
    shuffled = rng.permutation(len(y))
    twins = {
        "threads": (data, y, weight),
        "order": (data[shuffled], y[shuffled], None if weight is None else weight[shuffled]),
        "sparse": (sp.csr_array(data), y, weight),
    }
    if weight is not None:
        kept = weight > 0
        twins["rows of weight 0"] = data[kept], y[kept], weight[kept]
        if np.all(weight == np.floor(weight)):
            copies = np.repeat(np.arange(len(y)), weight.astype(int))
            twins["copies"] = data[copies], y[copies], None
    for name, given in twins.items():
        twin = clone(model).set_params(n_jobs=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            twin.fit(*given)
        found = raw_of(twin, data)
        if name == "copies" and isinstance(model, CLASSIC):
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), name
        else:
            assert np.array_equal(found, expected), name


def test_equal_rows_of_different_weights_are_drawn_alike_in_any_order() -> None:
    data, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.tile([0, 1], 20)
    weight, order = (
        np.random.default_rng(0).random(40) + 0.1,
        np.random.default_rng(1).permutation(40),
    )
    for cls in OF_CLASSES:
        early = {"early_stopping": True} if cls in HIST else {"n_iter_no_change": 2}
        for settings in ({"subsample": 0.5}, early):
            model = boosted(cls, 3, min_samples_leaf=1, **settings).fit(data, y, weight)
            other = clone(model).fit(data[order], y[order], weight[order])
            assert np.array_equal(raw_of(other, data), raw_of(model, data))


@each(HIST)
def test_a_category_of_rows_of_weight_0_is_not_there(cls) -> None:
    data = np.random.default_rng(0).integers(0, 6, (120, 1)) * 1.0
    weight = np.where(data[:, 0] == 2.0, 0.0, 1.0)
    kept, y = weight > 0, target_for(cls)
    for settings in ({}, {"subsample": 0.5}, {"early_stopping": True}):
        model = boosted(cls, 3, categorical_features=[0], **settings)
        removed = raw_of(clone(model).fit(data[kept], y[kept]), data[kept])
        assert np.array_equal(raw_of(model.fit(data, y, weight), data[kept]), removed)


@each(HIST)
def test_leaves_are_counted_in_samples(cls) -> None:
    data = np.arange(8.0)[:, None]
    y = np.arange(8) % 2 if cls in OF_CLASSES else np.arange(8.0) ** 2
    settings = {"min_samples_leaf": 3, "max_iter": 1, "learning_rate": 1.0}
    weighted = cls(**settings).fit(data, y, np.full(8, 3.0))
    repeated = cls(**settings).fit(np.repeat(data, 3, axis=0), np.repeat(y, 3))
    assert weighted.history_.n_leaves.tolist() == repeated.history_.n_leaves.tolist() == [8]
    assert np.array_equal(raw_of(weighted, data), raw_of(repeated, data))


@each(HIST)
@pytest.mark.parametrize("seed", range(8))
def test_constraints_hold(cls, seed) -> None:
    """For all losses, weights and orders of growth."""
    rng = np.random.default_rng(seed)
    settings = {"monotonic_cst": [1, -1, 0, 0], "interaction_cst": [(0, 1), (1, 2)],
                "max_leaf_nodes": [None, 6][rng.integers(2)], "growth": ["leaf", "level"][seed % 2],
                "min_samples_leaf": int(rng.integers(1, 6)), "learning_rate": 0.5}  # fmt: skip
    y = LABELS > 0
    if cls in OF_NUMBERS:
        y, losses = NUMBERS, ("squared_error", "absolute_error", "huber", "poisson", "gamma")
        settings["loss"] = losses[rng.integers(5)]
        if settings["loss"] in ("poisson", "gamma"):
            y = np.exp(y / 2)
    weight = [None, rng.random(120) + 0.05, rng.integers(1, 30, 120) * 1.0][rng.integers(3)]
    model = answer(boosted(cls, 10, **settings), X, y, weight)
    steps = np.r_[-np.inf, -1e300, np.sort(2.0 * rng.standard_normal(40)), 1e300, np.inf]
    for feature, sign in ((0, 1.0), (1, -1.0)):
        rows = np.repeat(X[:10], len(steps), axis=0)
        rows[:, feature] = np.tile(steps, 10)
        rises = sign * np.diff(raw_of(model, rows).reshape(10, -1), axis=1)
        assert rises.min() >= -1e-12
    for number in range(len(model)):
        tree = model.tree(number)
        for leaf in np.flatnonzero(tree.n_children == 0):
            node, asked = int(tree.parent[leaf]), set()
            while node >= 0:
                asked.add(int(tree.feature[node]))
                node = int(tree.parent[node])
            assert any(asked <= allowed for allowed in ({0, 1}, {1, 2}, {3}))


# -- interrupts ------------------------------------------------------------------------------------


FILES = tuple(
    module.__file__
    for module in (
        gradient_rounds,
        local_trees,
        rounds_at_once,
        packing,
        gradient_monitor,
        exact_rounds,
        exact_gradient_trees,
    )
)


def fit_interrupted(model, data, y, moment):
    return len(lines_until_interrupt(model.fit, data, y, files=FILES, moment=moment))


BOOSTING = {
    "histograms": HistGradientBoostingRegressor(),
    "classes": HistGradientBoostingClassifier(),
    "medians of draws": HistGradientBoostingRegressor(loss="absolute_error", subsample=0.5),
    "set apart": HistGradientBoostingRegressor(early_stopping=True),
    "scored": HistGradientBoostingClassifier(early_stopping=True, scoring="accuracy"),
    "on its own": HistGradientBoostingRegressor(early_stopping=True, validation_fraction=None),
    "exact": GradientBoostingRegressor(loss="huber"),
    "exact classes": GradientBoostingClassifier(subsample=0.5, n_iter_no_change=9),
    "trees of their own": GradientBoostingRegressor(max_leaf_nodes=5, subsample=0.5),
}


@pytest.mark.parametrize("name", BOOSTING)
@pytest.mark.sampled(2)
def test_an_interrupt_at_any_line(name) -> None:
    """The old model stays, or the new one has the first rounds of an uninterrupted fit."""
    model = clone(BOOSTING[name])
    model.set_params(random_state=0, n_jobs=1, on_interrupt="keep", **{rounds_of(type(model)): 4})
    y = target_for(type(model))
    old = clone(model).fit(X[:80], y[:80])
    whole = clone(model)
    n_lines = fit_interrupted(whole, X, y, -1)
    expected, kept = nodes_of(whole), set()
    for moment in range(0, n_lines, max(1, n_lines // 120)):
        other = copy.copy(old)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert fit_interrupted(other, X, y, moment) == moment
        if other._rounds is old._rounds:
            continue
        assert InterruptedFitWarning in {w.category for w in told}
        n = len(other)
        kept.add(n)
        assert nodes_of(other) == expected[:n]
        assert np.array_equal(other.history_.training_loss, whole.history_.training_loss[: n + 1])
        scores = whole.history_.validation_score[: n + 1]
        assert np.array_equal(other.history_.validation_score, scores)
        for fitted in ("oob_scores_", "oob_improvement_"):
            if hasattr(whole, fitted):
                assert np.array_equal(getattr(other, fitted), getattr(whole, fitted)[:n])
    assert kept >= {1, 2, 3}


@each(EVERY)
def test_an_interrupt_leaves_the_old_model(cls) -> None:
    y = target_for(cls)
    model = boosted(cls).fit(X, y)

    def interrupt(progress):
        if progress.done:
            raise KeyboardInterrupt

    with unchanged(model), watch(on_progress=interrupt), pytest.raises(KeyboardInterrupt):
        model.fit(X[:60], y[:60])
    model.set_params(on_interrupt="keep")
    with watch(on_progress=interrupt), pytest.warns(InterruptedFitWarning):
        model.fit(X, y)
    assert nodes_of(model) == nodes_of(boosted(cls, 1).fit(X, y))


@each(EVERY)
def test_an_interrupt_is_heard_among_many_rows(cls) -> None:
    """Rows are processed in pieces of a fixed size, and an interrupt is seen between two pieces."""
    steps = (data_rows, gradient_loss, gradient_cells) if cls in HIST else (gradient_loss,)
    files = [own.__file__ for own in steps]
    data = np.random.default_rng(0).standard_normal((1 << 19, 3))
    y = data[:, 0] if cls in OF_NUMBERS else 1 * (data[:, 0] > 0.0)
    n_lines = []
    for n in (1 << 18, 1 << 19):
        model = boosted(cls, 1, n_jobs=1)
        run = lines_until_interrupt(model.fit, data[:n], y[:n], files=files)
        n_lines.append([sum(file == own for own, _ in run) for file in files])
    least = (1 << 18) // (1 << 16)
    assert (np.diff(n_lines, axis=0) >= least).all()
