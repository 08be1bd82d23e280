"""Messages as bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.studio.server.running import unpacked

from margrove.studio.server.messages import (
    MessageError,
    cancelled,
    failure,
    hello_of,
    packed_result,
    progress,
    request_of,
)
from margrove.studio.worker.worker_protocol import (
    Kind,
    WorkerMessage,
    packed_command,
    unpacked_command,
)

TYPES = [np.float32, np.float64, np.int32, np.uint8, np.bool_]


@settings(max_examples=40)
@given(
    st.lists(
        st.sampled_from(TYPES).flatmap(
            lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_side=0, max_dims=3))
        ),
        max_size=5,
    ),
    st.text(max_size=20),
)
def test_arrays_survive_whatever_their_types_and_shapes(arrays, text):
    found = unpacked(packed_result(3, "c", {"list": arrays, "text": text, "deep": {"x": [1.5]}}))
    assert (found["kind"], found["id"], found["channel"]) == ("result", 3, "c")
    assert found["body"]["text"] == text
    assert found["body"]["deep"] == {"x": [1.5]}
    for before, after in zip(arrays, found["body"]["list"], strict=True):
        assert before.shape == after.shape
        np.testing.assert_array_equal(before, after)


def test_arrays_that_are_not_in_order_are_put_in_order():
    table = np.arange(12.0).reshape(3, 4)
    body = {"turned": table.T, "some": table[:, ::2], "swapped": table.astype(">f8")}
    found = unpacked(packed_result(0, "c", body))["body"]
    for name, array in body.items():
        np.testing.assert_array_equal(found[name], array)


def test_scalars_and_small_things_are_plain():
    body = {"a": np.float32(0.5), "b": np.bool_(True), "c": np.array(3), "d": (1, 2), 5: None}
    found = unpacked(packed_result(0, "c", body))["body"]
    assert found == {"a": 0.5, "b": True, "c": 3, "d": [1, 2], "5": None}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (np.float64("inf"), ValueError),
        (np.array([2**40]), OverflowError),
        (np.array(["text"]), TypeError),
        (np.array([1j]), TypeError),
        (object(), TypeError),
    ],
    ids=["nan", "inf", "large", "text", "complex", "object"],
)
def test_what_the_page_cannot_read_is_an_error_here(value, error):
    with pytest.raises(error):
        packed_result(0, "c", {"x": value})


def test_small_messages_are_json():
    assert json.loads(progress(1, "c", "fitting", 2, None)) == {
        "kind": "progress", "id": 1, "channel": "c", "note": "fitting", "done": 2, "total": None,
    }  # fmt: skip
    assert json.loads(failure(1, "c", "no")) == {
        "kind": "error", "id": 1, "channel": "c", "message": "no",
    }  # fmt: skip
    assert json.loads(cancelled(1, "c")) == {"kind": "cancelled", "id": 1, "channel": "c"}


@settings(max_examples=60)
@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_what_a_page_sends_is_a_message_or_an_error_of_one_kind(sent):
    text = sent if isinstance(sent, str) else json.dumps(sent)
    for read in (hello_of, request_of):
        with pytest.raises(MessageError):
            read(text)


def test_a_request_keeps_its_text():
    text = '{"id": 7, "kind": "picture", "channel": "main", "scene": {}}'
    ask = request_of(text)
    assert (ask.id, ask.kind, ask.channel, ask.text) == (7, "picture", "main", text)
    assert hello_of('{"kind": "hello", "key": "k", "token": 5}') == (None, "k")


@given(st.sampled_from(Kind), st.integers(0, 2**32 - 1), st.binary(max_size=50))
def test_letters_arrive_as_they_were(kind, number, content):
    message = WorkerMessage(kind, number, content)
    assert WorkerMessage.from_bytes(message.to_bytes()) == message


@given(st.text())
def test_orders_arrive_as_they_were(text):
    order = {"id": 1, "channel": "a\nb", "tables": {"x": "/tmp/y"}}
    found, said = unpacked_command(packed_command(order, text))
    assert found == order
    assert said == text.encode(errors="replace").decode()
