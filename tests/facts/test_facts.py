"""What is said about fitted models is true, complete and fit for JSON."""

from __future__ import annotations

import dataclasses
import json
import pickle
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import margrove
from margrove import (
    SVC,
    SVR,
    KernelPerceptron,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    kernels,
)
from margrove.datasets import load_iris, make_moons
from margrove.exceptions import InvalidDataError, NotFittedError
from margrove.facts import (
    ClassifierFacts,
    OneClassFacts,
    PerceptronFacts,
    RegressorFacts,
    describe,
    is_described,
    outline,
)

IRIS, SPECIES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
MOONS, SIDES = make_moons(80, noise=0.25, random_state=1, return_X_y=True)
SIDES = np.where(SIDES == 1, "b", "a")
TARGETS = np.sin(2 * MOONS[:, 0]) + MOONS[:, 1]

MACHINES = {
    "SVC": (SVC(C=2.0), MOONS, SIDES),
    "SVC, three classes": (SVC(C=2.0), IRIS, SPECIES),
    "SVC, three classes, ovr": (SVC(C=2.0, multi_class="ovr"), IRIS, SPECIES),
    "SVC, linear": (SVC(kernel="linear"), MOONS, SIDES),
    "SVC, linear, three classes": (SVC(kernel="linear"), IRIS, SPECIES),
    "NuSVC": (NuSVC(nu=0.3), MOONS, SIDES),
    "SVR": (SVR(C=10.0, epsilon=0.15), MOONS, TARGETS),
    "SVR, linear": (SVR(kernel="linear", epsilon=0.15), MOONS, TARGETS),
    "NuSVR": (NuSVR(C=10.0, nu=0.3), MOONS, TARGETS),
    "OneClassSVM": (OneClassSVM(nu=0.2), MOONS, None),
}
PERCEPTRONS = {
    "Perceptron": (Perceptron(), IRIS[:100], SPECIES[:100]),
    "Perceptron, three classes": (Perceptron(), IRIS, SPECIES),
    "KernelPerceptron": (KernelPerceptron(gamma=20.0), MOONS, SIDES),
    "KernelPerceptron, three classes": (KernelPerceptron(gamma=1.0), IRIS, SPECIES),
    "KernelPerceptron, linear": (KernelPerceptron(kernel="linear"), IRIS[:100], SPECIES[:100]),
}
EVERYTHING = MACHINES | PERCEPTRONS

machines = pytest.mark.parametrize("name", MACHINES)
perceptrons = pytest.mark.parametrize("name", PERCEPTRONS)
everything = pytest.mark.parametrize("name", EVERYTHING)


@cache
def fitted(name):
    model, X, y = EVERYTHING[name]
    return model.fit(X, y)


def pickled(model):
    return pickle.loads(pickle.dumps(model))


def data_of(name):
    return EVERYTHING[name][1:]


# -- all of them ---------------------------------------------------------------------------------


@everything
def test_facts_go_through_json(name) -> None:
    facts = describe(fitted(name))
    text = json.dumps(facts.as_dict(), allow_nan=False)
    back = json.loads(text)
    assert back == facts.as_dict()
    assert back["estimator"] == type(fitted(name)).__name__
    assert set(back) == {field.name for field in dataclasses.fields(facts)}
    assert [machine["name"] for machine in back["machines"]] == [m.name for m in facts.machines]
    assert back["machines"][0]["intercept"] == facts.machines[0].intercept  # to the last bit


@everything
def test_facts_cannot_be_changed_nor_change_the_model(name) -> None:
    facts = describe(fitted(name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        facts.estimator = "other"
    with pytest.raises(ValueError, match="read-only"):
        facts.support[...] = 0
    for machine in facts.machines:
        assert not machine.coefficients.flags.writeable


@everything
def test_the_outline_is_part_of_the_facts(name) -> None:
    model = fitted(name)
    facts, told = describe(model), outline(model)
    for field in dataclasses.fields(told):
        assert np.array_equal(getattr(facts, field.name), getattr(told, field.name))
    assert told.n_features == data_of(name)[0].shape[1]
    assert told.feature_names is None


@everything
def test_a_pickled_model_is_described_without_its_data(name) -> None:
    model = fitted(name)
    before, after = describe(model), describe(pickled(model))
    assert after.proof is None
    assert after.unproven
    assert after.kinds == ()
    for old, new in zip(before.machines, after.machines, strict=True):
        assert new.proof is None
        assert new.trace is None
        assert new.n_free is None
        assert new.kinds == ()
        assert (new.name, new.n_support, new.iterations) == (
            old.name,
            old.n_support,
            old.iterations,
        )
        assert new.norm == pytest.approx(old.norm, rel=1e-6)
        assert np.array_equal(new.coefficients, old.coefficients)
    json.dumps(after.as_dict(), allow_nan=False)


@everything
def test_each_machine_is_its_expansion(name) -> None:
    """f(x) rebuilt from the facts alone is the decision function of the estimator."""
    model, (X, _) = fitted(name), data_of(name)
    facts = describe(model)
    shape = {"decision_function_shape": "ovo"} if "break_ties" in model.get_params() else {}
    public = pickled(model).set_params(**shape)
    f = public.decision_function(X) if hasattr(public, "decision_function") else public.predict(X)
    columns = f.reshape(len(X), -1).T
    for machine, values in zip(facts.machines, columns, strict=True):
        if machine.weights is not None:
            rebuilt = X @ machine.weights + machine.intercept
        else:
            K = model.kernel_(X, X[machine.support])
            rebuilt = K @ machine.coefficients + machine.intercept
        assert rebuilt == pytest.approx(values, abs=1e-8 * np.abs(values).max())


@everything
def test_support_vectors_are_where_the_facts_say(name) -> None:
    model, (X, _) = fitted(name), data_of(name)
    facts = describe(model)
    assert facts.n_support == len(facts.support)
    if facts.n_support:
        assert np.array_equal(facts.support_vectors, X[facts.support])
    for machine in facts.machines:
        assert machine.n_support == len(machine.support) == len(machine.coefficients)
        assert set(machine.support) <= set(facts.support)


# -- support vector machines ---------------------------------------------------------------------


@machines
def test_proof_and_counts_agree_with_the_certificate(name) -> None:
    model = fitted(name)
    facts, proof = describe(model), model.certificate_
    assert facts.proof.gap == proof.gap
    assert facts.proof.violation == proof.violation
    assert facts.proof.relative_gap == proof.relative_gap
    for machine, proven in zip(facts.machines, proof.machines, strict=True):
        assert machine.proof.primal == proven.primal
        assert machine.proof.dual == proven.dual
        assert machine.proof.place == proven.place
        assert machine.n_support == len(proven.support)
        assert machine.n_free == len(proven.free)
        assert machine.n_bounded == len(proven.bounded)
        assert np.array_equal(machine.bounded, proven.bounded)
        assert machine.norm == pytest.approx(proven.norm, rel=1e-9)
        assert sum(kind.count for kind in machine.kinds) == machine.n_support
        assert np.array_equal(machine.kinds[0].rows, proven.on_margin)


@machines
def test_every_support_vector_is_of_one_kind(name) -> None:
    facts = describe(fitted(name))
    rows = np.concatenate([kind.rows for kind in facts.kinds])
    assert sorted(rows) == sorted(facts.support)
    for kind in facts.kinds:
        assert kind.count == len(kind.rows)


@machines
def test_data_can_be_handed_in(name) -> None:
    model, (X, y) = fitted(name), data_of(name)
    remembered, given = describe(model), describe(pickled(model), X, y)
    assert given.proof.gap == pytest.approx(remembered.proof.gap, rel=1e-9)
    assert given.unproven == ""
    for old, new in zip(remembered.machines, given.machines, strict=True):
        assert [(k.name, k.count) for k in old.kinds] == [(k.name, k.count) for k in new.kinds]


@machines
def test_the_trace_climbs(name) -> None:
    model, (X, y) = fitted(name), data_of(name)
    for facts in (describe(model), describe(model, X, y)):
        for machine in facts.machines:
            trace = machine.trace
            assert len(trace.iterations) == len(trace.dual) == len(trace.violation) > 0
            assert np.all(np.diff(trace.iterations) >= 0)
            assert trace.dual[-1] >= trace.dual[0] - 1e-9
            assert trace.iterations[-1] == machine.iterations
        assert facts.iterations == sum(machine.iterations for machine in facts.machines)
        assert facts.converged is True


def test_the_trace_of_svc_ends_at_its_proof() -> None:
    (machine,) = describe(fitted("SVC")).machines
    assert machine.trace.dual[-1] == pytest.approx(machine.proof.dual, rel=1e-6)


def test_two_classes() -> None:
    model = fitted("SVC")
    facts = describe(model)
    (machine,) = facts.machines
    assert isinstance(facts, ClassifierFacts)
    assert facts.task == "classification"
    assert facts.classes.tolist() == ["a", "b"]
    assert machine.name == "'b' against 'a'"
    assert facts.parameters["C"] == 2.0
    assert facts.margin_level == 1.0
    assert machine.margin_width == pytest.approx(2.0 / machine.norm)
    assert machine.margin_width == pytest.approx(model.certificate_.margin_width, rel=1e-9)
    assert facts.n_samples == len(MOONS)
    assert facts.n_support_per_class.tolist() == model.n_support_.tolist()
    assert facts.class_weights.tolist() == [1.0, 1.0]
    assert facts.probabilities is None
    assert [kind.name for kind in facts.kinds] == [
        "on the margin",
        "inside the margin",
        "misclassified",
    ]
    wrong = np.flatnonzero(model.predict(MOONS) != SIDES)
    assert facts.kinds[2].rows.tolist() == wrong.tolist()
    near = np.abs(model.decision_function(MOONS[facts.kinds[0].rows]))
    assert near == pytest.approx(1.0, abs=2e-3)


def test_one_against_one() -> None:
    facts = describe(fitted("SVC, three classes"))
    assert [machine.name for machine in facts.machines] == [
        "'setosa' against 'versicolor'",
        "'setosa' against 'virginica'",
        "'versicolor' against 'virginica'",
    ]
    assert facts.margin_level is None
    assert facts.proof.primal == pytest.approx(sum(m.proof.primal for m in facts.machines))
    assert facts.proof.place.partition(":")[0] in [machine.name for machine in facts.machines]


def test_the_worst_kind_counts() -> None:
    facts = describe(fitted("SVC, three classes"))
    wrong = set().union(*(set(machine.kinds[2].rows) for machine in facts.machines))
    inside = set().union(*(set(machine.kinds[1].rows) for machine in facts.machines))
    assert set(facts.kinds[2].rows) == wrong
    assert set(facts.kinds[1].rows) == inside - wrong


def test_one_against_the_rest() -> None:
    facts = describe(fitted("SVC, three classes, ovr"))
    names = ["setosa", "versicolor", "virginica"]
    assert [machine.name for machine in facts.machines] == [
        f"{n!r} against the rest" for n in names
    ]


@pytest.mark.parametrize("name", ["SVC, linear", "SVC, linear, three classes", "SVR, linear"])
def test_weights_of_the_linear_kernel(name) -> None:
    model = fitted(name)
    facts = describe(model)
    weights = np.array([machine.weights for machine in facts.machines])
    assert weights == pytest.approx(np.asarray(model.coef_), rel=1e-9, abs=1e-12)
    assert facts.kernel.name == "linear"
    assert facts.kernel.formula == "x.z"


def test_nu_svc() -> None:
    facts = describe(fitted("NuSVC"))
    (machine,) = facts.machines
    assert facts.parameters["nu"] == 0.3
    assert machine.n_support >= 0.3 * len(MOONS)
    assert machine.n_bounded <= 0.3 * len(MOONS) + 1
    assert machine.margin_width > 0


@pytest.mark.parametrize("name", ["SVR", "NuSVR"])
def test_regression(name) -> None:
    model = fitted(name)
    facts = describe(model)
    (machine,) = facts.machines
    assert isinstance(facts, RegressorFacts)
    assert (facts.task, machine.name, facts.classes) == ("regression", "regression", None)
    assert machine.margin_width is None
    assert facts.margin_level is None
    error = np.abs(model.predict(MOONS) - TARGETS)
    edge, outside = facts.kinds
    assert (edge.name, outside.name) == ("on the edge of the tube", "outside the tube")
    assert error[edge.rows] == pytest.approx(facts.tube, abs=3e-3)
    assert np.all(error[outside.rows] > facts.tube)


def test_the_tube() -> None:
    assert describe(fitted("SVR")).tube == 0.15
    assert describe(fitted("NuSVR")).tube == fitted("NuSVR").epsilon_


def test_one_class() -> None:
    model = fitted("OneClassSVM")
    facts = describe(model)
    assert isinstance(facts, OneClassFacts)
    assert (facts.task, facts.nu) == ("outlier detection", 0.2)
    assert facts.offset == model.offset_[0]
    boundary, outside = facts.kinds
    assert (boundary.name, outside.name) == ("on the boundary", "outside the region")
    assert np.all(model.decision_function(MOONS[outside.rows]) < 0)
    assert outside.count <= 0.2 * len(MOONS)
    assert describe(pickled(model), MOONS).kinds[1].count == outside.count


def test_probabilities() -> None:
    model = SVC(probability=True).fit(MOONS, SIDES)
    found = describe(model).probabilities
    f = model.decision_function(MOONS)
    expected = 1.0 / (1.0 + np.exp(-found.slopes[0] * f))
    assert model.predict_proba(MOONS)[:, 1] == pytest.approx(expected, rel=1e-9)
    price = model.price_of_agreement_
    assert found.price_of_agreement == price.difference
    assert found.log_loss == price.log_loss
    assert found.n_rows_changed == price.n_rows_changed


def test_weights_of_rows_are_remembered() -> None:
    weight = np.linspace(0.0, 2.0, len(MOONS))
    model = SVC().fit(MOONS, SIDES, sample_weight=weight)
    facts = describe(model)
    again = describe(pickled(model), MOONS, SIDES, weight)
    assert facts.proof.relative_gap < 1e-3
    assert again.proof.gap == pytest.approx(facts.proof.gap, rel=1e-9)
    assert again.machines[0].n_bounded == facts.machines[0].n_bounded > 0


def test_a_fit_that_fell_short() -> None:
    model = SVC(max_iter=2)
    with pytest.warns(margrove.exceptions.ConvergenceWarning):
        model.fit(MOONS, SIDES)
    facts = describe(model)
    assert facts.converged is False
    assert facts.machines[0].converged is False
    assert facts.proof.violation > 1e-3
    assert facts.proof.place.startswith("between rows")
    with pytest.warns(margrove.exceptions.ConvergenceWarning):
        several = describe(SVC(max_iter=2).fit(IRIS, SPECIES))
    assert several.converged is False
    assert {machine.converged for machine in several.machines} == {None}


# -- kernels, columns, parameters ----------------------------------------------------------------


def test_the_kernel_as_resolved() -> None:
    model = fitted("SVC")
    kernel = describe(model).kernel
    assert kernel.name == "rbf"
    assert kernel.parameters == {"gamma": model.kernel_.gamma}
    assert kernels.RBF.__doc__ is not None
    assert kernel.formula == kernels.RBF.__doc__.splitlines()[0]
    assert "exp(-gamma" in kernel.formula
    assert (kernel.is_positive_definite, kernel.is_translation_invariant) == (True, True)
    assert kernel.feature_scale == 1.0


def product(X, Z):
    """The plain inner product.

    And a second line.
    """
    return X @ Z.T


class Product:
    """A callable object."""

    def __call__(self, X, Z):
        return X @ Z.T


def test_functions_and_objects_as_kernels_are_told_in_words() -> None:
    of_function = describe(SVC(kernel=product).fit(MOONS, SIDES))
    assert of_function.parameters["kernel"] == "product"
    assert of_function.kernel.name == "product"
    assert of_function.kernel.formula == "The plain inner product."
    assert of_function.kernel.parameters == {}
    assert of_function.machines[0].weights is None
    assert of_function.machines[0].norm > 0
    of_callable = describe(SVC(kernel=Product()).fit(MOONS, SIDES))
    assert of_callable.kernel.name == "Product"
    assert " at 0x" not in of_callable.parameters["kernel"]
    of_object = describe(SVC(kernel=kernels.Polynomial(degree=2)).fit(MOONS, SIDES))
    assert of_object.parameters["kernel"] == "Polynomial(gamma=1.0, degree=2, coef0=0.0)"
    assert of_object.kernel.parameters == {"gamma": 1.0, "degree": 2, "coef0": 0.0}
    for facts in (of_function, of_callable, of_object):
        json.dumps(facts.as_dict(), allow_nan=False)


def test_a_precomputed_kernel_has_no_vectors() -> None:
    K = kernels.RBF()(MOONS)
    model = SVC(kernel="precomputed").fit(K, SIDES)
    facts = describe(model)
    assert facts.is_pairwise
    assert facts.support_vectors is None
    assert facts.kernel.name == "precomputed"
    assert facts.machines[0].norm == pytest.approx(model.certificate_.norm)
    assert describe(pickled(model)).machines[0].norm is None
    json.dumps(facts.as_dict(), allow_nan=False)


def test_named_columns() -> None:
    frame, y = load_iris(return_X_y=True, as_frame="pandas")
    facts = describe(SVC().fit(frame, y))
    assert facts.feature_names == tuple(frame.columns)
    assert facts.as_dict()["feature_names"] == list(frame.columns)
    assert facts.as_dict()["classes"] == [0, 1, 2]


@pytest.mark.parametrize("model", [SVC(kernel="linear"), SVC(), KernelPerceptron(), Perceptron()])
def test_sparse_data(model) -> None:
    X = sp.random_array((40, 6), density=0.4, format="csr", rng=np.random.default_rng(0))
    y = np.arange(40) % 2
    facts, dense = describe(model.fit(X, y)), describe(model.fit(X.toarray(), y))
    assert facts.machines[0].norm == pytest.approx(dense.machines[0].norm, rel=1e-4)
    plain = json.loads(json.dumps(facts.as_dict(), allow_nan=False))["support_vectors"]
    if plain is not None:
        matrix = np.zeros(plain["shape"])
        matrix[plain["rows"], plain["columns"]] = plain["values"]
        assert np.array_equal(matrix, X.toarray()[facts.support])


def test_parameters_of_any_type() -> None:
    model = SVC(
        class_weight={"a": 2.0, "b": np.float32(1.0)}, random_state=np.random.RandomState(0)
    )
    facts = describe(model.fit(MOONS, SIDES))
    assert facts.parameters["class_weight"] == {"a": 2.0, "b": 1.0}
    assert facts.parameters["random_state"] == "RandomState(MT19937)"
    assert facts.class_weights.tolist() == [2.0, 1.0]
    assert facts.parameters["cache_size"] is None
    json.dumps(facts.as_dict(), allow_nan=False)


@pytest.mark.parametrize("labels", [[False, True], [1.0, 2.0], [-(2**40), 2**40]])
def test_labels_of_any_type(labels) -> None:
    y = np.array(labels)[(SIDES == "b").astype(int)]
    facts = describe(SVC().fit(MOONS, y))
    json.dumps(facts.as_dict(), allow_nan=False)
    assert facts.machines[0].name == f"{labels[1]!r} against {labels[0]!r}"


def test_what_is_not_finite_becomes_none() -> None:
    model = KernelPerceptron(kernel="linear", max_iter=3, tol=None).fit(MOONS, SIDES)
    facts = describe(model)
    assert facts.novikoff_bound == np.inf
    assert facts.as_dict()["novikoff_bound"] is None
    odd = dataclasses.replace(
        facts,
        support=np.array([np.nan, 1.0]),
        parameters={
            "C": np.float32("inf"),
            3: np.longdouble(0.5),
            "x": np.datetime64("2020-01-01"),
        },
    )
    plain = odd.as_dict()
    assert plain["support"] == [None, 1.0]
    assert plain["parameters"] == {"C": None, "3": 0.5, "x": "2020-01-01"}


# -- perceptrons ---------------------------------------------------------------------------------


@perceptrons
def test_mistakes_and_margins(name) -> None:
    model = fitted(name)
    facts = describe(model)
    assert isinstance(facts, PerceptronFacts)
    assert facts.mistakes == model.mistakes_ == sum(m.mistakes for m in facts.machines)
    assert facts.margin == model.margin_ == min(m.margin for m in facts.machines)
    assert facts.novikoff_bound == model.novikoff_bound_
    assert (facts.epochs, facts.radius) == (model.n_iter_, model.radius_)
    assert facts.separated is model.separated_


@pytest.mark.parametrize("name", ["Perceptron", "KernelPerceptron", "KernelPerceptron, linear"])
def test_the_margin_level_is_met_by_the_nearest_row(name) -> None:
    model, (X, _) = fitted(name), data_of(name)
    facts = describe(model)
    assert facts.separated
    nearest = np.abs(model.decision_function(X)).min()
    assert facts.margin_level == pytest.approx(nearest, rel=1e-9)


def test_of_a_plane_that_does_not_separate_there_is_no_margin_level() -> None:
    model = Perceptron(max_iter=3, tol=None).fit(MOONS, SIDES)
    assert describe(model).separated is False
    assert describe(model).margin_level is None
    assert describe(fitted("Perceptron, three classes")).margin_level is None


def test_perceptron_weights() -> None:
    model = fitted("Perceptron, three classes")
    facts = describe(model)
    assert facts.kernel is None
    assert facts.n_support == 0
    assert np.array_equal([machine.weights for machine in facts.machines], model.coef_)
    assert np.array_equal(describe(pickled(model).sparsify()).machines[0].weights, model.coef_[0])


@pytest.mark.parametrize("model", [Perceptron(), KernelPerceptron()])
def test_a_stream_knows_its_mistakes_but_no_margin(model) -> None:
    for part in (slice(0, 40), slice(40, 80)):
        model.partial_fit(MOONS[part], SIDES[part], classes=["a", "b"])
    facts = describe(model)
    assert facts.mistakes == model.mistakes_
    assert (facts.separated, facts.margin, facts.margin_level) == (None, None, None)
    json.dumps(facts.as_dict(), allow_nan=False)


# -- what cannot be described --------------------------------------------------------------------


@pytest.mark.parametrize("model", [model for model, _, _ in EVERYTHING.values()])
def test_not_fitted(model) -> None:
    unfitted = type(model)()
    assert is_described(unfitted)
    with pytest.raises(NotFittedError):
        describe(unfitted)
    with pytest.raises(NotFittedError):
        outline(unfitted)


@pytest.mark.parametrize("stranger", [LogisticRegression(), SVC, 3, None])
def test_strangers(stranger) -> None:
    assert not is_described(stranger)
    with pytest.raises(TypeError, match="KernelPerceptron, LinearSVC, LinearSVR, NuSVC, NuSVR"):
        describe(stranger)


def test_heirs_are_known() -> None:
    class Own(SVC):
        """A subclass."""

    assert describe(Own().fit(MOONS, SIDES)).estimator == "Own"


def test_other_data_than_those_of_fit() -> None:
    with pytest.raises(InvalidDataError, match="not rows of X"):
        describe(fitted("SVC"), MOONS + 1.0, SIDES)
    with pytest.raises(InvalidDataError, match="X without y"):
        describe(fitted("SVC"), MOONS)


def test_data_changed_in_place_since() -> None:
    X = MOONS.copy()
    model = SVC().fit(X, SIDES)
    X += 1.0
    facts = describe(model)
    assert facts.proof is None
    assert "not rows of X" in facts.unproven
    assert facts.machines[0].trace is not None


def test_any_estimator_has_an_outline() -> None:
    told = outline(LogisticRegression().fit(MOONS, SIDES))
    assert (told.estimator, told.task, told.n_features) == (
        "LogisticRegression",
        "classification",
        2,
    )
    assert told.as_dict()["classes"] == ["a", "b"]
