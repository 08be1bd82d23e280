"""The losses of gradient boosting, one file each.

Every file of this folder is imported, so a new loss needs no other change: see `registry`.
"""

from __future__ import annotations

import importlib
import pkgutil

from margrove.ensemble.gradient.losses.absolute_error import AbsoluteError
from margrove.ensemble.gradient.losses.custom import CustomLoss
from margrove.ensemble.gradient.losses.exact_means import (
    RowSums,
    mean_of_rows,
    mean_of_sums,
    row_sums,
    sum_rows,
)
from margrove.ensemble.gradient.losses.exponential import Exponential
from margrove.ensemble.gradient.losses.gamma import Gamma
from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss, rows_of_share
from margrove.ensemble.gradient.losses.huber import Huber
from margrove.ensemble.gradient.losses.log_link import LogLinkLoss
from margrove.ensemble.gradient.losses.log_loss import (
    LogLoss,
    MulticlassLogLoss,
    write_rows_of_classes,
    write_rows_of_two_classes,
)
from margrove.ensemble.gradient.losses.poisson import Poisson
from margrove.ensemble.gradient.losses.quantile import Quantile
from margrove.ensemble.gradient.losses.quantiles import quantile_of
from margrove.ensemble.gradient.losses.registry import (
    GRADIENT_LOSSES,
    LOSS_CLASSES,
    class_loss_of,
    gradient_loss_of,
    is_registered,
    loss_names,
    loss_table,
    parameters_of,
    register_gradient_loss,
    registered_loss,
    regression_loss_of,
)
from margrove.ensemble.gradient.losses.squared_error import SquaredError
from margrove.ensemble.gradient.losses.tweedie import Tweedie

__all__ = [
    "GRADIENT_LOSSES",
    "LOSS_CLASSES",
    "AbsoluteError",
    "CustomLoss",
    "Exponential",
    "Gamma",
    "GradientLoss",
    "Huber",
    "LogLinkLoss",
    "LogLoss",
    "MulticlassLogLoss",
    "Poisson",
    "Quantile",
    "RowSums",
    "SquaredError",
    "Tweedie",
    "class_loss_of",
    "gradient_loss_of",
    "is_registered",
    "loss_names",
    "loss_table",
    "mean_of_rows",
    "mean_of_sums",
    "parameters_of",
    "quantile_of",
    "register_gradient_loss",
    "registered_loss",
    "regression_loss_of",
    "row_sums",
    "rows_of_share",
    "sum_rows",
    "write_rows_of_classes",
    "write_rows_of_two_classes",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
# the order in menus: regression before classification, defaults first
_BY_NAME = sorted(
    GRADIENT_LOSSES.items(),
    key=lambda pair: (pair[1].for_classes, not pair[1].is_usual, pair[0]),
)
GRADIENT_LOSSES.clear()
GRADIENT_LOSSES.update(_BY_NAME)
