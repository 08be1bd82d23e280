"""scikit-learn patched: our classes under its names, and nothing else changed."""

from __future__ import annotations

import ast
import importlib
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris

import margrove
from margrove.exceptions import FallbackWarning, MalformedSparseError
from margrove.exchange.scikit_learn import patching
from margrove.exchange.scikit_learn.replacements import PUBLIC_HOMES, fit_counts, original

X, y = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def _unpatched():
    yield
    margrove.unpatch_sklearn()


def public(name: str) -> type:
    return getattr(importlib.import_module(PUBLIC_HOMES[name]), name)


def test_every_estimator_of_both_libraries_is_replaced() -> None:
    shared = {
        name
        for name in margrove.__all__
        for home in ("svm", "tree", "ensemble", "linear_model")
        if isinstance(getattr(margrove, name), type)
        and hasattr(importlib.import_module(f"sklearn.{home}"), name)
    }
    assert set(PUBLIC_HOMES) == shared


def test_public_names_are_ours_and_come_back() -> None:
    theirs = {name: public(name) for name in PUBLIC_HOMES}
    margrove.patch_sklearn()
    for name in PUBLIC_HOMES:
        assert issubclass(public(name), getattr(margrove, name))
        home = sys.modules[theirs[name].__module__]
        assert getattr(home, name) is theirs[name], "their own modules keep theirs"
    margrove.unpatch_sklearn()
    assert {name: public(name) for name in PUBLIC_HOMES} == theirs
    assert margrove.patched() == patching.Patched((), ())


def test_one_name_alone() -> None:
    margrove.patch_sklearn(["SVC"])
    assert margrove.patched().replaced == ("sklearn.svm.SVC",)
    assert public("SVR") is original("SVR")
    with pytest.raises(ValueError, match="SVR of scikit-learn is not patched"):
        margrove.unpatch_sklearn(["SVC", "SVR"])
    assert margrove.patched().replaced == ("sklearn.svm.SVC",)


@pytest.mark.parametrize("names", [["SVC", "Lasso"], "nonsense", [3]])
def test_an_unknown_name_changes_nothing(names) -> None:
    with pytest.raises(ValueError, match="does not replace"):
        margrove.patch_sklearn(names)
    assert margrove.patched().replaced == ()
    assert public("SVC") is original("SVC")


def test_patching_twice_changes_nothing() -> None:
    margrove.patch_sklearn(["SVC"])
    with pytest.raises(ValueError, match="SVC of scikit-learn is patched already"):
        margrove.patch_sklearn(["SVR", "SVC"])
    assert margrove.patched().replaced == ("sklearn.svm.SVC",)


def test_too_old_a_version(monkeypatch) -> None:
    monkeypatch.setattr(sklearn, "__version__", "1.7.2")
    with pytest.raises(ImportError, match=r"1\.8 or later. Got 1\.7\.2"):
        margrove.patch_sklearn()
    assert margrove.patched().replaced == ()


def test_names_bound_before_are_listed(monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BoundBefore", original("SVC"), raising=False)
    margrove.patch_sklearn(["SVC"])
    assert f"{__name__}.BoundBefore" in margrove.patched().bound_before


def test_old_pickles_load_as_what_they_are_and_new_ones_say_what_they_are() -> None:
    old = pickle.dumps(original("SVC")().fit(X, y))
    margrove.patch_sklearn()
    assert type(pickle.loads(old)) is original("SVC")
    model = public("SVC")().fit(X, y)
    new = pickle.dumps(model)
    assert b"margrove" in new
    margrove.unpatch_sklearn()
    loaded = pickle.loads(new)
    assert isinstance(loaded, margrove.SVC)
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


def test_a_pickle_loads_in_a_process_that_patched_nothing(tmp_path) -> None:
    margrove.patch_sklearn(["DecisionTreeClassifier"])
    file = tmp_path / "model.pickle"
    file.write_bytes(pickle.dumps(public("DecisionTreeClassifier")().fit(X, y)))
    code = f"import pickle; print(type(pickle.loads(open({str(file)!r}, 'rb').read())).__mro__[1])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "margrove.grove.estimators.DecisionTreeClassifier" in out.stdout


@pytest.mark.parametrize("name", sorted(PUBLIC_HOMES))
def test_models_of_all_three_kinds_are_instances(name) -> None:
    margrove.patch_sklearn([name])
    assert isinstance(public(name)(), public(name))
    assert isinstance(getattr(margrove, name)(), public(name))
    assert isinstance(original(name)(), public(name))
    assert issubclass(original(name), public(name))
    assert not isinstance(object(), public(name))
    assert not isinstance(margrove.PolynomialMap(), public(name))


def _peers() -> list[object]:
    """scikit-learn's estimators that are built on estimators that we replace."""
    from sklearn import calibration, ensemble, feature_selection, tree

    trees = tree.ExtraTreeClassifier(random_state=0), tree.ExtraTreeRegressor(random_state=0)
    return [
        *trees,
        ensemble.RandomTreesEmbedding(5, random_state=0),
        ensemble.IsolationForest(n_estimators=5, random_state=0),
        ensemble.VotingClassifier([("tree", trees[0])]),
        ensemble.StackingClassifier([("tree", trees[0])], cv=2),
        calibration.CalibratedClassifierCV(cv=2),
        feature_selection.RFE(original("LinearSVC")()),
        original("AdaBoostClassifier")(n_estimators=3, random_state=0),
        original("BaggingClassifier")(n_estimators=3, random_state=0),
        original("GradientBoostingClassifier")(n_estimators=3, random_state=0),
        original("RandomForestClassifier")(n_estimators=3, random_state=0),
        original("HistGradientBoostingClassifier")(max_iter=3),
        original("SVC")(),
        original("Perceptron")(),
    ]


def _fitted(model) -> bytes:
    model = clone(model).fit(X, y)
    return np.asarray(
        model.predict(X) if hasattr(model, "predict") else model.transform(X).toarray()
    ).tobytes()


@pytest.mark.parametrize("name", [*sorted(PUBLIC_HOMES), None])
@pytest.mark.sampled(5)
def test_their_other_estimators_work_as_before(name) -> None:
    peers = _peers()
    before = [_fitted(model) for model in peers]
    margrove.patch_sklearn(None if name is None else [name])
    assert [_fitted(model) for model in peers] == before


def test_their_modules_take_replaced_names_only_where_we_know() -> None:
    """A module of theirs that is imported after the patch must not take our class for its own."""
    root = Path(sklearn.__file__).parent
    takers = set()
    for path in root.rglob("*.py"):
        relative = path.relative_to(root)
        if "tests" in relative.parts or "_test_common" in relative.parts:
            continue
        module = ".".join(("sklearn", *relative.with_suffix("").parts)).removesuffix(".__init__")
        if module.rpartition(".")[0] in set(PUBLIC_HOMES.values()):
            continue  # imported with their package
        for node in ast.walk(ast.parse(path.read_text())):
            is_from = isinstance(node, ast.ImportFrom) and node.module in PUBLIC_HOMES.values()
            if is_from and {alias.name for alias in node.names} & set(PUBLIC_HOMES):
                takers.add(module)
    known = {name for name in sys.modules if name.startswith(patching._IMPORTERS)}
    assert takers <= known | set(PUBLIC_HOMES.values())


# -- falling back --


def test_what_they_accept_and_we_refuse_runs_there_with_a_warning() -> None:
    margrove.patch_sklearn()
    model = public("SVC")(C=True)
    with pytest.warns(FallbackWarning, match="'C' parameter"):
        model.fit(X, y)
    assert type(model) is original("SVC")
    assert isinstance(model, public("SVC"))
    expected = original("SVC")(C=True).fit(X, y)
    assert np.array_equal(model.predict(X), expected.predict(X))
    counts = {(count.estimator, count.library): count.fits for count in fit_counts()}
    assert counts["SVC", "scikit-learn"] >= 1


def test_what_both_refuse_is_refused_with_our_error() -> None:
    margrove.patch_sklearn()
    model = public("SVC")()
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        with pytest.raises(margrove.exceptions.InvalidDataError, match="first at row 0, column 0"):
            model.fit(np.full((3, 2), np.nan), [0, 1, 0])
    assert isinstance(model, margrove.SVC)


def test_what_would_crash_them_never_reaches_them() -> None:
    margrove.patch_sklearn()
    broken = sp.csr_matrix(np.eye(4))
    broken.indices = np.array([0, 1, 2, 99], dtype=np.int32)
    with pytest.raises(MalformedSparseError):
        public("SVC")().fit(broken, [0, 1, 0, 1])


def test_without_fallback_our_error_is_raised() -> None:
    margrove.patch_sklearn(fallback=False)
    with pytest.raises(ValueError, match="'C' parameter"):
        public("SVC")(C=True).fit(X, y)


def test_a_derived_class_does_not_turn_into_theirs() -> None:
    margrove.patch_sklearn()

    class Own(public("SVC")):
        pass

    with pytest.raises(ValueError, match="'C' parameter"):
        Own(C=True).fit(X, y)
    assert Own().fit(X, y).score(X, y) > 0.9


# -- what a program sees --


def test_signatures_and_metadata_routing() -> None:
    margrove.patch_sklearn()
    model = public("RandomForestClassifier")(n_estimators=3)
    assert clone(model).get_params() == model.get_params()
    with sklearn.config_context(enable_metadata_routing=True):
        routed = public("SVC")().set_fit_request(sample_weight=True)
        assert routed.get_metadata_routing().fit.requests == {"sample_weight": True}


def test_replacements_can_be_saved(tmp_path) -> None:
    margrove.patch_sklearn()
    model = public("RandomForestClassifier")(n_estimators=3, random_state=0).fit(X, y)
    margrove.save(model, tmp_path / "forest.margrove")
    loaded = margrove.load(tmp_path / "forest.margrove")
    assert type(loaded) is margrove.RandomForestClassifier
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_their_drawings_take_our_trees() -> None:
    margrove.patch_sklearn(["RandomForestClassifier"])
    from sklearn.tree import export_graphviz, export_text

    forest = public("RandomForestClassifier")(n_estimators=2, max_depth=2, random_state=0)
    member = forest.fit(X, y).estimators_[0]
    assert "class" in export_text(member)
    assert export_graphviz(member).startswith("digraph")
    theirs = original("DecisionTreeClassifier")(max_depth=2).fit(X, y)
    assert "class" in export_text(theirs)
    margrove.unpatch_sklearn()
    from sklearn.tree import export_text as again

    assert not hasattr(again, "_of_their_trees")


@pytest.mark.parametrize(
    "name", sorted(set(PUBLIC_HOMES) - {"BaggingClassifier", "BaggingRegressor"})
)
def test_models_go_both_ways_while_patched(name) -> None:
    margrove.patch_sklearn()
    few = {"n_estimators": 3} if "n_estimators" in public(name)().get_params() else {}
    model = public(name)(**few).fit(X, y)
    theirs = model.to_sklearn()
    assert type(theirs) is original(name)
    rows = X.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(theirs.predict(rows), model.predict(rows), rtol=1e-9, atol=1e-12)
    assert type(margrove.from_sklearn(theirs)) is getattr(margrove, name)


def test_the_extension_of_notebooks() -> None:
    margrove.load_ipython_extension(None)
    margrove.load_ipython_extension(None)  # %reload_ext
    assert issubclass(public("SVC"), margrove.SVC)
    margrove.unload_ipython_extension(None)
    assert public("SVC") is original("SVC")
