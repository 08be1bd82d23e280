"""Probabilities of the classifiers: they agree with `predict`, and cost what they say."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn import svm
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.utils.fixes import parse_version
from tests.oracles.coupling import negative_log_likelihood

from margrove import SVC, NuSVC
from margrove.datasets import load_breast_cancer, load_iris
from margrove.exceptions import DataWarning, NotFittedError
from margrove.facts import describe
from margrove.margin.kernels.functions import RBF
from margrove.margin.svm.calibration import couple_pairs, fit_platt


def crowd(seed, n_classes, n=70, d=2):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    return rng.normal(size=(n_classes, d))[y] + rng.normal(size=(n, d)), y


def assert_agreement(model, X) -> None:
    p = model.predict_proba(X)
    assert p.shape == (len(X), len(model.classes_))
    assert (p >= 0).all()
    assert np.abs(p.sum(axis=1) - 1).max() <= 1e-12
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    logs = model.predict_log_proba(X)
    assert np.isfinite(logs).all()
    assert np.allclose(np.exp(logs), p)
    assert np.array_equal(logs.argmax(axis=1), p.argmax(axis=1))


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    n_classes=st.sampled_from([2, 3, 5]),
    cls=st.sampled_from([SVC, NuSVC]),
    multi_class=st.sampled_from(["ovo", "ovr"]),
    break_ties=st.booleans(),
    gamma=st.sampled_from([0.1, 3.0, 100.0]),
)
def test_the_most_probable_class_is_the_predicted_one(
    seed, n_classes, cls, multi_class, break_ties, gamma
) -> None:
    X, y = crowd(seed, n_classes)
    own = {"nu": 0.3} if cls is NuSVC else {"C": 3.0}
    model = cls(
        probability=True, gamma=gamma, multi_class=multi_class, break_ties=break_ties, **own
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "nu=0.3 leaves no margin", DataWarning)
        model.fit(X, y)
    new = np.random.default_rng(seed).normal(scale=3.0, size=(200, 2))
    for rows in (X, new, np.full((1, 2), 1e6)):
        assert_agreement(model, rows)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_precomputed_sparse_and_named_agree(n_classes) -> None:
    X, y = crowd(0, n_classes)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    K = RBF(gamma=0.5)(X)
    given_matrix = SVC(kernel="precomputed", probability=True, tol=1e-8).fit(K, y)
    assert_agreement(given_matrix, K)
    dense = SVC(gamma=0.5, probability=True, tol=1e-8).fit(X, y)
    sparse = SVC(gamma=0.5, probability=True, tol=1e-8).fit(sp.csr_array(X), y)
    assert_agreement(dense, X)
    assert np.allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-6)
    # Folds differ with the order of the rows, which a Gram matrix does not hide.
    difference = given_matrix.predict_proba(K) - dense.predict_proba(X)
    assert np.abs(difference).max() <= 0.2


def slopes_of(model) -> np.ndarray:
    return describe(model).probabilities.slopes


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_names_of_sigmoids_are_deprecated_where_scikit_learn_has_them(cls) -> None:
    X, y = crowd(0, 2)
    plain, model = cls().fit(X, y), cls(probability=True).fit(X, y)
    is_told = parse_version(sklearn.__version__) >= parse_version("1.9")
    for name in ("probA_", "probB_"):
        with pytest.warns(FutureWarning, match=name) if is_told else nullcontext():
            assert getattr(plain, name).shape == (0,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert np.array_equal(model.probA_, -slopes_of(model))
        assert np.array_equal(model.probB_, [0.0])
        model.probA_ = 2 * model.probA_
    p, f = model.predict_proba(X)[:, 1], model.decision_function(X)
    assert np.allclose(p, expit(slopes_of(model)[0] * f))


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_one_half_is_where_the_decision_is_zero(cls) -> None:
    for seed in range(5):
        X, y = crowd(seed, 2)
        model = cls(probability=True, kernel="linear").fit(X, y)
        w, b = model.coef_[0], model.intercept_[0]
        on_plane = X - ((X @ w + b) / (w @ w))[:, None] * w
        assert np.abs(model.predict_proba(on_plane) - 0.5).max() <= 1e-9
        f, p = model.decision_function(X), model.predict_proba(X)[:, 1]
        assert np.array_equal(f > 0, p > 0.5)
        assert np.all(np.diff(p[np.argsort(f)]) >= 0)
        (slope,) = slopes_of(model)
        assert slope > 0
        assert np.allclose(p, 1 / (1 + np.exp(-slope * f)))


def test_results_are_reproducible() -> None:
    X, y = crowd(0, 3)
    model = SVC(probability=True, random_state=3)
    first, second = clone(model).fit(X, y), clone(model).fit(X, y)
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.price_of_agreement_ == second.price_of_agreement_
    for n_jobs in (1, 2):
        other = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
        assert np.array_equal(slopes_of(other), slopes_of(first))
    other = clone(model).set_params(random_state=4).fit(X, y)
    assert not np.array_equal(slopes_of(other), slopes_of(first))
    assert np.allclose(other.predict_proba(X), first.predict_proba(X), atol=0.2)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = clone(model).fit(X[order], y[order])
    assert np.allclose(slopes_of(shuffled), slopes_of(first), rtol=1e-9)
    plain = SVC().fit(X, y)
    assert np.array_equal(plain.decision_function(X), first.decision_function(X))
    for state in (np.random.RandomState(0), np.random.default_rng(0), None):
        assert_agreement(clone(model).set_params(random_state=state).fit(X, y), X)


@pytest.mark.parametrize("cls", [SVC, NuSVC])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighting", [None, "balanced", {0: 2.0, 1: 0.7}])
def test_the_law_of_weights(cls, n_classes, weighting) -> None:
    X, y = crowd(1, n_classes)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), weight))
    own = {"nu": 0.2} if cls is NuSVC else {}
    model = cls(probability=True, class_weight=weighting, **own)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    copied = clone(model).fit(X[copies], y[copies])
    assert np.abs(weighted.predict_proba(X) - copied.predict_proba(X)).max() <= 1e-9
    ours, theirs = weighted.price_of_agreement_, copied.price_of_agreement_
    assert ours.log_loss == pytest.approx(theirs.log_loss, rel=1e-9)
    assert ours.log_loss_unconstrained == pytest.approx(theirs.log_loss_unconstrained, rel=1e-9)
    assert ours.n_rows_changed == theirs.n_rows_changed


def held_out(K, y, seed, **parameters):
    """Decision values of scikit-learn's machines on rows they have not seen, in five folds."""
    generator = np.random.default_rng(seed)
    fold = np.empty(len(y), dtype=int)
    for k in np.unique(y):
        members = np.flatnonzero(y == k)
        fold[members] = generator.permutation(len(members)) % 5
    n_machines = len(np.unique(y)) * (len(np.unique(y)) - 1) // 2
    values = np.empty((len(y), n_machines))
    for out in range(5):
        kept, left = np.flatnonzero(fold != out), np.flatnonzero(fold == out)
        model = svm.SVC(
            kernel="precomputed", tol=1e-10, decision_function_shape="ovo", **parameters
        ).fit(K[np.ix_(kept, kept)], y[kept])
        values[left] = model.decision_function(K[np.ix_(left, kept)]).reshape(len(left), -1)
    return values


@pytest.mark.parametrize("n_classes", [2, 4])
def test_slopes_and_price_from_their_definitions(n_classes) -> None:
    """Cross-validated with other machines, and the likelihood minimised by another method."""
    X, y = crowd(5, n_classes, n=100)
    order = np.argsort(y, kind="stable")
    K, y = RBF(gamma=0.5)(X[order]), y[order]
    model = SVC(kernel="precomputed", probability=True, tol=1e-10, random_state=7, C=2.0)
    model.fit(K, y)
    values = held_out(K, y, 7, C=2.0)
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    free, ours = np.empty_like(values), np.empty_like(values)
    for column, (i, j) in enumerate(pairs):
        members = np.flatnonzero((y == i) | (y == j))
        positive = y[members] == (1 if n_classes == 2 else i)
        f = values[members, column]

        def loss(log_slope, f=f, positive=positive):
            return negative_log_likelihood(f, positive, np.ones(len(f)), np.exp(log_slope))

        slope = np.exp(minimize_scalar(loss, bounds=(-10, 10), method="bounded").x)
        assert slopes_of(model)[column] == pytest.approx(slope, rel=1e-3)
        ours[:, column] = expit(slope * values[:, column])
        A, B = fit_platt(f, positive, np.ones(len(f)))
        free[:, column] = expit(A * values[:, column] + B)
    price = model.price_of_agreement_
    if n_classes == 2:
        assert price.log_loss == pytest.approx(log_loss(y, ours[:, 0]), rel=1e-4)
        assert price.log_loss_unconstrained == pytest.approx(log_loss(y, free[:, 0]), rel=1e-4)
        assert price.n_rows_changed == 0
    else:
        votes = np.zeros((len(y), n_classes))
        for column, (i, j) in enumerate(pairs):
            votes[np.arange(len(y)), np.where(values[:, column] > 0, i, j)] += 1
        predicted = votes.argmax(axis=1)
        coupled = couple_pairs(ours)
        assert price.n_rows_changed == np.count_nonzero(coupled.argmax(axis=1) != predicted)
        assert price.log_loss_unconstrained == pytest.approx(
            log_loss(y, couple_pairs(free)), rel=1e-4
        )
    assert price.difference == price.log_loss - price.log_loss_unconstrained


def test_the_price_is_small_on_real_data() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = SVC(probability=True).fit(X, y)
    assert 0 < model.price_of_agreement_.log_loss < 0.12
    assert abs(model.price_of_agreement_.difference) < 0.02
    p = model.predict_proba(X)
    assert log_loss(y, p) < 0.1


def test_they_are_probabilities_on_rows_not_seen() -> None:
    """Close to those of the distribution that the rows come from."""
    rng = np.random.default_rng(0)

    def draw(n):
        y = rng.integers(0, 2, n)
        return rng.normal(size=(n, 2)) + y[:, None], y

    X, y = draw(500)
    model = SVC(kernel="linear", probability=True).fit(X, y)
    X_new, _ = draw(2000)
    truth = expit(X_new.sum(axis=1) - 1.0)
    assert np.abs(model.predict_proba(X_new)[:, 1] - truth).mean() < 0.06


def test_probabilities_are_there_only_where_asked_for() -> None:
    X, y = load_iris(return_X_y=True)
    for cls in (SVC, NuSVC):
        for name in ("predict_proba", "predict_log_proba"):
            assert not hasattr(cls(), name)
            assert hasattr(cls(probability=True), name)
            with pytest.raises(AttributeError, match=name) as caught:
                getattr(cls().fit(X, y), name)
            assert "probability=False" in str(caught.value.__cause__)
            with pytest.raises(NotFittedError):
                getattr(cls(probability=True), name)(X)
        model = cls().fit(X, y)
        assert "probA_" not in vars(model)
        assert not hasattr(model, "price_of_agreement_")
        model.set_params(probability=True)
        with pytest.raises(NotFittedError, match="Fit again"):
            model.predict_proba(X)
        model.fit(X, y).predict_proba(X)
        model.set_params(probability=False).fit(X, y)
        assert "probA_" not in vars(model)


def test_labels_and_class_order_survive() -> None:
    X, y = crowd(3, 3)
    names = np.array(["zebra", "ant", "mole"])
    model = SVC(probability=True).fit(X, names[y])
    assert model.classes_.tolist() == ["ant", "mole", "zebra"]
    plain = SVC(probability=True).fit(X, np.argsort(np.argsort(names))[y])
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert_agreement(model, X)


def test_a_class_of_one_row_is_calibrated_on_itself() -> None:
    X, y = crowd(0, 2, n=30)
    y = (np.arange(30) == 4).astype(int)
    with pytest.warns(DataWarning, match="single distinct row"):
        model = SVC(probability=True).fit(X, y)
    assert_agreement(model, X)
    X = np.vstack([X, X[4]])  # the same row twice is one row
    with pytest.warns(DataWarning, match="single distinct row"):
        model = SVC(probability=True).fit(X, np.append(y, 1))
    assert_agreement(model, X)
    y[5] = 1  # two rows are two folds
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_agreement(SVC(probability=True).fit(X[:-1], y), X)


def test_nu_that_a_fold_cannot_have_is_reduced_there() -> None:
    X, y = crowd(0, 2, n=41)
    share = 2 * min(np.mean(y == 0), np.mean(y == 1))
    model = NuSVC(nu=share, probability=True).fit(X, y)
    assert_agreement(model, X)


@pytest.mark.parametrize(
    "change",
    [{"solver": "hull"}, {"fit_intercept": False}, {"solver": "sgd"}, {"class_weight": "balanced"}],
    ids=str,
)
def test_every_way_of_solving_can_be_calibrated(change) -> None:
    X, y = crowd(2, 3, n=60)
    assert_agreement(SVC(probability=True, **change).fit(X, y), X)


def test_a_hard_margin_can_be_calibrated() -> None:
    X, y = crowd(2, 3, n=60)
    model = SVC(probability=True, C=np.inf, gamma=1.0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert_agreement(model, X)


def test_extreme_features() -> None:
    X, y = crowd(0, 3)
    plain = SVC(probability=True).fit(X, y).predict_proba(X)
    for factor in (1e-150, 1e150):
        scaled = SVC(probability=True).fit(X * factor, y).predict_proba(X * factor)
        assert np.abs(scaled - plain).max() <= 0.05  # other folds
