"""The losses of the lectures in one table: value and (sub)gradient.

Classification losses are functions of the margin z = y f(x), regression losses of the residual
r = y - f(x); `argument` says which. Where a loss has a kink, `gradient` returns the subgradient
that the learning algorithms use; each class states it. To add a loss, add one class here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

__all__ = [
    "LOSSES",
    "Absolute",
    "EpsilonInsensitive",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "Perceptron",
    "Squared",
    "SquaredHinge",
    "ZeroOne",
]

Array = NDArray[np.float64]

LOSSES: dict[str, type[Loss]] = {}


@dataclass(frozen=True)
class Loss:
    """A loss as a function of one number, elementwise over arrays."""

    name: ClassVar[str] = ""
    argument: ClassVar[Literal["margin", "residual"]] = "margin"
    convex: ClassVar[bool] = True

    def value(self, z: ArrayLike) -> Array:
        raise NotImplementedError

    def gradient(self, z: ArrayLike) -> Array:
        """A subgradient with respect to the argument."""
        raise NotImplementedError


def registered(cls: type[Loss]) -> type[Loss]:
    """Put a loss class into LOSSES."""
    LOSSES[cls.name] = cls
    return cls


def _array(z: ArrayLike) -> Array:
    return np.asarray(z, dtype=np.float64)


@registered
@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 for a mistake, z <= 0, else 0. Its gradient is zero, so it cannot be minimised directly."""

    name: ClassVar[str] = "zero_one"
    convex: ClassVar[bool] = False

    def value(self, z: ArrayLike) -> Array:
        return (_array(z) <= 0).astype(np.float64)

    def gradient(self, z: ArrayLike) -> Array:
        return np.zeros_like(_array(z))


@registered
@dataclass(frozen=True)
class Perceptron(Loss):
    """max(0, -z); at z = 0 the subgradient is -1, so that the perceptron leaves w = 0."""

    name: ClassVar[str] = "perceptron"

    def value(self, z: ArrayLike) -> Array:
        return np.maximum(0.0, -_array(z))

    def gradient(self, z: ArrayLike) -> Array:
        return np.where(_array(z) <= 0, -1.0, 0.0)


@registered
@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - z), of support vector machines; at z = 1 the subgradient is 0."""

    name: ClassVar[str] = "hinge"

    def value(self, z: ArrayLike) -> Array:
        return np.maximum(0.0, 1.0 - _array(z))

    def gradient(self, z: ArrayLike) -> Array:
        return np.where(_array(z) < 1, -1.0, 0.0)


@registered
@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - z)^2"""

    name: ClassVar[str] = "squared_hinge"

    def value(self, z: ArrayLike) -> Array:
        return np.maximum(0.0, 1.0 - _array(z)) ** 2

    def gradient(self, z: ArrayLike) -> Array:
        return -2.0 * np.maximum(0.0, 1.0 - _array(z))


@registered
@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + e^-z), of logistic regression"""

    name: ClassVar[str] = "logistic"

    def value(self, z: ArrayLike) -> Array:
        return np.logaddexp(0.0, -_array(z))

    def gradient(self, z: ArrayLike) -> Array:
        return -expit(-_array(z))


@registered
@dataclass(frozen=True)
class Exponential(Loss):
    """e^-z, of AdaBoost; below z = -300 it is continued by its tangent, so that it stays finite."""

    name: ClassVar[str] = "exponential"
    _edge: ClassVar[float] = -300.0

    def value(self, z: ArrayLike) -> Array:
        z = _array(z)
        inner = np.maximum(z, self._edge)
        return np.exp(-inner) * (1.0 + (inner - z))

    def gradient(self, z: ArrayLike) -> Array:
        return -np.exp(-np.maximum(_array(z), self._edge))


@registered
@dataclass(frozen=True)
class Squared(Loss):
    """r^2"""

    name: ClassVar[str] = "squared"
    argument: ClassVar[Literal["margin", "residual"]] = "residual"

    def value(self, z: ArrayLike) -> Array:
        return _array(z) ** 2

    def gradient(self, z: ArrayLike) -> Array:
        return 2.0 * _array(z)


@registered
@dataclass(frozen=True)
class Absolute(Loss):
    """abs(r); at r = 0 the subgradient is 0."""

    name: ClassVar[str] = "absolute"
    argument: ClassVar[Literal["margin", "residual"]] = "residual"

    def value(self, z: ArrayLike) -> Array:
        return np.abs(_array(z))

    def gradient(self, z: ArrayLike) -> Array:
        return np.sign(_array(z))


@registered
@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(0, abs(r) - epsilon), of support vector regression; at the edge the subgradient is 0."""

    name: ClassVar[str] = "epsilon_insensitive"
    argument: ClassVar[Literal["margin", "residual"]] = "residual"
    epsilon: float = 0.1

    def value(self, z: ArrayLike) -> Array:
        return np.maximum(0.0, np.abs(_array(z)) - self.epsilon)

    def gradient(self, z: ArrayLike) -> Array:
        z = _array(z)
        return np.where(np.abs(z) > self.epsilon, np.sign(z), 0.0)
