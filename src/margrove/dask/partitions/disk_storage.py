"""Partitions of a table on the disks of the workers, for tables that do not fit into memory.

Dask moves data that do not fit to disk and back on demand: a fit that uses all partitions in turn
would wait for the disk at every step. So such a partition is written once, to a file in its
worker's folder, and only the rows that are needed are read. The operating system keeps such files
in memory as long as it can.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import sys
import tempfile
import time
import weakref
from typing import Any

import numpy as np
from distributed.protocol.serialize import dask_deserialize, dask_serialize

from margrove._runtime import readable_bytes
from margrove.exceptions import ClusterError

__all__ = [
    "PartitionOnDisk",
    "is_on_disk",
    "loaded",
    "release_memory",
    "rows_of_partition",
    "stored",
]

_PREFIX = "margrove-"
_SPILLED: dict[str, tuple[PartitionOnDisk, float]] = {}  # by path, put out of memory by Dask; when
_SECONDS_TO_SPILL = 60.0  # at most, for one partition
_SHARE = 0.3  # of a worker's memory that partitions of a table may take


class PartitionOnDisk:
    """Rows in a file, which is removed with the last reference to this object.

    A pickle contains the rows; unpickling writes another file. So do messages of Dask. But if Dask
    puts its results out of memory, the file stays as it is.
    """

    def __init__(self, rows: Any) -> None:
        self.shape: tuple[int, int] = rows.shape
        self.dtype = getattr(rows, "dtype", None)
        self.is_plain = isinstance(rows, np.ndarray) and rows.dtype.kind == "f"
        handle, self._path = tempfile.mkstemp(".rows", _PREFIX, _folder())
        weakref.finalize(self, _remove, self._path)
        with os.fdopen(handle, "wb") as file:
            if self.is_plain:
                np.ascontiguousarray(rows).tofile(file)
            else:
                pickle.dump(rows, file, protocol=5)

    def rows(self, first: int = 0, last: int | None = None) -> Any:
        """Rows first .. last - 1, as a new array or frame."""
        last = self.shape[0] if last is None else last
        if not self.is_plain:
            with open(self._path, "rb") as file:
                everything = pickle.load(file)
            if first == 0 and last == self.shape[0]:
                return everything
            return (
                everything.iloc[first:last]
                if hasattr(everything, "iloc")
                else everything[first:last]
            )
        assert self.dtype is not None
        width = self.shape[1]
        found = np.empty((last - first, width), self.dtype)
        with open(self._path, "rb", buffering=0) as file:
            file.seek(first * width * self.dtype.itemsize)
            _read_into(file, found.reshape(-1).view(np.uint8).data)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionOnDisk, (self.rows(),)


@dask_serialize.register(PartitionOnDisk)
def _to_frames(partition: PartitionOnDisk, context: Any = None) -> tuple[dict[str, Any], list[Any]]:
    """For another worker, or, without a context, for a file of this one."""
    if context is None:
        _SPILLED[partition._path] = partition, time.monotonic()
        return {"path": partition._path}, []
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(partition.rows(), protocol=5, buffer_callback=buffers.append)
    return {"path": None}, [content, *(buffer.raw() for buffer in buffers)]


@dask_deserialize.register(PartitionOnDisk)
def _from_frames(header: dict[str, Any], frames: list[Any]) -> PartitionOnDisk:
    if header["path"] is not None:
        return _SPILLED.pop(header["path"])[0]
    return PartitionOnDisk(pickle.loads(frames[0], buffers=frames[1:]))


def _forget_spilled() -> None:
    """Remove the files of results that Dask has put out of memory and then forgotten."""
    import distributed

    if not len(getattr(distributed.get_worker().data, "slow", ())):
        long_ago = time.monotonic() - _SECONDS_TO_SPILL
        for path in [path for path, (_, when) in _SPILLED.items() if when < long_ago]:
            del _SPILLED[path]


def _read_into(file: Any, buffer: memoryview) -> None:
    while buffer:
        count = file.readinto(buffer)
        if not count:
            raise EOFError(f"The file {file.name} is shorter than it was. Fit again.")
        buffer = buffer[count:]


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)


def _folder() -> str:
    """The folder of the worker, which is removed with it."""
    import distributed

    try:
        return str(distributed.get_worker().local_directory)
    except ValueError:  # unpickled outside of a task
        return tempfile.gettempdir()


def stored(rows: Any, share_of_worker: float) -> Any:
    """The rows, or a file of them if `share_of_worker` such partitions do not fit into memory."""
    import distributed

    limit = distributed.get_worker().memory_manager.memory_limit
    if not limit or not hasattr(rows, "shape") or not rows.shape[0]:
        return rows
    whole = _bytes_of(rows) * share_of_worker
    if whole <= _SHARE * limit:
        return rows
    _forget_spilled()
    _require_disk_space(_folder(), whole)
    found = PartitionOnDisk(rows)
    release_memory()
    return found


def _require_disk_space(folder: str, whole: float) -> None:
    """ClusterError if the table of a worker will not fit on its disk, of which files are a part."""
    files = [name for name in os.listdir(folder) if name.startswith(_PREFIX)]
    written = sum(_size(os.path.join(folder, name)) for name in files)
    free = shutil.disk_usage(folder).free
    if written + free < whole:
        raise ClusterError(
            f"The table does not fit into the memory of the workers, so they write it to their "
            f"disks. This takes about {readable_bytes(whole)} in {folder}, which has "
            f"{readable_bytes(written + free)}. Give workers a folder on a larger disk "
            "(dask worker --local-directory, or LocalCluster(local_directory=...)), use more "
            "workers on other machines, fewer columns, or float32."
        )


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:  # it was removed meanwhile
        return 0


def release_memory() -> None:
    """Return freed memory to the system, because Dask ends processes that have too much."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _bytes_of(rows: Any) -> int:
    if hasattr(rows, "memory_usage"):
        return int(rows.memory_usage(index=False).sum())
    return int(rows.data.nbytes if hasattr(rows, "indptr") else rows.nbytes)


def is_on_disk(partition: Any) -> bool:
    return isinstance(partition, PartitionOnDisk)


def loaded(partition: Any) -> Any:
    """A partition in memory, read from disk if needed."""
    return partition.rows() if is_on_disk(partition) else partition


def rows_of_partition(partition: Any, first: int, last: int) -> Any:
    """Rows first .. last - 1 of a partition in memory or on disk."""
    if is_on_disk(partition):
        return partition.rows(first, last)
    if first == 0 and last == partition.shape[0]:
        return partition
    return partition.iloc[first:last] if hasattr(partition, "iloc") else partition[first:last]
