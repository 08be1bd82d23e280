"""Answers for tests of the server: they echo, wait, count, eat memory and die."""

from __future__ import annotations

import os
import time

import numpy as np


def echo(ask, job):
    return {"said": ask.get("say")}


def arrays(ask, job):
    return {
        "grid": {"values": np.arange(6, dtype=np.float32), "shape": [2, 3]},
        "many": [np.array([1, 2**31 - 1]), np.array([0.5, np.nan]), np.array([True, False])],
        "count": np.int64(7),
        "nothing": None,
    }


def sleep(ask, job):
    """Looks at the cancel, as fits do."""
    for _ in range(int(ask["seconds"] / 0.02)):
        if job.cancel.is_set():
            break
        job.progress("sleeping", 1, 2)
        time.sleep(0.02)
    return {"slept": not job.cancel.is_set()}


def deaf(ask, job):
    """Does not look at the cancel."""
    time.sleep(ask["seconds"])
    return {}


def die(ask, job):
    os._exit(3)


def eat(ask, job):
    eaten = []
    while len(eaten) < ask["megabytes"] // 32:
        eaten.append(np.ones(4_000_000))
    return {"eaten": len(eaten)}


def fit(ask, job):
    """A fit of the library that would take hours."""
    from margrove import Perceptron

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 20))
    Perceptron(max_iter=10**6, tol=None).fit(X, rng.integers(0, 2, len(X)))
    return {}


def wrong(ask, job):
    raise ValueError(f"The value {ask['value']!r} is wrong. Read about it in {job.tables}.")


def fault(ask, job):
    secret = ask["secret"]
    raise KeyError(secret)


def bad(ask, job):
    return {"number": float("nan")}


def tables(ask, job):
    return {name: [path.name, path.read_text()[:100]] for name, path in job.tables.items()}


def read(ask, job):
    """As the studio does it."""
    from margrove.tables import read_table

    return {"rows": len(read_table(job.tables[ask["table"]]).frame)}


def report(ask, job):
    return {"report": job.keep_report(ask["html"])}


def who(ask, job):
    return {"process": os.getpid()}


ANSWERS = {
    "echo": echo,
    "arrays": arrays,
    "sleep": sleep,
    "deaf": deaf,
    "die": die,
    "eat": eat,
    "fit": fit,
    "wrong": wrong,
    "fault": fault,
    "bad": bad,
    "tables": tables,
    "read": read,
    "report": report,
    "who": who,
}
