"""The pool of threads: each tile runs once, nobody waits in vain, and nothing is left behind."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.interrupts import PATIENCE, lines_until_interrupt, wait_until
from threadpoolctl import threadpool_info

from margrove._runtime import pool as pool_module
from margrove._runtime.jit import IS_COMPILED, kernel
from margrove._runtime.pool import pool_words, run_tiles
from margrove._runtime.regions import region, share_tiles

needs_compiler = pytest.mark.skipif(not IS_COMPILED, reason="without the compiler: one thread")


@region
def add_rows(tile, X, out):
    for j in range(X.shape[1]):
        out[tile] += X[tile, j]


@region(bare=True)
def count_calls(tile, counts):
    counts[tile] += 1


@region
def allocate(tile, size, out):
    out[tile] = len(np.empty(size if tile == 3 else 1))


@kernel(hidden=True)
def mark_row(tile, step, marks):
    marks[tile, step] += 1


@kernel
def many_regions(words, n_tiles, n_threads, marks):
    """A compiled loop that opens a region a step."""
    for step in range(marks.shape[1]):
        share_tiles(words, n_tiles, n_threads, mark_row, (step, marks))
    return 7


@kernel(hidden=True)
def open_another(tile, words, marks):
    share_tiles(words, marks.shape[1], 4, mark_cell, (tile, marks))


@kernel(hidden=True)
def mark_cell(tile, row, marks):
    marks[row, tile] += 1


@region
def open_regions(tile, words, marks):
    open_another(tile, words, marks)


def owner() -> int:
    return int(pool_module._POOL.words[pool_module._OWNER])


def blas_threads() -> set[int]:
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


# -- compiled tiles --


@pytest.mark.nojit
@pytest.mark.parametrize("n_threads", [1, 2, 5, 40])
@pytest.mark.parametrize("n_tiles", [0, 1, 2, 100])
def test_each_compiled_tile_runs_once(n_tiles, n_threads) -> None:
    X, out = np.random.default_rng(0).integers(0, 9, (n_tiles, 3)).astype(float), np.zeros(n_tiles)
    add_rows(n_tiles, n_threads, X, out)
    assert out.tolist() == X.sum(axis=1).tolist()


def test_tiles_of_many_regions_do_not_mix() -> None:
    """Helpers that come late take no tile of the next region, whose number of tiles differs."""
    rng = np.random.default_rng(0)
    for _ in range(3_000):
        counts = np.zeros(rng.integers(1, 9), np.int64)
        count_calls(len(counts), int(rng.integers(1, 5)), counts)
        assert (counts == 1).all()


@pytest.mark.nojit
def test_a_kernel_opens_regions() -> None:
    marks = np.zeros((5, 400 if IS_COMPILED else 4), np.int64)
    assert many_regions(pool_words(4), 5, 4, marks) == 7
    assert (marks == 1).all()


@pytest.mark.nojit
def test_a_region_in_a_region_is_done_by_its_caller() -> None:
    marks = np.zeros((20, 30), np.int64)
    open_regions(20, 3, pool_words(3), marks)
    assert (marks == 1).all()
    assert owner() == 0


@needs_compiler
def test_a_tile_without_memory_raises_and_the_others_are_done() -> None:
    out = np.zeros(8)
    for n_threads in (1, 3):
        out[:] = 0
        with pytest.raises(MemoryError, match="not enough memory"):
            allocate(8, n_threads, 1 << 46, out)
        assert out.tolist() == [1, 1, 1, 0, 1, 1, 1, 1]
        allocate(8, n_threads, 5, out)
        assert out[3] == 5


def test_many_threads_open_regions_at_once() -> None:
    """The first one gets the pool, the others work alone."""
    results, X = [], np.arange(50.0 * 4).reshape(50, 4)

    def work() -> None:
        for _ in range(50):
            out = np.zeros(50)
            add_rows(50, 3, X, out)
            results.append(np.array_equal(out, X.sum(axis=1)))

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(results) == 64 * 50
    assert all(results)
    assert owner() == 0


@needs_compiler
def test_a_pool_that_is_busy_is_not_waited_for() -> None:
    counts, may_end, is_open = np.zeros(10, np.int64), threading.Event(), threading.Event()

    def wait_in_a_tile(tile: int) -> None:
        is_open.set()
        assert may_end.wait(PATIENCE)

    other = threading.Thread(target=run_tiles, args=(wait_in_a_tile, 2, 2))
    other.start()
    assert is_open.wait(PATIENCE)
    wait_until(lambda: owner() != 0)
    count_calls(10, 4, counts)
    assert (counts == 1).all()
    assert owner() != 0  # the other one still has it
    may_end.set()
    other.join(PATIENCE)
    assert owner() == 0


@needs_compiler
def test_an_idle_pool_sleeps() -> None:
    counts = np.zeros(9, np.int64)
    count_calls(9, 4, counts)
    words = pool_module._POOL.words
    wait_until(lambda: words[pool_module._ASLEEP] == words[pool_module._HELPERS] >= 3)
    count_calls(9, 4, counts)  # and wakes up
    assert (counts == 2).all()


@needs_compiler
def test_a_system_without_more_threads(monkeypatch) -> None:
    def start_none(function, args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", start_none)
    monkeypatch.setattr(pool_module, "_POOL", pool_module._Pool())
    counts = np.zeros(9, np.int64)
    count_calls(9, 4, counts)
    run_tiles(lambda tile: count_calls(1, 1, counts[tile:]), 9, 4)
    assert (counts == 2).all()
    assert pool_module._POOL.threads == {}


# -- Python tiles --


@pytest.mark.nojit
@pytest.mark.parametrize("n_threads", [1, 2, 7])
def test_each_python_tile_runs_once(n_threads) -> None:
    counts = np.zeros(100, dtype=int)

    def task(tile):
        counts[tile] += 1

    run_tiles(task, 100, n_threads)
    assert (counts == 1).all()
    run_tiles(task, 0, n_threads)


@needs_compiler
def test_python_tiles_run_side_by_side() -> None:
    both = threading.Barrier(2)
    run_tiles(lambda tile: both.wait(PATIENCE), 2, 2)
    names = set()

    def task(tile):
        names.add(threading.get_ident())
        both.wait(PATIENCE)

    run_tiles(task, 2, 2)
    assert len(names) == 2
    assert threading.get_ident() in names


@pytest.mark.nojit
def test_an_error_stops_the_others_and_is_raised() -> None:
    done = []

    def task(tile):
        if tile == 3:
            raise KeyError("tile 3")
        threading.Event().wait(0.001)
        done.append(tile)

    with pytest.raises(KeyError, match="tile 3"):
        run_tiles(task, 1000, 4)
    assert len(done) < 1000
    assert owner() == 0


@needs_compiler
def test_an_interrupt_at_any_line_waits_for_helpers_and_gives_the_pool_back() -> None:
    before = blas_threads()
    started, finished = [], []

    def task(tile):
        started.append(tile)
        threading.Event().wait(0.0005)
        finished.append(tile)

    run_tiles(task, 6, 3)
    files = [pool_module.__file__]
    n_lines = len(lines_until_interrupt(run_tiles, task, 6, 3, files=files))
    for moment in range(n_lines):
        started.clear()
        finished.clear()
        lines_until_interrupt(run_tiles, task, 6, 3, files=files, moment=moment)
        assert owner() == 0, moment
        assert len(started) - len(finished) <= 1, moment  # the tile of the caller itself
        assert blas_threads() == before, moment
        assert pool_module._POOL.job == [], moment
    run_tiles(task, 6, 3)


# -- the life of a process --

LIFE = """
import os, sys, threading, time
import numpy as np
from margrove._runtime import resolve_n_jobs, run_tiles
import margrove._runtime.pool as pool
from tests.runtime.test_pool import add_rows, count_calls

def check(n_threads=3):
    X, out = np.arange(40.0).reshape(20, 2), np.zeros(20)
    add_rows(20, n_threads, X, out)
    assert (out == X.sum(axis=1)).all()
    seen = []
    run_tiles(seen.append, 20, n_threads)
    assert sorted(seen) == list(range(20))

def wait_for_helpers(count):
    while len(pool._POOL.threads) < count:
        time.sleep(0.001)
"""


def run_child(code: str, **environment: str) -> str:
    path = os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIFE + code],
        capture_output=True, text=True, check=False, timeout=PATIENCE,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@needs_compiler
@pytest.mark.parametrize("way", ["python", "futex", "pthread"])
def test_every_way_to_wait(way) -> None:
    out = run_child(
        "check()\n"
        "for k in range(300): check(2 + k % 3)\n"
        "time.sleep(0.2)\n"  # they sleep
        "for k in range(300): check(2 + k % 3)\n"
        "wait_for_helpers(3)\n"
        "print(pool._POOL.words[pool._WAY], len(pool._POOL.threads))",
        MARGROVE_POOL_WAIT=way,
    )
    expected = {"python": "0", "futex": "1", "pthread": "2"}
    if sys.platform == "linux":
        assert out.split() == [expected[way], "3"]


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_child_has_its_own_pool() -> None:
    out = run_child("""
check()
child = os.fork()
if child == 0:
    assert pool._POOL.threads == {}
    check()
    wait_for_helpers(2)
    os._exit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
check()
""")
    assert out.split() == ["7"]


@needs_compiler
@pytest.mark.parametrize(
    "ending",
    [
        "check()",
        "check(); time.sleep(0.1)",
        "check(); sys.exit(0)",
        "import atexit; atexit.register(check); check()",
        (
            "work = lambda: [check() for _ in range(10**6)]\n"
            "threading.Thread(target=work, daemon=True).start(); time.sleep(0.2)"
        ),
    ],
)
def test_processes_end_without_a_word(ending) -> None:
    run_child(ending)


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity of Linux")
def test_helpers_follow_the_affinity_of_the_caller() -> None:
    out = run_child("""
check()
wait_for_helpers(2)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
check(2)
print([sorted(os.sched_getaffinity(thread)) == sorted(os.sched_getaffinity(0))
       for thread in pool._POOL.threads.values()], resolve_n_jobs(-1))
""")
    assert out == "[True, True] 1\n"


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="signals to single threads")
def test_signals_do_not_end_the_sleep_of_helpers() -> None:
    run_child("""
import ctypes, signal
signal.signal(signal.SIGUSR1, lambda *given: None)
check()
time.sleep(0.1)
for _ in range(50):
    for thread in pool._POOL.threads.values():
        assert ctypes.CDLL(None).tgkill(os.getpid(), thread, signal.SIGUSR1) == 0
    check()
    time.sleep(0.01)
""")
