"""What is kept beside a model."""

from __future__ import annotations

import functools
import io
from collections import OrderedDict

import numpy as np
import pytest
from tests.exchange.golden_files import path_of
from tests.exchange.zoo import NUMBERS, X

import margrove
from margrove._files import pack, unpack
from margrove.exceptions import ModelFileError, UnsavableModelError
from margrove.exchange.model_file.files import inspect_file, load, load_with_about, save

ABOUT = {
    "target": "income",
    "id_column": None,
    "task": "classification",
    "rows": 48_842,
    "score": 0.875,
    "is_tuned": True,
    "classes": ["<=50K", ">50K"],
    "parameters": {"C": 1.0},
}


@functools.cache
def machine():
    return margrove.LinearSVR().fit(X, NUMBERS)


def saved(about=None, model=None) -> bytes:
    file = io.BytesIO()
    save(model or machine(), file, about=about)
    return file.getvalue()


def test_it_comes_back() -> None:
    model, about = load_with_about(io.BytesIO(saved(ABOUT)))
    assert about == ABOUT
    assert np.array_equal(model.predict(X), machine().predict(X))
    assert np.array_equal(load(io.BytesIO(saved(ABOUT))).predict(X), machine().predict(X))
    found = inspect_file(io.BytesIO(saved(ABOUT)))
    assert found.about == ABOUT
    assert "about target: 'income'" in str(found)


def test_files_without_it_are_as_they_were() -> None:
    assert saved() == saved({}) == saved(None)
    data = path_of("LinearSVR").read_bytes()
    assert load_with_about(io.BytesIO(data))[1] == {}
    assert inspect_file(io.BytesIO(data)).about == {}


def test_copies_are_plain() -> None:
    given = OrderedDict(a=(1, 2), b=OrderedDict(c="x"))
    assert load_with_about(io.BytesIO(saved(given)))[1] == {"a": [1, 2], "b": {"c": "x"}}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ([1], "about is a list"),
        ("income", "about is a str"),
        ({"a": np.float64(1)}, r"about\['a'\] is a float64"),
        ({"a": np.zeros(3)}, r"about\['a'\] is a ndarray"),
        ({"a": float("nan")}, "nan, not a finite number"),
        ({1: "a"}, "the key 1 of about is a int"),
        ({"a": {2: "a"}}, "the key 2"),
        ({"a": {1, 2}}, "is a set"),
        ({"a": print}, "is a builtin_function_or_method"),
        ({"a": [[[[[1]]]]]}, "nested more than 4 deep"),
        ({"a": "x" * 2_000_000}, "too large"),
        ({"a": [0] * 20_000}, "too large"),
    ],
)
def test_what_is_refused(about, message, tmp_path) -> None:
    path = tmp_path / "a.margrove"
    with pytest.raises(UnsavableModelError, match=message):
        save(machine(), path, about=about)
    assert not path.exists()


@pytest.mark.parametrize(
    "about",
    [1, "x", [1], {"a": np.zeros(3)}, {"a": b"x"}, {"a": float("inf")}, {"a": "x" * 2_000_000}],
)
def test_what_a_file_must_not_have(about) -> None:
    kind, values = unpack(saved(ABOUT))
    data = b"".join(pack(kind, values | {"about": about}))
    for look in (load, load_with_about, inspect_file):
        with pytest.raises(ModelFileError, match="about"):
            look(io.BytesIO(data))
