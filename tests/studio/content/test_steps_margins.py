"""Steps of the margin machines are those that solvers tell, and states are the machines then."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.studio.content.scene_cases import GRID, scene

import margrove
from margrove.margin.solvers.dual.hull import HullStep
from margrove.margin.solvers.dual.primal_sgd import SubgradientStep
from margrove.studio.content import StudioError
from margrove.studio.pictures import cells_of
from margrove.studio.steps import MOST_STEPS, step_of, steps_of
from margrove.studio.steps.margin.hull import nearest_points
from margrove.studio.steps.margin.stepwise_solver import ended_after, fitted_with
from margrove.studio.steps.margin.subgradient import iterate_of
from margrove.teaching.facts.hulls import hull_facts


def trace_of(estimator, shown):
    """The steps that a listener hears of, and the fitted estimator."""
    told = []
    with warnings.catch_warnings(), margrove.watch(on_step=told.append):
        warnings.simplefilter("ignore")
        estimator.fit(*shown.training())
    return told, estimator


def surface_of(state):
    surface = state["plane"]["surface"]
    return surface["values"].reshape(surface["shape"])


def decisions(model, shown):
    cells = cells_of(shown.view, GRID)
    return model.decision_function(cells.points).reshape(cells.shape)


# -- perceptron ------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"margin": 2.0}, {"fit_intercept": False}])
def test_the_perceptron_turns_as_it_tells(parameters):
    shown = scene("separable_clouds", "Perceptron", parameters | {"shuffle": True}, test_share=0.2)
    told, model = trace_of(shown.estimator(), shown)
    steps = steps_of("perceptron", shown)
    assert steps["total"] == len(told) == model.mistakes_
    X, y = shown.training()
    w, b = np.zeros(2), 0.0
    for number, update in enumerate(told, start=1):
        state = step_of("perceptron", shown, number, GRID)
        sign = 1.0 if y[update.row] == 1 else -1.0
        before = w.copy(), b
        w = w + update.step * sign * X[update.row]
        b = b + update.step * sign * bool(model.fit_intercept)
        lines = {line["role"]: line for line in state["lines"]}
        np.testing.assert_allclose(lines["after"]["weights"], w)
        assert lines["after"]["intercept"] == pytest.approx(b)
        if number > 1:
            np.testing.assert_allclose(lines["before"]["weights"], before[0])
            assert lines["before"]["intercept"] == pytest.approx(before[1])
        assert state["highlighted"] == [shown.training_rows[update.row]]
        assert steps["steps"][number - 1]["figures"]["y f"] == pytest.approx(update.value)
        cells = cells_of(shown.view, GRID)
        wanted = (cells.points @ w + b).reshape(cells.shape)
        np.testing.assert_allclose(surface_of(state), wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(w, model.coef_[0])


def test_the_averaged_perceptron_ends_with_its_average():
    shown = scene("separable_clouds", "Perceptron", {"average": True})
    model = shown.estimator().fit(*shown.training())
    steps = steps_of("perceptron", shown)
    n = len(steps["steps"])
    roles = [line["role"] for line in step_of("perceptron", shown, 1, GRID)["lines"]]
    assert roles == ["after"]  # before it, the weights are 0 and the line is nowhere
    last = step_of("perceptron", shown, n, GRID)
    assert [line["role"] for line in last["lines"]] == ["before", "after", "average"]
    np.testing.assert_allclose(last["lines"][-1]["weights"], model.coef_[0])


def test_points_on_the_wrong_side_are_counted():
    shown = scene("separable_clouds", "Perceptron")
    counts = steps_of("perceptron", shown)["curves"][0]["values"]
    assert counts[0] == len(shown.y)
    assert counts[-1] == 0


# -- SMO -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_smo_steps_on_the_pairs_that_it_tells(kernel):
    parameters = {"kernel": kernel, "C": 2.0}
    shown = scene("gaussians", "SVC", parameters, size=40, noise=0.8, test_share=0.2)
    told, model = trace_of(shown.estimator(), shown)
    steps = steps_of("smo", shown)
    assert steps["total"] == len(told) == model.n_iter_[0]
    alpha = np.zeros(len(shown.y))
    for number, pair in enumerate(told, start=1):
        state = step_of("smo", shown, number, GRID)
        first, second = shown.training_rows[[pair.first, pair.second]].tolist()
        assert state["highlighted"] == [first, second]
        box = state["box"]
        assert (box["first"], box["second"]) == (first, second)
        np.testing.assert_allclose(box["before"], alpha[[first, second]], atol=1e-12)
        alpha[[first, second]] = box["after"]
        np.testing.assert_allclose(state["plane"]["alpha"], alpha, atol=1e-6)
        assert 0.0 <= min(box["after"]) <= max(box["after"]) <= 2.0 + 1e-12
        clipped = min(max(box["unclipped"], box["low"]), box["high"])
        assert box["after"][1] == pytest.approx(clipped, abs=1e-4)
    dual = model.certificate_.machines[0].dual
    objectives = steps["curves"][0]["values"]
    assert (np.diff(objectives) > -1e-6).all()
    assert objectives[-1] == pytest.approx(dual, rel=1e-5)


@pytest.mark.parametrize("number", [1, 4, 9])
def test_a_state_of_smo_is_its_kernel_expansion(number):
    shown = scene("moons", "SVC", {"C": 2.0}, size=40)
    state = step_of("smo", shown, number, GRID)
    alpha = state["plane"]["alpha"].astype(np.float64)
    X, y = shown.training()
    model = shown.estimator().fit(X, y)
    cells = cells_of(shown.view, GRID)
    sums = np.asarray(model.kernel_(cells.points, X)) @ (alpha * np.where(y == 1, 1.0, -1.0))
    offsets = surface_of(state).ravel() - sums
    assert np.ptp(offsets) < 1e-5  # but for the intercept


def test_of_many_steps_of_smo_the_end_is_shown():
    shown = scene("gaussians", "SVC", {"C": 1e4, "gamma": 1.0}, size=120, noise=1.5)
    told, model = trace_of(shown.estimator(), shown)
    steps = steps_of("smo", shown)
    assert len(told) > MOST_STEPS
    assert steps["total"] == len(told)
    assert len(steps["steps"]) == MOST_STEPS
    assert "at once, to the end of the fit" in steps["steps"][-1]["text"]
    last = step_of("smo", shown, MOST_STEPS, GRID)
    np.testing.assert_array_equal(surface_of(last), decisions(model, shown).astype(np.float32))
    assert steps["curves"][0]["values"][-1] == pytest.approx(
        model.certificate_.machines[0].dual, rel=1e-5
    )


@pytest.mark.parametrize("parameters", [{"C": None}, {"class_weight": "balanced"}])
def test_smo_says_what_it_cannot_show(parameters):
    with pytest.raises(StudioError, match="SMO"):
        steps_of("smo", scene("separable_clouds", "SVC", {"kernel": "linear"} | parameters))


# -- hulls -----------------------------------------------------------------------------------------


def test_the_nearest_points_of_the_hulls_approach_each_other():
    shown = scene("separable_clouds", "SVC", {"kernel": "linear"}, size=40, noise=0.0)
    steps = steps_of("hull", shown)
    told, model = trace_of(margrove.SVC(kernel="linear", C=np.inf, solver="hull", n_jobs=1), shown)
    assert steps["total"] == len(told)
    assert all(isinstance(own, HullStep) for own in told)
    distances = []
    for number in range(len(told) + 1):
        state = step_of("hull", shown, number, GRID)
        hulls = state["plane"]["hulls"]
        distances.append(hulls["distance"])
        for corners, point in zip(hulls["corners"], hulls["nearest"], strict=True):
            assert (np.min(corners, axis=0) - 1e-9 <= point).all()
            assert (point <= np.max(corners, axis=0) + 1e-9).all()
    np.testing.assert_allclose(distances, steps["curves"][0]["values"], rtol=1e-5)
    np.testing.assert_allclose(
        distances[1:], [np.sqrt(2 * own.objective) for own in told], rtol=1e-9
    )
    assert (np.diff(distances) < 1e-9).all()
    wanted = hull_facts(*shown.training())
    np.testing.assert_allclose(hulls["nearest"], wanted.nearest, atol=1e-6)
    np.testing.assert_array_equal(surface_of(state), decisions(model, shown).astype(np.float32))
    start = step_of("hull", shown, 0, GRID)["plane"]["hulls"]["nearest"]
    X, y = shown.training()
    np.testing.assert_allclose(start, [X[y == k].mean(axis=0) for k in (0, 1)])


def test_a_machine_that_is_ended_has_taken_the_same_steps():
    shown = scene("circles", "SVC", {"gamma": 2.0}, size=40, noise=0.05)
    X, y = shown.training()
    estimator = shown.estimator().set_params(solver="hull", C=np.inf)
    told, model = trace_of(estimator, shown)
    for number in (0, 1, len(told) // 2, len(told)):
        heard = []
        with margrove.watch(on_step=heard.append):
            ended = ended_after(estimator, X, y, number)
        assert heard == told[:number]
        assert type(ended) is margrove.SVC
        assert ended.n_iter_[0] == number
    np.testing.assert_array_equal(ended.decision_function(X), model.decision_function(X))


def test_in_another_feature_space_there_are_no_hulls_to_draw():
    shown = scene("circles", "SVC", {"gamma": 2.0}, size=40, noise=0.05)
    state = step_of("hull", shown, 1, GRID)
    assert state["plane"]["hulls"] is None
    assert state["lines"] == []


def test_hulls_that_overlap_have_no_nearest_points():
    with pytest.raises(StudioError, match="hulls of the two classes overlap"):
        steps_of("hull", scene("moons", "SVC", {"kernel": "linear"}, noise=0.4))


def test_nearest_points_are_averages():
    model = margrove.SVC(kernel="linear", C=np.inf).fit([[0, 0], [0, 2], [3, 1]], [0, 0, 1])
    np.testing.assert_allclose(nearest_points(model), [[0, 1], [3, 1]], atol=1e-9)


# -- subgradients ----------------------------------------------------------------------------------


def test_iterates_say_of_the_next_row_what_the_solver_tells():
    """Before the row is visited: y f(x), by the expansion that is drawn."""
    shown = scene("moons", "SVC", {"C": 0.5}, size=30)
    X, y = shown.training()
    signs = np.where(y == 1, 1.0, -1.0)
    estimator = shown.estimator().set_params(solver="sgd")
    model = shown.estimator().set_params(solver="sgd").fit(X, y)
    checked = 0
    before = []

    def look(solver, visits):
        nonlocal checked
        now = iterate_of(solver, solver._K.mean(axis=0))
        if visits:
            visit, last = visits[-1], before[-1]
            n_before = solver._epoch * len(X) + solver._cursor - 1
            # Visits in between violated nothing; they only made the steps so far shorter.
            factor = last[1] / n_before if n_before else 0.0
            f = np.asarray(model.kernel_(X[[visit.row]], X[last[0].rows])) @ last[0].coef
            bias = last[0].intercept - last[2]
            value = signs[visit.row] * (factor * (f[0] + bias) + last[2])
            is_same_epoch = visit.epoch == last[3]
            if is_same_epoch:
                assert value == pytest.approx(visit.value, abs=1e-9)
                checked += 1
        n_now = solver._epoch * len(X) + solver._cursor
        before.append((now, n_now, float(solver._centre), solver._epoch))
        return len(visits) >= 200

    fitted_with(estimator, X, y, look)
    assert checked > 100


def test_subgradient_steps_are_those_that_are_told():
    shown = scene("moons", "SVC", {"C": 0.5}, size=30, test_share=0.1)
    told, model = trace_of(shown.estimator().set_params(solver="sgd"), shown)
    assert all(isinstance(own, SubgradientStep) for own in told)
    steps = steps_of("subgradient", shown)
    assert steps["total"] == len(told)
    assert steps["scale"] == "log"
    n = len(steps["steps"])
    for number in (1, 2, 17, n - 1):
        visit = told[number - 1]
        assert steps["steps"][number - 1]["figures"]["y f"] == pytest.approx(visit.value)
        state = step_of("subgradient", shown, number, GRID)
        assert state["highlighted"] == [shown.training_rows[visit.row]]
        alpha = state["plane"]["alpha"]
        assert np.flatnonzero(alpha).tolist() == sorted(
            {int(shown.training_rows[own.row]) for own in told[:number]}
        )
    last = step_of("subgradient", shown, n, GRID)
    np.testing.assert_array_equal(surface_of(last), decisions(model, shown).astype(np.float32))
    end = steps["curves"][0]["values"][-1]
    assert end == pytest.approx(model.certificate_.machines[0].primal, rel=1e-5)
    assert steps["curves"][0]["values"].min() > 0.98 * end


def test_subgradients_need_a_price():
    with pytest.raises(StudioError, match="finite C"):
        steps_of("subgradient", scene("separable_clouds", "SVC", {"C": None}))


def test_equal_points_are_one_variable():
    """Three copies of a point are one variable with three times the bound."""
    points = {"x": [[0.0, 0.0]] * 3 + [[1.0, 1.0], [1.2, 0.8], [0.2, 0.1]], "y": [0, 0, 0, 1, 1, 0]}
    shown = scene("moons", "SVC", {"kernel": "linear", "C": 0.5}, **points)
    for kind in ("smo", "hull", "subgradient"):
        steps = steps_of(kind, shown)
        step_of(kind, shown, len(steps["steps"]), GRID)
    boxes = [
        step_of("smo", shown, k, GRID)["box"] for k in range(1, steps_of("smo", shown)["total"])
    ]
    assert {bound for box in boxes for bound in box["bounds"]} <= {0.5, 1.5}
