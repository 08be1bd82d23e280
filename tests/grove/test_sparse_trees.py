"""Trees of sparse tables, and of dense ones that are searched in the same form."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from margrove import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.exceptions import InvalidDataError
from margrove.grove import decision_tree
from margrove.grove.serve import TreeArrays, leaves_of
from margrove.grove.table import bin_columns, code_column


def words(kind: str, seed: int, n: int = 150, d: int = 40) -> sp.csr_matrix:
    """Few nonzero cells: counts, signed numbers with -0.0 and stored zeros, or many values."""
    X = sp.random(n, d, density=0.12, random_state=seed, format="csr")
    if kind == "0/1":
        X.data[:] = 1.0
    elif kind == "signed":
        X.data = np.round(4.0 * X.data - 2.0)
        X.data[:3] = -0.0
    else:
        X.data -= 0.5
    full = X.tolil()
    full[:, 3] = np.round(3.0 * np.random.default_rng(seed).random(n))[:, None] + 1.0
    return sp.csr_matrix(full)


def assert_equal_trees(one: TreeArrays, other: TreeArrays) -> None:
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), field.name


SETTINGS: list[dict[str, Any]] = [
    {},
    {"criterion": "second"},
    {"max_features": "sqrt", "random_state": 3},
    {"max_leaf_nodes": 9},
    {"min_samples_leaf": 4, "min_weight_fraction_leaf": 0.04},
    {"max_bins": 3},
    {"min_impurity_decrease": 0.002},
]


@pytest.mark.parametrize("kind", ["0/1", "signed", "numbers"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
def test_the_tree_is_the_one_of_sorted_lists(
    kind: str, settings: dict[str, Any], weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = words(kind, seed=len(weights))
    rng = np.random.default_rng(7)
    weight = {"none": None, "whole": rng.integers(0, 4, 150), "real": rng.random(150)}[weights]
    labels = rng.integers(0, 3, 150) + (X[:, 5].toarray()[:, 0] > 0)
    numbers = X @ rng.standard_normal(40) + 0.1 * rng.standard_normal(150)
    cases = ((DecisionTreeClassifier, labels, "entropy"), (DecisionTreeRegressor, numbers, None))
    for tree, y, second in cases:
        own = dict(settings)
        if own.get("criterion"):
            own["criterion"] = second or "absolute_error"
        found = [tree(**own).fit(table, y, weight) for table in (X, X.toarray())]
        with monkeypatch.context() as patch:
            patch.setattr(decision_tree, "sparse_rows_of", lambda *given: None)
            expected = tree(**own).fit(X.toarray(), y, weight)
        assert len(expected.arrays_) > 3
        for model in found:
            assert_equal_trees(model.arrays_, expected.arrays_)


def test_large_nodes_and_slices_make_the_same_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table for which the subtree is not grown in one go."""
    X = words("signed", seed=0, n=3000, d=2000)
    y = np.random.default_rng(0).integers(0, 4, 3000)
    found = DecisionTreeClassifier(max_depth=6).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(decision_tree, "sparse_rows_of", lambda *given: None)
        expected = DecisionTreeClassifier(max_depth=6).fit(X, y)
    assert_equal_trees(found.arrays_, expected.arrays_)


def test_columns_have_the_codes_of_dense_ones() -> None:
    for seed in range(12):
        X = words(["0/1", "signed", "numbers"][seed % 3], seed, n=40 + 90 * seed)
        X.data[seed] = np.nan
        if seed % 2:
            X = X.astype(np.float32)
        data, dense = bin_columns(sp.csr_array(X)), X.toarray().astype(np.float64)
        assert not data.has_infinity
        for j in range(X.shape[1]):
            codes, values, is_missing = code_column(np.ascontiguousarray(dense[:, j]))
            assert data.column(j).dtype == codes.dtype
            assert np.array_equal(data.column(j), codes)
            assert np.array_equal(data.lows[j], values)
            assert not np.signbit(data.lows[j][data.lows[j] == 0.0]).any()
            assert data.has_missing[j] == is_missing


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("settings", [{}, {"split": "multiway"}, {"splitter": "oblique"}], ids=str)
def test_rows_of_sparse_tables_find_the_leaves_of_dense_ones(
    index: type, settings: dict[str, Any]
) -> None:
    X = words("signed", 1)
    X.data[::17] = np.nan
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    y = np.random.default_rng(0).integers(0, 3, 150)
    clean = sp.csr_matrix(np.nan_to_num(X.toarray()))
    fitted_to = clean if settings.get("splitter") else X
    model = DecisionTreeClassifier(**settings).fit(fitted_to.toarray(), y)
    for table in (clean, X) if not settings.get("splitter") else (clean,):
        for n in (0, 1, 15, 16, 17, 150):
            dense = table[:n].toarray()
            if n:
                assert np.array_equal(model.apply(table[:n]), model.apply(dense))
                assert np.array_equal(model.predict_proba(table[:n]), model.predict_proba(dense))
                assert np.array_equal(model.predict(table[:n]), model.predict(dense))
            assert np.array_equal(
                leaves_of(model.arrays_, sp.csr_matrix(table[:n])), leaves_of(model.arrays_, dense)
            )


def test_a_leaf_depends_on_its_row_only() -> None:
    """A few rows walk one by one, many in groups of sixteen through a packed tree."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((700, 5)), rng.standard_normal(700)
    model = DecisionTreeRegressor().fit(X, y)
    rows = rng.standard_normal((3001, 5))
    leaves = model.apply(rows)
    for n in (1, 2, 15, 16, 17, 31, 400, 1000, 2999):
        assert np.array_equal(model.apply(rows[:n]), leaves[:n])
        assert np.array_equal(model.apply(rows[-n:]), leaves[-n:])
    small = DecisionTreeRegressor(max_depth=2).fit(X, y)  # packed for four rows and more
    leaves_of_small = small.apply(rows)
    for n in (1, 2, 3, 4, 15, 16, 17):
        assert np.array_equal(small.apply(rows[:n]), leaves_of_small[:n])
    rows[5, 0] = np.nan
    assert np.array_equal(np.delete(model.apply(rows), 5), np.delete(leaves, 5))


def test_infinity_is_refused_in_columns_that_no_split_asks_for() -> None:
    X = words("0/1", 2)
    y = (X[:, 3].toarray()[:, 0] > 2).astype(int)
    model = DecisionTreeClassifier().fit(X, y)
    assert set(model.arrays_.feature.tolist()) == {-1, 3}
    odd = X.copy()
    odd.data[odd.indices != 3] = np.inf
    with pytest.raises(InvalidDataError, match="infinity"):
        model.predict(odd)
    with pytest.raises(InvalidDataError, match="infinity"):
        DecisionTreeClassifier().fit(odd, y)
