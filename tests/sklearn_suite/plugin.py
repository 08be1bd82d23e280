"""The pytest plugin that puts our classes in the place of scikit-learn's.

`margrove.patch_sklearn` replaces names in the public packages; here they are also replaced in the
modules where scikit-learn defines its classes, before any test module is imported. Nothing falls
back to scikit-learn. Tests that `differences` lists are expected to fail, and must: one that passes
fails the run.
"""

from __future__ import annotations

import sys

import pytest

import margrove
from margrove.exchange.scikit_learn.replacements import PUBLIC_HOMES, original, replacement
from tests.sklearn_suite.differences import DIFFERENCES


def pytest_configure(config: pytest.Config) -> None:
    margrove.patch_sklearn(fallback=False)
    for name in PUBLIC_HOMES:
        setattr(sys.modules[original(name).__module__], name, replacement(name))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        test = f"{item.module.__name__}::{item.name}"  # type: ignore[attr-defined]
        for difference in DIFFERENCES:
            if difference.covers(test):
                reason = f"{difference.reason}: {difference.sentence}"
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
