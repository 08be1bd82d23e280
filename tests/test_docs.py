"""Examples in docstrings and in the documentation run as they stand."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import margrove

ROOT = Path(__file__).parent.parent
PACKAGE = Path(margrove.__file__).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [
    ".".join(("margrove", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_documentation_examples(page) -> None:
    results = doctest.testfile(str(page), module_relative=False)
    assert results.failed == 0


def test_the_readme_has_an_example_that_runs() -> None:
    assert ">>>" in (ROOT / "README.md").read_text()


def test_the_changelog_knows_this_version() -> None:
    release = margrove.__version__.partition(".dev")[0]
    assert f"## {release}" in (ROOT / "CHANGELOG.md").read_text()


def test_lecture_table_names_real_tests() -> None:
    """docs/lectures.md maps slides to functions and tests; the tests it names exist."""
    text = (ROOT / "docs" / "lectures.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) > 15
    for path, test in named:
        assert f"def {test}(" in (ROOT / path).read_text(), test
