"""SVC against LIBSVM (scikit-learn, 4 GB cache) and oneDAL, at equal achieved KKT violation.

The violation and the duality gap of every contestant are recomputed in float64 by
`margrove.certificate`, from its support vectors, coefficients and intercepts.
"""

from __future__ import annotations

import numpy as np
import sklearn.svm

import margrove
from compare import Case
from data import KERNEL_PROBLEMS, ORIGIN, kernel_problem

try:
    import sklearnex.svm as one_dal_svm
except ImportError:
    one_dal_svm = None


def load(name):
    X, y, parameters = kernel_problem(name)
    return {"X": X, "X32": X.astype(np.float32), "y": y, "parameters": parameters}


def ours(data):
    return margrove.SVC(**data["parameters"]).fit(data["X"], data["y"])


def libsvm(data):
    model = sklearn.svm.SVC(cache_size=4000, **data["parameters"])
    return model.fit(data["X"], data["y"])


def one_dal(data):
    return one_dal_svm.SVC(**data["parameters"]).fit(data["X"], data["y"])


def one_dal_float32(data):
    return one_dal_svm.SVC(**data["parameters"]).fit(data["X32"], data["y"])


def quality(model, data):
    X = data["X32"] if model.support_vectors_.dtype == np.float32 else data["X"]
    proof = certificate_of(model, X, data)
    return {
        "KKT violation": proof.violation,
        "relative gap": proof.relative_gap,
        "dual objective": proof.dual,
        "support vectors": len(model.support_),
    }


def certificate_of(model, X, data):
    if isinstance(model, margrove.SVC):
        return margrove.certificate(model, X, data["y"])
    # oneDAL's estimator has scikit-learn's attributes but not all of the private ones.
    plain = sklearn.svm.SVC(**data["parameters"])
    for name in ("support_", "support_vectors_", "dual_coef_", "intercept_", "classes_"):
        setattr(plain, name, getattr(model, name))
    plain.class_weight_ = np.ones(len(model.classes_))
    plain._gamma = data["parameters"]["gamma"]
    return margrove.certificate(plain, X, data["y"])


PEERS = {"LIBSVM": libsvm}
if one_dal_svm is not None:
    PEERS |= {"oneDAL float64": one_dal, "oneDAL float32": one_dal_float32}

CASES = [
    Case(
        name=name,
        data=lambda name=name: load(name),
        ours={"margrove": ours},
        peers=PEERS,
        quality=quality,
        decisive="-KKT violation",
        allowance=2e-4,
        note=f"RBF, C={C:g}, gamma={gamma:g}, tol 1e-3. {ORIGIN}",
        repeats=3,
    )
    for name, (_, C, gamma) in KERNEL_PROBLEMS.items()
]
