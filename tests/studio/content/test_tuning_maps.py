"""The map of C and gamma is a cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score
from tests.studio.content.scene_cases import require_sendable, scene

from margrove import SVC
from margrove.studio.content import StudioError
from margrove.studio.content.tuning_maps import map_of


def test_cells_are_what_cross_validation_says() -> None:
    own = scene("moons", "SVC", size=60)
    found = map_of(own)
    require_sendable(found)
    scores = found["score"]["values"].reshape(found["score"]["shape"])
    assert scores.shape == (len(found["gamma"]), len(found["C"]))
    assert found["folds"] == 5
    assert scores.max() == pytest.approx(found["best"]["score"], abs=1e-6)
    X, y = own.training()
    for g, c in ((2, 3), (8, 9), (12, 0)):
        model = SVC(C=found["C"][c], gamma=found["gamma"][g])
        said = cross_val_score(model, X, y, cv=StratifiedKFold(5)).mean()
        assert scores[g, c] == pytest.approx(said, abs=0.035)  # within a point or two
    row, column = np.unravel_index(np.argmax(scores), scores.shape)
    assert found["best"]["C"] in found["C"]
    assert scores[row, column] == pytest.approx(
        scores[found["gamma"].index(found["best"]["gamma"]), found["C"].index(found["best"]["C"])]
    )


def test_few_points_have_few_folds() -> None:
    own = scene(x=[[0, 0], [0, 1], [0, 2], [3, 0], [3, 1], [3, 2]], y=[0, 0, 0, 1, 1, 1])
    assert map_of(own)["folds"] == 3


@pytest.mark.parametrize("learner", ["DecisionTreeClassifier", "SVC", "NuSVC"])
def test_any_learner_will_do(learner) -> None:
    parameters = {} if learner == "DecisionTreeClassifier" else {"kernel": "linear"}
    assert len(map_of(scene("xor", learner, parameters, size=40))["gamma"]) > 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": [], "y": []}, "no points"),
        ({"x": [[0, 0], [1, 1]], "y": [0, 1]}, "two points of each class"),
        ({"x": [[0, 0], [1, 1]], "y": [1, 1]}, "one class"),
    ],
)
def test_what_it_cannot_do_it_says(changes, words) -> None:
    with pytest.raises(StudioError, match=words):
        map_of(scene(**changes))


def test_numbers_have_no_accuracy() -> None:
    with pytest.raises(StudioError, match="classes"):
        map_of(scene("sine", "SVR"))
