"""Teams of threads inside compiled code: shares add up, latecomers go home, and nobody hangs."""

from __future__ import annotations

import _thread
import threading
import time

import numpy as np
import pytest
from tests.interrupts import PATIENCE, wait_until
from tests.oracles.teams import run_team

from margrove._runtime.instructions import (
    atomic_add,
    atomic_read,
    atomic_swap,
    atomic_write,
    yield_core,
)
from margrove._runtime.jit import compiled_for_user
from margrove._runtime.team import (
    barrier,
    join_team,
    release_helpers,
    report_done,
    size_of_step,
    start_step,
    wait_for_helpers,
    wait_for_step,
)

NUMBERS = np.arange(1000)
TOTAL = int(NUMBERS.sum())


@compiled_for_user
def add_up(team, rank, size, numbers, shares, totals):
    """Each adds up its share, and then all shares, which needs all of them to be there."""
    total = 0
    for k in range((len(numbers) * rank) // size, (len(numbers) * (rank + 1)) // size):
        total += numbers[k]
    shares[rank] = total
    barrier(team, size)
    for other in range(size):
        totals[rank] += shares[other]
    barrier(team, size)  # before shares are written again


@compiled_for_user
def lead(team, numbers, sizes, shares, totals):
    """As many steps as there are sizes, which are written down."""
    for step in range(len(sizes)):
        sizes[step] = start_step(team, step + 1)
        add_up(team, 0, sizes[step], numbers, shares, totals)
        wait_for_helpers(team, sizes[step] - 1)
    release_helpers(team)
    return totals[0]


@compiled_for_user
def assist(team, numbers, shares, totals):
    """The rank that it had, -1 for who came too late."""
    rank = join_team(team)
    if rank < 0:
        return rank
    order = 0
    while True:
        order = wait_for_step(team, order)
        if order < 0:
            report_done(team)
            return rank
        size = size_of_step(order)
        if rank < size:
            add_up(team, rank, size, numbers, shares, totals)
            report_done(team)


class Sums:
    """What a team works on, and who has come home."""

    def __init__(self, n_steps, n_threads):
        self.sizes = np.zeros(n_steps, np.int64)
        self.shares, self.totals = np.zeros((2, n_threads), np.int64)
        self.home: list[int] = []

    def lead(self, team):
        return lead(team, NUMBERS, self.sizes, self.shares, self.totals)

    def assist(self, team):
        self.home.append(assist(team, NUMBERS, self.shares, self.totals))


def n_enlisted(team):
    return int(team[0])


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_shares_add_up(n_threads) -> None:
    sums = Sums(200, n_threads)

    def lead_all(team):
        wait_until(lambda: n_enlisted(team) == n_threads - 1)
        return sums.lead(team)

    assert run_team(lead_all, sums.assist, n_threads) == 200 * TOTAL
    assert (sums.sizes == n_threads).all()
    assert sums.totals.tolist() == [200 * TOTAL] * n_threads  # nobody went on too early
    wait_until(lambda: len(sums.home) == n_threads - 1)
    assert sorted(sums.home) == list(range(1, n_threads))


def test_helpers_may_come_at_any_time() -> None:
    for pause in (0.0, 1e-3, 3e-3):
        sums = Sums(5000, 3)

        def assist_later(team, pause=pause, sums=sums):
            time.sleep(pause)
            sums.assist(team)

        assert run_team(sums.lead, assist_later, 3) == 5000 * TOTAL
        assert (np.diff(sums.sizes) >= 0).all()
        time.sleep(0.02)
        for rank in (own for own in sums.home if own > 0):
            assert sums.totals[rank] == (sums.sizes > rank).sum() * TOTAL


def test_helpers_may_come_while_the_leader_is_at_work() -> None:
    sums, may_come = Sums(2, 2), threading.Event()

    def lead_and_wait(team):
        """Two calls of one leader, between which a helper comes."""
        sums.sizes[0] = first_step(team, NUMBERS, sums.shares, sums.totals)
        may_come.set()
        wait_until(lambda: n_enlisted(team) == 1)
        return last_step(team, NUMBERS, sums.sizes, sums.shares, sums.totals)

    def assist_later(team):
        assert may_come.wait(PATIENCE)
        sums.assist(team)

    assert run_team(lead_and_wait, assist_later, 2) == 2 * TOTAL
    assert sums.sizes.tolist() == [1, 2]
    assert sums.totals.tolist() == [2 * TOTAL, TOTAL]


@compiled_for_user
def first_step(team, numbers, shares, totals):
    size = start_step(team, 1)
    add_up(team, 0, size, numbers, shares, totals)
    wait_for_helpers(team, size - 1)
    return size


@compiled_for_user
def last_step(team, numbers, sizes, shares, totals):
    sizes[1] = start_step(team, 2)
    add_up(team, 0, sizes[1], numbers, shares, totals)
    wait_for_helpers(team, sizes[1] - 1)
    release_helpers(team)
    return totals[0]


def test_who_comes_too_late_goes_away() -> None:
    sums, called, is_over = Sums(10, 3), [], threading.Event()

    def assist_too_late(team):
        called.append(1)
        assert is_over.wait(PATIENCE)
        sums.assist(team)

    def lead_later(team):
        wait_until(lambda: len(called) == 2)
        return sums.lead(team)

    assert run_team(lead_later, assist_too_late, 3) == 10 * TOTAL
    assert (sums.sizes == 1).all()
    is_over.set()
    wait_until(lambda: len(sums.home) == 2)
    assert sums.home == [-1, -1]
    assert sums.totals.tolist() == [10 * TOTAL, 0, 0]


@pytest.mark.parametrize("fails", [False, True])
def test_helpers_that_never_come_are_not_waited_for(fails, capfd) -> None:
    sums, called = Sums(10, 4), []

    def assist_never(team):
        called.append(1)
        if fails:
            raise ValueError("no")

    def lead_later(team):
        wait_until(lambda: len(called) == 3)
        return sums.lead(team)

    assert run_team(lead_later, assist_never, 4) == 10 * TOTAL
    assert (sums.sizes == 1).all()
    assert capfd.readouterr().err == ""


def test_no_more_threads_to_be_had(monkeypatch) -> None:
    def start_none(function, args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", start_none)
    sums = Sums(10, 4)
    assert run_team(sums.lead, sums.assist, 4) == 10 * TOTAL
    assert sums.home == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupt_of_the_leader_leaves_nobody_spinning(error) -> None:
    sums, n_threads = Sums(10, 3), _thread._count()

    def lead_nowhere(team):
        wait_until(lambda: n_enlisted(team) == 2)
        raise error

    with pytest.raises(error):
        run_team(lead_nowhere, sums.assist, 3)
    wait_until(lambda: len(sums.home) == 2)
    assert sorted(sums.home) == [1, 2]
    wait_until(lambda: _thread._count() <= n_threads)  # who spins never ends


def test_an_interrupt_before_helpers_have_come_sends_them_home() -> None:
    sums, called, is_over = Sums(10, 3), [], threading.Event()
    n_threads = _thread._count()

    def assist_too_late(team):
        called.append(1)
        assert is_over.wait(PATIENCE)
        sums.assist(team)

    def lead_nowhere(team):
        wait_until(lambda: len(called) == 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_team(lead_nowhere, assist_too_late, 3)
    is_over.set()
    wait_until(lambda: len(sums.home) == 2)
    assert sums.home == [-1, -1]
    wait_until(lambda: _thread._count() <= n_threads)  # who spins never ends


def test_teams_of_several_threads_do_not_meet() -> None:
    results: list[int] = []

    def run() -> None:
        sums = Sums(300, 2)
        results.append(run_team(sums.lead, sums.assist, 2))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for own in threads:
        own.start()
    for own in threads:
        own.join(PATIENCE)
    assert results == [300 * TOTAL] * 3


@pytest.mark.nojit
def test_one_thread_needs_no_helpers() -> None:
    def assist_nobody(team):
        raise AssertionError

    assert run_team(lambda team: len(team) > 0, assist_nobody, 1)


# -- words that are shared -------------------------------------------------------------------------


@compiled_for_user
def use_words(words):
    atomic_write(words, 1, 5)
    before = atomic_add(words, 1, 3)
    swapped = atomic_swap(words, 1, 40)
    yield_core()
    return before, swapped, atomic_read(words, 1)


@compiled_for_user
def add_one_by_one(words, times):
    for _ in range(times):
        atomic_add(words, 0, 1)


def test_words_are_read_and_changed_in_one_step() -> None:
    words = np.zeros(3, np.int64)
    assert use_words(words) == (5, 8, 40)
    assert words.tolist() == [0, 40, 0]
    add_one_by_one(words, 0)  # compiled
    threads = [threading.Thread(target=add_one_by_one, args=(words, 100_000)) for _ in range(4)]
    for own in threads:
        own.start()
    for own in threads:
        own.join(PATIENCE)
    assert words[0] == 400_000
