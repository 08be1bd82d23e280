"""Raw tables, models, files: what is saved predicts the same from any order of columns."""

from __future__ import annotations

import io
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove as m
from margrove.exchange.model_file.files import load, save
from margrove.tables import TablePreparation, read_table, table_model, task_of_table
from margrove.workbench.tables.table_models import form_for, types_of_model

N = 120
WORDS = ["good", "bad", "fine", "awful", "nice"]


def raw_table() -> pl.DataFrame:
    k = np.arange(N)
    return pl.DataFrame(
        {
            "age": [None if i % 11 == 0 else float(i % 37) for i in range(N)],
            "colour": [None if i % 13 == 0 else ["red", "green", "blue"][i % 3] for i in range(N)],
            "when": pl.Series((k * 7 % 365).astype("datetime64[D]")),
            "text": [f"{WORDS[i % 5]} service and {WORDS[i * 3 % 5]} food {i}" for i in range(N)],
            "row_id": k,
        }
    )


X = raw_table()
CLASSES = np.where((np.arange(N) % 3 == 0) | (np.arange(N) % 5 == 1), "yes", "no")
NUMBERS = np.arange(N) % 37 + 5.0 * (np.arange(N) % 3)
MODELS = {
    "SVC": (m.SVC(), CLASSES),
    "LinearSVC": (m.LinearSVC(), CLASSES),
    "SVR": (m.SVR(), NUMBERS),
    "Perceptron": (m.Perceptron(), CLASSES),
    "DecisionTreeClassifier": (m.DecisionTreeClassifier(max_depth=5), CLASSES),
    "RandomForestClassifier": (m.RandomForestClassifier(5, random_state=0), CLASSES),
    "ExtraTreesRegressor": (m.ExtraTreesRegressor(5, random_state=0), NUMBERS),
    "HistGradientBoostingRegressor": (m.HistGradientBoostingRegressor(max_iter=5), NUMBERS),
    "HistGradientBoostingClassifier": (m.HistGradientBoostingClassifier(max_iter=5), CLASSES),
    "GradientBoostingRegressor": (m.GradientBoostingRegressor(n_estimators=3), NUMBERS),
    "AdaBoostClassifier": (m.AdaBoostClassifier(n_estimators=5), CLASSES),
    "AdaBoostRegressor": (m.AdaBoostRegressor(n_estimators=3, random_state=0), NUMBERS),
    "BaggingClassifier": (m.BaggingClassifier(n_estimators=3, random_state=0), CLASSES),
    "BaggingClassifier of SVC": (
        m.BaggingClassifier(m.SVC(), n_estimators=2, random_state=0),
        CLASSES,
    ),
}


def fitted(name):
    estimator, y = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return table_model(estimator).fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_loaded_predicts_the_same_from_any_order_of_columns(name) -> None:
    model, file = fitted(name), io.BytesIO()
    save(model, file, about={"target": "y", "task": "classification"})
    file.seek(0)
    again = load(file)
    shuffled = X.select("text", "when", "age", "colour").with_columns(extra=pl.lit("new"))
    expected = model.predict(X)
    assert again.predict(shuffled).tolist() == expected.tolist()
    assert again.predict(shuffled.to_pandas()).tolist() == expected.tolist()
    for method in ("decision_function", "predict_proba"):
        if hasattr(model, method):
            found = getattr(again, method)(shuffled)
            assert found.tobytes() == getattr(model, method)(X).tobytes()
    assert again.predict(shuffled[:1]).tolist() == expected[:1].tolist()


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
@pytest.mark.parametrize("name", ["LinearSVC", "RandomForestClassifier"])
def test_libraries_of_frames_may_change(name, library) -> None:
    frame = X.to_pandas() if library == "pandas" else X.to_arrow()
    estimator, y = MODELS[name]
    model = table_model(estimator).fit(frame, y)
    assert model.predict(frame).tolist() == fitted(name).predict(X).tolist()
    assert model.predict(X).tolist() == model.predict(frame).tolist()


def test_models_learn_from_raw_tables() -> None:
    for name in ("LinearSVC", "RandomForestClassifier", "ExtraTreesRegressor"):
        assert fitted(name).score(X, MODELS[name][1]) > 0.7
    model = table_model(m.LinearSVC(), types={"row_id": "number"})
    assert cross_val_score(model, X.to_pandas(), CLASSES, cv=3).mean() > 0.5


@pytest.mark.parametrize(
    ("estimator", "form"),
    [
        (m.SVC(), "numbers"),
        (m.SVCCV(), "numbers"),
        (m.KernelPerceptron(), "numbers"),
        (m.DecisionTreeRegressor(), "categories"),
        (m.DecisionTreeRegressor(categorical_features=None), "numbers"),
        (m.HistGradientBoostingClassifier(), "categories"),
        (m.GradientBoostingClassifier(), "numbers"),
        (m.BaggingRegressor(), "categories"),
        (m.BaggingRegressor(m.DecisionTreeRegressor()), "categories"),
        (m.BaggingRegressor(m.SVR()), "numbers"),
        (m.AdaBoostClassifier(), "categories"),
        (m.AdaBoostClassifier(m.LinearSVC()), "numbers"),
        (m.BaggingClassifier(make_pipeline(StandardScaler(), m.SVC())), "numbers"),
        (m.BaggingClassifier(m.BaggingClassifier()), "categories"),
        (GridSearchCV(m.RandomForestClassifier(), {}), "categories"),
        (GridSearchCV(m.SVC(), {}), "numbers"),
        (m.tune.GridSearchCV(m.DecisionTreeClassifier(), {}), "categories"),
        (CalibratedClassifierCV(m.RandomForestClassifier(3)), "categories"),
        (CalibratedClassifierCV(), "numbers"),
        (VotingClassifier([("a", m.RandomForestClassifier()), ("b", m.SVC())]), "numbers"),
        (make_pipeline(m.RandomForestClassifier()), "categories"),
        (make_pipeline(StandardScaler(), m.RandomForestClassifier()), "numbers"),
        (RandomForestClassifier(), "numbers"),
        (LogisticRegression(), "numbers"),
    ],
    ids=lambda case: case if isinstance(case, str) else type(case).__name__,
)
def test_each_family_gets_its_form(estimator, form) -> None:
    assert form_for(estimator) == form
    model = table_model(estimator, types={"age": "number"})
    assert [name for name, _ in model.steps] == ["prepare", "model"]
    assert model["prepare"].form == form
    assert model["prepare"].types == {"age": "number"}
    assert model["model"] is estimator
    if form == "categories":
        y = NUMBERS if is_regressor(estimator) else CLASSES
        assert len(model.fit(X, y).predict(X)) == N


def test_what_is_no_estimator() -> None:
    for wrong in (m.SVC, None, "SVC"):
        with pytest.raises(TypeError, match="estimator must be an instance"):
            table_model(wrong)


def test_types_of_training_are_used_in_reading() -> None:
    zips = [f"{k % 7:05d}" for k in range(60)]
    text = "zip,x,y\n" + "".join(f"{code},{k},{k % 7 > 3}\n" for k, code in enumerate(zips))
    task = task_of_table(read_table(io.BytesIO(text.encode())))
    model = table_model(m.RandomForestClassifier(3, random_state=0), task.types)
    model.fit(task.X, task.y)
    assert types_of_model(model) == {"zip": "category", "x": "number"}
    later = read_table(io.BytesIO(b"x,zip\n1,00003\n2,1\n"), types=types_of_model(model))
    assert later.frame["zip"].to_list() == ["00003", "1"]
    assert types_of_model(m.SVC()) == {}
    assert types_of_model(TablePreparation().fit(task.X)) == {"zip": "category", "x": "number"}
