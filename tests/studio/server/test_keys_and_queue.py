"""Who may come in, and whose turn it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrove.studio.server.messages import PageRequest
from margrove.studio.server.tab_keys import TabKeys
from margrove.studio.worker.request_queue import (
    MOST_CHANNELS,
    QueuedRequest,
    RequestQueue,
    TooManyError,
)


def test_122_tokens_and_keys_are_long_and_never_the_same():
    rings = [TabKeys() for _ in range(20)]
    words = [ring.new_token() for ring in rings]
    words += [ring.spend(word) for ring, word in zip(rings, words, strict=True)]
    assert len(set(words)) == 40
    assert min(map(len, words)) >= 43  # 256 bits, six in each message


def test_122_a_token_is_spent_at_its_first_use():
    ring = TabKeys()
    token = ring.new_token()
    assert ring.spend(token[:-1]) is None
    assert ring.spend(token + "x") is None
    key = ring.spend(token)
    assert ring.is_known(key)
    assert ring.spend(token) is None
    assert not ring.is_known(token)
    assert ring.spend(key) is None


def test_122_a_new_link_ends_the_one_before_and_no_tab():
    ring = TabKeys()
    key = ring.spend(ring.new_token())
    unused = ring.new_token()
    used = ring.new_token()
    assert ring.spend(unused) is None
    assert ring.is_known(ring.spend(used))
    assert ring.is_known(key)


@given(st.text(max_size=60))
def test_122_nothing_else_is_a_key(text):
    ring = TabKeys()
    ring.spend(ring.new_token())
    ring.new_token()
    assert not ring.is_known(text)
    assert ring.spend(text) is None


def _request(owner, channel, number=0):
    return QueuedRequest(owner, PageRequest(number, channel, "echo", "{}"), lambda message: None)


def test_tabs_and_channels_take_turns():
    waiting = RequestQueue()
    for owner, channel in (("one", "a"), ("one", "b"), ("one", "c"), ("two", "a"), ("two", "b")):
        assert waiting.put(_request(owner, channel)) is None
    order = []
    while (request := waiting.take()) is not None:
        order.append((request.owner, request.channel))
    assert order == [("one", "a"), ("two", "a"), ("one", "b"), ("two", "b"), ("one", "c")]
    assert len(waiting) == 0


def test_a_newer_request_takes_the_place_of_the_one_that_waits():
    waiting = RequestQueue()
    first, other, second = _request(1, "a"), _request(1, "b"), _request(1, "a", 5)
    waiting.put(first)
    waiting.put(other)
    assert waiting.put(second) is first
    assert list(waiting) == [second, other]


def test_what_is_dropped_does_not_come():
    waiting = RequestQueue()
    for channel in "abc":
        waiting.put(_request("one", channel))
    kept = _request("two", "a")
    waiting.put(kept)
    assert waiting.drop("one", "b").channel == "b"
    assert waiting.drop("one", "b") is None
    assert waiting.drop("three", "a") is None
    assert [own.channel for own in waiting.drop_all("one")] == ["a", "c"]
    assert waiting.take() is kept
    assert waiting.take() is None


def test_a_tab_has_so_many_channels():
    waiting = RequestQueue()
    for k in range(MOST_CHANNELS):
        waiting.put(_request("one", str(k)))
    with pytest.raises(TooManyError):
        waiting.put(_request("one", "more"))
    waiting.put(_request("one", "0"))
    waiting.put(_request("two", "0"))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), max_size=40))
def test_nobody_waits_for_more_than_one_request_of_each_other_tab(asked):
    waiting = RequestQueue()
    for owner, channel in asked:
        waiting.put(_request(owner, channel))
    owners = []
    while (request := waiting.take()) is not None:
        owners.append(request.owner)
    assert sorted(owners) == sorted(owner for owner, _ in set(asked))
    rounds = {owner: owners.count(owner) for owner in owners}
    for k, owner in enumerate(owners):
        earlier = owners[:k]
        for other in rounds:
            assert earlier.count(other) <= earlier.count(owner) + 1
