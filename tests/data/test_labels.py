"""y and weights at the boundary."""

from __future__ import annotations

import unicodedata
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.class_weight import compute_class_weight

from margrove import KernelPerceptron, Perceptron
from margrove._data import (
    Labels,
    check_batch,
    check_labels,
    check_targets,
    check_training_labels,
    check_weights,
    class_factors,
    seed_of,
)
from margrove.exceptions import DataWarning, InvalidDataError

pytestmark = pytest.mark.nojit


@pytest.mark.parametrize(
    "y",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        (True, False, True),
        [3, -1, 3],
        [1.0, 0.0, 1.0],
        np.array([16777217.0, 16777216.0, 16777217.0]),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Series(["b", "a", "b"], dtype="string[pyarrow]"),
        pd.Series([2, 1, 2], dtype="Int64"),
        pl.Series(["b", "a", "b"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pa.chunked_array([["b", "a"], ["b"]]),
        pa.array(["b", "a", "b"]),
        pa.array([True, False, True]),
        pa.array(["b", "a", "b"]).dictionary_encode(),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}",
)
def test_labels_of_any_type_make_the_round_trip(y) -> None:
    labels = check_labels(y, 3)
    assert labels.codes.tolist() == [1, 0, 1]
    assert labels.codes.dtype == np.int64
    given = y.to_pylist() if hasattr(y, "to_pylist") else list(y)
    assert labels.classes[labels.codes].tolist() == given


@pytest.mark.parametrize("label", ["a\0", "x" * 100_000, "\ud800", "\u202eabc", "\U0001f333", ""])
def test_strange_strings_survive_fit_and_predict(label) -> None:
    X = [[0.0], [1.0], [0.0], [1.0]]
    model = Perceptron().fit(X, ["a", label, "a", label])
    assert model.predict(X).tolist() == ["a", label, "a", label]


def test_labels_that_look_alike_warn() -> None:
    composed = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
    decomposed = unicodedata.normalize("NFD", composed)
    with pytest.warns(DataWarning, match="look the same"):
        labels = check_labels([composed, decomposed, "tea"], 3)
    assert len(labels.classes) == 3


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", 1, "b"], "mixes strings with int"),
        (["a", None, "b"], "None .first at row 1"),
        ([1.0, np.nan, 2.0], "NaN"),
        (pd.Series([1, None, 2], dtype="Int64"), "NaN .*first at row 1"),
        ([0.5, 1.5, 2.25], "[Uu]nknown label type|continuous"),
        ([[1, 0], [0, 1], [1, 1]], "1d|multilabel"),
        ([b"a", b"b", b"a"], "bytes"),
        ([1, 2], "X has 3 rows, y has 2"),
        (np.array(["2020", "NaT", "2021"], "M8[D]"), "datetime64"),
        (np.ma.array([0, 1, 0], mask=[1, 0, 0]), "masked"),
        ([], "empty"),
        (None, "target y is None"),
    ],
)
def test_refusals(y, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        check_labels(y, 3)


def test_column_vectors_warn() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector"):
        check_labels([[1], [0], [1]], 3)


def test_targets() -> None:
    assert check_targets([1, 2.5], 2).tolist() == [1.0, 2.5]
    assert check_targets([[1, 2], [3, 4]], 2, multi_output=True).shape == (2, 2)
    for bad in ([1.0, np.inf], [np.nan, 1.0], [1.0], None, ["a", "b"]):
        with pytest.raises(ValueError, match=r"y|convert"):
            check_targets(bad, 2)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"expected \(3,\)"),
        ([[1.0], [1.0], [1.0]], "1D"),
        (2.0, "1D array, got 2.0"),
        ([0, 0, 0], "zero for all rows"),
        ([1, -1, 1], "negative at row 1"),
        ([1, np.nan, 1], "NaN"),
        ([1, np.inf, 1], "infinity"),
        (["a", "b", "c"], "string"),
        (np.ma.array([1.0, 1.0, 1.0], mask=[1, 0, 0]), "masked"),
        (np.array([1, 1, 1], "M8[s]"), "datetime64"),
        ([10**400, 1, 1], "too large for float64"),
    ],
)
def test_bad_weights(weight, message) -> None:
    with pytest.raises(ValueError, match=message):
        check_weights(weight, 3)


def test_rows_of_negative_weight_are_left_out_where_that_is_asked_for() -> None:
    with pytest.warns(DataWarning, match=r"2 rows have a negative sample_weight.*first: row 1"):
        found = check_weights([1.0, -1.0, -0.5, 2.0], 4, leave_out_negative=True)
    assert found.tolist() == [1.0, 0.0, 0.0, 2.0]
    with pytest.raises(InvalidDataError, match="all samples have zero or negative weights"):
        check_weights([-1.0, 0.0], 2, leave_out_negative=True)


def test_an_array_of_one_number_is_no_array_of_weights() -> None:
    with pytest.raises(TypeError, match=r"got scalar `array\(0\.\)`.*each of the 3 rows"):
        check_weights(np.array(0), 3)


def test_balanced_class_weights_are_scikit_learns() -> None:
    y = np.array([0, 0, 0, 1, 2, 2])
    labels = check_labels(y, 6)
    ours = class_factors("balanced", labels, np.ones(6))
    assert np.allclose(
        ours, compute_class_weight("balanced", classes=labels.classes, y=y), rtol=1e-15
    )


@pytest.mark.parametrize(
    "class_weight",
    [{"a": 1, "typo": 2}, {"a": 0, "b": 1}, {"a": -1}, {"a": np.nan}, {"a": np.inf}, {"a": "x"}],
)
def test_bad_class_weights(class_weight) -> None:
    with pytest.raises(ValueError, match="class_weight"):
        class_factors(class_weight, Labels(np.array([0, 1]), np.array(["a", "b"])), np.ones(2))
    with pytest.raises(ValueError, match="class_weight"):
        Perceptron(class_weight=class_weight).fit([[0.0], [1.0]], ["a", "b"])


def test_unknown_class_weight_names_are_refused() -> None:
    with pytest.raises(ValueError, match="'class_weight' parameter of Perceptron"):
        Perceptron(class_weight="Balanced").fit([[0.0], [1.0]], [0, 1])


def test_a_class_of_weight_zero_is_left_out() -> None:
    X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "c", "c"]
    with pytest.warns(DataWarning, match="class 'b'"):
        labels = check_training_labels(y, [1, 0, 1, 1], None, 4)
    assert labels.classes.tolist() == ["a", "c"]
    with pytest.raises(InvalidDataError, match=r"the same class \('a'\).*1 class"):
        Perceptron().fit(X[:2], y[:2], sample_weight=[1, 0])


@pytest.mark.parametrize("cls", [Perceptron, KernelPerceptron])
@pytest.mark.parametrize("scale", [1e308, 1e-320, 1e-200])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_weights_at_the_edge_of_floating_point(cls, scale, class_weight) -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-3, 1, (20, 2)), rng.normal(3, 1, (20, 2))])
    y = np.repeat([0, 1], 20)
    model = cls(class_weight=class_weight).fit(X, y, sample_weight=np.full(40, scale))
    assert np.isfinite(model.decision_function(X)).all()
    assert model.score(X, y) == 1.0


def test_balanced_weights_of_all_sizes() -> None:
    model = Perceptron(class_weight="balanced")
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    for weight in ([1e308, 1e308, 0.5, 1.0], [1e300, 1e-300, 1e-300, 1e300]):
        assert np.isfinite(model.fit(X, [0, 0, 1, 1], sample_weight=weight).coef_).all()


def test_one_class_only() -> None:
    for cls in (Perceptron, KernelPerceptron):
        with pytest.raises(InvalidDataError, match=r"1 class \(\['a'\]\)"):
            cls().fit([[0.0], [1.0]], ["a", "a"])


@pytest.mark.parametrize("cls", [Perceptron, KernelPerceptron])
def test_streams(cls) -> None:
    model = cls()
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit([[0.0]], ["a"])
    model.partial_fit(np.empty((0, 1)), [], classes=["a", "b"])
    assert not hasattr(model, "classes_")
    model.partial_fit([[0.0]], ["b"], classes=["b", "a"])
    assert model.classes_.tolist() == ["a", "b"]
    before = model.decision_function([[2.0]])
    with pytest.raises(InvalidDataError, match="class 'c', which was not in `classes`"):
        model.partial_fit([[1.0]], ["c"])
    with pytest.raises(ValueError, match="not the same as on the first call"):
        model.partial_fit([[1.0]], ["a"], classes=["a", "z"])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit([[1.0, 2.0]], ["a"])
    model.partial_fit(np.empty((0, 1)), [])
    assert np.array_equal(model.decision_function([[2.0]]), before)
    with pytest.raises(ValueError, match="balanced"):
        cls(class_weight="balanced").partial_fit([[0.0]], ["a"], classes=["a", "b"])
    with pytest.raises(InvalidDataError, match="at least 2"):
        check_batch(cls(), [[0.0]], ["a"], ["a"], None, None)


def test_random_state_of_every_kind() -> None:
    assert seed_of(7) == 7
    assert 0 <= seed_of(None) < 2**32
    assert seed_of(np.random.RandomState(3)) == seed_of(np.random.RandomState(3))
    assert seed_of(np.random.default_rng(3)) == seed_of(np.random.default_rng(3))
    for bad in (-1, 2**32, "x", 0.5):
        with pytest.raises(ValueError, match="'random_state' parameter"):
            Perceptron(random_state=bad).fit([[0.0], [1.0]], [0, 1])


def test_plain_targets_are_what_scikit_learn_makes_of_them() -> None:
    y = np.random.default_rng(0).standard_normal(20)
    assert check_targets(y, 20) is y
    for other in (y[::2], y[:, None], y.astype(np.float32), list(y), np.asfortranarray(y)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = check_targets(other, len(other))
        assert found.dtype == np.float64
        assert found.flags.c_contiguous
        assert np.array_equal(found, np.ravel(other))
    for wrong, message in ((np.append(y, np.nan), "NaN"), (np.empty(0), "minimum of 1")):
        with pytest.raises(ValueError, match=message):
            check_targets(wrong, len(wrong))
    with pytest.raises(ValueError, match="inconsistent"):
        check_targets(y, 21)
