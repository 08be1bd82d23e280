"""Names are shown, never interpreted: two hundred hostile names in every possible place."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.workbench.report.pages import require_harmless
from tests.workbench.report.payloads import payloads

from margrove import AdaBoostClassifier, DecisionTreeClassifier, LinearSVC, RandomForestClassifier
from margrove.workbench.report import report
from margrove.workbench.report.texts import visible

PAYLOADS = payloads()
_AT_ONCE = 50
_PARTS = [PAYLOADS[k : k + _AT_ONCE] for k in range(0, len(PAYLOADS), _AT_ONCE)]
_LEARNERS = [
    DecisionTreeClassifier(max_depth=4),
    RandomForestClassifier(5, oob_score=False, random_state=0),
    AdaBoostClassifier(n_estimators=5),
    LinearSVC(),
]


def _table(names: list[str]) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    columns = pd.Index(names, dtype=object)  # strings of Arrow cannot hold half a character
    return pd.DataFrame(generator.normal(size=(90, len(names))), columns=columns)


def test_there_are_more_than_two_hundred() -> None:
    assert len(PAYLOADS) >= 200
    assert len(set(PAYLOADS)) == len(PAYLOADS)


@pytest.mark.parametrize("part", range(len(_PARTS)))
def test_names_of_columns(part) -> None:
    names = _PARTS[part]
    X = _table(names)
    y = np.where(X.iloc[:, 0] + X.iloc[:, 1] > 0, "yes", "no")
    learner = _LEARNERS[part % len(_LEARNERS)]
    found = report(learner.fit(X, y), X, y)
    assert found.gaps == ()
    page = require_harmless(found.html)
    for name in names:
        assert " ".join(visible(name).split()) in page.words
    assert "49" not in [visible(word) for word in page.texts["th"]]  # of 7*7


@pytest.mark.parametrize("part", range(len(_PARTS)))
def test_labels_of_classes(part) -> None:
    labels = [name for name in _PARTS[part] if name.encode("utf-8", "surrogatepass").strip(b"\0")][
        :40
    ]
    labels = [label for label in labels if "\ud800" not in label]
    y = np.array((labels * 3)[: 3 * len(labels)], dtype=object)
    X = np.arange(len(y), dtype=float)[:, None] % len(labels) + np.zeros((1, 2))
    model = DecisionTreeClassifier().fit(X, y)
    found = report(model, X, y, X_test=X[::2], y_test=y[::2])
    assert found.gaps == ()
    page = require_harmless(found.html)
    data = json.loads(page.texts["script"][0])
    assert set(data) == {"trees"}


@pytest.mark.parametrize("part", range(len(_PARTS)))
def test_titles_sources_targets_recipes_and_categories(part) -> None:
    for k, payload in enumerate(_PARTS[part][::10]):
        X = pd.DataFrame({"a": [payload, "b", "c", payload] * 8, "n": np.arange(32.0)})
        X["a"] = X["a"].astype(object)
        y = pd.Series(np.arange(32.0) % 4 + (X["a"] == "b"), name=payload or "y")
        model = DecisionTreeClassifier().fit(X, y.astype(str))
        recipe = {"command": payload, payload: [payload], "target": payload} if k % 2 else payload
        found = report(
            model, X, y.astype(str), title=payload, source=payload, seed=payload, recipe=recipe
        )
        assert found.gaps == ()
        page = require_harmless(found.html)
        assert page.texts["h1"] == page.texts["title"][:1]


def test_nothing_invisible_is_left() -> None:
    X = _table(["a\u202eb", "c\x00d", "\u2028e", "f\ud800"])
    y = np.where(X.iloc[:, 0] > 0, "g\u2066h", "i")
    found = report(DecisionTreeClassifier().fit(X, y), X, y, title="\x1bj")
    for character in "\u202e\x00\u2028\ud800\u2066\x1b":
        assert character not in found.html
    for escape in ("a\\u202eb", "c\\x00d", "\\u2028e", "f\\ud800", "g\\u2066h", "\\x1bj"):
        assert escape in found.html
    found.html.encode("utf-8")
