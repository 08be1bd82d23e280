"""Words that several threads of compiled code share."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.interrupts import PATIENCE

from margrove._runtime.instructions import (
    atomic_add,
    atomic_exchange_if,
    atomic_read,
    atomic_swap,
    atomic_write,
    yield_core,
)
from margrove._runtime.jit import compiled_for_user


@compiled_for_user
def use_words(words):
    atomic_write(words, 1, 5)
    before = atomic_add(words, 1, 3)
    swapped = atomic_swap(words, 1, 40)
    kept = atomic_exchange_if(words, 1, 39, 50)
    exchanged = atomic_exchange_if(words, 1, 40, 60)
    yield_core()
    return before, swapped, kept, exchanged, atomic_read(words, 1)


@compiled_for_user
def add_one_by_one(words, times):
    for _ in range(times):
        atomic_add(words, 0, 1)


def test_words_are_read_and_changed_in_one_step() -> None:
    words = np.zeros(3, np.int64)
    assert use_words(words) == (5, 8, 40, 40, 60)
    assert words.tolist() == [0, 60, 0]
    add_one_by_one(words, 0)  # compiled
    threads = [threading.Thread(target=add_one_by_one, args=(words, 100_000)) for _ in range(4)]
    for own in threads:
        own.start()
    for own in threads:
        own.join(PATIENCE)
    assert words[0] == 400_000


@pytest.mark.nojit
def test_one_thread_adds_without_a_compiler() -> None:
    words = np.zeros(2, np.int64)
    add_one_by_one(words, 3)
    assert words.tolist() == [3, 0]
