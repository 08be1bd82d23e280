"""Every loss of the table: value, subgradient, convexity, and its place above the 0-1 loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrove.margin.losses import LOSSES

pytestmark = pytest.mark.nojit

FORMULAS = {
    "zero_one": lambda z: float(z <= 0),
    "perceptron": lambda z: max(0.0, -z),
    "hinge": lambda z: max(0.0, 1 - z),
    "squared_hinge": lambda z: max(0.0, 1 - z) ** 2,
    "logistic": lambda z: float(np.log1p(np.exp(-z))),
    "exponential": lambda z: float(np.exp(-z)),
    "squared": lambda z: z * z,
    "absolute": abs,
    "epsilon_insensitive": lambda z: max(0.0, abs(z) - 0.1),
}
POINTS = st.floats(-30, 30)


def test_every_loss_has_its_formula_here() -> None:
    assert set(FORMULAS) == set(LOSSES)


@pytest.mark.parametrize("name", sorted(LOSSES))
@given(z=POINTS)
def test_value(name, z) -> None:
    assert LOSSES[name]().value(z) == pytest.approx(FORMULAS[name](z), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", [n for n in sorted(LOSSES) if LOSSES[n].convex])
@given(z=POINTS, other=POINTS)
def test_subgradient_inequality(name, z, other) -> None:
    """L(u) >= L(z) + g (u - z) for every subgradient g of a convex loss."""
    loss = LOSSES[name]()
    below = loss.value(z) + loss.gradient(z) * (other - z)
    assert loss.value(other) >= below - 1e-9 * (1 + abs(below))


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_gradient_is_the_derivative_where_there_is_one(name) -> None:
    loss = LOSSES[name]()
    z = np.linspace(-3.03, 3.07, 101)
    h = 1e-6
    numeric = (loss.value(z + h) - loss.value(z - h)) / (2 * h)
    assert np.allclose(loss.gradient(z), numeric, atol=1e-5)


def test_the_perceptron_leaves_zero() -> None:
    assert LOSSES["perceptron"]().gradient(0.0) == -1.0


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "exponential"])
def test_bounds_on_the_zero_one_loss(name) -> None:
    z = np.linspace(-5, 5, 1001)
    assert (LOSSES[name]().value(z) >= LOSSES["zero_one"]().value(z)).all()


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_extreme_arguments_stay_finite(name) -> None:
    loss = LOSSES[name]()
    z = np.array([-1e6, -750.0, 0.0, 750.0, 1e6])
    assert np.isfinite(loss.value(z)).all()
    assert np.isfinite(loss.gradient(z)).all()
