"""The small real sets that come with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.datasets

from margrove.datasets.bunches import AsFrame, as_bunch

__all__ = ["load_breast_cancer", "load_diabetes", "load_digits", "load_iris", "load_wine"]


def _bundled(name: str, return_X_y: bool, as_frame: AsFrame) -> Any:
    bunch = getattr(sklearn.datasets, f"load_{name}")()
    return as_bunch(
        np.asarray(bunch.data),
        np.asarray(bunch.target),
        feature_names=[str(feature) for feature in bunch.feature_names],
        description=bunch.DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
        target_names=getattr(bunch, "target_names", None),
    )


def load_iris(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """150 irises of three species, 4 measurements."""
    return _bundled("iris", return_X_y, as_frame)


def load_wine(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """178 wines of three growers, 13 measurements."""
    return _bundled("wine", return_X_y, as_frame)


def load_breast_cancer(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """569 tumours, malignant or benign, 30 measurements."""
    return _bundled("breast_cancer", return_X_y, as_frame)


def load_digits(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """1797 handwritten digits of 8 x 8 pixels."""
    return _bundled("digits", return_X_y, as_frame)


def load_diabetes(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """442 patients and the progress of their diabetes, a number."""
    return _bundled("diabetes", return_X_y, as_frame)
