"""docs/migration.md lists every difference from scikit-learn, and cannot lie: it is made."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest
import sklearn

from tests.sklearn_suite.differences import DIFFERENCES

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "migration.md").read_text()
LISTED_FOR = re.search(r"scikit-learn (\d+\.\d+)", PAGE)[1]


def generator():
    spec = importlib.util.spec_from_file_location("migration_page", DOCS / "migration_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = generator()
PAIRS = GENERATOR.pairs()


def test_every_difference_says_why() -> None:
    assert set(GENERATOR.differing_parameters()) <= set(GENERATOR.WHY)
    assert set(GENERATOR.missing_methods()) <= set(GENERATOR.INSTEAD)
    assert all(len(why) > 10 for why in (*GENERATOR.WHY.values(), *GENERATOR.INSTEAD.values()))


@pytest.mark.skipif(
    not sklearn.__version__.startswith(f"{LISTED_FOR}."), reason="the page is for another version"
)
def test_the_page_is_up_to_date() -> None:
    assert GENERATOR.page() == PAGE, "run python docs/migration_page.py"
    assert set(GENERATOR.WHY) == set(GENERATOR.differing_parameters())


@pytest.mark.parametrize("name", PAIRS)
def test_arguments_by_position_are_the_same(name) -> None:
    def by_position(cls) -> list[str]:
        found = inspect.signature(cls.__init__).parameters.values()
        return [one.name for one in found if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]

    theirs, ours = PAIRS[name]
    assert by_position(ours) == by_position(theirs)


def test_tests_that_are_not_passed_have_one_sentence_each() -> None:
    for one in DIFFERENCES:
        assert one.reason in GENERATOR.REASONS
        assert re.fullmatch(r"[`'A-Z][^\n]*[.)]", one.sentence), one.sentence
    assert max(Counter(one.tests for one in DIFFERENCES).values()) == 1


def test_our_law_is_on_the_page() -> None:
    headings = set(re.findall(r"^## (.+)$", PAGE, re.M))
    for one in DIFFERENCES:
        if one.reason == "our law":
            cited = re.search(r"\(([^()]+)\)\.$", one.sentence)
            assert cited is not None, one.sentence
            assert cited[1] in headings, one.sentence
