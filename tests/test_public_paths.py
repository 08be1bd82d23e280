"""Every public import path, as of the first edition: none may get lost when modules move."""

from __future__ import annotations

import importlib
from operator import attrgetter
from pathlib import Path

import pytest

PATHS = (Path(__file__).parent / "public_paths.txt").read_text().split()


@pytest.mark.parametrize("path", PATHS)
def test_public_path(path) -> None:
    module, _, name = path.partition(":")
    assert attrgetter(name)(importlib.import_module(module)) is not None
