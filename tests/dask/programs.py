"""Programs for `Members`, which workers import from here."""

from __future__ import annotations

import os
import subprocess
import time

import numpy as np


def rows_of(member):
    """The rows of each block, and the rank."""
    return member.collective.rank, [
        (block.start, block.X().tolist(), block.y.tolist()) for block in member.blocks
    ]


def combinations(member, seed, n_calls):
    """What random exchanges give; the values of all members follow from the seed."""
    rng, rank, size = np.random.default_rng(seed), member.collective.rank, member.collective.size
    for _ in range(n_calls):
        kind = rng.choice(["sum", "max", "gather", "floats"])
        shape = tuple(rng.integers(0, 5, 2)) if rng.random() < 0.7 else (30_000,)
        values = rng.integers(-1000, 1000, (size, *shape))
        if rng.random() < 0.2:
            time.sleep(0.005 * rank)
        if kind == "gather":
            assert member.collective.gather((rank, values[rank])) is not None
            continue
        own = values[rank].astype(np.float64) / 7 if kind == "floats" else values[rank].copy()
        (member.collective.max if kind == "max" else member.collective.sum)(own)
        if kind == "floats":
            everyone = member.collective.gather(own)
            assert all(other.tobytes() == own.tobytes() for other in everyone)
            np.testing.assert_allclose(own, values.sum(axis=0) / 7, rtol=1e-12, atol=1e-9)
        else:
            combined = values.max(axis=0) if kind == "max" else values.sum(axis=0)
            np.testing.assert_array_equal(own, combined)
    return member.collective.gather(rank)


def numbered_reports(member, n_reports):
    for number in range(n_reports):
        member.collective.sum(np.ones(3, np.int64))
        member.report(number)


def fails(member, rank):
    """One member has an error while the others wait for it."""
    if member.collective.rank == rank:
        raise ValueError(f"Member {rank} has a problem.")
    member.collective.sum(np.ones(1))


def goes_on(member, n_times=100_000):
    """Exchange and report until somebody says stop."""
    for number in range(n_times):
        time.sleep(0.001)
        member.collective.sum(np.ones(1000))
        member.report(number)
    raise TimeoutError("Nobody has stopped this program.")


def computes_for_long(member, rank, seconds):
    if member.collective.rank == rank:
        time.sleep(seconds)
    own = np.ones(1, np.int64)
    member.collective.sum(own)
    return int(own[0])


def kills_its_worker(member, rank, n_calls):
    for _ in range(n_calls):
        member.collective.sum(np.ones(1))
    if member.collective.rank == rank:
        os._exit(1)
    member.collective.sum(np.ones(1))


def stops_its_worker(member, rank, seconds):
    """All threads of a worker stand still for a while."""
    if member.collective.rank == rank:
        pid = os.getpid()
        subprocess.Popen(["sh", "-c", f"kill -STOP {pid}; sleep {seconds}; kill -CONT {pid}"])
        time.sleep(0.5)
    own = np.ones(1, np.int64)
    member.collective.sum(own)
    return int(own[0])


def sums_of_columns(member, n_rounds, seconds):
    """Reports the sums of all columns again and again."""
    for _ in range(n_rounds):
        own = sum((block.X().sum(axis=0) for block in member.blocks), start=np.zeros(3, np.int64))
        time.sleep(seconds)
        member.collective.sum(own)
        member.report(own)
