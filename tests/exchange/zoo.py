"""One small model of each kind, and of what makes kinds differ inside."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

import margrove
from margrove import kernels
from margrove.tables import TablePreparation, table_model

__all__ = ["ZOO", "Specimen", "answers"]


def _table(n: int = 40, d: int = 3) -> np.ndarray:
    """Numbers that look random, and are the same on any machine, for ever."""
    k = np.arange(1, n * d + 1).reshape(n, d)
    return ((31 * k**3 + 17 * k**2 + 7919 * k) % 2003 - 1001) / 1024.0


X = _table()
TWO = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
THREE = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0).astype(int)
NUMBERS = np.round(3.0 * X[:, 0] - X[:, 1] ** 2, 3)
SPARSE = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
COLOURS = np.array(["red", "green", "blue", "grey"], dtype=object)[np.arange(40) * 7 % 4]
MIXED = np.column_stack([X[:, 0].astype(object), COLOURS, X[:, 2].astype(object)])
WITH_GAPS = np.where(np.abs(X) < 0.1, np.nan, X)
TEXTS = [f"the {a} {b}" for a, b in zip(COLOURS, np.roll(COLOURS, 3), strict=True)]
TWO_COLUMNS = np.column_stack([THREE, (X[:, 2] > 0).astype(int)])


def _frame(**columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


def _named() -> Any:
    return _frame(height=X[:, 0], colour=COLOURS, weight=X[:, 2])


def _raw() -> Any:
    """A table as it comes: with gaps, labels, days and texts."""
    import pandas as pd

    gaps = np.where(X[:, 0] < -0.8, np.nan, X[:, 0])
    days = pd.Series(np.datetime64("2024-01-01", "us") + np.arange(40) * np.timedelta64(37, "h"))
    labels = np.where(np.arange(40) % 9 == 0, None, COLOURS)
    return _frame(height=gaps, colour=labels, day=days, text=TEXTS, row_id=np.arange(40))


RAW = _raw()
RAW_TYPES = {"text": "text"}


def _fit(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X, y)


def _sparsified(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X, y).sparsify()


def _stream(model: Any, X: Any, y: Any) -> Any:
    known = {} if y is NUMBERS else {"classes": np.unique(y)}
    for part in (slice(0, 20), slice(20, 40)):
        model.partial_fit(X[part], y[part], **known)
    return model


@dataclass(frozen=True)
class Specimen:
    """An estimator that is not fitted, and what it is fitted on."""

    estimator: Any
    X: Any
    y: Any
    how: Callable[[Any, Any, Any], Any] = _fit

    def fitted(self, **parameters: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.how(clone(self.estimator).set_params(**parameters), self.X, self.y)


def _columns() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["height"]),
            ("labels", OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ],
        remainder="passthrough",
    )


m = margrove
ZOO: dict[str, Specimen] = {
    # margin machines
    "perceptron": Specimen(m.Perceptron(max_iter=20), X, TWO),
    "perceptron of three, averaged": Specimen(m.Perceptron(average=True, max_iter=20), X, THREE),
    "perceptron, sparse weights": Specimen(
        m.Perceptron(penalty="l1", max_iter=20), X, THREE, _sparsified
    ),
    "perceptron of a stream": Specimen(m.Perceptron(average=True), X, THREE, _stream),
    "kernel perceptron": Specimen(m.KernelPerceptron(max_iter=5), X, THREE),
    "kernel perceptron of a stream": Specimen(m.KernelPerceptron(), X, THREE, _stream),
    "SVC": Specimen(m.SVC(), X, TWO),
    "SVC with probabilities": Specimen(m.SVC(probability=True), X, THREE),
    "SVC against the rest": Specimen(m.SVC(multi_class="ovr", kernel="poly"), X, THREE),
    "SVC of a kernel": Specimen(m.SVC(kernel=kernels.Laplacian(gamma=0.5)), X, TWO),
    "SVC, linear": Specimen(m.SVC(kernel="linear", class_weight="balanced"), X, THREE),
    "SVC, sparse": Specimen(m.SVC(), SPARSE, THREE),
    "SVC, sparse coefficients": Specimen(m.SVC(kernel="linear"), SPARSE, THREE),
    "NuSVC, sparse coefficients": Specimen(m.NuSVC(nu=0.3), SPARSE, TWO),
    "SVR, sparse coefficients": Specimen(m.SVR(), SPARSE, NUMBERS),
    "OneClassSVM, sparse coefficients": Specimen(m.OneClassSVM(nu=0.2), SPARSE, None),
    "SVC, precomputed": Specimen(m.SVC(kernel="precomputed"), X @ X.T, TWO),
    "SVC, float32": Specimen(m.SVC(), X.astype(np.float32), TWO),
    "SVC with class weights": Specimen(m.SVC(class_weight={"no": 2.0, "yes": 1}), X, TWO),
    "NuSVC": Specimen(m.NuSVC(nu=0.3, kernel="sigmoid", gamma=0.1), X, TWO),
    "SVR": Specimen(m.SVR(), X, NUMBERS),
    "SVR of chi2": Specimen(m.SVR(kernel="chi2"), np.abs(X), NUMBERS),
    "NuSVR": Specimen(m.NuSVR(), X, NUMBERS),
    "OneClassSVM": Specimen(m.OneClassSVM(nu=0.2), X, None),
    "SVCCV": Specimen(m.SVCCV([0.1, 1.0, 10.0], [0.1, 1.0], cv=3), X, THREE),
    "SVCCV of C alone": Specimen(m.SVCCV([0.1, 1.0], cv=3, kernel="linear"), X, TWO),
    "SVRCV": Specimen(m.SVRCV([0.1, 1.0], [0.1, 1.0], cv=3), X, NUMBERS),
    "LinearSVCCV": Specimen(m.LinearSVCCV([0.1, 1.0], cv=3), X, THREE),
    "LinearSVC": Specimen(m.LinearSVC(), X, THREE),
    "LinearSVC of a stream": Specimen(m.LinearSVC(loss="hinge"), X, THREE, _stream),
    "LinearSVC, crammer_singer": Specimen(m.LinearSVC(multi_class="crammer_singer"), X, THREE),
    "LinearSVR": Specimen(m.LinearSVR(), X, NUMBERS),
    "LinearSVR of a stream": Specimen(m.LinearSVR(), X, NUMBERS, _stream),
    "PolynomialMap": Specimen(m.PolynomialMap(degree=3), X, None),
    "RBFTaylorMap": Specimen(m.RBFTaylorMap(degree=2), X, None),
    # trees
    "tree of classes": Specimen(m.DecisionTreeClassifier(), X, THREE),
    "tree of categories": Specimen(m.DecisionTreeClassifier(max_depth=4), MIXED, TWO),
    "tree of names": Specimen(m.DecisionTreeClassifier(max_depth=3), _named(), TWO),
    "tree of many branches": Specimen(
        m.DecisionTreeClassifier(split="multiway", criterion="gain_ratio"), MIXED, TWO
    ),
    "tree, oblique": Specimen(m.DecisionTreeClassifier(splitter="oblique"), X, TWO),
    "tree of two outputs": Specimen(m.DecisionTreeClassifier(max_depth=3), X, TWO_COLUMNS),
    "tree of numbers": Specimen(m.DecisionTreeRegressor(max_depth=4), X, NUMBERS),
    "tree of medians": Specimen(
        m.DecisionTreeRegressor(criterion="absolute_error", max_depth=3), WITH_GAPS, NUMBERS
    ),
    # forests
    "random forest": Specimen(
        m.RandomForestClassifier(3, random_state=0, oob_score=True), X, THREE
    ),
    "random forest of categories": Specimen(
        m.RandomForestClassifier(3, random_state=0), MIXED, TWO
    ),
    "random forest of two outputs": Specimen(
        m.RandomForestClassifier(2, random_state=0, max_depth=3), X, TWO_COLUMNS
    ),
    "random forest of numbers": Specimen(
        m.RandomForestRegressor(3, random_state=0, max_depth=4), X, NUMBERS
    ),
    "random forest with samples": Specimen(
        m.RandomForestRegressor(3, random_state=0, max_depth=3, keep_samples=True, oob_score=True),
        X,
        NUMBERS,
    ),
    "random forest of medians": Specimen(
        m.RandomForestRegressor(2, random_state=0, max_depth=3, criterion="absolute_error"),
        X,
        NUMBERS,
    ),
    "extra trees": Specimen(m.ExtraTreesClassifier(2, random_state=0, max_depth=3), X, TWO),
    "extra trees of two numbers": Specimen(
        m.ExtraTreesRegressor(2, random_state=0, max_depth=3),
        X,
        np.column_stack([NUMBERS, X[:, 2]]),
    ),
    # ensembles of any
    "bagging": Specimen(m.BaggingClassifier(n_estimators=3, random_state=0), X, TWO),
    "bagging of machines": Specimen(
        m.BaggingClassifier(
            make_pipeline(StandardScaler(), m.SVC()),
            n_estimators=2,
            random_state=0,
            max_features=2,
            oob_score=True,
        ),
        X,
        THREE,
    ),
    "bagging of numbers": Specimen(
        m.BaggingRegressor(m.LinearSVR(), n_estimators=3, random_state=0, max_samples=0.5),
        X,
        NUMBERS,
    ),
    "AdaBoost": Specimen(m.AdaBoostClassifier(n_estimators=4, random_state=0), X, THREE),
    "AdaBoost of trees": Specimen(
        m.AdaBoostClassifier(
            m.DecisionTreeClassifier(max_depth=2),
            n_estimators=3,
            random_state=0,
            algorithm="real",
        ),
        X,
        TWO,
    ),
    "AdaBoost of categories": Specimen(
        m.AdaBoostClassifier(m.DecisionTreeClassifier(max_depth=2), n_estimators=2, random_state=0),
        MIXED,
        TWO,
    ),
    "AdaBoost, logit": Specimen(
        m.AdaBoostClassifier(n_estimators=3, random_state=0, algorithm="logit"), X, TWO
    ),
    "AdaBoost of machines": Specimen(
        m.AdaBoostClassifier(m.LinearSVC(), n_estimators=2, random_state=0), X, TWO
    ),
    "AdaBoost of numbers": Specimen(
        m.AdaBoostRegressor(n_estimators=3, random_state=0), X, NUMBERS
    ),
    # gradient boosting
    "boosting by histograms": Specimen(
        m.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=0), X, THREE
    ),
    "boosting by histograms, of categories": Specimen(
        m.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3, random_state=0),
        MIXED,
        TWO,
    ),
    "boosting of quantiles": Specimen(
        m.HistGradientBoostingRegressor(
            loss="quantile",
            quantile=0.8,
            max_iter=3,
            min_samples_leaf=5,
            random_state=0,
            early_stopping=True,
        ),
        WITH_GAPS,
        NUMBERS,
    ),
    "boosting": Specimen(
        m.GradientBoostingClassifier(n_estimators=2, random_state=0, subsample=0.7), X, THREE
    ),
    "boosting of numbers": Specimen(
        m.GradientBoostingRegressor(n_estimators=3, random_state=0, loss="huber"), X, NUMBERS
    ),
    "boosting from a machine": Specimen(
        m.GradientBoostingRegressor(n_estimators=2, random_state=0, init=m.LinearSVR()), X, NUMBERS
    ),
    "boosting from a constant": Specimen(
        m.GradientBoostingRegressor(n_estimators=2, random_state=0, init=DummyRegressor()),
        X,
        NUMBERS,
    ),
    # with estimators of scikit-learn
    "pipeline": Specimen(make_pipeline(StandardScaler(), m.SVC()), X, TWO),
    "pipeline of scalers": Specimen(
        make_pipeline(
            SimpleImputer(add_indicator=True),
            MinMaxScaler(),
            MaxAbsScaler(),
            RobustScaler(),
            m.PolynomialMap(degree=2),
            m.LinearSVC(),
        ),
        WITH_GAPS,
        TWO,
    ),
    "pipeline of a table": Specimen(make_pipeline(_columns(), m.LinearSVC()), _named(), TWO),
    "pipeline of chosen columns": Specimen(
        make_pipeline(
            ColumnTransformer(
                [
                    (
                        "labels",
                        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                        make_column_selector(dtype_include=object),
                    ),
                    ("numbers", "passthrough", slice(2, 3)),
                    ("not", "drop", [0]),
                ]
            ),
            m.DecisionTreeClassifier(max_depth=3),
        ),
        _frame(height=X[:, 0], colour=COLOURS, weight=X[:, 2]).astype({"colour": object}),
        TWO,
    ),
    "pipeline of rare categories": Specimen(
        make_pipeline(OneHotEncoder(min_frequency=10, sparse_output=False), m.LinearSVC()),
        COLOURS[1:, None],
        TWO[1:],
    ),
    "pipeline of texts": Specimen(
        make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), m.LinearSVC()), TEXTS, TWO
    ),
    "pipeline of counts": Specimen(
        make_pipeline(CountVectorizer(stop_words=["the"], dtype=np.float64), m.SVC()), TEXTS, TWO
    ),
    "voting": Specimen(
        VotingClassifier([("a", m.SVC()), ("b", "drop"), ("c", m.LinearSVC())]), X, TWO
    ),
    "voting of numbers": Specimen(
        VotingRegressor([("a", m.SVR()), ("b", m.LinearSVR())]), X, NUMBERS
    ),
    "stacking": Specimen(
        StackingClassifier(
            [("a", m.SVC()), ("b", m.DecisionTreeClassifier(max_depth=2))], m.LinearSVC(), cv=2
        ),
        X,
        TWO,
    ),
    "stacking of numbers": Specimen(
        StackingRegressor([("a", m.SVR()), ("b", m.LinearSVR())], m.LinearSVR(), cv=2), X, NUMBERS
    ),
    # of raw tables
    "preparation for machines": Specimen(
        TablePreparation(types=RAW_TYPES, max_categories=2), RAW, TWO
    ),
    "preparation for trees": Specimen(
        TablePreparation("categories", types=RAW_TYPES, max_words=3), RAW, TWO
    ),
    "machine of a raw table": Specimen(table_model(m.SVC(), types=RAW_TYPES), RAW, TWO),
    "forest of a raw table": Specimen(
        table_model(m.RandomForestClassifier(2, random_state=0), types=RAW_TYPES), RAW, TWO
    ),
    **{
        f"calibrated, {method}": Specimen(
            CalibratedClassifierCV(m.LinearSVC(), method=method, cv=2), X, TWO
        )
        for method in ("sigmoid", "isotonic", "temperature")
    },
}

_METHODS = (
    "predict", "predict_proba", "decision_function", "apply", "transform", "score_samples",
    "staged_predict", "staged_predict_proba", "staged_decision_function", "predict_log_proba",
    "decision_path", "get_feature_names_out",
)  # fmt: skip


def answers(model: Any, X: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Whatever a model can be asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = _METHODS if hasattr(model, "transform") else _METHODS[:-1]
        for name in names:
            if not hasattr(model, name):
                continue
            found = getattr(model, name)() if name.startswith("get") else getattr(model, name)(X)
            stages = list(found) if name.startswith("staged") else [found]
            if isinstance(found, (list, tuple)):
                stages = list(found)
            for k, stage in enumerate(stages):
                values = stage.toarray() if sp.issparse(stage) else np.asarray(stage)
                yield f"{name} {k}", values
