"""Parameters of perceptrons and support vector machines that the page shows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from margrove.select.learners import Parameter, Value, When
from margrove.studio.learners.choices import kernels, kernels_with, menu, only_for, solvers
from margrove.studio.learners.offers import Shown

__all__ = ["MARGIN_PARAMETERS"]

_C = Parameter(
    name="C", title="C", kind="number", default=1.0, scale="log", low=1e-3, high=1e4,
    summary="The cost of a point inside the margin or on the wrong side.",
)  # fmt: skip
_C_OR_HARD = dataclasses.replace(_C, none="infinite: no slack at all", none_means=float(np.inf))
_NU = Parameter(
    name="nu", title="nu", kind="number", default=0.5, low=0.01, high=1.0,
    summary="At most this share of the points violates the margin; at least as many support it.",
)  # fmt: skip
_KERNEL = (
    Parameter(
        name="kernel", title="kernel", kind="choice", default="rbf", choices=kernels,
        summary="The inner product of two points in feature space.",
    ),
    Parameter(
        name="gamma", title="gamma", kind="number", default=None, scale="log", low=1e-3, high=1e3,
        summary="How fast the kernel falls with distance. Large values give wiggly boundaries.",
        none="1 / (features x variance)", none_means="scale",
        when=When("kernel", kernels_with("gamma")),
    ),
    Parameter(
        name="degree", title="degree", kind="integer", default=3, low=1, high=8,
        summary="The degree of the polynomial.", when=When("kernel", kernels_with("degree")),
    ),
    Parameter(
        name="coef0", title="coef0", kind="number", default=1.0, low=-2.0, high=4.0,
        summary="A constant that is added to the inner product.",
        when=When("kernel", kernels_with("coef0")),
    ),
)  # fmt: skip
_INTERCEPT = Parameter(
    name="fit_intercept", title="intercept", kind="flag", default=True,
    summary="Without one, the boundary goes through the origin.",
)  # fmt: skip
_BALANCED = Parameter(
    name="class_weight", title="class weights", kind="choice", default=None,
    none="equal for all points", choices=menu(balanced="equal for all classes"),
    summary="Whether every point has the same weight, or every class.",
)  # fmt: skip
_EPSILON = Parameter(
    name="epsilon", title="epsilon", kind="number", default=0.1, low=0.0, high=1.0,
    summary="Half the width of the tube in which errors are free.",
)  # fmt: skip


def _without_intercept(values: dict[str, Value]) -> dict[str, Any]:
    """Coordinate descent needs dual variables that need not add up to 0: no intercept."""
    return {"fit_intercept": False} if values["solver"] == "cd" else {}


MARGIN_PARAMETERS: dict[str, Shown] = {
    "Perceptron": Shown(
        parameters=(
            Parameter(
                name="max_iter", title="epochs", kind="integer", default=1000, scale="log",
                low=1, high=10_000, summary="The largest number of passes over all points.",
            ),
            Parameter(
                name="average", title="averaged", kind="flag", default=False,
                summary="Whether the weights are averaged over all steps.",
            ),
            Parameter(
                name="margin", title="margin", kind="number", default=0.0, low=0.0, high=5.0,
                summary="A value y f(x) of at most this counts as a mistake.",
            ),
            Parameter(
                name="shuffle", title="shuffled", kind="flag", default=True,
                summary="Whether the order of the points changes in each epoch.",
            ),
            _INTERCEPT,
        ),
        steps=("perceptron",),
    ),
    "KernelPerceptron": Shown(
        parameters=(
            *_KERNEL,
            Parameter(
                name="max_iter", title="epochs", kind="integer", default=100, scale="log",
                low=1, high=1000, summary="The largest number of passes over all points.",
            ),
            Parameter(
                name="max_support", title="points kept", kind="integer", default=None,
                none="no limit", low=1, high=200,
                summary="Beyond this number, the oldest point is dropped.",
            ),
        ),
    ),
    "LinearSVC": Shown(
        parameters=(
            _C,
            Parameter(
                name="loss", title="loss", kind="choice", default="hinge",
                choices=menu(hinge="hinge", squared_hinge="squared hinge"),
                summary="How slack is penalised.",
            ),
            Parameter(
                name="penalty", title="penalty", kind="choice", default="l2",
                choices=menu(l2="squares of the weights", l1="absolute values of the weights"),
                summary="How large weights are penalised.", when=only_for("loss", "squared_hinge"),
            ),
            _BALANCED,
            _INTERCEPT,
        ),
    ),
    "SVC": Shown(
        parameters=(
            _C_OR_HARD, *_KERNEL, _BALANCED,
            Parameter(
                name="solver", title="solver", kind="choice", default="auto", choices=solvers,
                summary="How the problem is solved; the solution is the same.",
            ),
        ),
        steps=("smo", "hull", "subgradient"), also=_without_intercept,
    ),
    "NuSVC": Shown(
        parameters=(_NU, *_KERNEL),
    ),
    "LinearSVR": Shown(
        parameters=(
            _C, _EPSILON,
            Parameter(
                name="loss", title="loss", kind="choice", default="epsilon_insensitive",
                choices=menu(epsilon_insensitive="distance from the tube",
                            squared_epsilon_insensitive="its square"),
                summary="How errors beyond the tube are penalised.",
            ),
            _INTERCEPT,
        ),
    ),
    "SVR": Shown(
        parameters=(_C, _EPSILON, *_KERNEL),
    ),
    "NuSVR": Shown(
        parameters=(_NU, _C, *_KERNEL),
    ),
}  # fmt: skip
