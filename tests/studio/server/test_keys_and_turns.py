"""Who may come in, and whose turn it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrove.studio.server.messages import Ask
from margrove.studio.server.tab_keys import KeyRing
from margrove.studio.worker.request_queue import MOST_CHANNELS, Request, TooManyError, Turns


def test_122_tokens_and_keys_are_long_and_never_the_same():
    rings = [KeyRing() for _ in range(20)]
    words = [ring.new_token() for ring in rings]
    words += [ring.spend(word) for ring, word in zip(rings, words, strict=True)]
    assert len(set(words)) == 40
    assert min(map(len, words)) >= 43  # 256 bits, six in each letter


def test_122_a_token_is_spent_at_its_first_use():
    ring = KeyRing()
    token = ring.new_token()
    assert ring.spend(token[:-1]) is None
    assert ring.spend(token + "x") is None
    key = ring.spend(token)
    assert ring.knows(key)
    assert ring.spend(token) is None
    assert not ring.knows(token)
    assert ring.spend(key) is None


def test_122_a_new_link_ends_the_one_before_and_no_tab():
    ring = KeyRing()
    key = ring.spend(ring.new_token())
    unused = ring.new_token()
    used = ring.new_token()
    assert ring.spend(unused) is None
    assert ring.knows(ring.spend(used))
    assert ring.knows(key)


@given(st.text(max_size=60))
def test_122_nothing_else_is_a_key(text):
    ring = KeyRing()
    ring.spend(ring.new_token())
    ring.new_token()
    assert not ring.knows(text)
    assert ring.spend(text) is None


def _request(owner, channel, number=0):
    return Request(owner, Ask(number, channel, "echo", "{}"), lambda message: None)


def test_tabs_and_channels_take_turns():
    turns = Turns()
    for owner, channel in (("one", "a"), ("one", "b"), ("one", "c"), ("two", "a"), ("two", "b")):
        assert turns.put(_request(owner, channel)) is None
    order = []
    while (request := turns.take()) is not None:
        order.append((request.owner, request.channel))
    assert order == [("one", "a"), ("two", "a"), ("one", "b"), ("two", "b"), ("one", "c")]
    assert len(turns) == 0


def test_a_newer_request_takes_the_place_of_the_one_that_waits():
    turns = Turns()
    first, other, second = _request(1, "a"), _request(1, "b"), _request(1, "a", 5)
    turns.put(first)
    turns.put(other)
    assert turns.put(second) is first
    assert list(turns) == [second, other]


def test_what_is_dropped_does_not_come():
    turns = Turns()
    for channel in "abc":
        turns.put(_request("one", channel))
    kept = _request("two", "a")
    turns.put(kept)
    assert turns.drop("one", "b").channel == "b"
    assert turns.drop("one", "b") is None
    assert turns.drop("three", "a") is None
    assert [own.channel for own in turns.drop_all("one")] == ["a", "c"]
    assert turns.take() is kept
    assert turns.take() is None


def test_a_tab_has_so_many_channels():
    turns = Turns()
    for k in range(MOST_CHANNELS):
        turns.put(_request("one", str(k)))
    with pytest.raises(TooManyError):
        turns.put(_request("one", "more"))
    turns.put(_request("one", "0"))
    turns.put(_request("two", "0"))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), max_size=40))
def test_nobody_waits_for_more_than_one_request_of_each_other_tab(asked):
    turns = Turns()
    for owner, channel in asked:
        turns.put(_request(owner, channel))
    owners = []
    while (request := turns.take()) is not None:
        owners.append(request.owner)
    assert sorted(owners) == sorted(owner for owner, _ in set(asked))
    rounds = {owner: owners.count(owner) for owner in owners}
    for k, owner in enumerate(owners):
        earlier = owners[:k]
        for other in rounds:
            assert earlier.count(other) <= earlier.count(owner) + 1
