"""How much memory is available, to be asked before large allocations.

An array of zeros takes no memory until it is accessed. So an allocation that is too large succeeds,
and the process is killed later. Functions that need much memory ask here first.
"""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["available_memory", "readable_bytes", "require_memory"]

_SMALL = 64_000_000
_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")


def available_memory() -> int | None:
    """Bytes that this process may still allocate: the least of machine, container and own limit."""
    found = [_of_machine(), _of_container(), _of_process_limit()]
    known = [limit for limit in found if limit is not None]
    return max(0, min(known)) if known else None


def require_memory(n_bytes: float, what: str, way_out: str) -> None:
    """Raise MemoryError if `n_bytes` for `what` are not available; `way_out` ends the message.

    Small requests are never refused, because the numbers are not that exact.
    """
    if n_bytes < _SMALL:
        return
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs {readable_bytes(n_bytes)} of memory and {readable_bytes(available)} is "
            f"available. {way_out}"
        )


def readable_bytes(n_bytes: float) -> str:
    """An amount of memory as text, such as "1.5 GB"."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"


def _of_machine() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _of_container() -> int | None:
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        if limit == "max":
            return None
        in_use = int((_CGROUP / "memory.current").read_text())
        return int(limit) - in_use + _reclaimable_by_container()
    except (OSError, ValueError):
        return None


def _reclaimable_by_container() -> int:
    """File cache counts as used, but the operating system frees it when memory is needed."""
    try:
        lines = (_CGROUP / "memory.stat").read_text().splitlines()
        figures = dict(line.split() for line in lines)
        return int(figures.get("inactive_file", 0)) + int(figures.get("slab_reclaimable", 0))
    except (OSError, ValueError):
        return 0


def _of_process_limit() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        in_use = int(_STATM.read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None
    return limit - in_use
