"""The loss that an estimator asks for by `loss=`, if it is one for its task."""

from __future__ import annotations

from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss
from margrove.ensemble.gradient.losses.own import OwnLoss
from margrove.ensemble.gradient.losses.registry import gradient_loss_of, loss_names

__all__ = ["class_loss_of", "regression_loss_of"]


def regression_loss_of(loss: str | GradientLoss) -> GradientLoss:
    """What `loss` asks for, of numbers."""
    found = _usable(gradient_loss_of(loss))
    if found.for_classes:
        names = loss_names(for_classes=False)
        raise ValueError(f"loss={found.name!r} is for classes. Use one of {names}.")
    return found


def class_loss_of(loss: str | GradientLoss, n_classes: int) -> GradientLoss:
    """What `loss` asks for, of so many classes."""
    found = _usable(gradient_loss_of(loss))
    if not found.for_classes:
        names = loss_names(for_classes=True)
        raise ValueError(f"loss={found.name!r} is for numbers. Use one of {names}.")
    return found.with_classes(n_classes)


def _usable(loss: GradientLoss) -> GradientLoss:
    if isinstance(loss, OwnLoss):
        loss.require_numbers()
    return loss
