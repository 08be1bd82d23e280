"""Menus of parameters, read from the registries of the library at each request."""

from __future__ import annotations

from collections.abc import Callable

from margrove.select.learners import Choice, Value, When

__all__ = [
    "boosting_algorithms",
    "boosting_losses",
    "criteria",
    "gradient_losses",
    "kernels",
    "kernels_with",
    "menu",
    "only_for",
    "solvers",
]


def kernels() -> list[Choice]:
    from margrove.margin.kernels import KERNELS

    return [Choice(name, f"{name}: {kernel.summary()}") for name, kernel in KERNELS.items()]


def kernels_with(parameter: str) -> Callable[[], list[Value]]:
    """A function that lists the kernels with a parameter, those of the user included."""

    def names() -> list[Value]:
        from margrove.margin.kernels import KERNELS

        return [name for name, kernel in KERNELS.items() if parameter in kernel.parameters()]

    return names


def criteria(*, for_classes: bool, in_forests: bool = False) -> Callable[[], list[Choice]]:
    """A function that lists the criteria of trees or forests, those of the user included."""

    def choices() -> list[Choice]:
        from margrove.grove import CRITERIA

        return [
            Choice(name, f"{name}: {criterion.summary}")
            for name, criterion in CRITERIA.items()
            if criterion.for_classes == for_classes
            and criterion.in_menus
            and (criterion.in_forests or not in_forests)
        ]

    return choices


def gradient_losses(*, for_classes: bool) -> Callable[[], list[Choice]]:
    def choices() -> list[Choice]:
        from margrove.ensemble.gradient.losses import loss_names

        return [Choice(name, name) for name in loss_names(for_classes=for_classes)]

    return choices


def boosting_algorithms() -> list[Choice]:
    from margrove.ensemble.adaboost import ALGORITHMS

    return [Choice(name, name) for name in ALGORITHMS]


def boosting_losses() -> list[Choice]:
    from margrove.ensemble.adaboost import LOSSES

    return [Choice(name, name) for name in LOSSES]


def solvers() -> list[Choice]:
    from margrove.margin.solvers.dual import DENSE_SOLVERS

    titles = {"cd": "cd, without an intercept"}
    return [Choice(name, titles.get(name, name)) for name in ("auto", "smo", *DENSE_SOLVERS)]


def menu(**titles: str) -> Callable[[], list[Choice]]:
    """A fixed menu: value="title"."""
    return lambda: [Choice(value, title) for value, title in titles.items()]


def only_for(name: str, *values: Value) -> When:
    """The condition that the parameter `name` has one of some values."""
    return When(name, lambda: values)
