"""What holds of every kind of steps: what is told, the states, going back and forth, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.studio.content.scene_cases import GRID, given, require_sendable, scene

from margrove.studio.content.lectures import LECTURE_TABLES, lecture_table
from margrove.studio.content.scenes import Scene, StudioError, scene_from
from margrove.studio.learners.registry import LEARNERS
from margrove.studio.pictures import picture_of
from margrove.studio.steps import MOST_STEPS, STEPS, step_of, steps_of
from margrove.studio.steps.traces import FirstAndLast, shown_numbers, step_record
from margrove.studio.worker.answers import ANSWERS
from margrove.studio.worker.lru_cache import LruCache, key_of
from margrove.studio.worker.worker_main import Job

KEYS = {
    "number",
    "plane",
    "curve",
    "highlighted",
    "lines",
    "box",
    "gains",
    "tree",
    "isTest",
    "highlights",
}
SMALL = {
    "BaggingClassifier": {"n_estimators": 5},
    "BaggingRegressor": {"n_estimators": 5},
    "RandomForestClassifier": {"n_estimators": 5},
    "RandomForestRegressor": {"n_estimators": 5},
    "ExtraTreesClassifier": {"n_estimators": 5},
    "ExtraTreesRegressor": {"n_estimators": 5},
    "AdaBoostClassifier": {"n_estimators": 6},
    "GradientBoostingClassifier": {"n_estimators": 6},
    "GradientBoostingRegressor": {"n_estimators": 6},
    "HistGradientBoostingClassifier": {"max_iter": 6},
    "HistGradientBoostingRegressor": {"max_iter": 6},
}
CASES = [(name, kind) for name, own in LEARNERS.items() for kind in own.steps]
MORE_CLASSES = [
    (name, kind)
    for name, kind in CASES
    if LEARNERS[name].task == "classification"
    and kind in ("splits", "pruning", "members", "adaboost", "gradient")
]


def scene_for(name: str, kind: str, *, preset: str | None = None, test_share: float = 0.2) -> Scene:
    usual = "sine" if LEARNERS[name].task == "regression" else "moons"
    if kind in ("hull", "perceptron"):
        usual = "separable_clouds"
    parameters = {"kernel": "linear"} if kind == "hull" else SMALL.get(name, {})
    return scene(preset or usual, name, parameters, size=40, test_share=test_share)


def as_grid(told_of):
    return told_of["values"].reshape(told_of["shape"])


def same(one, other):
    """Whether two states are equal, arrays by content."""
    if isinstance(one, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return one == other


def test_the_catalogue_and_the_registry_agree():
    offered = {(name, kind) for name, own in LEARNERS.items() for kind in own.steps}
    assert offered == {(name, kind) for kind, mode in STEPS.items() for name in mode.learners}
    assert set(STEPS) == {
        "perceptron", "smo", "subgradient", "hull", "splits", "pruning", "members", "adaboost",
        "gradient",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_steps_are_told_and_each_has_a_state(name, kind):
    shown = scene_for(name, kind)
    steps = steps_of(kind, shown)
    require_sendable(steps)
    assert steps["kind"] == kind
    assert steps["title"]
    assert steps["summary"].endswith(".")
    n = len(steps["steps"])
    assert 1 <= n <= min(MOST_STEPS, steps["total"])
    assert steps["scale"] in ("linear", "log")
    assert steps["curves"]
    for curve in steps["curves"]:
        assert curve["values"].shape == (n + 1,)
        assert curve["values"].dtype == np.float32
    assert all(own["text"].endswith(".") for own in steps["steps"])
    for number in sorted({0, 1, n // 2, n}):
        state = step_of(kind, shown, number, GRID)
        require_sendable(state)
        assert set(state) == KEYS
        assert state["number"] == number
        assert set(state["highlighted"]) <= set(shown.training_rows.tolist())
        if state["plane"] is not None:
            assert state["plane"]["surface"]["shape"] == GRID
        if number > 0:
            assert (state["plane"] is None) == (shown.task == "regression")
            assert (state["curve"] is None) == (shown.task == "classification")


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_going_back_gives_the_same_state(name, kind):
    shown = scene_for(name, kind, test_share=0.0)
    n = len(steps_of(kind, shown)["steps"])
    forth = [step_of(kind, shown, number, GRID) for number in range(min(n, 4) + 1)]
    back = [step_of(kind, shown, number, GRID) for number in reversed(range(min(n, 4) + 1))]
    assert all(same(one, other) for one, other in zip(forth, reversed(back), strict=True))


@pytest.mark.parametrize(
    ("name", "kind"),
    [case for case in CASES if case[1] not in ("hull", "subgradient", "pruning")],
)
def test_the_last_state_is_the_picture_of_the_fitted_model(name, kind):
    shown = scene_for(name, kind)
    last = step_of(kind, shown, len(steps_of(kind, shown)["steps"]), GRID)
    picture = picture_of(shown, GRID)
    if shown.task == "classification":
        for part in ("surface", "winner"):
            found, wanted = as_grid(last["plane"][part]), as_grid(picture["plane"][part])
            np.testing.assert_array_equal(found, wanted)
        assert same(last["plane"]["alpha"], picture["plane"]["alpha"])
        assert same(last["plane"]["weight"], picture["plane"]["weight"])
    else:
        np.testing.assert_array_equal(last["curve"]["y"], picture["curve"]["y"])
        np.testing.assert_array_equal(last["curve"]["residual"], picture["curve"]["residual"])


@pytest.mark.parametrize(("name", "kind"), MORE_CLASSES)
def test_more_than_two_classes(name, kind):
    shown = scene_for(name, kind, preset="four_clouds")
    steps = steps_of(kind, shown)
    require_sendable(steps)
    state = step_of(kind, shown, len(steps["steps"]), GRID)
    require_sendable(state)
    assert state["plane"]["kind"] == "confidence"
    assert set(np.unique(state["plane"]["winner"]["values"])) <= {0, 1, 2, 3}


# -- remembering -----------------------------------------------------------------------------------


def test_a_scene_is_fitted_once(monkeypatch):
    made = []
    make = Scene.estimator
    monkeypatch.setattr(Scene, "estimator", lambda own: made.append(own.learner) or make(own))
    shown = scene("moons", "DecisionTreeClassifier", size=33)
    n = len(steps_of("splits", shown)["steps"])
    before = len(made)
    again = scene_from(shown.as_dict())  # another object of the same content
    for number in (0, n, 1, n - 1):
        step_of("splits", again, number, GRID)
    assert len(made) == before >= 1


def test_other_content_has_another_key():
    first = given("moons", "SVC")
    others = [
        first | {"seed": 1},
        first | {"testShare": 0.2},
        first | {"parameters": {"C": 2.0}},
        first | {"learner": "NuSVC"},
        first | {"classes": ["yes", "no"]},
        first | {"y": [1 - own for own in first["y"]]},
        first | {"x": [[own[0] + 1e-9, own[1]] for own in first["x"]]},
    ]
    keys = {key_of(scene_from(own)) for own in (first, *others)}
    assert len(keys) == 1 + len(others)
    assert key_of(scene_from(first)) == key_of(scene_from(dict(first)))


def test_what_was_not_used_for_longest_is_forgotten():
    kept: LruCache[int] = LruCache(2)
    assert [kept.get(key, lambda key=key: key) for key in (1, 2, 1, 3)] == [1, 2, 1, 3]
    assert kept.get(1, lambda: -1) == 1
    assert kept.get(2, lambda: -2) == -2
    assert len(kept) == 2
    with pytest.raises(ZeroDivisionError):
        kept.get(4, lambda: 1 // 0)
    assert kept.get(4, lambda: 4) == 4


# -- many steps ------------------------------------------------------------------------------------


def test_of_many_steps_the_first_and_the_last_are_shown():
    assert shown_numbers(0) == [0]
    assert shown_numbers(MOST_STEPS) == list(range(MOST_STEPS + 1))
    many = shown_numbers(MOST_STEPS + 1000)
    assert len(many) == MOST_STEPS + 1
    assert many[-2:] == [MOST_STEPS - 1, MOST_STEPS + 1000]


@pytest.mark.parametrize("total", [0, 1, MOST_STEPS, MOST_STEPS + 1, MOST_STEPS + 7])
def test_a_listener_keeps_what_is_shown(total):
    heard = FirstAndLast()
    for number in range(1, total + 1):
        heard(number)
    assert heard.total == total
    assert [0, *(heard.at(k) for k in range(1, len(heard.numbers)))] == shown_numbers(total)


def test_figures_are_what_json_can_hold():
    figures = step_record(
        "A step.", y_f=np.nan, count=np.int64(3), is_it=np.True_, name="a", no=None
    )
    assert figures["figures"] == {"y f": None, "count": 3, "is it": "yes", "name": "a", "no": None}
    require_sendable(figures)
    with pytest.raises(TypeError):
        step_record("A step.", array=np.zeros(2))


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", "Smo", "nothing", None, 3, ["smo"], "x" * 10_000])
def test_unknown_kinds(kind):
    with pytest.raises(StudioError, match="Steps are perceptron"):
        steps_of(kind, scene())


@pytest.mark.parametrize("number", [-1, 10**9, 1.0, "1", None, True, [1], float("nan")])
def test_numbers_that_are_no_step(number):
    shown = scene("separable_clouds", "Perceptron")
    with pytest.raises(StudioError, match="number must be a step from 0 to"):
        step_of("perceptron", shown, number, GRID)


@pytest.mark.parametrize("grid", [None, [1, 1], [10**6, 10], "ab", [10.0, 10], [10]])
def test_grids_that_are_none(grid):
    with pytest.raises(StudioError, match="grid must be"):
        step_of("smo", scene("separable_clouds", "SVC", size=12), 1, grid)


def test_steps_of_another_learner():
    with pytest.raises(StudioError, match="KernelPerceptron has no steps of this kind"):
        steps_of("perceptron", scene("moons", "KernelPerceptron"))
    with pytest.raises(StudioError, match="split by split"):
        steps_of("smo", lecture_table("play_tennis"))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_too_few_points(name, kind):
    own = given("sine" if LEARNERS[name].task == "regression" else "moons", name, size=30)
    for n in (0, 1):
        with pytest.raises(StudioError):
            steps_of(kind, scene_from(own | {"x": own["x"][:n], "y": own["y"][:n]}))


@pytest.mark.parametrize("kind", ["perceptron", "smo", "hull", "subgradient"])
def test_machines_are_shown_for_two_classes(kind):
    name = STEPS[kind].learners[0]
    with pytest.raises(StudioError, match="two classes, and there are 4"):
        steps_of(kind, scene("four_clouds", name))


@pytest.mark.parametrize("kind", ["perceptron", "smo", "hull", "subgradient"])
def test_machines_are_shown_for_few_points(kind):
    name = STEPS[kind].learners[0]
    with pytest.raises(StudioError, match="Use fewer points"):
        steps_of(kind, scene("gaussians", name, size=6000))


def test_errors_of_a_fit_are_told():
    shown = scene("sine", "DecisionTreeRegressor", {"criterion": "poisson"})
    with pytest.raises(StudioError, match="A tree, split by split"):
        steps_of("splits", shown)


AWKWARD = {
    "the same place": ([[1.0, 1.0]] * 10, [0, 1] * 5),
    "on a line": ([[float(k), 0.0] for k in range(12)], [0, 1] * 6),
    "on a line, apart": ([[float(k), 0.0] for k in range(12)], [0] * 6 + [1] * 6),
    "very far out": ([[1e9 * (-1) ** k, 1e8 * k] for k in range(9)], [0, 1, 1] * 3),
    "very close": ([[1e-12 * k, 1e-13 * k * k] for k in range(12)], [0, 0, 1] * 4),
    "one against many": ([[float(k % 5), float(k // 5)] for k in range(20)], [1] + [0] * 19),
    "classes with a gap": ([[k + 9.0 * (k % 2), float(k)] for k in range(12)], [1, 3] * 6),
    "two points": ([[0.0, 0.0], [1.0, 2.0]], [0, 1]),
}


@pytest.mark.sampled(50)
@pytest.mark.parametrize("points", list(AWKWARD))
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_awkward_points_are_shown_or_refused_in_words(name, kind, points):
    x, y = AWKWARD[points]
    own = given("sine" if LEARNERS[name].task == "regression" else "moons", name, SMALL.get(name))
    if LEARNERS[name].task == "regression":
        x, y = [[first] for first, _ in x], [second for _, second in x]
    shown = scene_from(own | {"x": x, "y": y})
    try:
        steps = steps_of(kind, shown)
    except StudioError:
        return
    require_sendable(steps)
    n = len(steps["steps"])
    for number in sorted({0, n // 2, n}):
        require_sendable(step_of(kind, shown, number, GRID))


def test_what_goes_wrong_in_a_state_is_told_too(monkeypatch):
    def fail(*arguments, **settings):
        raise ValueError("nothing can be drawn there")

    shown = scene("moons", "SVC")
    assert steps_of("smo", shown)["steps"]
    monkeypatch.setattr("margrove.studio.steps.margin.smo.plane_of", fail)
    with pytest.raises(StudioError, match="nothing can be drawn"):
        step_of("smo", shown, 1, GRID)


@pytest.mark.parametrize("name", list(LECTURE_TABLES))
def test_tables_of_the_lectures_have_steps(name):
    table = lecture_table(name)
    steps = steps_of("splits", table)
    require_sendable(steps)
    for number in range(len(steps["steps"]) + 1):
        state = step_of("splits", table, number)
        require_sendable(state)
        assert state["tree"]["table"]["columns"] == list(table.columns)
    assert steps["curves"][0]["values"][-1] == 0.0


def test_pages_ask_for_steps_of_points_and_of_tables():
    table = {"steps": "splits", "scene": {"lecture": "play_tennis"}}
    assert len(ANSWERS["steps"](table, Job())["steps"]) == 3
    state = ANSWERS["step"](table | {"number": 1, "grid": [8, 8]}, Job())
    gains = {own["feature"]: round(own["gain"], 3) for own in state["gains"]["candidates"]}
    assert gains == {"outlook": 0.247, "temperature": 0.029, "humidity": 0.152, "wind": 0.048}
    with pytest.raises(StudioError, match="play_tennis"):
        ANSWERS["steps"]({"steps": "splits", "scene": {"lecture": "golf"}}, Job())
