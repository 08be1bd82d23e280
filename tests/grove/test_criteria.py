"""One entry of CRITERIA is all that a criterion needs: it arrives everywhere."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import margrove
from margrove import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from margrove.cli import main
from margrove.datasets import load_diabetes, load_iris, load_restaurant
from margrove.exceptions import ModelFileError
from margrove.grove.criteria import (
    CRITERIA,
    class_criteria,
    criteria_table,
    impurity,
    number_criteria,
    register_criterion,
)
from margrove.studio.learners.registry import LEARNERS

DOCS = Path(__file__).parents[2] / "docs"
FORESTS = [RandomForestClassifier, ExtraTreesClassifier, RandomForestRegressor, ExtraTreesRegressor]
MODULE = '''
import numpy as np
import margrove

def tsallis(sums, weight, q):
    """Tsallis entropy of order q"""
    return (1.0 - np.sum((sums / weight) ** q)) / (q - 1.0)

margrove.register_criterion("tsallis", tsallis, parameters={"q": 2.0})

def spread(sums, weight):
    """variance around the mean, once more"""
    return sums[1] / weight - (sums[0] / weight) ** 2

margrove.register_criterion("spread", spread, for_classes=False)
'''


@pytest.fixture(autouse=True)
def registered(tmp_path, monkeypatch):
    """A module of a user's that registers "tsallis", of order 2 the Gini index, and "spread"."""
    (tmp_path / "own_criteria.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    __import__("own_criteria")
    yield
    del CRITERIA["tsallis"], CRITERIA["spread"], sys.modules["own_criteria"]


def data_for(cls):
    """Numbers with gaps, and no two splits that are equally good."""
    load = load_iris if cls.__name__.endswith("Classifier") else load_diabetes
    X, y = load(return_X_y=True)
    X = X + np.random.default_rng(0).standard_normal(X.shape) * 1e-3 * X.std(axis=0)
    X[::7, 1] = np.nan
    return X, y


def criteria_for(cls):
    """The registered one, and the one of margrove that it equals."""
    is_class = cls.__name__.endswith("Classifier")
    return ("tsallis", "gini") if is_class else ("spread", "squared_error")


def same_trees(a, b, *arrays):
    return len(a.trees_) == len(b.trees_) and all(
        np.array_equal(getattr(mine, name), getattr(other, name))
        for mine, other in zip(a.trees_, b.trees_, strict=True)
        for name in arrays
    )


# -- learning --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"max_features": 2}, {"splitter": "random"}])
@pytest.mark.parametrize("cls", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_trees_take_it(cls, options) -> None:
    X, y = data_for(cls)
    own, theirs = criteria_for(cls)
    given = {"random_state": 0, "max_depth": 5, **options}
    found = cls(criterion=own, **given).fit(X, y).arrays_
    wanted = cls(criterion=theirs, **given).fit(X, y).arrays_
    assert np.array_equal(found.feature, wanted.feature)
    assert np.array_equal(found.threshold, wanted.threshold, equal_nan=True)
    np.testing.assert_allclose(found.impurity, wanted.impurity, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cls", FORESTS)
def test_forests_take_it(cls) -> None:
    X, y = data_for(cls)
    own, theirs = criteria_for(cls)
    given = {"n_estimators": 4, "random_state": 0, "max_depth": 5, "max_features": 2}
    found = cls(criterion=own, n_jobs=1, **given).fit(X, y)
    again = cls(criterion=own, n_jobs=2, **given).fit(X, y)
    assert same_trees(found, again, "nodes", "values", "impurity", "decrease", "words")
    wanted = cls(criterion=theirs, **given).fit(X, y)
    for mine, other in zip(found, wanted, strict=True):
        assert np.array_equal(mine.arrays_.feature, other.arrays_.feature)
        assert np.array_equal(mine.arrays_.threshold, other.arrays_.threshold, equal_nan=True)
    np.testing.assert_allclose(
        found.feature_importances_, wanted.feature_importances_, rtol=1e-9, atol=1e-12
    )
    alone = DecisionTreeClassifier if cls in FORESTS[:2] else DecisionTreeRegressor
    assert isinstance(found[0], alone)
    assert found[0].criterion == own


def test_forests_of_categories_weights_and_few_leaves() -> None:
    X, y = load_restaurant(return_X_y=True)
    X, y = np.concatenate([X, X, X]), np.concatenate([y, y, y])
    given = {"n_estimators": 5, "random_state": 0, "max_leaf_nodes": 4, "class_weight": "balanced"}
    own = RandomForestClassifier(criterion="tsallis", oob_score=True, **given).fit(X, y)
    assert all(tree.get_n_leaves() <= 4 for tree in own)
    assert 0.0 <= own.oob_score_ <= 1.0
    assert own.score(X, y) > 0.7


def test_what_does_not_go_together_says_so() -> None:
    X, y = data_for(DecisionTreeRegressor)
    both = np.column_stack([y, y])
    for model in (DecisionTreeRegressor(criterion="spread"), RandomForestRegressor(
        2, criterion="spread")):  # fmt: skip
        with pytest.raises(ValueError, match=r"criterion='spread'.*2 outputs.*'squared_error'"):
            model.fit(X, both)
        model.set_params(monotonic_cst=[1] + [0] * 9)
        with pytest.raises(ValueError, match=r"criterion='spread'.*leave monotonic_cst out"):
            model.fit(X, y)
    for name in ("splitter='oblique'", "split='multiway'"):
        parameter, value = name.replace("'", "").split("=")
        model = DecisionTreeClassifier(criterion="tsallis", **{parameter: value})
        with pytest.raises(ValueError, match=f"{name}.*criterion='tsallis'"):
            model.fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match=r"'gain_ratio' is for single trees.*'tsallis'"):
        RandomForestClassifier(criterion="gain_ratio").fit(*load_iris(return_X_y=True))


def test_boosting_takes_trees_of_it() -> None:
    X, y = load_iris(return_X_y=True)
    base = DecisionTreeClassifier(max_depth=1, criterion="tsallis")
    model = margrove.AdaBoostClassifier(base, n_estimators=3).fit(X, y)
    assert model.score(X, y) > 0.8


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [DecisionTreeClassifier, RandomForestClassifier])
def test_files_keep_name_and_parameters(cls, tmp_path) -> None:
    X, y = data_for(cls)
    model = cls(criterion="tsallis", max_depth=3, random_state=0).fit(X, y)
    file = tmp_path / "a.margrove"
    margrove.save(model, file)
    again = margrove.load(file)
    assert again.criterion == "tsallis"
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert b"np.sum" not in file.read_bytes()
    kept = CRITERIA.pop("tsallis")
    try:
        with pytest.raises(ModelFileError, match=r"criterion='tsallis'.*register_criterion"):
            margrove.load(file)
        register_criterion("tsallis", kept.impurity, parameters={"q": 3.0})
        with pytest.raises(ModelFileError, match=r"\{'q': 3.0\}.*\{'q': 2.0\}"):
            margrove.load(file)
    finally:
        CRITERIA["tsallis"] = kept


def test_another_process_must_register_it(tmp_path) -> None:
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(criterion="tsallis", max_depth=2).fit(X, y)
    margrove.save(model, tmp_path / "a.margrove")
    program = textwrap.dedent("""
        import margrove, margrove.exceptions
        try:
            margrove.load("a.margrove")
        except margrove.exceptions.ModelFileError as error:
            print(error)
        import own_criteria
        print(margrove.load("a.margrove").criterion)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    refused, loaded = done.stdout.strip().split("\n")
    assert "criterion='tsallis' is not registered here" in refused
    assert "margrove.register_criterion('tsallis', function, parameters={'q': 2.0})" in refused
    assert loaded == "tsallis"


# -- offers ----------------------------------------------------------------------------------------


def test_the_command_line_takes_it(tmp_path, capsys) -> None:
    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, "-o", str(tmp_path / "a.margrove"), "--force"])
        return stopped.value.code, capsys.readouterr().err

    fit = ("fit", "--data", "iris", "--learner", "tree", "--param")
    assert run(*fit, "criterion=tsallis")[0] == 0
    assert margrove.load(tmp_path / "a.margrove")[-1].criterion == "tsallis"
    code, told = run(*fit, "criterion=nonsense")
    assert code == 2
    assert "'tsallis'" in told


@pytest.mark.parametrize("cls", [DecisionTreeClassifier, DecisionTreeRegressor, *FORESTS])
def test_the_studio_offers_it(cls) -> None:
    own, _ = criteria_for(cls)
    offered = next(one for one in LEARNERS.values() if one.name == cls.__name__)
    menu = next(one for one in offered.parameters if one.name == "criterion").choices()
    titles = {choice.value: choice.title for choice in menu}
    assert titles[own] == f"{own}: {CRITERIA[own].summary}"
    assert "friedman_mse" not in titles


def test_tests_and_docs_see_it() -> None:
    assert "tsallis" in class_criteria(in_forests=True, distinct=True)
    assert "spread" in number_criteria(in_forests=True, distinct=True)
    assert '| `"tsallis"` | classes | Tsallis entropy of order q |' in criteria_table()
    assert impurity("tsallis", [9, 5]) == pytest.approx(impurity("gini", [9, 5]))


def test_docs_have_the_table() -> None:
    del CRITERIA["tsallis"], CRITERIA["spread"]
    try:
        assert "\n".join(criteria_table()) in (DOCS / "decision-trees.md").read_text("utf-8")
    finally:
        del sys.modules["own_criteria"]
        __import__("own_criteria")


# -- the registry ----------------------------------------------------------------------------------


def test_names_are_new_and_functions_are_functions() -> None:
    with pytest.raises(ValueError, match="exists already"):
        register_criterion("gini", lambda sums, weight: 0.0)
    with pytest.raises(TypeError, match="function must be callable"):
        register_criterion("new", 3)
    with pytest.raises(TypeError, match="name must be a string"):
        register_criterion(3, lambda sums, weight: 0.0)


@pytest.mark.parametrize("name", list(CRITERIA))
def test_entries_are_whole(name) -> None:
    entry = CRITERIA[name]
    assert entry.name == name
    assert entry.summary
    assert (entry.of_shares is None) == (not entry.for_classes)
    if entry.same_as is not None:
        other = CRITERIA[entry.same_as]
        assert (entry.code, entry.for_classes, entry.exact_ties) == (
            other.code, other.for_classes, other.exact_ties,
        )  # fmt: skip
    else:
        assert entry.formula


@pytest.mark.parametrize("name", class_criteria())
def test_pure_nodes_have_no_impurity(name) -> None:
    assert impurity(name, [7, 0, 0]) == 0.0
    assert impurity(name, [1, 1, 1]) > impurity(name, [2, 1, 0]) - 1e-12
