"""What workers of groups run in tests."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np

from margrove._runtime.threads import resolve_n_jobs
from margrove.dask.partitions.shards import ShardRows


class Sums:
    """Sums over the rows of a shard, and a few ways to fail."""

    def __init__(self, rows: ShardRows, factor: int = 1) -> None:
        self.rows, self.factor = rows, factor

    def whole_sum(self) -> np.ndarray:
        return np.asarray(self.rows.X.sum(axis=0)).astype(np.int64) * self.factor

    def all_kinds(self) -> dict[str, Any]:
        return {"n": self.rows.n_rows, "pair": (self.rows.X.sum(), [1.5]), "nothing": None}

    def rows_held(self) -> tuple[int, int]:
        return self.rows.start, self.rows.stop

    def contents(self) -> tuple[Any, Any, Any]:
        return self.rows.X, self.rows.y, self.rows.weight

    def largest(self) -> float:
        return float(self.rows.X.max())

    def echo(self, value: Any) -> Any:
        return value

    def is_writable(self, value: np.ndarray) -> int:
        return int(value.flags.writeable and self.rows.X.flags.writeable)

    def threads(self) -> tuple[int, int]:
        return self.rows.n_threads, resolve_n_jobs(None, unset="all")

    def fail_at(self, start: int) -> int:
        if self.rows.start == start:
            raise ValueError(f"row {start} is bad")
        return 1

    def fail_oddly(self) -> None:
        class Unpicklable(Exception):  # noqa: N818
            pass

        raise Unpicklable("odd")

    def sleep(self, seconds: float) -> int:
        time.sleep(seconds)
        return 1

    def wait_until_cancelled(self, seconds: float) -> bool:
        return self.rows.cancelled.wait(seconds)

    def die_at(self, start: int) -> None:
        if self.rows.start == start:
            os._exit(1)
        time.sleep(0.2)

    def leave_threads(self) -> int:
        return sum(thread.name.startswith("margrove") for thread in threading.enumerate())


class Broken:
    """Cannot be made."""

    def __init__(self, rows: ShardRows) -> None:
        raise ValueError("no program of these rows")
