"""The container of model files."""

from __future__ import annotations

import io
import pickle
import struct
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from margrove._files import (
    FORMAT_VERSION,
    MAGIC,
    pack,
    read_archive,
    seal,
    unpack,
    write_archive,
)
from margrove.exceptions import ModelFileError, UnsavableModelError

pytestmark = pytest.mark.nojit


def packed(values: dict[str, Any], kind: str = "test") -> bytes:
    return b"".join(pack(kind, values))


def sealed(body: bytes) -> bytes:
    """An archive whose digest is right, whatever is in it."""
    return b"".join(seal([body]))


def text(content: str | bytes) -> bytes:
    encoded = content if isinstance(content, bytes) else content.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def with_value(value: bytes) -> bytes:
    """An archive with one value, made by hand."""
    return sealed(text("test") + b"m" + struct.pack("<Q", 1) + text("key") + value)


def same(a: Any, b: Any) -> bool:
    """Equal in type and content, bit for bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
        return a.tobytes() == b.tobytes() and a.flags.c_contiguous == b.flags.c_contiguous
    if sp.issparse(a):
        parts = ("data", "indices", "indptr")
        return a.shape == b.shape and all(same(getattr(a, k), getattr(b, k)) for k in parts)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (float, np.floating)):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return bool(a == b)


RECORDS = np.zeros(3, np.dtype([("a", "i1"), ("b", "f8"), ("c", "?")], align=True))
RECORDS["b"], RECORDS["c"] = 1.5, [True, False, True]
VALUES = {
    "nothing": None,
    "truth": [True, False],
    "integers": [0, -1, 127, 128, -128, -129, 2**63, -(2**127), 2**200],
    "floats": [0.0, -0.0, 1.5, float("inf"), float("nan"), 5e-324],
    "text": "höher\n\0",
    "bytes": b"\x00\xff",
    "nested": {"a": [1, (2, "x"), {}], "": ()},
    **{f"array {code}": np.arange(6).astype(code).reshape(2, 3) for code in
       ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")},
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(10)[::3],
    "no dimension": np.array(3.5),
    "empty": np.zeros((0, 4)),
    "labels": np.array(["", "ab", "€uro"]),
    "byte labels": np.array([b"a", b"bc"]),
    "objects": np.array([["a", None, 1.5], [np.int64(2), True, b"x"]], dtype=object),
    "records": RECORDS,
    "scalars": [np.float64("nan"), np.int32(-3), np.bool_(True), np.str_("q"), np.float32(0.1)],
    "sparse": sp.csr_matrix(np.eye(3)),
    "sparse array": sp.csr_array(np.arange(6.0).reshape(2, 3)),
}  # fmt: skip


def test_values_come_back_as_they_were() -> None:
    kind, found = unpack(packed(VALUES))
    assert kind == "test"
    expected = VALUES | {"strided": np.ascontiguousarray(VALUES["strided"])}
    for name, value in expected.items():
        assert same(value, found[name]), name
    assert list(found) == list(VALUES)


def test_arrays_may_be_written_to_and_are_aligned() -> None:
    _, found = unpack(packed({"odd": b"1", "a": np.arange(5.0)}))
    found["a"][0] = 7.0
    assert found["a"].flags.aligned
    assert found["a"].flags.owndata


def test_bytes_depend_on_values_alone() -> None:
    for a, b in (
        (np.arange(4.0), np.arange(8.0)[::2] / 2),
        (np.arange(4, dtype="<i4"), np.arange(4, dtype=">i4")),
        (np.array(["a", "b"]), np.array(["a", "b"], dtype=">U1")),
    ):
        assert packed({"a": a}) == packed({"a": b})
    dirty = RECORDS.copy()
    dirty.view(np.uint8).reshape(3, -1)[:, 1:8] = 255  # between the fields
    assert np.array_equal(dirty["b"], RECORDS["b"])
    assert packed({"a": dirty}) == packed({"a": RECORDS})


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**127), 2**127) | st.floats()
    | st.text(st.characters(codec="utf-8")) | st.binary(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple)
    | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=60)
@given(st.dictionaries(st.text(st.characters(codec="utf-8")), plain))
def test_any_values_come_back(values: dict[str, Any]) -> None:
    assert same(unpack(packed(values))[1], values)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (lambda: 0, "function"),
        ({1: 2}, "the key 1 of here"),
        (np.zeros(2, complex), "complex128"),
        (np.zeros(2, "M8[s]"), "datetime64"),
        (np.array([{}], object), "dict"),
        (np.array([[1, 2], [3]], object), "list"),
        (2**300, "38 bytes"),
        ({"a": [object()]}, r"here\.a\[0\] is a builtins.object"),
        ("\ud800", "surrogates"),
        (np.array(["\ud800"]), "surrogates"),
        (sp.csc_matrix(np.eye(2)), "csc_matrix"),
        (np.ma.array([1.0]), "MaskedArray"),
        ({3}, "set"),
        (np.zeros((1,) * 9), "9 dimensions"),
        (np.zeros(1, [("a", "f8", 2)]), "a field of"),
    ],
)
def test_other_values_are_refused_by_name(value: Any, named: str) -> None:
    with pytest.raises(UnsavableModelError, match=named):
        pack("test", {"here": value})


def test_cycles_are_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(UnsavableModelError, match="nested more than 32"):
        pack("test", {"here": cycle})


SMALL = packed({"a": np.arange(3.0), "b": ["x", 1, None, 2.5], "c": {"d": np.array(["q"])}})


def test_cut_off_anywhere_is_refused() -> None:
    for size in range(len(SMALL)):
        with pytest.raises(ModelFileError) as caught:
            unpack(SMALL[:size])
        assert caught.value.offset is not None
        with pytest.raises(ModelFileError):
            read_archive(io.BytesIO(SMALL[:size]))


def test_each_flipped_byte_is_refused() -> None:
    for place in range(len(SMALL)):
        for flip in (1, 128, 255):
            damaged = bytearray(SMALL)
            damaged[place] ^= flip
            with pytest.raises(ModelFileError):
                unpack(damaged)


def test_something_added_is_refused() -> None:
    with pytest.raises(ModelFileError, match="something was added"):
        unpack(SMALL + b"\0")


def test_files_of_others_are_refused() -> None:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("model", "x" * 1000)
    for foreign in (
        pickle.dumps({"a": 1}), zipped.getvalue(), b"\x93NUMPY" + bytes(100), b"{}" * 50, b"",
        MAGIC.replace(b"\r\n", b"\n") + bytes(100),
    ):  # fmt: skip
        with pytest.raises(ModelFileError, match="not a margrove file"):
            unpack(foreign)


def test_later_versions_are_refused() -> None:
    body = [text("test"), b"m" + struct.pack("<Q", 0)]
    assert unpack(b"".join(seal(body))) == ("test", {})
    for version in (0, FORMAT_VERSION + 1, 65535):
        with pytest.raises(ModelFileError, match=f"version {version}"):
            unpack(b"".join(seal(body, version=version)))


HUGE = struct.pack("<Q", 2**60)
LARGE = struct.pack("<Q", 2**33)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"s" + HUGE, "remain"),
        (b"b" + HUGE, "remain"),
        (b"l" + HUGE, "remain"),
        (b"m" + HUGE, "remain"),
        (b"a\x01" + HUGE + b"\x0b", "shape"),
        (b"a\x01" + LARGE + b"\x0b", "remain"),
        (b"a\x02" + LARGE + LARGE + b"\x0b", "shape"),
        (b"a\x01" + LARGE + struct.pack("<BI", 32, 1 << 20), "remain"),
        (b"a\x01" + LARGE + struct.pack("<BI", 32, 0), "string of 0 bytes"),
        (b"a\x01" + LARGE + struct.pack("<BI", 32, 6), "string of 6 bytes"),
        (b"a\xff", "255 dimensions"),
        (b"a\x00\x00", "no array of type 0"),
        (b"a\x00\x63", "no array of type 99"),
        (b"o\x01" + LARGE, "items are declared"),
        (b"o\x01" + struct.pack("<Q", 1) + b"l" + struct.pack("<Q", 0), "not a plain value"),
        (b"i\x00", "integer of 0 bytes"),
        (b"i\xff", "integer of 255 bytes"),
        (b"z", "no value of type 122"),
        (b"s" + text(b"\xff\xfe"), "UTF-8"),
        (b"s" + text(b"\xed\xa0\x80"), "UTF-8"),
        (b"a\x00\x01\x02", "neither 0 nor 1"),
        (b"a\x00" + struct.pack("<BII", 32, 4, 0x110000), "Unicode"),
        (b"a\x00" + struct.pack("<BII", 32, 4, 0xD800), "Unicode"),
        (b"m" + struct.pack("<Q", 2) + 2 * (text("twice") + b"n"), "'twice' occurs twice"),
        (b"l" + struct.pack("<Q", 1) + 40 * (b"l" + struct.pack("<Q", 1)) + b"n", "32 deep"),
        (40 * (b"u" + struct.pack("<Q", 1)) + b"n", "32 deep"),
        (b"a\x00" + struct.pack("<BII", 34, 8, 2) + 2 * (text("a") + b"\x0b" + bytes(4)), "field"),
        (b"a\x00" + struct.pack("<BII", 34, 4, 1) + text("a") + b"\x0b" + bytes(4), "longer"),
        (b"a\x00" + struct.pack("<BII", 34, 1 << 30, 1), "record"),
        (b"a\x00" + struct.pack("<BII", 34, 8, 1 << 30), "record"),
        (b"n" + b"n", "left over"),
    ],
)
def test_made_up_contents_are_refused_before_memory_is_taken(value: bytes, reason: str) -> None:
    data = with_value(value)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=reason):
            unpack(data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("indices", np.array([0, 1, 9])),
        ("indices", np.array([0, -1, 2])),
        ("indices", np.array([0.0, 1.0, 2.0])),
        ("indices", np.array([[0, 1, 2]])),
        ("indptr", np.array([0, 2, 1, 3])),
        ("indptr", np.array([1, 1, 2, 3])),
        ("indptr", np.array([0, 1, 2, 2**40])),
        ("indptr", np.array([0, 1, 3])),
        ("data", np.ones(2)),
        ("data", np.array(["a", "b", "c"])),
    ],
)
def test_unsound_sparse_matrices_are_refused(field: str, wrong: np.ndarray) -> None:
    arrays = {"data": np.ones(3), "indices": np.arange(3), "indptr": np.arange(4)} | {field: wrong}
    whole = b"".join(pack("x", dict(arrays)))[24 + 9 + 9 : -32]
    pieces, at = [], 0
    for name in arrays:  # drop the names: what follows is as a sparse matrix has it
        at += 8 + len(name)
        end = whole.find(text([*arrays, "\0"][list(arrays).index(name) + 1]), at)
        pieces.append(whole[at : end if end >= 0 else None])
        at = end
    value = b"c\x01" + struct.pack("<2Q", 3, 3) + b"".join(pieces)
    with pytest.raises(ModelFileError, match="sparse matrix"):
        unpack(with_value(value))


def test_the_header_is_read_before_anything_else() -> None:
    class Endless(io.RawIOBase):
        """Never ends, as some devices do not."""

        n_read = 0

        def read(self, size: int = -1) -> bytes:
            assert 0 <= size <= 1 << 24
            self.n_read += size
            return bytes(size)

    endless = Endless()
    with pytest.raises(ModelFileError, match="not a margrove file"):
        read_archive(endless)
    assert endless.n_read < 100


def test_what_a_header_declares_is_not_believed() -> None:
    lying = bytearray(SMALL)
    lying[16:24] = struct.pack("<Q", 2**60)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="should have 1152921504606846976"):
        read_archive(io.BytesIO(lying))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_file_objects(tmp_path) -> None:
    file = io.BytesIO()
    write_archive(file, "first", {"a": 1})
    write_archive(file, "second", {"a": 2})
    file.seek(0)
    assert read_archive(file) == ("first", {"a": 1})
    assert read_archive(file) == ("second", {"a": 2})
    write_archive(tmp_path / "x", "third", {"a": 3})
    assert read_archive(str(tmp_path / "x")) == ("third", {"a": 3})
    with open(tmp_path / "x", encoding="latin-1") as opened, pytest.raises(TypeError, match="'rb'"):
        read_archive(opened)  # type: ignore[arg-type]


def test_errors_name_the_file_and_can_be_sent_elsewhere(tmp_path) -> None:
    path = tmp_path / "damaged.margrove"
    path.write_bytes(SMALL[:-1])
    with pytest.raises(ModelFileError, match=r"damaged\.margrove cannot be loaded") as caught:
        read_archive(path)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nowhere")
    error = UnsavableModelError("kernel", "a function", "Use another.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
