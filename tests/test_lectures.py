"""Every number printed in the lectures that the library can already compute.

The slides cut figures off rather than round them, so a printed figure is met if ours is within
1.1 of its last digit. docs/lectures.md says where each comes from and lists the errata.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import margrove
from margrove import (
    SVC,
    DecisionTreeClassifier,
    KernelPerceptron,
    Perceptron,
    PolynomialMap,
    RBFTaylorMap,
)
from margrove.datasets import (
    load_boosting_points,
    load_iris_ratios,
    load_play_tennis,
    load_restaurant,
    make_gaussians,
    make_moons,
    make_separable_clouds,
    make_xor,
)
from margrove.exceptions import NotSeparableError
from margrove.grove import criteria
from margrove.margin.kernels.functions import RBF, Polynomial
from margrove.margin.losses import LOSSES
from margrove.margin.solvers.dual.coordinate_descent import CoordinateProcess
from margrove.margin.svm.problems import c_svc
from tests.oracles.boosting import adaboost
from tests.oracles.entropy import conditional_entropy, entropy, gini, information_gain

pytestmark = pytest.mark.nojit


def printed(value: float, digits: int):
    return pytest.approx(value, abs=1.1 * 10**-digits)


def columns(bunch):
    return {name: bunch.data[:, j].tolist() for j, name in enumerate(bunch.feature_names)}


def test_tennis_information_gains() -> None:
    tennis = load_play_tennis()
    play = tennis.target.tolist()
    assert entropy(play) == printed(0.94, 2)
    gains = {name: information_gain(values, play) for name, values in columns(tennis).items()}
    assert gains["outlook"] == printed(0.246, 3)
    assert gains["humidity"] == printed(0.151, 3)
    assert gains["wind"] == printed(0.048, 3)
    assert gains["temperature"] == printed(0.029, 3)
    assert max(gains, key=gains.get) == "outlook"
    weak = [y for y, w in zip(play, columns(tennis)["wind"], strict=True) if w == "weak"]
    assert entropy(weak) == printed(0.811, 3)
    sunny = tennis.data[:, 0] == "sunny"
    below = {n: np.array(v)[sunny].tolist() for n, v in columns(tennis).items()}
    labels = tennis.target[sunny].tolist()
    assert information_gain(below["humidity"], labels) == printed(0.970, 3)
    assert information_gain(below["temperature"], labels) == printed(0.570, 3)
    assert information_gain(below["wind"], labels) == printed(0.019, 3)


def test_restaurant_conditional_entropies() -> None:
    restaurant = load_restaurant()
    wait = restaurant.target.tolist()
    found = {n: conditional_entropy(v, wait) for n, v in columns(restaurant).items()}
    assert found["Pat"] == pytest.approx(0.4591, abs=1e-4)  # the slide: 6/12 * 0.9 = 0.45
    assert found["Type"] == pytest.approx(1.0)
    assert min(found, key=found.get) == "Pat"
    assert restaurant.data[3, 6] == "Yes"  # the fourth guest's Rain, as in the textbook
    assert entropy(["T"] * 2 + ["F"] * 4) == printed(0.9, 1)


def test_iris_gini_of_the_second_region() -> None:
    assert gini([1, 50, 50]) == pytest.approx(0.5098, abs=5e-5)
    iris = load_iris_ratios()
    assert iris.data.shape == (150, 2)
    # the first cut, on the sepals' ratio, leaves 49 of the first class alone and (1, 50, 50)
    inside = iris.data[:, 0] > 1.7157
    assert np.bincount(iris.target[inside]).tolist() == [1, 50, 50]
    assert np.bincount(iris.target[~inside]).tolist() == [49]


def test_the_tennis_tree() -> None:
    """Grown by our engine, gains included; entropy in base 2, e and 10."""
    tennis = load_play_tennis(as_frame=True)
    model = DecisionTreeClassifier(criterion="entropy", split="multiway")
    tree = model.fit(tennis.data, tennis.target).arrays_
    assert tree.impurity[0] == printed(0.94, 2)
    assert tree.decrease[0] / 14 == printed(0.246, 3)
    names = [tennis.feature_names[j] if j >= 0 else "" for j in tree.feature]
    assert names == ["outlook", "", "wind", "", "", "humidity", "", ""]
    assert model.categories_[0].tolist() == ["overcast", "rain", "sunny"]
    assert tree.decrease[5] / 5 == printed(0.970, 3)
    assert model.score(tennis.data, tennis.target) == 1.0
    for name, gain in {"humidity": 0.151, "wind": 0.048, "temperature": 0.029}.items():
        stump = DecisionTreeClassifier(criterion="entropy", split="multiway", max_depth=1)
        found = stump.fit(tennis.data[[name]], tennis.target).arrays_
        assert found.decrease[0] / 14 == printed(gain, 3)
    weak = np.array([6, 2]) / 8
    assert criteria.entropy(weak) == printed(0.811, 3)
    assert criteria.entropy(weak, base=np.e) == pytest.approx(criteria.entropy(weak) * np.log(2))
    assert criteria.entropy(weak, base=10) == pytest.approx(criteria.entropy(weak) * np.log10(2))


def test_the_restaurant_tree() -> None:
    restaurant = load_restaurant(as_frame=True)
    model = DecisionTreeClassifier(criterion="entropy", split="multiway")
    tree = model.fit(restaurant.data, restaurant.target).arrays_
    assert restaurant.feature_names[tree.feature[0]] == "Pat"
    assert tree.impurity[0] - tree.decrease[0] / 12 == pytest.approx(0.4591, abs=1e-4)
    full, none, some = tree.children_of(0)
    assert tree.impurity[full] == printed(0.9, 1)
    assert tree.impurity[none] == tree.impurity[some] == 0.0
    assert model.score(restaurant.data, restaurant.target) == 1.0
    by_type = DecisionTreeClassifier(criterion="entropy", split="multiway", max_depth=1)
    found = by_type.fit(restaurant.data[["Type"]], restaurant.target).arrays_
    assert found.decrease[0] == pytest.approx(0.0, abs=1e-12)


def test_the_iris_ratio_tree() -> None:
    """The leaf that reduces the uncertainty most is split first."""
    iris = load_iris_ratios()
    tree = DecisionTreeClassifier(max_leaf_nodes=2).fit(iris.data, iris.target).arrays_
    first, second = tree.children_of(0)
    assert (tree.value[first] * tree.weight[first]).tolist() == [49, 0, 0]
    assert (tree.value[second] * tree.weight[second]).round(9).tolist() == [1, 50, 50]
    assert tree.impurity[second] == pytest.approx(0.5098, abs=5e-5)
    larger = DecisionTreeClassifier(max_leaf_nodes=3).fit(iris.data, iris.target).arrays_
    assert larger.kind[larger.children_of(0)[0]] == 0  # the pure one stays a leaf
    assert larger.n_leaves == 3


def test_leaf_probabilities() -> None:
    """p(red) = 3/8, p(green) = 5/8 in an impure leaf."""
    X = [[0.0]] * 8 + [[1.0]] * 4
    y = ["red"] * 3 + ["green"] * 5 + ["red"] * 4
    model = DecisionTreeClassifier().fit(X, y)
    assert model.classes_.tolist() == ["green", "red"]
    assert model.predict_proba([[0.0]]).tolist() == [[5 / 8, 3 / 8]]
    assert model.predict([[0.0]]).tolist() == ["green"]


def test_xor_needs_a_split_without_gain() -> None:
    X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    y = [0, 1, 1, 0]
    model = DecisionTreeClassifier().fit(X, y)
    assert model.arrays_.decrease[0] == 0.0
    assert model.score(X, y) == 1.0
    assert DecisionTreeClassifier(min_impurity_decrease=1e-9).fit(X, y).get_n_leaves() == 1
    assert margrove.prune(model, ccp_alpha=0.01).score(X, y) == 1.0


def test_three_rounds_of_boosting() -> None:
    points = load_boosting_points()
    rounds, scores = adaboost(points.data, points.target, 3)
    assert [r.eps for r in rounds] == [printed(0.30, 2), printed(0.21, 2), printed(0.14, 2)]
    assert [r.beta for r in rounds] == [printed(0.42, 2), printed(0.65, 2), printed(0.92, 2)]
    assert [r.n_mistakes for r in rounds] == [3, 3, 3]
    assert (np.sign(scores) == points.target).all()
    D = np.full(10, 0.1)
    h = np.where(points.data[:, 0] <= rounds[0].threshold, 1, -1)
    assert 0.5 - 0.5 * np.sum(D * points.target * h) == pytest.approx(rounds[0].eps)


def test_three_rounds_of_the_boosting_machine() -> None:
    points = load_boosting_points()
    stump = DecisionTreeClassifier(max_depth=1, criterion="error")
    model = margrove.AdaBoostClassifier(stump, n_estimators=3).fit(points.data, points.target)
    assert model.history_.error.tolist() == [printed(0.30, 2), printed(0.21, 2), printed(0.14, 2)]
    assert model.history_.beta.tolist() == [printed(0.42, 2), printed(0.65, 2), printed(0.92, 2)]
    assert model.score(points.data, points.target) == 1.0


def test_losses_of_the_hyperplane_lecture() -> None:
    """z = y w.x: perceptron max(0, -z), hinge max(0, 1 - z), logistic log(1 + e^-z)."""
    assert LOSSES["perceptron"]().value([-2.0, 0.5]).tolist() == [2.0, 0.0]
    assert LOSSES["hinge"]().value([-2.0, 0.5, 1.0]).tolist() == [3.0, 0.5, 0.0]
    assert LOSSES["logistic"]().value(0.0) == pytest.approx(np.log(2))
    assert LOSSES["zero_one"]().value([-1.0, 1.0]).tolist() == [1.0, 0.0]


def test_dual_representation_of_mistakes() -> None:
    """Mistakes on x1, x2 and x4 give w = x1 + x2 - x4."""
    X = np.array([[1.0, 0.0], [-1.0, 2.0], [-5.0, -5.0], [3.0, 0.5]])
    y = np.array([1, 1, 0, 0])
    model = KernelPerceptron(
        kernel="linear", max_iter=1, tol=None, shuffle=False, fit_intercept=False
    ).fit(X, y)
    alpha = model.alpha_
    w = (alpha * np.array([1, 1, -1, -1])) @ X
    primal = Perceptron(max_iter=1, tol=None, shuffle=False, fit_intercept=False).fit(X, y)
    assert alpha.tolist() == [1, 1, 0, 1]
    assert np.array_equal(w, X[0] + X[1] - X[3])
    assert np.array_equal(primal.coef_[0], w)


def test_a_point_on_the_hyperplane_is_a_mistake() -> None:
    """With the slide's "< 0" the first point would never be learnt: w would stay zero."""
    model = Perceptron(fit_intercept=False).fit([[1.0], [-1.0]], [1, 0])
    assert model.mistakes_ >= 1
    assert model.coef_[0, 0] != 0


def test_the_ten_features_of_the_quadratic_kernel() -> None:
    X = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
    phi = PolynomialMap(degree=2, gamma=1.0, coef0=1.0).fit(X)
    features = phi.transform(X)
    x1, x2, x3 = X[0]
    r = np.sqrt(2)
    slide = [
        1, r * x1, r * x2, r * x3, x1**2, x2**2, x3**2, r * x1 * x2, r * x1 * x3, r * x2 * x3,
    ]  # fmt: skip
    assert np.allclose(sorted(features[0]), sorted(slide))
    assert features[0] @ features[1] == pytest.approx((1 + X[0] @ X[1]) ** 2)
    assert Polynomial(gamma=1.0, coef0=1.0, degree=2)(X)[0, 1] == pytest.approx(
        (1 + X[0] @ X[1]) ** 2
    )


def test_the_infinite_features_of_the_gaussian_kernel() -> None:
    """phi(x) = e^(-gamma x^2) (1, sqrt(2 gamma / 1!) x, sqrt((2 gamma)^2 / 2!) x^2, ...)"""
    gamma, x = 0.7, 0.9
    phi = RBFTaylorMap(gamma=gamma, degree=3).fit([[x]]).transform([[x]])[0]
    series = [1, np.sqrt(2 * gamma) * x, np.sqrt((2 * gamma) ** 2 / 2) * x**2]
    assert np.allclose(phi[:3], np.exp(-gamma * x**2) * np.array(series))


def test_the_width_of_the_gaussian() -> None:
    """exp(-||x - x'||^2 / (2 sigma^2)): gamma = 1 / (2 sigma^2), not one slide's 1 / sigma^2."""
    sigma = 1.7
    K = RBF(sigma=sigma)([[0.0]], [[1.3]])
    assert K[0, 0] == pytest.approx(np.exp(-(1.3**2) / (2 * sigma**2)))


def test_the_perceptron_converges_on_separable_data_only() -> None:
    """Block and Novikoff; and any separating plane will do, without regard to the margin."""
    clouds = make_separable_clouds(100)
    model = Perceptron(max_iter=10_000).fit(clouds.data, clouds.target)
    assert model.separated_
    assert model.mistakes_ <= model.novikoff_bound_
    w = model.coef_[0]
    distance = (clouds.target * (clouds.data @ w + model.intercept_[0])).min() / np.linalg.norm(w)
    assert 0 < distance < clouds.margin
    xor = make_xor(4, noise=0.0)
    assert not Perceptron().fit(xor.data, xor.target).separated_
    squares = KernelPerceptron(kernel="poly", degree=2, coef0=1.0).fit(xor.data, xor.target)
    assert squares.separated_


def test_a_required_margin_widens_the_margin() -> None:
    """Changing the mistake condition to y w.x < gamma pushes the plane away from the points."""
    clouds = make_separable_clouds(60)
    plain = Perceptron(max_iter=10_000, tol=None).fit(clouds.data, clouds.target)
    wide = Perceptron(margin=500.0, max_iter=10_000, tol=None).fit(clouds.data, clouds.target)
    assert wide.margin_ > plain.margin_


# -- support vector machines ---------------------------------------------------------------------

CLOUDS = make_separable_clouds(40)
OVERLAPPING, SIDES = make_gaussians(50, random_state=1, return_X_y=True)
SIGNS = 2.0 * SIDES - 1.0


def soft_margin(C=1.0, **parameters):
    """A linear machine on classes that overlap, its alphas (one a row) and y f(x)."""
    model = SVC(kernel="linear", C=C, tol=1e-9, **parameters).fit(OVERLAPPING, SIGNS)
    alpha = np.zeros(len(SIGNS))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return model, alpha, SIGNS * model.decision_function(OVERLAPPING)


def dual_objective(alpha, y, K) -> float:
    """sum_n alpha_n - 1/2 sum_mn alpha_m alpha_n y_m y_n k(x_m, x_n)"""
    return alpha.sum() - 0.5 * (alpha * y) @ K @ (alpha * y)


def test_primal_and_dual_of_the_soft_margin() -> None:
    """w = sum alpha_n y_n x_n, sum alpha_n y_n = 0, 0 <= alpha_n <= C, and one value for both."""
    C = 0.7
    model, alpha, margins = soft_margin(C)
    w, xi = model.coef_[0], np.maximum(0.0, 1.0 - margins)
    assert w == pytest.approx((alpha * SIGNS) @ OVERLAPPING)
    assert alpha @ SIGNS == pytest.approx(0.0, abs=1e-12)
    assert alpha.min() == 0.0
    assert alpha.max() == C
    primal = 0.5 * w @ w + C * xi.sum()
    dual = dual_objective(alpha, SIGNS, OVERLAPPING @ OVERLAPPING.T)
    assert dual == pytest.approx(primal, rel=1e-8)
    assert model.certificate_.primal == pytest.approx(primal)
    assert model.certificate_.dual == pytest.approx(dual)
    halves = dual_objective(alpha / 2, SIGNS, OVERLAPPING @ OVERLAPPING.T)
    assert halves < dual  # any other feasible alpha is a lower bound on the primal


def test_kkt_conditions_of_the_soft_margin() -> None:
    """Room to spare at alpha = 0, on the margin in between, within it or wrong at alpha = C."""
    C = 0.7
    model, alpha, margins = soft_margin(C)
    at_zero, at_C = alpha == 0.0, alpha == C
    free = ~at_zero & ~at_C
    assert at_zero.any()
    assert at_C.any()
    assert free.any()
    assert margins[at_zero].min() >= 1.0 - 1e-8
    assert margins[free] == pytest.approx(1.0, abs=1e-8)
    assert margins[at_C].max() <= 1.0 + 1e-8
    xi = np.maximum(0.0, 1.0 - margins)
    assert alpha * (margins - 1.0 + xi) == pytest.approx(0.0, abs=1e-8)
    assert (C - alpha) * xi == pytest.approx(0.0, abs=1e-8)
    assert model.certificate_.violation < 1e-8
    # The slide's "<= 0" for alpha = C would call these misclassified; they are within the margin.
    assert ((margins[at_C] > 0.0) & (margins[at_C] < 1.0)).any()


def test_three_kinds_of_support_vectors() -> None:
    """xi = 0 on the margin, 0 < xi <= 1 within it, xi > 1 on the wrong side; one kind if hard."""
    model, alpha, margins = soft_margin()
    proof, xi = model.certificate_, np.maximum(0.0, 1.0 - margins)
    assert np.flatnonzero(alpha).tolist() == sorted(model.support_)
    assert xi[proof.on_margin] == pytest.approx(0.0, abs=1e-8)
    assert np.all((xi[proof.inside_margin] > 0.0) & (xi[proof.inside_margin] <= 1.0))
    wrong = np.flatnonzero(model.predict(OVERLAPPING) != SIGNS)
    assert proof.misclassified.tolist() == wrong.tolist()
    kinds = np.r_[proof.on_margin, proof.inside_margin, proof.misclassified]
    assert sorted(kinds) == sorted(model.support_)
    hard = SVC(kernel="linear", C=np.inf).fit(CLOUDS.data, CLOUDS.target).certificate_
    assert len(hard.on_margin) == len(hard.support) > 0


def test_only_support_vectors_matter() -> None:
    model, _, _ = soft_margin()
    alone = SVC(kernel="linear", tol=1e-9)
    alone.fit(OVERLAPPING[model.support_], SIGNS[model.support_])
    assert len(model.support_) < len(SIGNS)
    assert alone.coef_ == pytest.approx(model.coef_, rel=1e-6)
    assert alone.intercept_ == pytest.approx(model.intercept_, rel=1e-6)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_soft_margin_is_regularised_hinge_loss(C) -> None:
    """sum hinge(y f(x)) + lambda / 2 ||w||^2, lambda = 1 / C: the same minimiser."""

    def regularised(at) -> float:
        losses = LOSSES["hinge"]().value(SIGNS * (OVERLAPPING @ at[:2] + at[2]))
        return losses.sum() + (1.0 / C) / 2.0 * at[:2] @ at[:2]

    model, _, _ = soft_margin(C)
    found = np.r_[model.coef_[0], model.intercept_]
    assert C * regularised(found) == pytest.approx(model.certificate_.primal)
    start = minimize(regularised, np.zeros(3), method="Nelder-Mead").x
    best = minimize(
        regularised, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    assert regularised(found) <= best.fun * (1.0 + 1e-9)
    assert best.fun == pytest.approx(regularised(found), rel=1e-5)
    assert found == pytest.approx(best.x, abs=1e-2)


def test_stochastic_subgradients_on_the_primal() -> None:
    """SGD on the same objective comes as close as it promises: one per cent."""
    exact, by_sgd = soft_margin()[0], soft_margin(solver="sgd")[0]
    assert by_sgd.certificate_.relative_gap < 1e-2
    assert by_sgd.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-2)


def test_the_plane_in_the_middle_of_the_hulls() -> None:
    """Nearest points u and v of the hulls: w is along u - v, the plane cuts the middle."""
    v, u = CLOUDS.nearest_points
    for C in (np.inf, 1e6):  # slack that is dear enough is not bought
        model = SVC(kernel="linear", C=C, tol=1e-8).fit(CLOUDS.data, CLOUDS.target)
        w = model.coef_[0]
        assert w / np.linalg.norm(w) == pytest.approx(CLOUDS.normal, abs=1e-7)
        assert model.decision_function([(u + v) / 2])[0] == pytest.approx(0.0, abs=1e-7)
        assert model.certificate_.margin_width == pytest.approx(np.linalg.norm(u - v))
        assert model.certificate_.margin_width == pytest.approx(2 * CLOUDS.margin)
        signed = model.dual_coef_[0]
        total = signed[signed > 0].sum()  # the slides' C, of both classes
        assert -signed[signed < 0].sum() == pytest.approx(total)
        vectors = model.support_vectors_
        assert signed[signed > 0] / total @ vectors[signed > 0] == pytest.approx(u, abs=1e-6)
        assert -signed[signed < 0] / total @ vectors[signed < 0] == pytest.approx(v, abs=1e-6)
        assert w == pytest.approx(total * (u - v))
        dual = 2 * total - 0.5 * total**2 * np.sum((u - v) ** 2)
        assert model.certificate_.dual == pytest.approx(dual)


def test_the_bias_of_the_hard_margin() -> None:
    """b = -1/2 (min of w.x over the positive + max over the negative), y f(x) >= 1 for all."""
    model = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(CLOUDS.data, CLOUDS.target)
    along = CLOUDS.data @ model.coef_[0]
    b = -0.5 * (along[CLOUDS.target == 1].min() + along[CLOUDS.target == -1].max())
    assert model.intercept_[0] == pytest.approx(b)
    assert (CLOUDS.target * model.decision_function(CLOUDS.data)).min() >= 1.0 - 1e-7


def test_the_hard_margin_needs_separable_classes() -> None:
    """Where the hulls meet there is no such plane, and the error names the point they share."""
    X, y = make_xor(4, noise=0.0, return_X_y=True)
    with pytest.raises(NotSeparableError, match="No hyperplane separates") as caught:
        SVC(kernel="linear", C=np.inf).fit(X, y)
    rows, weights = np.asarray(caught.value.rows), np.asarray(caught.value.weights)
    shared = [weights[y[rows] == k] @ X[rows[y[rows] == k]] for k in (0, 1)]
    assert shared[0] == pytest.approx(shared[1])
    assert [weights[y[rows] == k].sum() for k in (0, 1)] == pytest.approx([1.0, 1.0])
    quadratic = SVC(kernel="poly", degree=2, coef0=1.0, C=np.inf).fit(X, y)
    assert (quadratic.predict(X) == y).all()


def test_slack_falls_and_the_margin_narrows_as_it_gets_dearer() -> None:
    """Large C: little slack, a narrow margin. Small C: a wide margin, much slack."""
    fits = [soft_margin(C) for C in (0.01, 0.1, 1.0, 10.0, 100.0)]
    slack = [np.maximum(0.0, 1.0 - margins).sum() for _, _, margins in fits]
    width = [model.certificate_.margin_width for model, _, _ in fits]
    assert np.all(np.diff(slack) <= 1e-6)
    assert np.all(np.diff(width) <= 1e-6)
    assert slack[0] > slack[-1]
    assert width[0] > width[-1]


def test_the_kernel_trick() -> None:
    """A machine on the ten features and one on (1 + x.z)^2 have the same decision function."""
    X = np.column_stack([OVERLAPPING, np.sin(3.0 * OVERLAPPING[:, 0])])
    features = PolynomialMap(degree=2, gamma=1.0, coef0=1.0).fit_transform(X)
    mapped = SVC(kernel="linear", tol=1e-8).fit(features, SIGNS)
    kernel = SVC(kernel=Polynomial(gamma=1.0, coef0=1.0, degree=2), tol=1e-8).fit(X, SIGNS)
    assert kernel.decision_function(X) == pytest.approx(
        mapped.decision_function(features), abs=1e-5
    )
    expansion = kernel.dual_coef_[0] @ (1.0 + kernel.support_vectors_ @ X.T) ** 2
    assert kernel.decision_function(X) == pytest.approx(expansion + kernel.intercept_[0])


def test_a_large_gamma_makes_every_sample_a_support_vector() -> None:
    X, y = make_moons(60, noise=0.15, return_X_y=True)
    counts = [len(SVC(C=10.0, gamma=gamma).fit(X, y).support_) for gamma in (1.0, 10.0, 500.0)]
    assert counts[0] < counts[1] < counts[2] == len(X)


# -- the algorithms ------------------------------------------------------------------------------


def smo_step(K, y, alpha, first, second, C) -> float:
    """The lecture's new alpha_2, clipped to [L, H]; a bias would cancel in E_1 - E_2."""
    f = K @ (alpha * y)
    E_1, E_2 = f[first] - y[first], f[second] - y[second]
    eta = K[first, first] + K[second, second] - 2.0 * K[first, second]
    a_1, a_2 = alpha[first], alpha[second]
    low, high = max(0.0, a_2 - a_1), min(C, C + a_2 - a_1)
    if y[first] == y[second]:  # the case that the slide leaves out
        low, high = max(0.0, a_1 + a_2 - C), min(C, a_1 + a_2)
    return float(np.clip(a_2 + y[second] * (E_1 - E_2) / eta, low, high))


@pytest.mark.parametrize(("C", "expected"), [(10.0, 0.4), (0.25, 0.25)])
def test_one_step_of_smo_solves_two_points(C, expected) -> None:
    """x_1 = (1, 2), x_2 = (0, 0): eta = 5, E_1 - E_2 = -2, alpha_2 = 2 / 5, or H = C."""
    X, y = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([1.0, -1.0])
    steps = []
    with margrove.watch(on_step=steps.append):
        model = SVC(kernel="linear", C=C).fit(X, y)
    (step,) = steps
    assert {step.first, step.second} == {0, 1}
    assert smo_step(X @ X.T, y, np.zeros(2), step.first, step.second, C) == expected
    assert step.change == pytest.approx(expected)
    assert model.dual_coef_[0] == pytest.approx(expected * y[model.support_])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_step_of_smo_is_the_lectures(kernel) -> None:
    """alpha_2 + y_2 (E_1 - E_2) / eta, clipped; alpha_1 makes up for it; the dual rises."""
    C, steps = 1.0, []
    with margrove.watch(on_step=steps.append):
        model = SVC(kernel=kernel, C=C).fit(OVERLAPPING, SIGNS)
    K, alpha = model.kernel_(OVERLAPPING), np.zeros(len(SIGNS))
    objective = 0.0
    for step in steps:
        first, second = step.first, step.second
        new = smo_step(K, SIGNS, alpha, first, second, C)
        moved = new - alpha[second]
        assert abs(moved) == pytest.approx(step.change, rel=1e-6)
        alpha[second] = new
        alpha[first] -= SIGNS[first] * SIGNS[second] * moved
        before, objective = objective, dual_objective(alpha, SIGNS, K)
        assert objective > before
    assert len(steps) == model.n_iter_[0]
    assert alpha[model.support_] * SIGNS[model.support_] == pytest.approx(model.dual_coef_[0])


def test_coordinate_ascent_without_a_bias() -> None:
    """Without b nothing couples the alphas: each goes to the maximum along its own axis."""
    C, K = 1.0, RBF(gamma=0.5)(OVERLAPPING)
    steps, alpha = [], np.zeros(len(SIGNS))
    with margrove.watch(on_step=steps.append):
        process = CoordinateProcess(K, c_svc(SIGNS, np.full(50, C), has_bias=False), tol=1e-6)
        while not process.finished:
            process.advance(np.inf)
            steps += process.read_steps()
    objective, epoch = 0.0, -1
    for step in steps:
        if step.epoch > epoch:
            epoch, start = step.epoch, alpha.copy()
        i = step.variable
        if i >= 0:
            slope = 1.0 - SIGNS[i] * (K[i] @ (alpha * SIGNS))
            assert step.gradient == pytest.approx(-slope, abs=1e-9)
            highest = np.clip(alpha[i] + slope / K[i, i], 0.0, C)
            assert step.change == pytest.approx(highest - alpha[i], abs=1e-9)
            alpha[i] += step.change
        else:  # our own addition: all go on the way that the epoch led
            alpha = np.clip(alpha + step.change * (alpha - start), 0.0, C)
        before, objective = objective, dual_objective(alpha, SIGNS, K)
        assert objective >= before - 1e-12
    model = SVC(kernel=RBF(gamma=0.5), C=C, fit_intercept=False, tol=1e-6).fit(OVERLAPPING, SIGNS)
    assert model.intercept_.tolist() == [0.0]
    assert model.certificate_.dual == pytest.approx(objective, rel=1e-6)
    assert np.abs(model.dual_coef_[0]) == pytest.approx(alpha[model.support_], abs=1e-4)
