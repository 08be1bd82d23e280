"""Predictions of kernel machines: altered attributes, errors, pairs and votes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.margin.test_kernels import rows

from margrove import SVC, OneClassSVM
from margrove.exceptions import InvalidDataError, MalformedSparseError, NotFittedError
from margrove.margin.svm.multiclass import pair_decisions, pairs_of, votes_of


def test_altered_attributes_are_noticed() -> None:
    X = rows(60)
    model = OneClassSVM().fit(X)
    before = model.decision_function(X[:2])
    model.dual_coef_[0, 0] += 1.0
    changed = model.decision_function(X[:2])
    kernel_values = model.kernel_(X[:2], model.support_vectors_[:1])[:, 0]
    assert np.allclose(changed - before, kernel_values)
    model.support_vectors_[0] += 1.0
    assert not np.array_equal(model.decision_function(X[:2]), changed)
    model.support_vectors_ = model.support_vectors_[:, :2]
    with pytest.raises(ValueError, match="support_vectors_ has shape"):
        model.decision_function(X[:2])
    model = SVC().fit(X, np.arange(60) % 3)
    model.n_support_ = model.n_support_ + np.array([-100, 100, 0])
    with pytest.raises(ValueError, match="The fitted state was altered: n_support_"):
        model.predict(X[:1])


@pytest.mark.parametrize("wrong", [10**6, -1])
def test_wrong_indices_of_sparse_support_vectors_are_an_error(wrong) -> None:
    X = sp.csr_array(rows(60))
    for place in ("indices", "indptr"):
        model = SVC().fit(X, np.arange(60) % 2)
        getattr(model.support_vectors_, place)[3] = wrong
        with pytest.raises(MalformedSparseError):
            model.predict(X[:1])


def test_bad_rows_are_errors() -> None:
    X = rows(60)
    with pytest.raises(NotFittedError):
        SVC().predict(X[:1])
    with pytest.raises(InvalidDataError, match="needs features >= 0"):
        SVC(kernel="chi2").fit(X, np.arange(60) % 2).predict(-X[:1])
    with pytest.raises(InvalidDataError, match="contains NaN"):
        SVC().fit(X, np.arange(60) % 2).predict(np.full((1, 4), np.nan))


@pytest.mark.nojit
def test_pairs_and_votes_are_those_of_the_definition() -> None:
    sums = np.random.default_rng(0).standard_normal((4, 6, 3))
    intercept = np.arange(6.0)
    found = pair_decisions(sums, intercept)
    votes = np.zeros((6, 4), dtype=int)
    for number, (i, j) in enumerate(pairs_of(4)):
        expected = sums[i][:, j - 1] + sums[j][:, i] + intercept[number]
        assert np.array_equal(found[:, number], expected)
        for row in range(6):
            votes[row, i if expected[row] > 0 else j] += 1
    assert np.array_equal(votes_of(found, 4), votes)
