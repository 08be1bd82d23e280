"""What `bench_dask` runs on workers, and reads from them."""

from __future__ import annotations

import time

import distributed
import numpy as np

from margrove.dask import exchanges
from margrove.dask.boosting.program import boost

SIZES = (8, 8_000, 320_000, 1_040_000)  # bytes of a sum
_REPEATS = 60
_rounds: list[tuple[float, float, int, int]] = []


def exchange(member):
    """(milliseconds, milliseconds of the processor) of a sum of each size."""
    found = []
    for size in SIZES:
        values = np.ones(size // 8, np.int64)
        for _ in range(5):
            member.collective.sum(values)
        clock, processor = time.perf_counter(), time.process_time()
        for _ in range(_REPEATS):
            member.collective.sum(values)
        found.append((1e3 * (time.perf_counter() - clock) / _REPEATS,
                      1e3 * (time.process_time() - processor) / _REPEATS))  # fmt: skip
    return found


def measured_boost(member, *arguments):
    """`boost`, with a note of seconds, seconds in exchanges, exchanges and bytes at each report."""
    began, usual, collective = time.perf_counter(), member.report, member.collective
    _rounds.clear()

    def report(value):
        _rounds.append((time.perf_counter() - began, collective.seconds, collective.n_calls,
                        collective.n_bytes))  # fmt: skip
        usual(value)

    member.report = report
    boost(member, *arguments)


def only_messages(dask_worker=None):
    """As on machines that share no memory."""
    exchanges.host_name = lambda: distributed.get_worker().address


def rounds():
    """What `measured_boost` has noted, a row for each report."""
    return list(_rounds)
