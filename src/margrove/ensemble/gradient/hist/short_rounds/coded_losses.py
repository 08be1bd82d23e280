"""The usual losses by a code, for compiled loops that run several rounds."""

from __future__ import annotations

from margrove._runtime import kernel
from margrove.ensemble.gradient.losses import (
    GradientLoss,
    LogLoss,
    MulticlassLogLoss,
    SquaredError,
    write_rows_of_classes,
    write_rows_of_two_classes,
)

__all__ = ["code_of_loss", "derive_by_code"]

_CODES: dict[type[GradientLoss], int] = {SquaredError: 0, LogLoss: 1, MulticlassLogLoss: 2}
_SQUARED_ERROR, _TWO_CLASSES = 0, 1
_write_squares = SquaredError.region_of_rows.body
_write_two_classes = write_rows_of_two_classes.body
_write_classes = write_rows_of_classes.body


def code_of_loss(loss: GradientLoss) -> int | None:
    """The code of a loss; None if `derive_by_code` does not have it."""
    return _CODES.get(type(loss))


@kernel(inner=True)
def derive_by_code(code, step, y, raw, weight, gradient, hessian, losses):
    """`GradientLoss.derive` on one thread, `step` rows at a time."""
    for share in range(-(-len(y) // step)):
        if code == _SQUARED_ERROR:
            _write_squares(share, 0, step, y, raw, weight, gradient, hessian, losses, ())
        elif code == _TWO_CLASSES:
            _write_two_classes(share, 0, step, y, raw, weight, gradient, hessian, losses)
        else:
            _write_classes(share, 0, step, y, raw, weight, gradient, hessian, losses)
