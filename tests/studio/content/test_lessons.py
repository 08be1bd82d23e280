"""Lessons: scenes that can be drawn, and questions whose answers the estimators give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.studio.content.scene_cases import GRID, given, require_sendable

import margrove
from margrove.studio.content.lectures import LECTURE_TABLES, lecture_table
from margrove.studio.content.scenes import StudioError, scene_from
from margrove.studio.content.tree_views import answer_tree
from margrove.studio.lessons import LESSONS
from margrove.studio.lessons.ensembles.bootstrap_of_a_median import WAITING_TIMES
from margrove.studio.lessons.lesson import preset_scene
from margrove.studio.pictures import picture_of
from margrove.studio.steps import STEPS, step_of, steps_of

NAMES = [
    "perceptron", "margin", "slack", "kernels", "smo", "tennis", "restaurant", "impurity",
    "pruning", "bootstrap", "forests", "ten-points", "bound",
]  # fmt: skip
KEYS = {
    "name", "title", "paragraphs", "stage", "scene", "others", "steps", "table", "question",
    "choices", "values", "hint",
}  # fmt: skip
STAGES = {"playground", "steps", "compare", "map", "tree", "impurity", "bootstrap"}
GARBAGE = [
    "", " ", "abc", "1e999", "-1e999", "nan", "inf", "1/0", "0/0", "1/2/3", "12 34", "--3", "1e",
    "0x10", "None", "\x00", "3" * 5000, "<script>alert(1)</script>", "1_000", "%", "/",
]  # fmt: skip


def entropy(*counts):
    total = sum(counts)
    return -sum(own / total * math.log2(own / total) for own in counts if own)


# What is right, from estimators or by hand, and not by way of the lessons' own functions.


def mistakes_of_the_perceptron():
    shown = LESSONS["perceptron"].scene
    told = []
    with margrove.watch(on_step=told.append):
        shown.estimator().fit(*shown.training())
    return len(told)


def distance_of_the_hulls():
    shown = LESSONS["margin"].scene
    X, y = shown.training()
    machine = margrove.SVC(kernel="linear", C=1e6, tol=1e-8).fit(X, y)
    return 2 / np.linalg.norm(machine.coef_)


def change_of_the_margin():
    X, y = LESSONS["slack"].scene.training()
    widths = [
        2 / np.linalg.norm(margrove.LinearSVC(C=C, loss="hinge", tol=1e-8).fit(X, y).coef_)
        for C in (0.01, 10.0)
    ]
    return "wider" if widths[1] > widths[0] else "narrower"


def support_vectors_of_a_large_gamma():
    X, y = LESSONS["kernels"].scene.training()
    return len(margrove.SVC(C=1.0, gamma=200.0).fit(X, y).support_)


def gain_of_the_wind():
    table = lecture_table("play_tennis")
    wind = table.rows[:, list(table.columns).index("wind")]
    counts = [
        [int(np.sum((wind == value) & (table.target == label))) for label in ("yes", "no")]
        for value in ("weak", "strong")
    ]
    left = sum(sum(own) / 14 * entropy(*own) for own in counts)
    return entropy(9, 5) - left


def leaves_of_the_best_tree():
    shown = LESSONS["pruning"].scene
    X, y = shown.training()
    path = shown.estimator().cost_complexity_pruning_path(X, y)
    trees = [
        shown.estimator().set_params(ccp_alpha=alpha * (1 + 1e-9)).fit(X, y)
        for alpha in path.ccp_alphas
    ]
    errors = [round(1 - tree.score(*shown.testing()), 9) for tree in trees]
    return min(
        tree.get_n_leaves()
        for tree, error in zip(trees, errors, strict=True)
        if error == min(errors)
    )


def standard_error_of_the_median():
    lot = np.random.default_rng(7)
    draws = lot.choice(WAITING_TIMES, size=(20_000, len(WAITING_TIMES)))
    return np.median(draws, axis=1).std()


def share_left_out():
    n = len(LESSONS["forests"].scene.training_rows)
    return (1 - 1 / n) ** n


def rounds_of_boosting(n_rounds):
    X, y = margrove.datasets.load_boosting_points(return_X_y=True)
    stump = margrove.DecisionTreeClassifier(max_depth=1, criterion="error")
    return margrove.AdaBoostClassifier(stump, n_estimators=n_rounds).fit(X, y)


def beta_of_the_third_round():
    model = rounds_of_boosting(3)
    error = model.estimator_errors_[2]
    return 0.5 * math.log((1 - error) / error)


def rounds_until_the_bound_is_below_a_tenth():
    errors = rounds_of_boosting(60).estimator_errors_
    bounds = np.cumprod([2 * math.sqrt(error * (1 - error)) for error in errors])
    return int(np.argmax(bounds < 0.1)) + 1


RIGHT = {
    "perceptron": mistakes_of_the_perceptron,
    "margin": distance_of_the_hulls,
    "slack": change_of_the_margin,
    "kernels": support_vectors_of_a_large_gamma,
    "smo": lambda: 0,
    "tennis": gain_of_the_wind,
    "restaurant": lambda: "the kind of food (Type)",
    "impurity": lambda: 1 - (3 / 8) ** 2 - (5 / 8) ** 2,
    "pruning": leaves_of_the_best_tree,
    "bootstrap": standard_error_of_the_median,
    "forests": share_left_out,
    "ten-points": beta_of_the_third_round,
    "bound": rounds_until_the_bound_is_below_a_tenth,
}


def test_there_are_thirteen():
    assert list(LESSONS) == NAMES
    assert set(RIGHT) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_lessons_can_be_sent(name):
    lesson = LESSONS[name].as_dict()
    require_sendable(lesson)
    assert set(lesson) == KEYS
    assert lesson["stage"] in STAGES
    assert bool(lesson["values"]) == (lesson["stage"] == "bootstrap")
    assert 2 <= len(lesson["paragraphs"]) <= 4
    for text in (*lesson["paragraphs"], lesson["hint"]):
        assert text == " ".join(text.split())
        assert text.endswith((".", "?"))
    assert lesson["question"].endswith("?")
    assert len(set(lesson["choices"])) == len(lesson["choices"]) != 1


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_beside_a_lesson_can_be_drawn(name):
    lesson = LESSONS[name].as_dict()
    if lesson["stage"] in ("impurity", "bootstrap"):
        assert lesson["scene"] is lesson["table"] is None
        return
    if lesson["stage"] == "tree":
        assert lesson["table"] in LECTURE_TABLES
        require_sendable(answer_tree({"lecture": lesson["table"], "parameters": {}}, 0))
        return
    shown = scene_from(lesson["scene"])
    assert shown.as_dict() == lesson["scene"]
    require_sendable(picture_of(shown, GRID))
    for other in lesson["others"]:
        compared = scene_from(lesson["scene"] | other)
        require_sendable(picture_of(compared, GRID))
    if lesson["stage"] == "steps":
        assert shown.learner in STEPS[lesson["steps"]].learners
        n = len(steps_of(lesson["steps"], shown)["steps"])
        assert n >= 3
        require_sendable(step_of(lesson["steps"], shown, n, GRID))
    else:
        assert lesson["steps"] is None


@pytest.mark.parametrize("name", NAMES)
def test_right_answers_are_accepted(name):
    lesson, right = LESSONS[name], RIGHT[name]()
    text = right if isinstance(right, str) else f"{right:.6g}"
    for answer in (text, f"  {text} "):
        for scene in (None, lesson.scene):
            checked = lesson.check(answer, scene)
            assert set(checked) == {"isRight", "text"}
            assert checked["isRight"] is True, checked["text"]
            assert checked["text"].startswith("Right: ")
            assert len(checked["text"]) > 60  # it says why


@pytest.mark.parametrize("name", NAMES)
def test_wrong_answers_are_refused_and_told_why(name):
    lesson, right = LESSONS[name], RIGHT[name]()
    if lesson.choices:
        wrong = [own for own in lesson.choices if own != right]
    else:
        wrong = [f"{right + 1:.6g}", f"{right * 1.2 + 0.5:.6g}", "-1", "1000000"]
    for answer in wrong:
        checked = lesson.check(answer)
        assert checked["isRight"] is False
        assert checked["text"].startswith("No, ")
        assert len(checked["text"]) > 60


@pytest.mark.parametrize("name", NAMES)
def test_garbage_is_refused(name):
    lesson = LESSONS[name]
    for answer in GARBAGE:
        checked = lesson.check(answer)
        assert checked["isRight"] is False, answer
        assert len(checked["text"]) < 400
        assert "<" not in checked["text"]
        require_sendable(checked)
    for answer in (None, 3, 0.5, ["3"], b"3"):
        assert lesson.check(answer)["isRight"] is False


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("0.46875", True),
        ("0,46875", True),
        (".46875", True),
        ("46.875 %", True),
        ("46.875%", True),
        ("15/32", True),
        ("15 / 32", True),
        ("4.6875e-1", True),
        ("+0.46875", True),
        ("\u0660.\u0664\u0666\u0669", True),  # digits of another script
        ("0.4", False),
        ("46.875", False),
        ("\N{MINUS SIGN}0.46875", False),
        ("0.46875.", False),
    ],
)
def test_ways_to_say_a_number(text, is_right):
    assert LESSONS["impurity"].check(text)["isRight"] is is_right


# -- answers follow what is on the page ------------------------------------------------------------


def test_answers_follow_the_points():
    """A point that was dragged changes what is right."""
    lesson = LESSONS["margin"]
    page = lesson.scene.as_dict()
    moved = page | {"x": [[own[0] * 2, own[1] * 2] for own in page["x"]]}
    assert lesson.check("3", scene_from(page))["isRight"]
    assert not lesson.check("3", scene_from(moved))["isRight"]
    assert lesson.check("6", scene_from(moved))["isRight"]


def test_answers_follow_the_parameters_that_are_free():
    lesson = LESSONS["perceptron"]
    shown = lesson.scene.with_learner("Perceptron", {"shuffle": False, "margin": 1.0})
    mistakes = int(shown.estimator().fit(*shown.training()).mistakes_)
    assert mistakes != RIGHT["perceptron"]()
    assert lesson.check(str(mistakes), shown)["isRight"]


def test_a_scene_of_another_kind_is_not_taken():
    regression = scene_from(given("sine", "SVR"))
    assert LESSONS["perceptron"].check(str(RIGHT["perceptron"]()), regression)["isRight"]
    assert LESSONS["tennis"].check("0.048", regression)["isRight"]
    another = LESSONS["perceptron"].scene.with_learner("RandomForestClassifier")
    checked = LESSONS["perceptron"].check("1", another)
    assert checked["text"].startswith("No, it is ")


def test_points_that_leave_no_answer():
    """What cannot be computed is told, and nothing is right."""
    page = LESSONS["margin"].scene.as_dict()
    lessons = ("perceptron", "margin", "slack", "kernels", "smo", "forests", "ten-points", "bound")
    one_class = scene_from(page | {"y": [0] * len(page["y"])})
    for name in lessons:
        answer = LESSONS[name].choices[0] if LESSONS[name].choices else "3"
        with pytest.raises(StudioError, match="of one class"):
            LESSONS[name].check(answer, one_class)
    overlapping = preset_scene("moons", "SVC", {"kernel": "linear"}, noise=0.5)
    with pytest.raises(StudioError, match="SVC"):
        LESSONS["margin"].check("3", overlapping)
    with pytest.raises(StudioError, match="for testing"):
        LESSONS["pruning"].check("3", overlapping)
    separable = preset_scene("separable_clouds", "AdaBoostClassifier")
    with pytest.raises(StudioError, match="perfect"):
        LESSONS["ten-points"].check("3", separable)
    hard = preset_scene("gaussians", "AdaBoostClassifier", size=300, noise=2.0)
    with pytest.raises(StudioError, match="does not fall below"):
        LESSONS["bound"].check("3", hard)


# -- what the texts say is so ----------------------------------------------------------------------


def test_pruning_first_helps_and_then_hurts():
    shown = LESSONS["pruning"].scene
    training, test = (own["values"] for own in steps_of("pruning", shown)["curves"])
    assert (np.diff(training) >= 0).all()
    best = int(np.argmin(test))
    assert (np.diff(test[: best + 1]) <= 1e-6).all()
    assert (np.diff(test[best:]) >= -1e-6).all()
    assert test[0] > test[best] < test[-1]
    assert training[0] == 0.0


def test_three_rules_err_on_three_points_each_and_never_on_the_same():
    shown = LESSONS["ten-points"].scene
    marked = [step_of("adaboost", shown, k, GRID)["highlighted"] for k in (1, 2, 3)]
    assert sorted(len(own) for own in marked) == [3, 3, 3]
    assert len(set().union(*marked)) == 9


def test_some_steps_of_smo_are_clipped():
    clipped = [own["figures"]["clipped"] for own in steps_of("smo", LESSONS["smo"].scene)["steps"]]
    assert {"yes", "no"} == set(clipped)


def test_the_whole_table_has_an_entropy_of_0_940():
    assert round(entropy(9, 5), 3) == 0.940
    assert (round(entropy(6, 2), 3), entropy(3, 3)) == (0.811, 1.0)
    assert np.median(WAITING_TIMES) == 4.25
