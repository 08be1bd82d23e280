"""Reports of every family have their sections, with the numbers of the facts."""

from __future__ import annotations

import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.workbench.report.pages import Page, require_harmless

import margrove
from margrove import facts
from margrove.datasets import load_iris
from margrove.ensemble.bootstrap.statistic import ConfidenceInterval
from margrove.exceptions import InvalidDataError
from margrove.facts import predictions
from margrove.select.calibrate.reliability_figures import wilson_interval
from margrove.select.compare.result import Comparison, ModelScore
from margrove.workbench.report import Report, report
from margrove.workbench.report.blocks import Table
from margrove.workbench.report.score_intervals import meaning_of_intervals, with_intervals_of_rows
from margrove.workbench.report.sections.leaderboard import leaderboard_section
from margrove.workbench.report.sections.tuning import tuning_section
from margrove.workbench.report.texts import count, number, percent


@cache
def _flowers() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    kinds = np.array(["setosa", "versicolor", "virginica"])
    return pd.DataFrame(X, columns=names), kinds[np.asarray(y, int)]


@cache
def _prices() -> tuple[pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.normal(size=(160, 3)), columns=["area", "age", "noise"])
    return X, 5.0 * X["area"].to_numpy() - X["age"].to_numpy() + generator.normal(size=160)


_CLASSIFIERS = {
    "svc": margrove.SVC(C=2.0),
    "nu": margrove.NuSVC(nu=0.2),
    "linear": margrove.LinearSVC(),
    "perceptron": margrove.Perceptron(max_iter=20),
    "kernel_perceptron": margrove.KernelPerceptron(max_iter=5, tol=None),
    "tree": margrove.DecisionTreeClassifier(),
    "forest": margrove.RandomForestClassifier(20, oob_score=True, random_state=0),
    "extra": margrove.ExtraTreesClassifier(10, random_state=0),
    "bagging": margrove.BaggingClassifier(n_estimators=5, random_state=0),
    "ada": margrove.AdaBoostClassifier(n_estimators=10),
    "hist": margrove.HistGradientBoostingClassifier(max_iter=10),
    "gradient": margrove.GradientBoostingClassifier(n_estimators=10),
    "stranger": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), margrove.SVC(kernel="linear")),
}
_REGRESSORS = {
    "svr": margrove.SVR(),
    "linear_svr": margrove.LinearSVR(),
    "tree": margrove.DecisionTreeRegressor(max_depth=4),
    "forest": margrove.RandomForestRegressor(20, oob_score=True, random_state=0),
    "ada": margrove.AdaBoostRegressor(n_estimators=5, random_state=0),
    "hist": margrove.HistGradientBoostingRegressor(max_iter=10),
    "pipeline": make_pipeline(StandardScaler(), margrove.DecisionTreeRegressor(max_depth=3)),
}


@cache
def _classified(name: str) -> tuple[object, Report, Page]:
    X, y = _flowers()
    model = _CLASSIFIERS[name].fit(X[::2], y[::2])
    found = report(model, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2], seed=0)
    return model, found, require_harmless(found.html)


@cache
def _regressed(name: str) -> tuple[object, Report, Page]:
    X, y = _prices()
    model = _REGRESSORS[name].fit(X[:100], y[:100])
    found = report(model, X[:100], y[:100], X_test=X[100:], y_test=y[100:])
    return model, found, require_harmless(found.html)


def _sections(page: Page) -> list[str]:
    return [section["id"] or "" for section in page.all("section")]


@pytest.mark.parametrize("name", _CLASSIFIERS)
def test_reports_of_classifiers(name) -> None:
    model, found, page = _classified(name)
    X, y = _flowers()
    assert found.gaps == ()
    sections = ["summary", "data", "model", "judged", "dependence", "reproduction"]
    assert _sections(page) == sections
    assert [link["href"] for link in page.all("a")][1:] == [f"#{name}" for name in sections]
    matrix = predictions.confusion(model, X[1::2], y[1::2])
    assert f"{percent(matrix.accuracy)} accuracy" in page.words
    assert "on 75 rows it has not seen; always predicting “setosa” would reach 33.3 %" in page.words
    assert "Confusion matrix" in page.words
    assert "Worst mistakes" in page.words
    assert len(found.html) < 600_000
    assert "petal length" in page.words


@pytest.mark.parametrize("name", _REGRESSORS)
def test_reports_of_models_of_numbers(name) -> None:
    model, found, page = _regressed(name)
    X, y = _prices()
    assert found.gaps == ()
    errors = predictions.residual_facts(model, X[100:], y[100:])
    assert f"an error of {number(errors.root_mean_squared_error)} (root mean square)" in page.words
    assert f"off by {number(errors.mean_absolute_error)}; half of the rows" in page.words
    assert "Errors against predictions" in page.words
    assert "Confusion" not in page.words


def test_a_support_vector_machine_shows_its_proof_and_vectors() -> None:
    model, _, page = _classified("svc")
    X, y = _flowers()
    described = facts.describe(model, X[::2], y[::2])
    assert f"support vectors {count(described.n_support)}" in page.words
    assert "Certificate: the objective is" in page.words
    assert number(described.proof.primal, 8) in page.words
    for kind in described.kinds:
        assert kind.name in page.words
    assert "How clearly rows are on their side" in page.words
    margins = predictions.margins_of(model, X[1::2], y[1::2])
    assert f"{margins.n_wrong} rows of 75 on the wrong side" in page.words or (
        margins.n_wrong == 1 and "1 row of 75 on the wrong side" in page.words
    )


def test_a_linear_machine_shows_its_weights_by_name() -> None:
    for name in ("linear", "pipeline"):
        page = _classified(name)[2]
        assert "Largest weights" in page.words
        assert "petal width" in page.words


def test_a_perceptron_shows_its_mistakes_and_the_bound() -> None:
    model, _, page = _classified("perceptron")
    described = facts.describe(model)
    assert f"mistakes {number(described.mistakes)}" in page.words
    assert "Novikoff" in page.words


def test_a_tree_is_drawn_with_its_rules() -> None:
    model, found, page = _classified("tree")
    described = facts.describe(model)
    assert f"leaves {described.n_leaves}" in page.words
    drawn = [group for group in page.all("g") if group.get("class") == "tree-group"]
    assert len(drawn) == described.n_nodes
    assert [svg for svg in page.all("svg") if svg.get("class") == "tree"]
    rules = margrove.rules(model)
    for rule in rules:
        assert rule.text.rpartition(": ")[0] in page.words
    assert '"trees": {"tree": [' in found.html


def test_a_tree_in_a_pipeline_has_the_names_of_the_columns() -> None:
    page = _regressed("pipeline")[2]
    assert re.search(r"area <= ", page.words)


def test_a_large_tree_is_cut_and_says_so() -> None:
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(600, 3)), generator.integers(0, 2, 600)
    model = margrove.DecisionTreeClassifier().fit(X, y)
    page = Page(report(model, X, y).html)
    assert f"of {facts.describe(model).n_nodes} nodes, down to depth" in page.words
    assert "rules that cover less left out" in page.words


def test_a_forest_shows_its_out_of_bag_error_and_importances() -> None:
    model, _, page = _classified("forest")
    assert f"out-of-bag accuracy {percent(model.oob_score_)}" in page.words
    assert "Out-of-bag error" in page.words
    assert "95 % intervals" in page.words
    assert "rise of the out-of-bag error when permuted" in page.words


def test_boosting_shows_errors_bound_and_margins() -> None:
    model, _, page = _classified("ada")
    described = facts.describe(model)
    assert f"training error {percent(described.training_error, 2)}" in page.words
    assert "Errors, round by round" in page.words
    assert "How clearly rows are right" in page.words
    X, y = [[float(k)] for k in range(40)], ["a", "b", "a", "b"] * 10
    two = margrove.AdaBoostClassifier(n_estimators=5).fit(X, y)
    assert "bound of the training error" in Page(report(two, X, y).html).words


def test_gradient_boosting_shows_its_losses() -> None:
    model, _, page = _classified("hist")
    described = facts.describe(model)
    assert f"loss {number(described.loss_at_end)}" in page.words
    assert "Loss, round by round" in page.words
    assert "held-out rows" in page.words


def test_probabilities_are_judged_where_there_are_some() -> None:
    model, _, page = _classified("forest")
    X, y = _flowers()
    found = margrove.reliability(model, X[1::2], y[1::2])
    assert f"Brier score {number(found.brier.score)}" in page.words
    roc = predictions.roc_curves(model, X[1::2], y[1::2])
    assert f"Area under the curve {number(roc.area, 4)}" in page.words
    words = " ".join(_classified("svc")[2].words.split())
    assert "SVC gives scores but no probabilities" in words
    assert "margrove.calibrate" in words
    assert "calibration error" not in words


def test_a_calibrated_machine_is_looked_into() -> None:
    X, y = _flowers()
    machine = make_pipeline(StandardScaler(), margrove.LinearSVC())
    model = CalibratedClassifierCV(machine, cv=3, ensemble=False).fit(X[::2], y[::2])
    found = report(model, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2])
    assert found.gaps == ()
    page = require_harmless(found.html)
    assert "LinearSVC predicts" in page.words
    assert "do probabilities come true?" in page.words
    assert "petal width" in page.words


def test_the_summary_ranks_columns_as_their_charts_are_ranked() -> None:
    model, _, page = _classified("forest")
    X, _ = _flowers()
    curves = facts.partial_dependence_facts(model, X[1::2], max_rows=300).curves
    names = [f"“{curve.name}”" for curve in curves[:3]]
    assert f"{names[0]}, {names[1]} and {names[2]} move the answer most" in page.words
    assert "importances of the model measure something else" in " ".join(page.words.split())


def _compared(scores: dict[str, list[float]], scoring: str = "r2", n_rows: int = 100) -> object:
    models = [
        ModelScore(
            name,
            float(np.mean(values)),
            ConfidenceInterval(min(values), max(values)),
            np.array(values),
            1,
            1,
        )
        for name, values in scores.items()
    ]
    return Comparison(tuple(models), (), (), scoring, "corrected_t", 0.95, 5, n_rows)


def test_one_very_bad_score_does_not_squeeze_the_others() -> None:
    found = _compared({"good": [0.8, 0.9], "fair": [0.6, 0.7], "awful": [-4000.0, -12.0]})
    page = Page(str(leaderboard_section(found).blocks[1].chart))
    dots = [
        float(circle["cx"]) for circle in page.all("circle") if circle["class"].startswith("dot")
    ]
    assert len(dots) == 2
    assert dots[0] - dots[1] > 40
    (arrow,) = [path for path in page.all("path") if "dot" in path["class"]]
    assert arrow["d"].endswith("l8 -5v10z")
    assert number(-2006.0) in page.words
    assert f"begins at {number(-0.5)}" in leaderboard_section(found).blocks[1].caption


@pytest.mark.parametrize(
    ("scoring", "awful", "is_cut"),
    [("neg_mean_squared_error", -1e6, True), ("neg_mean_squared_error", -1.1, False),
     ("accuracy", 0.2, False), ("roc_auc", 0.5, False)],
)  # fmt: skip
def test_axes_are_cut_only_where_nothing_else_can_be_seen(scoring, awful, is_cut) -> None:
    good = -1.0 if scoring.startswith("neg") else 0.99
    found = _compared({"a": [good] * 2, "b": [good - 0.01] * 2, "c": [awful] * 2}, scoring)
    figure = leaderboard_section(found).blocks[1]
    assert ("begins at" in figure.caption) == is_cut


def test_an_accuracy_has_no_interval_that_is_narrower_than_that_of_its_rows() -> None:
    scores = {"baseline": [0.6, 0.6], "model": [0.5, 0.9]}
    found = with_intervals_of_rows(_compared(scores, "accuracy"))
    assert found["baseline"].interval == pytest.approx(wilson_interval(0.6, 100))
    assert found["model"].interval == (0.5, 0.9)
    numbers = _compared(scores)
    assert with_intervals_of_rows(numbers) is numbers
    meaning = meaning_of_intervals(found)
    assert "fold to fold" in meaning
    assert "not by whether intervals overlap" in meaning


def test_comparison_diagnosis_and_tuning() -> None:
    X, y = _flowers()
    tree = margrove.DecisionTreeClassifier()
    models = {"a tree": tree, "a stump": margrove.DecisionTreeClassifier(max_depth=1)}
    comparison = margrove.compare(models, X, y, random_state=0)
    diagnosis = margrove.doctor(X.assign(constant=1.0), y, estimate=False)
    search = margrove.SVCCV(Cs=3, gammas=3).fit(X, y)
    found = report(search, X, y, comparison=comparison, diagnosis=diagnosis, tuning=search)
    assert found.gaps == ()
    page = require_harmless(found.html)
    assert _sections(page)[1:4] == ["data", "leaderboard", "tuning"]
    assert comparison.sentence in page.words
    assert f"{comparison['a stump'].score:.4f}" in page.words
    for finding in diagnosis.findings:
        assert finding.message in page.words
    assert "Score for each C and gamma" in page.words
    cells = [rect for rect in page.all("rect") if rect.get("class") == "heat"]
    assert len(cells) == 9


def test_what_autotune_tried() -> None:
    X, y = _flowers()
    tree = margrove.autotune(margrove.DecisionTreeClassifier(), X, y, random_state=0)
    page = require_harmless(report(tree, X, y).html)
    assert "tuning" in _sections(page)
    assert "ccp_alpha" in page.words
    with pytest.raises(TypeError, match="tuning must be the result"):
        report(tree, X, y, tuning="no")


def test_of_many_settings_the_best_ten_are_shown_at_once() -> None:
    scores = np.r_[np.full(30, 0.9), 0.95, np.linspace(0.1, 0.8, 20)]
    tuned = SimpleNamespace(
        candidates=tuple({"C": float(k + 1)} for k in range(len(scores))), scores=scores,
        standard_errors=np.full(len(scores), 0.01), chosen=45, score=scores[45], seconds=1.0,
        scoring="accuracy", explanation=("C was tried.",),
    )  # fmt: skip
    first, rest = (block for block in tuning_section(tuned).blocks if isinstance(block, Table))
    assert len(first.rows) == 10
    assert [row[-1].text for row in first.rows] == [""] * 9 + ["chosen"]
    assert first.rows[0][1].text == "0.95"
    assert not first.folded
    assert rest.folded == "30 settings more"
    assert rest.note == "11 settings with lower scores left out."
    equal = SimpleNamespace(**{**vars(tuned), "scores": np.full(len(scores), 0.9)})
    first = next(block for block in tuning_section(equal).blocks if isinstance(block, Table))
    assert first.note == "51 settings share the highest score."


def test_without_held_out_rows_it_says_that_figures_flatter() -> None:
    X, y = _flowers()
    page = Page(report(margrove.DecisionTreeClassifier().fit(X, y), X, y).html)
    assert "No rows were held out" in page.words
    assert "These rows were used for training" in page.words


def test_the_code_makes_the_same_model() -> None:
    X, y = _prices()
    model = make_pipeline(StandardScaler(), margrove.SVR(C=7.5, epsilon=0.2)).fit(X, y)
    page = Page(report(model, X, y, seed=3, source="some/folder/prices.csv").html)
    (code,) = page.texts["code"]
    assert "some/folder" not in page.words
    assert "source = 'prices.csv'" in code
    program = code.rpartition("margrove.report")[0]
    names = {"X": X, "y": y}
    exec(program, names)  # what a reader would paste
    np.testing.assert_array_equal(names["model"].predict(X), model.predict(X))


def test_a_recipe_is_shown() -> None:
    X, y = _prices()
    model = margrove.DecisionTreeRegressor(max_depth=1).fit(X, y)
    recipe = {"command": "margrove fit 'a b.csv'", "target": "price", "folds": 5}
    page = Page(report(model, X, y, recipe=recipe, title="Houses").html)
    assert page.texts["title"][0] == "Houses"
    assert "predicts “price”" in page.words
    assert "margrove fit 'a b.csv'" in page.texts["code"]
    page = Page(report(model, X, y, recipe="first\n  second").html)
    assert "first\n  second" in page.texts["code"]


def test_the_same_arguments_give_the_same_bytes() -> None:
    X, y = _flowers()
    model = _CLASSIFIERS["forest"].fit(X[::2], y[::2])
    one, other = (report(model, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2]) for _ in range(2))
    assert one.html == other.html


def test_saving_is_atomic_and_does_not_overwrite(tmp_path) -> None:
    X, y = _prices()
    found = report(margrove.DecisionTreeRegressor(max_depth=1).fit(X, y), X, y)
    path = tmp_path / "report.html"
    assert found.save(path) == path
    assert path.read_text(encoding="utf-8") == found.html
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        found.save(path)
    assert path.read_text() == "mine"
    found.save(str(path), overwrite=True)
    assert path.read_text(encoding="utf-8") == found.html
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_outliers_have_a_report_too() -> None:
    X, _ = _prices()
    found = report(margrove.OneClassSVM(nu=0.1).fit(X), X)
    assert found.gaps == ()
    page = require_harmless(found.html)
    assert _sections(page) == ["summary", "data", "model", "reproduction"]


def test_a_thousand_columns_and_many_classes_stay_small() -> None:
    generator = np.random.default_rng(0)
    y = np.array([f"class {k} {'x' * 100}" for k in np.arange(300) % 150])
    X = generator.normal(size=(300, 1000))
    X[:, 0] = np.arange(300) % 150
    model = margrove.RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y)
    found = report(model, X, y)
    assert found.gaps == ()
    assert len(found.html) < 3_000_000
    page = require_harmless(found.html)
    assert "The first 60 of 1,000 columns are shown; 940 are left out." in page.words
    assert "The matrix of all 150 classes is left out" in page.words
    assert "The 50 classes with the lowest F1 are shown; 100 are left out." in page.words


def test_nan_and_infinity_are_shown_as_such() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 2))
    X[::7, 0] = np.nan
    y = np.where(X[:, 1] > 0, 1, 0)
    found = report(margrove.DecisionTreeClassifier().fit(X, y), X, y)
    assert found.gaps == ()
    assert "15.0 %" in Page(found.html).words  # missing
    assert '="nan"' not in found.html


def test_unknown_classes_in_held_out_rows() -> None:
    X, y = _flowers()
    model = margrove.RandomForestClassifier(5, random_state=0).fit(X[:100:2], y[:100:2])
    found = report(model, X[:100:2], y[:100:2], X_test=X[1::2], y_test=y[1::2])
    assert found.gaps == ()
    assert "virginica" in Page(found.html).words


def test_labels_and_gaps_in_a_table_that_trees_take_as_it_is() -> None:
    X = pd.DataFrame({"weather": ["sun", "rain", None, "snow"] * 10, "wind": np.arange(40.0)})
    y = np.where(X["weather"] == "sun", "out", "in")
    found = report(margrove.DecisionTreeClassifier().fit(X, y), X, y)
    assert found.gaps == ()
    page = require_harmless(found.html)
    assert "category" in page.words
    assert "25.0 %" in page.words


def test_arguments_that_do_not_belong_together() -> None:
    X, y = _prices()
    model = margrove.DecisionTreeRegressor(max_depth=1).fit(X, y)
    with pytest.raises(ValueError, match="X_test and y_test belong together"):
        report(model, X, y, X_test=X)
    with pytest.raises(InvalidDataError, match="160 rows and y 3"):
        report(model, X, y[:3])


def test_without_jinja_it_says_how_to_get_it(monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"margrove\[report\]"):
        report(None, None)


def test_headings_captions_and_labels_are_there() -> None:
    for _, _, page in (_classified("tree"), _regressed("forest")):
        assert len(page.all("h1")) == 1
        assert len(page.all("caption")) == len(page.all("table"))
        for svg in page.all("svg"):
            assert svg["role"] == "img"
            assert svg["aria-label"]
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(set(ids)) == len(ids)
        assert page.all("html")[0]["lang"] == "en"
