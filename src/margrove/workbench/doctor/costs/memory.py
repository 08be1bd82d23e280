"""The memory that a fit takes, as Python or the operating system measures it."""

from __future__ import annotations

import ctypes
import gc
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["allocated_bytes", "touched_bytes"]


def allocated_bytes(fit: Callable[[], Any]) -> tuple[float, float]:
    """The peak bytes that Python allocated during a fit, and the bytes of the fitted model."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        model = fit()
        now, peak = tracemalloc.get_traced_memory()
        del model
        return float(max(0, peak - before)), float(max(0, now - before))
    finally:
        if not was_tracing:
            tracemalloc.stop()


_STATUS = Path("/proc/self/status")
_CLEAR_PEAK = Path("/proc/self/clear_refs")


def touched_bytes(fit: Callable[[], Any]) -> float | None:
    """The peak of resident memory during a fit; None if the operating system has no figures."""
    gc.collect()
    _release_freed_memory()
    try:
        _CLEAR_PEAK.write_text("5")
        before = _figure("VmRSS")
        fit()
        return max(0.0, _figure("VmHWM") - before)
    except (OSError, AttributeError):
        return None


def _release_freed_memory() -> None:
    """Return freed memory to the system, so that its reuse is measured."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):  # another C library
        return


def _figure(name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", _STATUS.read_text())
    if found is None:
        raise OSError(f"no figure {name}")
    return 1024.0 * float(found.group(1))
