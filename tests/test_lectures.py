"""Every number printed in the lectures that the library can already compute.

The slides cut figures off rather than round them, so a printed figure is met if ours is within
1.1 of its last digit. docs/lectures.md says where each comes from and lists the errata.
"""

from __future__ import annotations

import numpy as np
import pytest

from margrove import KernelPerceptron, Perceptron, PolynomialMap, RBFTaylorMap
from margrove.datasets import (
    load_boosting_points,
    load_iris_ratios,
    load_play_tennis,
    load_restaurant,
    make_separable_clouds,
    make_xor,
)
from margrove.margin.kernels import RBF, Polynomial
from margrove.margin.losses import LOSSES
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
