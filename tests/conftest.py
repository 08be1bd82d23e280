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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    by_function: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            by_function.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in by_function.values():
        _leave_to_the_night(cases)


def _leave_to_the_night(cases: list[pytest.Item]) -> None:
    """All but so many cases of a function, which are spread evenly over them."""
    marker = cases[0].get_closest_marker("sampled")
    assert marker is not None
    wanted, n = marker.args[0], len(cases)
    kept = {k * n // wanted for k in range(wanted)}
    for k, item in enumerate(cases):
        if k not in kept:
            item.add_marker("nightly")


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
