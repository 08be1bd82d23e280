"""Examples in docstrings and in the documentation run as they stand."""

from __future__ import annotations

import doctest
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import margrove

ROOT = Path(__file__).parent.parent
PACKAGE = Path(margrove.__file__).parent
MADE = {"_build", "tutorials"}  # by sphinx
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not MADE & set(page.relative_to(ROOT / "docs").parts)
    ),
]
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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
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


def anchors_of(page: Path) -> set[str]:
    """Headings as addresses, the way that GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for address in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = address.partition("#")
        if re.match(r"\w+:", path):
            continue
        target = page.parent / path if path else page
        if "tutorials" in target.parts:
            name = target.stem
            assert name == "index" or (ROOT / "examples/gallery" / f"{name}.py").exists(), address
            continue
        assert target.exists(), address
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), address


def test_every_page_is_in_a_table_of_contents() -> None:
    index = (ROOT / "docs/index.md").read_text() + (ROOT / "docs/architecture.md").read_text()
    listed = set(re.findall(r"^([\w/-]+)$", index, flags=re.M))
    for page in PAGES[1:]:
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        assert name == "index" or name in listed, name


def test_supported_versions_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    page = (ROOT / "docs/versions.md").read_text()
    assert project["requires-python"] == ">=3.11"
    assert "| Python | 3.11 and later |" in page
    groups = [optional[name] for name in ("plot", "data", "report")]
    for requirement in [*project["dependencies"], *(one for group in groups for one in group)]:
        name, _, least = requirement.partition(">=")
        assert f"| {name} | {least} and later |" in page, requirement


def test_pages_of_the_architecture_name_files_that_exist() -> None:
    pages = [ROOT / "docs" / "architecture.md", *(ROOT / "docs" / "architecture").glob("*.md")]
    there = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*")}
    named = {
        name.rstrip("/")
        for page in pages
        for name in re.findall(r"`([\w/]+\.py|[\w/]+/)`", page.read_text())
    }
    assert len(named) > 40
    for name in named:
        is_in_package = any(f"/{path}".endswith(f"/{name}") for path in there)
        assert is_in_package or (ROOT / name).exists(), name
