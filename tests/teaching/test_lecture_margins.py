"""Losses, perceptron steps, hulls, distances and multipliers are what the slides say they are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from margrove import SVC, LinearSVC, Perceptron
from margrove.datasets import load_iris, make_gaussians, make_separable_clouds, make_xor
from margrove.exceptions import InvalidDataError, NotSeparableError
from margrove.teaching.facts.distances import multiplier_facts, plane_distances
from margrove.teaching.facts.hulls import hull_facts, separating_lines
from margrove.teaching.facts.losses import loss_curves
from margrove.teaching.facts.perceptron import perceptron_steps

CLOUDS = make_separable_clouds(60, random_state=3)
OVERLAPPING, SIDES = make_gaussians(60, random_state=1, return_X_y=True)


# -- losses --------------------------------------------------------------------------------------


def test_losses_of_margins_are_the_slides() -> None:
    frame = loss_curves().frame()
    z = frame["margin"].to_numpy()
    assert frame["zero_one"].tolist() == (z <= 0).astype(float).tolist()
    assert np.array_equal(frame["perceptron"], np.maximum(0, -z))
    assert np.array_equal(frame["hinge"], np.maximum(0, 1 - z))
    assert np.array_equal(frame["squared_hinge"], np.maximum(0, 1 - z) ** 2)
    assert frame["logistic"].to_numpy() == pytest.approx(np.log(1 + np.exp(-z)))
    assert frame["exponential"].to_numpy() == pytest.approx(np.exp(-z))


def test_losses_of_residuals() -> None:
    told = loss_curves(["squared", "absolute"], low=-1, high=1, n_places=3)
    assert told.argument == "residual"
    assert told.frame()["squared"].tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": ["hinge", "squared"]}, "Got both"),
        ({"names": ["nonsense"]}, "not one of zero_one"),
        ({"names": "hinge"}, "must be a list"),
        ({"names": []}, "must be a list"),
        ({"low": 1, "high": 1}, "less than high"),
        ({"low": float("nan")}, "finite number"),
        ({"n_places": 1}, "at least 2"),
    ],
    ids=lambda own: str(own)[:30],
)
def test_losses_that_cannot_be_told(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        loss_curves(**arguments)


# -- perceptrons ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_are_sums_of_mistakes(fit_intercept) -> None:
    learner = Perceptron(fit_intercept=fit_intercept, shuffle=False, tol=None, max_iter=20)
    told = perceptron_steps(CLOUDS.data, CLOUDS.target, estimator=learner)
    model = learner.fit(CLOUDS.data, CLOUDS.target)
    assert len(told) == model.mistakes_
    assert told.weights[-1] == pytest.approx(model.coef_[0])
    assert told.intercepts[-1] == pytest.approx(model.intercept_[0], abs=1e-12)
    signs, points = told.rows.signs, told.rows.points
    for k, row in enumerate(told.mistaken):
        value = signs[row] * (points[row] @ told.weights[k] + told.intercepts[k])
        assert value == pytest.approx(told.values[k], abs=1e-9)
        assert value <= 0  # a mistake
        moved = told.weights[k + 1] - told.weights[k]
        assert moved == pytest.approx(told.steps[k] * signs[row] * points[row])
        after = signs[row] * (points[row] @ told.weights[k + 1] + told.intercepts[k + 1])
        squared = points[row] @ points[row] + fit_intercept
        assert after == pytest.approx(value + told.steps[k] * squared)  # corrective
    frame = told.frame()
    assert np.array_equal(frame["w1_after"][:-1], frame["w1_before"][1:])


def test_the_perceptron_of_the_lectures_has_no_bias() -> None:
    told = perceptron_steps([[1.0, 2.0], [-2.0, 1.0]], ["b", "a"])
    assert not told.intercepts.any()
    assert told.values[0] == 0.0  # with w = 0 every row is a mistake


@pytest.mark.parametrize("settings", [{"penalty": "l2"}, {"average": True}])
def test_perceptrons_that_are_no_sums_of_mistakes(settings) -> None:
    with pytest.raises(ValueError, match="sums of mistakes"):
        perceptron_steps(CLOUDS.data, CLOUDS.target, estimator=Perceptron(**settings))
    with pytest.raises(TypeError, match=r"margrove\.Perceptron"):
        perceptron_steps(CLOUDS.data, CLOUDS.target, estimator=SVC())


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((4, 3)), [0, 0, 1, 1], "two features"),
        (np.zeros((3, 2)), [0, 1, 2], "two classes in y. Got 3"),
        (np.zeros((3, 2)), [0, 0, 0], "Got 1"),
        ([[0.0, np.nan], [1.0, 1.0]], [0, 1], "NaN"),
        ([[0.0, 1.0], [1.0, 1.0]], [0], "y"),
    ],
    ids=["three features", "three classes", "one class", "missing", "short y"],
)
@pytest.mark.parametrize("tell", [perceptron_steps, hull_facts, separating_lines])
def test_what_is_no_plane_of_two_classes(tell, X, y, message) -> None:
    with pytest.raises(ValueError, match=message):
        tell(X, y)


# -- hulls ---------------------------------------------------------------------------------------


def test_nearest_points_are_as_far_apart_as_the_margin_is_wide() -> None:
    told = hull_facts(CLOUDS.data, CLOUDS.target)
    assert told.distance == pytest.approx(3.0)
    assert told.distance == pytest.approx(2 / np.linalg.norm(told.weights))
    v, u = CLOUDS.nearest_points
    assert told.nearest == pytest.approx(np.stack([v, u]), abs=1e-6)
    values = told.nearest @ told.weights + told.intercept
    assert values == pytest.approx([-1.0, 1.0], abs=1e-6)
    assert told.rows.points.mean(axis=0) == pytest.approx(CLOUDS.data.mean(axis=0))
    for code in (0, 1):
        own = told.rows.codes[told.support] == code
        assert told.shares[own].sum() == pytest.approx(1.0)
        assert told.shares[own] @ told.rows.points[told.support[own]] == pytest.approx(
            told.nearest[code]
        )


def test_corners_are_those_of_the_hulls() -> None:
    told = hull_facts(CLOUDS.data, CLOUDS.target)
    for corners, hull in zip(told.corners, CLOUDS.hulls, strict=True):
        found = {tuple(point) for point in told.rows.points[corners].round(9)}
        assert found == {tuple(point) for point in np.round(hull, 9)}


def test_hulls_of_few_rows_and_of_rows_on_a_line() -> None:
    told = hull_facts([[0, 0], [1, 1], [2, 2], [5, 0]], [0, 0, 0, 1])
    assert told.corners[0].tolist() == [0, 2]
    assert told.corners[1].tolist() == [3]
    assert told.distance == pytest.approx(np.linalg.norm([5 - 2, 0 - 2]))


def test_hulls_that_meet() -> None:
    with pytest.raises(NotSeparableError):
        hull_facts(*make_xor(40, return_X_y=True))


def test_no_line_has_a_larger_margin_than_that_of_the_machine() -> None:
    told = separating_lines(CLOUDS.data, CLOUDS.target, n_lines=12)
    assert told.weights.shape == (13, 2)
    assert (told.margins[:-1] > 0).all()  # all separate
    assert (told.margins[:-1] < told.margins[-1]).all()
    assert told.margins[-1] == pytest.approx(CLOUDS.margin)
    assert len(np.unique(told.margins.round(6))) > 3  # orders matter
    with pytest.raises(ValueError, match="n_lines must be"):
        separating_lines(CLOUDS.data, CLOUDS.target, n_lines=0)


# -- distances -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [SVC(kernel="linear"), LinearSVC(), LogisticRegression(), Perceptron()],
    ids=lambda own: type(own).__name__,
)
def test_distances_are_those_to_the_projections(model) -> None:
    model.fit(OVERLAPPING, SIDES)
    told = plane_distances(model, OVERLAPPING, SIDES)
    f = model.decision_function(OVERLAPPING)
    w = np.ravel(model.coef_)
    assert told.values == pytest.approx(np.where(SIDES == 1, f, -f))
    assert model.decision_function(told.projections) == pytest.approx(0.0, abs=1e-8)
    far = np.linalg.norm(OVERLAPPING - told.projections, axis=1)
    assert np.abs(told.distances) == pytest.approx(far)
    assert np.abs(told.distances) == pytest.approx(np.abs(f) / np.linalg.norm(w))
    assert told.slacks == pytest.approx(np.maximum(0, 1 - told.values))
    assert told.rows.signs * model.decision_function(told.margin_feet) == pytest.approx(1.0)


def test_the_slacks_of_the_machine_are_those_of_its_certificate() -> None:
    model = SVC(kernel="linear").fit(OVERLAPPING, SIDES)
    told = plane_distances(model, OVERLAPPING, SIDES)
    (machine,) = model.certificate_.machines
    assert told.slacks[machine.rows] == pytest.approx(machine.errors, abs=1e-9)


def test_models_without_a_line() -> None:
    with pytest.raises(TypeError, match="linear classifier"):
        plane_distances(SVC().fit(OVERLAPPING, SIDES), OVERLAPPING, SIDES)
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidDataError, match="two features and two classes"):
        plane_distances(LinearSVC().fit(X, y), OVERLAPPING, SIDES)
    with pytest.raises(InvalidDataError, match="was fitted to"):
        plane_distances(LinearSVC().fit(OVERLAPPING, SIDES), OVERLAPPING, SIDES + 5)


def test_multipliers_obey_the_kkt_conditions() -> None:
    C = 0.7
    model = SVC(C=C, tol=1e-6).fit(OVERLAPPING, SIDES)
    frame = multiplier_facts(model, OVERLAPPING, SIDES).frame()
    f = model.decision_function(OVERLAPPING)
    assert frame["margin"].to_numpy() == pytest.approx(np.where(SIDES == 1, f, -f))
    assert frame["alpha"].between(0, C * (1 + 1e-9)).all()
    assert (frame["margin"][frame["alpha"] == 0] >= 1 - 1e-5).all()
    assert (frame["margin"][np.isclose(frame["alpha"], C)] <= 1 + 1e-5).all()
    between = (frame["alpha"] > 1e-9) & (frame["alpha"] < C * (1 - 1e-6))
    assert frame["margin"][between].to_numpy() == pytest.approx(1.0, abs=1e-5)
    assert ((frame["kind"] == "misclassified") == (frame["margin"] < 0)).all()
    assert (frame["alpha"] > 0).sum() == len(model.support_)


def test_multipliers_of_many_machines() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidDataError, match="two classes"):
        multiplier_facts(SVC().fit(X, y), X, y)
