"""Settings and fixtures for all tests."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "margrove",
    deadline=None,  # the first example compiles kernels
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("margrove")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An interrupt inside the tracer of coverage leaves its lock taken for ever."""
    for item in items:
        if "interrupt" in item.name:
            item.add_marker("no_cover")


@pytest.fixture(scope="session")
def real_data() -> ModuleType:
    """The loader of the real data sets, where MARGROVE_DATA points to them."""
    folder = os.environ.get("MARGROVE_DATA")
    if not folder or not Path(folder, "load.py").exists():
        pytest.skip("MARGROVE_DATA does not point to the real data sets")
    sys.path.insert(0, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves closing files to the collector
        import load

        gc.collect()
    return load


@pytest.fixture(autouse=True)
def _integers_wrap_around_without_the_compiler():
    """Kernels that run as Python mix bits in 64-bit integers, which NumPy scalars warn about."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        with np.errstate(over="ignore"):
            yield
    else:
        yield
