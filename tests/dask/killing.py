"""Workers that are killed at random moments of fits, and what must not come of it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any


def processes(client: Any) -> list[int]:
    """Of the workers that there are."""
    return [int(pid) for pid in client.run(os.getpid, on_error="ignore").values()]


def require_same_whoever_dies(
    new_cluster: Any, fitted: Callable[[Any], bytes], wanted: bytes, n_runs: int
) -> None:
    """`fitted(client)`, a model file, is the wanted one though a worker is killed each time."""
    client = new_cluster(3)
    assert fitted(client) == wanted
    start = time.monotonic()
    fitted(client)
    seconds = time.monotonic() - start
    chance = random.Random(0)
    for _ in range(n_runs):
        try:
            client.wait_for_workers(2, timeout=30)
        except TimeoutError:  # of a busy machine: nobody has started them again
            client = new_cluster(3)
        pid = chance.choice(processes(client))
        killing = threading.Timer(chance.random() * seconds, os.kill, (pid, signal.SIGKILL))
        killing.start()
        assert fitted(client) == wanted
        killing.join()
        while pid in processes(client):
            time.sleep(0.05)
