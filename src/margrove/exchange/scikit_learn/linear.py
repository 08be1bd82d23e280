"""Linear machines: weights and intercepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.exchange.scikit_learn.pairs import Pair, columns_of

__all__ = ["LINEAR_MACHINES"]


def _weights(model: Any) -> dict[str, Any]:
    """Weights and intercepts, dense float64; without an intercept, scikit-learn writes 0.0."""
    coef = model.coef_
    coef = np.array(coef.toarray() if sp.issparse(coef) else coef, np.float64)
    n_machines = len(coef) if coef.ndim == 2 else 1
    intercept = np.array(np.broadcast_to(np.asarray(model.intercept_, np.float64), n_machines))
    return columns_of(model) | {
        "coef_": coef,
        "intercept_": intercept,
        "n_iter_": int(model.n_iter_),
    }


def _classifier(model: Any) -> dict[str, Any]:
    return _weights(model) | {"classes_": model.classes_}


def _read_perceptron(theirs: Any) -> dict[str, Any]:
    """Attributes of a Perceptron; scikit-learn does not count mistakes."""
    known = _classifier(theirs)
    return known | {
        "t_": float(theirs.t_),
        "_behind_average": None,
        "mistakes_": float("nan"),
        "class_mistakes_": np.full(len(known["coef_"]), np.nan),
    }


def _write_perceptron(ours: Any) -> dict[str, Any]:
    """Attributes of a Perceptron, with the state from which `partial_fit` continues."""
    known = _classifier(ours)
    return known | {
        "t_": float(ours.t_),
        "_standard_coef": known["coef_"],
        "_standard_intercept": known["intercept_"],
        "_average_coef": None,
        "_average_intercept": None,
    }


LINEAR_MACHINES = (
    Pair(
        "sklearn.linear_model:Perceptron",
        "margrove.margin.perceptron.perceptron:Perceptron",
        _read_perceptron,
        _write_perceptron,
    ),
    Pair(
        "sklearn.svm:LinearSVC",
        "margrove.margin.linear.linear_svc:LinearSVC",
        _classifier,
        _classifier,
    ),
    Pair(
        "sklearn.svm:LinearSVR", "margrove.margin.linear.linear_svr:LinearSVR", _weights, _weights
    ),
)
