"""Members of bagging that are fitted together: the same bits, errors and warnings as one by one.

With one thread each member is fitted by itself.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from margrove import SVC, SVR, NuSVC, NuSVR, OneClassSVM, watch
from margrove.ensemble.bagging.estimators import BaggingClassifier, BaggingRegressor
from margrove.exceptions import ConvergenceWarning, DataWarning, FitCancelled, InvalidDataError
from margrove.margin.kernels import KERNELS, RBF
from margrove.margin.solvers.dual import many_matrices

_RNG = np.random.default_rng(0)
X = _RNG.standard_normal((120, 4))
THREE = _RNG.integers(0, 3, 120)
TWO = np.where(X[:, 0] + 0.5 * _RNG.standard_normal(120) > 0, "b", "a")
LINE = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * _RNG.standard_normal(120)
WEIGHT = _RNG.integers(0, 3, 120).astype(float)

CLASSIFIERS = {
    "SVC": SVC(),
    "C": SVC(C=100.0, gamma=1.0),
    "one-vs-rest": SVC(multi_class="ovr"),
    "balanced": SVC(class_weight="balanced", kernel="linear"),
    "class_weight": SVC(class_weight={0: 2.0, 1: 0.5, 2: 1.0}),
    "kernel object": SVC(kernel=RBF(gamma=0.7)),
    "threads": SVC(n_jobs=2, cache_size=0.01),
    "NuSVC": NuSVC(nu=0.3),
    "NuSVC, one-vs-rest": NuSVC(nu=0.2, multi_class="ovr"),
    **{f"kernel {name}": SVC(kernel=name) for name in sorted(KERNELS) if name != "chi2"},
}
REGRESSORS = {"SVR": SVR(), "tube": SVR(C=10.0, epsilon=0.01), "NuSVR": NuSVR()}
ALONE = {
    "no bias": SVC(fit_intercept=False),
    "hull": SVC(solver="hull", tol=0.1),
    "probabilities": SVC(probability=True),
    "warm start": SVC(warm_start=True),
    "time": SVC(max_time=100.0),
}


def bits(model):
    """All that was learnt, as bytes."""
    found = []
    for member in model.estimators_:
        learnt = {name: value for name, value in vars(member).items() if name in member._committed}
        record = learnt.pop("_record")
        learnt |= {"X": record.X, "y": record.y, "weight": record.sample_weight}
        learnt |= {"traces": record.traces, "scales": record.scales}
        found.append({name: _plain(value) for name, value in learnt.items()})
        found.append(member.get_params())
    return found


def _plain(value):
    if sp.issparse(value):
        value = value.toarray()
    return (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def both(model, *data, n_threads=(2, 3, 7)):
    """What is learnt with one thread, after a comparison with several."""
    alone = bits(clone(model).set_params(n_jobs=1).fit(*data))
    for n_jobs in n_threads:
        assert bits(clone(model).set_params(n_jobs=n_jobs).fit(*data)) == alone
    return alone


def forbid_fit(monkeypatch, *classes):
    def fit(*_, **__):
        raise AssertionError("a member was fitted by itself")

    for cls in classes:
        monkeypatch.setattr(cls, "fit", fit)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.filterwarnings("ignore:.*not positive semidefinite:margrove.exceptions.DataWarning")
@pytest.mark.filterwarnings("ignore:nu=:margrove.exceptions.DataWarning")
def test_classifiers_have_the_same_bits(name) -> None:
    member = CLASSIFIERS[name]
    if name == "class_weight":
        both(BaggingClassifier(member, 9, random_state=0), X, THREE)
        return
    both(BaggingClassifier(member, 9, random_state=0), X, THREE, n_threads=[3])
    both(BaggingClassifier(member, 9, random_state=0), X, TWO, WEIGHT, n_threads=[2])


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_have_the_same_bits(name) -> None:
    both(BaggingRegressor(REGRESSORS[name], 9, random_state=0), X, LINE, WEIGHT, n_threads=[2, 3])


def test_columns_and_sizes_of_samples_make_no_difference() -> None:
    settings = {"max_features": 2, "max_samples": 0.5, "bootstrap_features": True}
    both(BaggingClassifier(SVC(), 9, random_state=0, **settings), X, THREE)
    both(BaggingClassifier(SVC(), 9, random_state=0, bootstrap=False), X.astype(np.float32), THREE)


def test_members_beyond_one_product_have_the_same_bits() -> None:
    """More than 1024 different rows: matrices are computed in tiles."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((2000, 3))
    classes = (rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0.5)
    model = BaggingClassifier(SVC(C=3.0), 3, random_state=0)
    learnt = both(model, rows, classes, n_threads=[2])
    assert learnt[0]["shape_fit_"][0] > 1024


def test_nothing_is_fitted_by_itself(monkeypatch) -> None:
    forbid_fit(monkeypatch, SVC, NuSVC, SVR, NuSVR)
    for member in (SVC(), NuSVC(nu=0.2)):
        BaggingClassifier(member, 5, n_jobs=2, random_state=0).fit(X, TWO)
    for member in (SVR(), NuSVR()):
        BaggingRegressor(member, 5, n_jobs=2, random_state=0).fit(X, LINE)
    with pytest.raises(AssertionError, match="by itself"):
        BaggingClassifier(SVC(), 5, n_jobs=1, random_state=0).fit(X, TWO)


def test_members_that_take_much_memory_are_fitted_by_themselves(monkeypatch) -> None:
    wide, long = _RNG.random((60, 30_000)), np.arange(8000.0)[:, None]
    forbid_fit(monkeypatch, SVC)
    for table in (wide, long):
        with pytest.raises(AssertionError, match="by itself"):
            BaggingClassifier(SVC(), 5, n_jobs=2, random_state=0).fit(
                table, np.arange(len(table)) % 2
            )


@pytest.mark.parametrize("name", ALONE)
def test_what_is_not_solved_in_whole_rounds(name) -> None:
    both(BaggingClassifier(ALONE[name], 4, random_state=0), X, TWO, n_threads=[2])


def test_other_tables_kernels_and_sizes_have_the_same_bits() -> None:
    def product(A, B):
        return A @ B.T

    both(BaggingClassifier(SVC(), 4, random_state=0), sp.csr_array(np.maximum(X, 0)), TWO)
    both(BaggingClassifier(SVC(kernel=product), 4, random_state=0), X, TWO, n_threads=[2])
    both(BaggingClassifier(SVC(kernel="precomputed"), 4, random_state=0), X @ X.T, TWO)


def test_a_class_of_the_user_is_fitted_by_its_own_method() -> None:
    calls = []

    class Counted(SVC):
        def fit(self, X, y, sample_weight=None):
            calls.append(len(X))
            return super().fit(X, y, sample_weight)

    model = BaggingClassifier(Counted(), 6, n_jobs=2, random_state=0).fit(X, TWO)
    assert len(calls) == 6
    plain = BaggingClassifier(SVC(), 6, n_jobs=2, random_state=0).fit(X, TWO)
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_a_kernel_of_the_user_is_used() -> None:
    @dataclass(frozen=True)
    class Narrow(RBF):
        name: ClassVar[str] = "narrow"

        def finish(self, dots, a2, b2):
            super().finish(dots, 2.0 * a2, 2.0 * b2)

    both(BaggingClassifier(SVC(kernel=Narrow(gamma=0.5)), 4, random_state=0), X, TWO)


def test_one_class_machines_are_bagged() -> None:
    """Its fit ignores y, whose classes must not matter."""
    both(BaggingRegressor(OneClassSVM(), 4, random_state=0), X, LINE, n_threads=[2])


def heard(model, *data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*data)
    return sorted((each.category.__name__, str(each.message)) for each in caught)


@pytest.mark.parametrize(
    ("member", "category"),
    [
        (SVC(C=1e6, max_iter=20), ConvergenceWarning),
        (SVC(tol=1e-300), ConvergenceWarning),
        (SVC(gamma=1e5), DataWarning),
        (NuSVC(nu=0.9), DataWarning),
        (SVC(kernel="sigmoid", gamma=5.0, coef0=-3.0), DataWarning),
    ],
    ids=str,
)
def test_warnings_and_unsolved_members_are_the_same(member, category) -> None:
    model = BaggingClassifier(member, 5, random_state=0)
    alone = heard(clone(model).set_params(n_jobs=1), X, TWO)
    assert {name for name, _ in alone} == {category.__name__}
    assert heard(clone(model).set_params(n_jobs=3), X, TWO) == alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both(model, X, TWO, n_threads=[2])


@pytest.mark.parametrize(
    ("member", "y", "error"),
    [
        (SVC(C=-1.0), TWO, ValueError),
        (SVC(solver="cd"), TWO, ValueError),
        (SVC(kernel="poly", degree=300, gamma=1e3), TWO, ValueError),
        (SVC(), np.r_[0, np.ones(119)], InvalidDataError),
        (NuSVC(), np.r_[0, np.ones(119)], ValueError),
    ],
    ids=str,
)
def test_errors_are_the_same(member, y, error) -> None:
    said = []
    for n_jobs in (1, 2):
        with pytest.raises(error) as caught:
            BaggingClassifier(member, 5, random_state=0, n_jobs=n_jobs).fit(X, y)
        said.append((str(caught.value), getattr(caught.value, "__notes__", [])))
    assert said[0] == said[1]
    assert re.search(r"estimator \d of BaggingClassifier", said[0][0] + str(said[0][1]))


def test_little_memory_changes_nothing(monkeypatch) -> None:
    model = BaggingClassifier(SVC(), 6, random_state=0)
    expected = both(model, X, THREE, n_threads=[4])
    sizes = []
    allocate = many_matrices.on_large_pages

    def watched(shape, dtype):
        sizes.append(shape)
        return allocate(shape, dtype)

    monkeypatch.setattr(many_matrices, "on_large_pages", watched)
    for free in (0, 800_000):
        monkeypatch.setattr(many_matrices, "available_memory", lambda free=free: free)
        assert bits(clone(model).set_params(n_jobs=4).fit(X, THREE)) == expected
    assert [n_matrices for n_matrices, _ in sizes] == [1, 2]


def test_progress_is_told_member_by_member_and_a_fit_can_be_cancelled() -> None:
    class AfterTwo:
        asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 2

    told = []
    with watch(on_progress=told.append):
        BaggingClassifier(SVC(), 6, n_jobs=2, random_state=0).fit(X, TWO)
    assert [each.done for each in told] == list(range(1, 7))
    assert {each.learner for each in told} == {"BaggingClassifier"}
    model = BaggingClassifier(SVC(), 6, n_jobs=2, random_state=0)
    with watch(cancel=AfterTwo()), pytest.raises(FitCancelled):
        model.fit(X, TWO)
    assert not hasattr(model, "estimators_")
