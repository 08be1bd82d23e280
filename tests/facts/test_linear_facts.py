"""What is said about linear machines is true: weights, strongest features, proofs."""

from __future__ import annotations

import dataclasses
import json
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrove import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM, Perceptron
from margrove.datasets import load_iris, make_moons
from margrove.exceptions import ConvergenceWarning, InvalidDataError, NotFittedError
from margrove.facts import LinearFacts, describe, is_described, outline, strongest_features
from margrove.facts.models.strongest import strongest_of

IRIS, SPECIES = load_iris(return_X_y=True)
IRIS = IRIS - IRIS.mean(axis=0)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
MOONS, SIDES = make_moons(80, noise=0.25, random_state=1, return_X_y=True)
SIDES = np.where(SIDES == 1, "b", "a")
TARGETS = np.sin(2 * MOONS[:, 0]) + MOONS[:, 1]

OF_ONE_MACHINE = {
    "two classes": (LinearSVC(), MOONS, SIDES),
    "hinge": (LinearSVC(loss="hinge"), MOONS, SIDES),
    "priced intercept": (LinearSVC(intercept_scaling=1.0), MOONS, SIDES),
    "regression": (LinearSVR(epsilon=0.1), MOONS, TARGETS),
    "squared regression": (LinearSVR(loss="squared_epsilon_insensitive"), MOONS, TARGETS),
}
ONE_BY_ONE = OF_ONE_MACHINE | {
    "three classes": (LinearSVC(), IRIS, SPECIES),
    "three classes, hinge": (LinearSVC(loss="hinge"), IRIS, SPECIES),
    "coordinates": (LinearSVC(solver="cd"), IRIS, SPECIES),
    "l1": (LinearSVC(penalty="l1", C=0.1), IRIS, SPECIES),
}
JOINT = {
    "joint": (LinearSVC(multi_class="crammer_singer", C=0.1), IRIS, SPECIES),
    "joint, two classes": (LinearSVC(multi_class="crammer_singer"), MOONS, SIDES),
}
EVERYTHING = ONE_BY_ONE | JOINT

one_by_one = pytest.mark.parametrize("name", ONE_BY_ONE)
joint = pytest.mark.parametrize("name", JOINT)
everything = pytest.mark.parametrize("name", EVERYTHING)


@cache
def fitted(name):
    model, X, y = EVERYTHING[name]
    return model.fit(X, y)


def data_of(name):
    return EVERYTHING[name][1:]


def pickled(model):
    return pickle.loads(pickle.dumps(model))


def rows_of(weights):
    return np.atleast_2d(weights.toarray() if sp.issparse(weights) else weights)


def by_full_sort(weights, n):
    """(index, weight) of the n largest, obviously right: everything is sorted."""
    order = sorted(range(len(weights)), key=lambda j: (-abs(weights[j]), j))
    return [(j, weights[j]) for j in order if weights[j] != 0][:n]


def pairs(features):
    return [(feature.index, feature.weight) for feature in features]


# -- describe ------------------------------------------------------------------------------------


@everything
def test_facts_go_through_json_and_contain_the_outline(name) -> None:
    model = fitted(name)
    facts, told = describe(model), outline(model)
    assert isinstance(facts, LinearFacts)
    assert is_described(model)
    assert facts.kernel is None
    back = json.loads(json.dumps(facts.as_dict(), allow_nan=False))
    assert back == facts.as_dict()
    assert set(back) == {field.name for field in dataclasses.fields(facts)}
    assert back["machines"][0]["strongest"][0]["name"].startswith("x")
    for field in dataclasses.fields(told):
        assert np.array_equal(getattr(facts, field.name), getattr(told, field.name))
    with pytest.raises(ValueError, match="read-only"):
        facts.machines[0].weights[...] = 0


@everything
def test_machines_are_the_rows_of_coef(name) -> None:
    model = fitted(name)
    facts = describe(model)
    coef = rows_of(model.coef_)
    assert np.array_equal([machine.weights for machine in facts.machines], coef)
    assert [machine.intercept for machine in facts.machines] == model.intercept_.tolist()
    assert facts.n_nonzero == np.count_nonzero(coef)
    assert facts.loss == model.loss
    assert facts.penalty == getattr(model, "penalty", "l2")
    for machine, weights in zip(facts.machines, coef, strict=True):
        assert machine.norm == pytest.approx(np.sqrt((weights**2).sum()), rel=1e-12)
        assert pairs(machine.strongest) == by_full_sort(weights, 10)


def test_the_l1_penalty_leaves_weights_out() -> None:
    facts = describe(fitted("l1"))
    assert facts.penalty == "l1"
    assert facts.n_nonzero < 12
    assert sum(len(machine.strongest) for machine in facts.machines) == facts.n_nonzero


@one_by_one
def test_proofs_are_those_of_the_certificate(name) -> None:
    model = fitted(name)
    facts, proof = describe(model), model.certificate_
    assert facts.proof.gap == proof.gap
    assert facts.proof.relative_gap == proof.relative_gap < 1e-4
    assert facts.converged is True
    assert facts.iterations == model.n_iter_
    for machine, proven in zip(facts.machines, proof.machines, strict=True):
        assert machine.name == proven.name
        assert (machine.proof.primal, machine.proof.dual) == (proven.primal, proven.dual)
        assert machine.n_support == len(machine.support) == len(proven.support)
        assert np.array_equal(machine.support, proven.support)
        assert (machine.n_free, machine.n_bounded) == (len(proven.free), len(proven.bounded))
        assert machine.converged is True


@pytest.mark.parametrize("name", [name for name in ONE_BY_ONE if name != "l1"])
def test_coefficients_of_support_vectors_add_up_to_the_weights(name) -> None:
    """w = sum_i c_i x_i at the solution; half the squared distance is a part of the gap."""
    model, (X, _) = fitted(name), data_of(name)
    for machine in describe(model).machines:
        rebuilt = machine.coefficients @ X[machine.support]
        distance = np.linalg.norm(rebuilt - machine.weights)
        assert 0.5 * distance**2 <= machine.proof.gap + 1e-12 * machine.proof.primal
        assert {np.sign(value) for value in machine.coefficients} == {-1.0, 1.0}


@everything
def test_support_vectors_are_rows_of_one_kind_each(name) -> None:
    model, (X, _) = fitted(name), data_of(name)
    facts = describe(model)
    assert facts.n_samples == len(X)
    assert np.array_equal(facts.support_vectors, X[facts.support])
    assert facts.n_support == len(facts.support) > 0
    rows = np.concatenate([kind.rows for kind in facts.kinds])
    assert sorted(rows) == facts.support.tolist()
    for machine in facts.machines:
        assert set(machine.support) <= set(facts.support)
        assert sum(kind.count for kind in machine.kinds) == (
            machine.n_support if machine.kinds else 0
        )


def test_the_kinds_of_a_coarse_solution_do_not_overlap() -> None:
    model = LinearSVC(loss="hinge", solver="cd", tol=0.1).fit(IRIS, SPECIES)
    for machine in describe(model).machines:
        assert sum(kind.count for kind in machine.kinds) == machine.n_support


def test_misclassified_rows_are_those_that_predict_gets_wrong() -> None:
    for name in ("two classes", "hinge", "joint, two classes"):
        wrong = np.flatnonzero(fitted(name).predict(MOONS) != SIDES)
        assert describe(fitted(name)).kinds[2].rows.tolist() == wrong.tolist()


def test_rows_on_the_edge_of_the_tube_are_on_it() -> None:
    model = LinearSVR(epsilon=0.1, tol=1e-9).fit(MOONS, TARGETS)
    error = np.abs(model.predict(MOONS) - TARGETS)
    edge, outside = describe(model).kinds
    assert edge.count > 0
    assert error[edge.rows] == pytest.approx(0.1, abs=1e-3)
    assert outside.rows.tolist() == np.setdiff1d(np.flatnonzero(error > 0.1), edge.rows).tolist()


def test_names_and_margins() -> None:
    facts = describe(fitted("two classes"))
    (machine,) = facts.machines
    assert (facts.task, machine.name, facts.margin_level) == (
        "classification",
        "'b' against 'a'",
        1.0,
    )
    assert machine.margin_width == pytest.approx(2.0 / machine.norm)
    several = describe(fitted("three classes"))
    assert [machine.name for machine in several.machines] == [
        f"{name!r} against the rest" for name in ("setosa", "versicolor", "virginica")
    ]
    assert several.margin_level is None
    regression = describe(fitted("regression"))
    assert (regression.task, regression.machines[0].name) == ("regression", "regression")
    assert regression.machines[0].margin_width is None


@joint
def test_a_joint_machine_is_proved_as_a_whole(name) -> None:
    model = fitted(name)
    facts = describe(model)
    assert len(facts.machines) == len(model.coef_)
    (whole,) = model.certificate_.machines
    assert (facts.proof.primal, facts.proof.dual) == (whole.primal, whole.dual)
    assert facts.support.tolist() == whole.support.tolist()
    assert sum(kind.count for kind in facts.kinds) == facts.n_support
    assert facts.proof.place == ""
    for machine in facts.machines:
        assert machine.proof is None
        assert machine.n_support is None
        assert machine.kinds == ()


def test_parameters_changed_since_the_fit_do_no_harm() -> None:
    joint_before = LinearSVC(multi_class="crammer_singer", C=0.1).fit(IRIS, SPECIES)
    facts = describe(joint_before.set_params(multi_class="ovr"))
    assert facts.proof.relative_gap < 1e-4
    assert {machine.proof for machine in facts.machines} == {None}
    single_before = LinearSVC().fit(IRIS, SPECIES)
    facts = describe(single_before.set_params(multi_class="crammer_singer"))
    assert facts.proof.relative_gap < 1e-4


def test_names_of_joint_machines() -> None:
    assert [machine.name for machine in describe(fitted("joint")).machines] == [
        "'setosa' among all",
        "'versicolor' among all",
        "'virginica' among all",
    ]
    assert {machine.margin_width for machine in describe(fitted("joint")).machines} == {None}
    (machine,) = describe(fitted("joint, two classes")).machines
    assert machine.name == "'b' against 'a'"
    assert machine.margin_width == pytest.approx(2.0 / machine.norm)


@everything
def test_without_its_data_a_model_is_described_but_not_proved(name) -> None:
    facts = describe(pickled(fitted(name)))
    assert facts.proof is None
    assert "describe(model, X, y, sample_weight)" in facts.unproven
    assert facts.kinds == ()
    assert facts.n_support is None
    assert facts.support_vectors is None
    assert facts.converged is None
    assert [m.strongest[0].weight for m in facts.machines] == [
        m.strongest[0].weight for m in describe(fitted(name)).machines
    ]
    json.dumps(facts.as_dict(), allow_nan=False)


@everything
def test_data_can_be_handed_in(name) -> None:
    X, y = data_of(name)
    facts = describe(pickled(fitted(name)), X, y)
    assert facts.unproven == ""
    assert facts.proof.primal == pytest.approx(describe(fitted(name)).proof.primal, rel=1e-3)
    assert facts.proof.relative_gap < 1e-3
    assert np.array_equal(facts.support_vectors, X[facts.support])


def test_weights_of_rows_are_remembered() -> None:
    weight = np.linspace(0.0, 2.0, len(MOONS))
    model = LinearSVC(loss="hinge").fit(MOONS, SIDES, sample_weight=weight)
    facts = describe(model)
    again = describe(pickled(model), MOONS, SIDES, weight)
    assert facts.proof.relative_gap < 1e-4
    assert 0 not in facts.support
    assert again.proof.primal == pytest.approx(facts.proof.primal, rel=1e-9)


def test_a_proof_needs_both_x_and_y() -> None:
    with pytest.raises(InvalidDataError, match="X without y"):
        describe(fitted("hinge"), MOONS)


def test_a_fit_that_fell_short() -> None:
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(loss="hinge", solver="cd", max_iter=1, tol=1e-9).fit(IRIS, SPECIES)
    facts = describe(model)
    assert facts.converged is False
    assert False in {machine.converged for machine in facts.machines}
    assert facts.proof.relative_gap > 1e-9


def test_named_columns_and_sparse_data() -> None:
    frame = pd.DataFrame(IRIS, columns=["sepal length", "sepal width", "petal length", "width"])
    facts = describe(LinearSVC().fit(frame, SPECIES))
    assert {feature.name for feature in facts.machines[0].strongest} == set(frame.columns)
    assert (
        facts.machines[0].strongest[0].name == frame.columns[facts.machines[0].strongest[0].index]
    )
    sparse = LinearSVC().fit(sp.csr_array(IRIS), SPECIES)
    found = describe(sparse)
    assert sp.issparse(found.support_vectors)
    assert np.array_equal(found.support_vectors.toarray(), IRIS[found.support])


# -- the strongest features of any linear model --------------------------------------------------

STRANGERS = {
    "LinearSVC of scikit-learn": lambda: svm.LinearSVC().fit(IRIS, SPECIES),
    "ridge": lambda: linear_model.Ridge().fit(MOONS, TARGETS),
    "two targets": lambda: linear_model.Ridge().fit(MOONS, np.c_[TARGETS, -TARGETS]),
    "logistic": lambda: linear_model.LogisticRegression().fit(MOONS, SIDES),
    "lasso": lambda: linear_model.Lasso(alpha=0.1).fit(IRIS, np.arange(150.0)),
    "perceptron": lambda: Perceptron().fit(IRIS, SPECIES),
    "sparsified": lambda: Perceptron().fit(IRIS, SPECIES).sparsify(),
    "pairs": lambda: SVC(kernel="linear").fit(IRIS, SPECIES),
    "pairs of scikit-learn": lambda: svm.SVC(kernel="linear").fit(IRIS, SPECIES),
    "pairs of scikit-learn, sparse": lambda: svm.SVC(kernel="linear").fit(
        sp.csr_matrix(IRIS), SPECIES
    ),
    "SVR": lambda: SVR(kernel="linear").fit(MOONS, TARGETS),
    "one class": lambda: OneClassSVM(kernel="linear").fit(MOONS),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_any_linear_model_has_strongest_features(name) -> None:
    model = STRANGERS[name]()
    coef = rows_of(model.coef_)
    found = strongest_features(model, n=3)
    assert len(found) == len(coef)
    for machine, weights in zip(found, coef, strict=True):
        assert pairs(machine.features) == by_full_sort(weights, 3)
        assert all(feature.name == f"x{feature.index}" for feature in machine.features)
    json.dumps([machine.as_dict() for machine in found], allow_nan=False)


def test_machines_are_called_by_what_they_tell_apart() -> None:
    called = {
        name: [found.machine for found in strongest_features(fit())]
        for name, fit in STRANGERS.items()
    }
    rest = [f"{name!r} against the rest" for name in ("setosa", "versicolor", "virginica")]
    one_to_one = [
        "'setosa' against 'versicolor'",
        "'setosa' against 'virginica'",
        "'versicolor' against 'virginica'",
    ]
    assert called["LinearSVC of scikit-learn"] == called["perceptron"] == rest
    assert called["sparsified"] == rest
    assert called["pairs"] == called["pairs of scikit-learn"] == one_to_one
    assert called["pairs of scikit-learn, sparse"] == one_to_one
    assert called["logistic"] == ["'b' against 'a'"]
    assert called["ridge"] == called["lasso"] == called["SVR"] == ["regression"]
    assert called["two targets"] == ["output 0", "output 1"]
    assert called["one class"] == ["one class"]
    ovr = SVC(kernel="linear", multi_class="ovr").fit(IRIS, SPECIES)
    assert [found.machine for found in strongest_features(ovr)] == rest
    assert [found.machine for found in strongest_features(fitted("joint"))] == [
        machine.name for machine in describe(fitted("joint")).machines
    ]


def test_the_sign_is_for_the_class_named_first() -> None:
    """A feature that only one class has speaks for it, whoever fitted the machine."""
    X, y = np.eye(3).repeat(4, axis=0), np.repeat(["a", "b", "c"], 4)
    for model in (SVC(kernel="linear"), svm.SVC(kernel="linear")):
        first = strongest_features(model.fit(X, y))[0]
        assert first.machine == "'a' against 'b'"
        assert {f.name: np.sign(f.weight) for f in first.features[:2]} == {"x0": 1.0, "x1": -1.0}


def test_of_equals_the_first_columns_are_taken() -> None:
    model = linear_model.LinearRegression().fit(MOONS, TARGETS)
    model.coef_ = np.array([1.0, -2.0, 0.0, 2.0, -1.0, 1.0, 2.0])
    for coef in (model.coef_, sp.csr_array(model.coef_[None])):
        model.coef_ = coef
        (found,) = strongest_features(model, n=5)
        assert [feature.index for feature in found.features] == [1, 3, 6, 0, 4]
        (everything_,) = strongest_features(model, n=100)
        assert [feature.index for feature in everything_.features] == [1, 3, 6, 0, 4, 5]


@pytest.mark.parametrize(
    "names", [list("wxyz"), tuple("wxyz"), np.array(list("wxyz"), dtype=object)]
)
def test_names_can_be_given(names) -> None:
    frame = pd.DataFrame(IRIS, columns=["one", "two", "three", "four"])
    model = LinearSVC().fit(frame, SPECIES)
    for found in strongest_features(model, n=2, feature_names=names):
        for feature in found.features:
            assert feature.name == "wxyz"[feature.index]
    own = strongest_features(model)[0].features[0]
    assert own.name == frame.columns[own.index]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["a", "b"], "feature_names must have one name for each of the 4 features.*Got 2"),
        ([], "feature_names must have one name for each of the 4 features.*Got 0"),
        ("wxyz", "feature_names must be a sequence of 4 names.*'wxyz'"),
        (3, "feature_names must be a sequence of 4 names.*Got 3"),
        (np.empty((4, 2)), r"feature_names.*shape \(4, 2\)"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, complaint) -> None:
    with pytest.raises(InvalidDataError, match=complaint):
        strongest_features(fitted("three classes"), feature_names=names)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "all"])
def test_n_must_be_a_number_of_features(n) -> None:
    with pytest.raises(ValueError, match="n must be a whole number"):
        strongest_features(fitted("two classes"), n=n)


def test_models_without_weights_are_refused() -> None:
    with pytest.raises(TypeError, match="this SVC has none"):
        strongest_features(SVC().fit(MOONS, SIDES))
    with pytest.raises(NotFittedError):
        strongest_features(LinearSVC())
    pipeline = make_pipeline(StandardScaler(), LinearSVC()).fit(IRIS, SPECIES)
    with pytest.raises(TypeError, match=r"model\[-1\]"):
        strongest_features(pipeline)
    assert strongest_features(pipeline[-1], feature_names=pipeline[:-1].get_feature_names_out())


def test_many_classes_and_many_features_take_no_full_sort(monkeypatch) -> None:
    """20 machines of 130,000 features: a tenth of what the largest text problems have."""
    rng = np.random.default_rng(0)
    model = LinearSVC().fit(IRIS, SPECIES)
    model.classes_ = np.arange(20)
    model.coef_ = rng.normal(size=(20, 130_000))
    names = np.array([f"word {j}" for j in range(130_000)], dtype=object)

    argsort, sorted_sizes = np.argsort, set()

    def counting(values, **options):
        sorted_sizes.add(len(values))
        return argsort(values, **options)

    monkeypatch.setattr(np, "argsort", counting)
    strongest = strongest_features(model, 10, names)[7].features
    assert sorted_sizes == {10}
    order = argsort(-np.abs(model.coef_[7]))[:10]
    assert [feature.name for feature in strongest] == [f"word {j}" for j in order]


def test_weights_that_differ_by_rounding_are_equal() -> None:
    """Columns that are copies of each other: the first comes first, whatever rounding says."""
    rng = np.random.default_rng(0)
    weights = np.repeat(rng.normal(size=20), 3)[None]
    noisy = weights * (1.0 + 1e-15 * rng.normal(size=60))
    for n in (5, 60):
        found = strongest_of(noisy, None, n)
        known = strongest_of(weights, None, n)
        assert [feature.index for feature in found] == [feature.index for feature in known]
