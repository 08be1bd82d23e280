"""What the lectures say of real data: when boosting overfits, and when it does not.

The table of docs/lectures.md names these tests and the pictures beside them.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import margrove
from margrove import AdaBoostClassifier, DecisionTreeClassifier

PAGE = Path(__file__).parent.parent / "docs/lectures.md"


def test_pictures_of_the_table_exist() -> None:
    named = set(re.findall(r"`plot\.(\w+)`", PAGE.read_text()))
    assert len(named) > 10
    assert named <= set(margrove.plot.__all__)


def test_every_row_has_a_test_and_a_page() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d{3}", line)]
    assert len(rows) > 60
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 5, row
        assert "::test_" in cells[3], row
        assert "](" in cells[4], row


@pytest.mark.nightly
@pytest.mark.real_data
def test_boosted_stumps_overfit_on_heart_disease(real_data) -> None:
    """The training error goes to zero, the test error falls and then rises."""
    pandas = pytest.importorskip("pandas")
    X, y = real_data.load("heart_cleveland")
    X = pandas.get_dummies(X.fillna(X.median(numeric_only=True))).to_numpy(np.float64)
    stump = DecisionTreeClassifier(max_depth=1, criterion="error")
    model = AdaBoostClassifier(stump, n_estimators=1000)
    curves = np.zeros((2, 1000))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y > 0):
        fitted = model.fit(X[train], y[train] > 0, X_val=X[test], y_val=y[test] > 0)
        curves += fitted.history_.training_error, fitted.history_.validation_error
    training, held_out = curves / 5
    assert training[-1] == 0.0
    assert held_out.argmin() < 100
    assert held_out[-1] > held_out.min() + 0.02


@pytest.mark.nightly
@pytest.mark.real_data
def test_boosted_trees_resist_overfitting_on_letters(real_data) -> None:
    """No mistake in training after five rounds; test error 8.4 then, 3.3 after a hundred.

    The slide boosts C4.5. These are trees by gain ratio, not pruned, which are given samples drawn
    by the weights: 8.1 to 8.7 and 2.9 to 3.2 over three seeds. Given the weights themselves they
    do better than the slide (6.6 and 2.8). A thousand rounds, for which the slide says 3.1, are
    measured by benchmarks/bench_adaboost_errors.py.
    """
    X, y, X_test, y_test = real_data.load_split("letter", dtype="float64")
    tree = DecisionTreeClassifier(criterion="gain_ratio", min_samples_leaf=2)
    model = AdaBoostClassifier(
        tree, n_estimators=100, algorithm="m1", resample=True, random_state=0
    ).fit(X, y)
    wrong = 100 * (1 - np.array(list(model.staged_score(X_test, y_test))))
    assert model.history_.training_error[4] == 0.0
    assert wrong[4] == pytest.approx(8.4, abs=1.0)
    assert wrong[99] == pytest.approx(3.3, abs=1.0)
    assert wrong[99] < wrong[4] - 3.0
