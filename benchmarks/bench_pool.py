"""What a region of the thread pool costs: awake, asleep, and beside what the system itself takes.

    python benchmarks/bench_pool.py               as many threads as there are cores
    python benchmarks/bench_pool.py --threads 16

A region of T tiles of 100 us on T threads takes 100 us and what it costs to share them; the table
has that excess, medians of 1,000 regions. Some of it is not the pool's: on T cores at the same time
the slowest tile takes longer than one tile on an idle machine. So tiles note the processor's
counter of cycles when they begin and end, and the table says when the last one began, and how long
after the end of the last one the region returned. Asleep: the threads have been idle for 10 ms.
Bare wake: as many threads sleep on one word of the system (a futex on Linux) and are woken at once,
until the last one has answered. One tile of Python each shows the second entry, for functions of
Python.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import platform
import statistics
import threading
import time
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from margrove._runtime import available_cores, kernel, region, run_tiles
from margrove._runtime.instructions import atomic_add, atomic_read, atomic_write, relax
from margrove._runtime.waiting import best_way_to_wait, prepare_words, sleep_while, wake

REPEATS = 1_000
TILE = 100e-6  # seconds
IDLE = 0.010
_LINE = 16


@intrinsic
def cycles(typing):
    """The processor's counter; processors other than x86 may not let a program read it."""

    def generate(context, builder, signature, given):
        kind = ir.FunctionType(ir.IntType(64), [])
        read = cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter")
        return builder.call(read, [])

    return types.int64(), generate


@kernel(bare=True)
def now():
    return cycles()


@region(bare=True)
def note_times(tile, steps, times, out):
    times[tile, 0] = cycles()
    out[tile * _LINE] = work(steps)
    times[tile, 1] = cycles()


@kernel(bare=True)
def work(steps):
    total = 1.0
    for _ in range(steps):
        total = total * 0.999 + 1.0
    return total


@region(bare=True)
def work_in_tiles(tile, steps, out):
    out[tile * _LINE] = work(steps)


@kernel(bare=True)
def answer_calls(way, words, calls):
    """Sleep until the next call, answer it, `calls` times."""
    for call in range(calls):
        while atomic_read(words, 0) == call:
            sleep_while(way, words, 0, call)
        atomic_add(words, _LINE, 1)


@kernel(bare=True)
def call_all(way, words, call, answers):
    """Wake all, and wait for their answers."""
    atomic_write(words, 0, call)
    wake(way, words, 0, answers)
    while atomic_read(words, _LINE) < call * answers:
        relax()


def _steps_of_tile() -> int:
    """How many steps of `work` take as long as a tile."""
    steps, best = 10_000, np.inf
    for _ in range(200):
        start = time.perf_counter()
        work(steps)
        best = min(best, time.perf_counter() - start)
    return int(steps * TILE / best)


def _median(job: Callable[[], object], pause: float = 0.0, repeats: int = REPEATS) -> float:
    seconds = []
    for _ in range(repeats):
        if pause:
            time.sleep(pause)
        start = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _bare_wake(threads: int) -> float:
    words, calls = np.zeros(64, np.int64), 300
    way = best_way_to_wait()
    prepare_words(words)
    answer_calls(way, words, 0)
    sleepers = [
        threading.Thread(target=answer_calls, args=(way, words, calls)) for _ in range(threads)
    ]
    for sleeper in sleepers:
        sleeper.start()
    seconds = []
    for call in range(1, calls + 1):
        time.sleep(IDLE)
        start = time.perf_counter()
        call_all(way, words, call, threads)
        seconds.append(time.perf_counter() - start)
    for sleeper in sleepers:
        sleeper.join()
    return statistics.median(seconds[10:])


def _cycles_in_a_microsecond() -> float:
    before, start = now(), time.perf_counter()
    time.sleep(0.2)
    return (now() - before) / (time.perf_counter() - start) / 1e6


def _parts_of_a_region(threads: int, steps: int, out: np.ndarray) -> dict[str, float]:
    """Medians in seconds: the start of the last tile, the longest tile, the return after it."""
    times, parts = np.zeros((threads, 2), np.int64), []
    for _ in range(REPEATS):
        start = now()
        note_times(threads, threads, steps, times, out)
        end = now()
        longest = (times[:, 1] - times[:, 0]).max()
        parts.append((times[:, 0].max() - start, longest, end - times[:, 1].max()))
    last, longest, after = np.median(parts, axis=0) / _cycles_in_a_microsecond() / 1e6
    return {
        "- awake: the last tile begins after": last,
        "- awake: the longest tile takes": longest,
        "- awake: the region returns after the last tile": after,
    }


def main(threads: int) -> None:
    print(f"{platform.platform()}, {os.cpu_count()} cores, {threads} threads")
    out, steps = np.zeros(threads * _LINE), _steps_of_tile()
    work_in_tiles(threads, threads, steps, out)
    alone = _median(lambda: work(steps))
    rows = {
        "tile alone": alone,
        "region of compiled tiles, awake: excess": _median(
            lambda: work_in_tiles(threads, threads, steps, out)
        )
        - alone,
        **_parts_of_a_region(threads, steps, out),
        "region of compiled tiles, asleep: excess": _median(
            lambda: work_in_tiles(threads, threads, steps, out), IDLE, REPEATS // 2
        )
        - alone,
        "bare wake of the other threads": _bare_wake(threads - 1) if threads > 1 else 0.0,
        "region of Python tiles, awake: excess": _median(
            lambda: run_tiles(lambda tile: work(steps), threads, threads)
        )
        - alone,
        "empty region": _median(lambda: work_in_tiles(threads, threads, 0, out)),
    }
    print("\n| | us |\n|---|---|")
    for name, seconds in rows.items():
        print(f"| {name} | {seconds * 1e6:.1f} |")
    before = time.process_time()
    time.sleep(0.1)
    middle = time.process_time()
    time.sleep(0.5)
    print(
        f"\nProcessor time of the idle pool: {1e3 * (middle - before):.2f} ms in the first 100 ms, "
        f"{1e3 * (time.process_time() - middle):.2f} ms in the next 500 ms."
    )


def report():
    """The tables for all cores, as markdown."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        main(available_cores())
    return text.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=available_cores())
    main(parser.parse_args().threads)
