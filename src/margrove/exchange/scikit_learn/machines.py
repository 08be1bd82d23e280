"""Support vector machines: support vectors, coefficients and intercepts of LIBSVM.

With two classes, decisions of LIBSVM are positive for the first one. scikit-learn keeps LIBSVM's
numbers in private attributes, and changes the sign of the public ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from margrove._data import check_table
from margrove.exceptions import ConversionError
from margrove.exchange.scikit_learn.pairs import Pair, columns_of, no_settings
from margrove.margin.kernels import (
    KERNELS,
    CallableKernel,
    Kernel,
    Precomputed,
    TrainingObjects,
    dual_coefficients,
    like_table,
    resolve_kernel,
    takes_objects,
)

__all__ = ["KERNEL_MACHINES"]

_OF_LIBSVM = ("linear", "poly", "rbf", "sigmoid")
_TRAINING_ROWS = "_BaseLibSVM__Xfit"  # scikit-learn keeps them for functions as kernels
_ROWS_TO_COMPARE = 50
_ROUNDING = 1e-9  # relative difference of a function's values on other blocks of rows


# -- from scikit-learn --


def _read(theirs: Any) -> dict[str, Any]:
    """Attributes that all support vector machines have."""
    dual_coef = np.array(dual_coefficients(theirs), np.float64)
    support = np.array(theirs.support_, np.int32)
    n_rows = max(1, len(getattr(theirs, "classes_", ())) - 1)
    return {
        **_columns_and_vectors(theirs, support),
        "support_": support,
        "n_support_": np.array(theirs.n_support_, np.int32),
        "dual_coef_": like_table(dual_coef.reshape(n_rows, len(support)), theirs.dual_coef_),
        "intercept_": np.array(theirs.intercept_, np.float64),
        "kernel_": Precomputed() if _is_of_objects(theirs) else _kernel_of(theirs),
        "feature_scale_": 1.0,
        "fit_status_": int(theirs.fit_status_),
    }


def _is_of_objects(theirs: Any) -> bool:
    return takes_objects(theirs.kernel, vars(theirs).get(_TRAINING_ROWS))


def _columns_and_vectors(theirs: Any, support: np.ndarray) -> dict[str, Any]:
    if not callable(theirs.kernel):
        vectors = theirs.support_vectors_
        found = sp.csr_array(vectors) if sp.issparse(vectors) else np.array(vectors, np.float64)
        shape = tuple(int(size) for size in theirs.shape_fit_)
        return columns_of(theirs) | {"support_vectors_": found, "shape_fit_": shape}
    rows = vars(theirs)[_TRAINING_ROWS]
    if _is_of_objects(theirs):
        return {
            "_objects": TrainingObjects(theirs.kernel, rows),
            "n_features_in_": len(rows),
            "support_vectors_": np.empty((0, 0)),
            "shape_fit_": (len(rows), len(rows)),
        }
    try:
        table = check_table(rows, theirs)
    except (TypeError, ValueError) as error:
        raise _unusable_function(theirs, f"X is not a table of numbers ({error})") from error
    fitted = {"support_vectors_": table.X[support], "shape_fit_": table.X.shape}
    return table.attributes | fitted


def _kernel_of(theirs: Any) -> Kernel:
    return resolve_kernel(
        theirs.kernel,
        gamma=float(theirs._gamma),
        degree=theirs.degree,
        coef0=float(theirs.coef0),
        X=None,
        weight=np.ones(1),
    )


def _unusable_function(theirs: Any, problem: str) -> ConversionError:
    return ConversionError(
        type(theirs).__name__,
        f"its kernel is a function, and {problem}",
        "Fit it with kernel='precomputed' and the Gram matrix, and convert that",
    )


def _compare(theirs: Any, ours: Any) -> None:
    """Refuse a kernel function whose values for two rows depend on the other rows of a block."""
    if not isinstance(ours.kernel_, CallableKernel):
        return
    X = vars(theirs)[_TRAINING_ROWS]
    method = "decision_function" if hasattr(theirs, "decision_function") else "predict"
    some = _safe_indexing(X, np.arange(min(_ROWS_TO_COMPARE, ours.shape_fit_[0])))
    expected = getattr(theirs, method)(some)
    try:
        found = getattr(ours, method)(some)
    except Exception as error:
        raise _unusable_function(theirs, f"fails on blocks of rows: {error}") from error
    if not np.allclose(found, expected, rtol=0.0, atol=_ROUNDING * np.abs(expected).max()):
        raise _unusable_function(theirs, "its values for two rows depend on the rows beside them")


def _read_classifier(theirs: Any) -> dict[str, Any]:
    if getattr(theirs, "_probA", np.empty(0)).size and theirs.probability is True:
        raise ConversionError(
            type(theirs).__name__,
            "it was fitted with probability=True, and LIBSVM's probabilities may contradict "
            "predict, which those of margrove never do",
            "Convert it without them, from_sklearn(model.set_params(probability=False)), and get "
            "probabilities from margrove.calibrate or another fit",
        )
    n_classes = len(theirs.classes_)
    return _read(theirs) | {
        "classes_": theirs.classes_,
        "class_weight_": np.array(theirs.class_weight_, np.float64),
        "n_iter_": np.array(
            np.broadcast_to(theirs.n_iter_, n_classes * (n_classes - 1) // 2), np.int32
        ),
    }


def _read_nu_classifier(theirs: Any) -> dict[str, Any]:
    """Attributes of NuSVC, for which LIBSVM ignores class weights."""
    return _read_classifier(theirs) | {"class_weight_": np.ones(len(theirs.classes_))}


def _read_single(theirs: Any) -> dict[str, Any]:
    return _read(theirs) | {"n_iter_": int(theirs.n_iter_)}


def _read_nu_regressor(theirs: Any) -> dict[str, Any]:
    """Attributes of NuSVR; scikit-learn does not have the width of the tube."""
    return _read_single(theirs) | {"epsilon_": float("nan")}


def _read_one_class(theirs: Any) -> dict[str, Any]:
    return _read_single(theirs) | {"offset_": np.array(theirs.offset_, np.float64)}


# -- to scikit-learn --


def _write(ours: Any) -> dict[str, Any]:
    vectors, support, dual_coef = ours.support_vectors_, ours.support_, dual_coefficients(ours)
    kernel, scale = ours.kernel_, float(ours.feature_scale_)
    by_function = not _is_of_libsvm(kernel)
    if scale != 1.0 and by_function:
        raise ConversionError(
            type(ours).__name__,
            f"its rows were scaled by {scale:g}, and its kernel has no gamma in LIBSVM that could "
            "account for that",
            "Scale the features, for example with StandardScaler, and fit again",
        )
    if kernel.name == "linear":
        dual_coef = dual_coef * scale * scale
    is_sparse = sp.issparse(vectors)
    known = columns_of(ours) | {
        "shape_fit_": tuple(ours.shape_fit_),
        "fit_status_": ours.fit_status_,
        "n_iter_": ours.n_iter_,
        "_num_iter": np.atleast_1d(ours.n_iter_).astype(np.int32),
        "_gamma": float(getattr(kernel, "gamma", 0.0)) * scale * scale,
        "_probA": np.empty(0),
        "_probB": np.empty(0),
        "_effective_probability": False,
        "_sparse": is_sparse and not by_function,
        "support_": support.astype(np.int32),
        "support_vectors_": _as_libsvm_takes_it(vectors),
    }
    if "_objects" in vars(ours):
        known[_TRAINING_ROWS] = ours._objects.objects
    elif by_function and not isinstance(kernel, Precomputed):  # which has all rows
        n = len(support)
        known |= {
            _TRAINING_ROWS: vectors,
            "shape_fit_": vectors.shape,
            "support_": np.arange(n, dtype=np.int32),
            "support_vectors_": np.empty((0, 0)),
        }
    elif is_sparse:
        dual_coef = _all_entries(dual_coef)
    return known | _signed(dual_coef, np.array(ours.intercept_), turned=False)


def _is_of_libsvm(kernel: Kernel) -> bool:
    return kernel.name in _OF_LIBSVM and type(kernel) is KERNELS[kernel.name]


def _as_libsvm_takes_it(vectors: Any) -> Any:
    if not sp.issparse(vectors):
        return np.ascontiguousarray(vectors, np.float64)
    vectors = sp.csr_matrix(vectors, dtype=np.float64)
    vectors.sort_indices()
    vectors.indices, vectors.indptr = (
        index.astype(np.int32) for index in (vectors.indices, vectors.indptr)
    )
    return vectors


def _all_entries(dual_coef: np.ndarray) -> sp.csr_matrix:
    """A sparse matrix with all entries: LIBSVM reads them one after the other."""
    n_rows, n = dual_coef.shape
    indptr = np.arange(n_rows + 1) * n
    return sp.csr_matrix(
        (dual_coef.ravel().copy(), np.tile(np.arange(n), n_rows), indptr), shape=dual_coef.shape
    )


def _signed(dual_coef: Any, intercept: np.ndarray, *, turned: bool) -> dict[str, Any]:
    """The public attributes, and those of LIBSVM, with the opposite sign if `turned`."""
    return {
        "dual_coef_": dual_coef,
        "intercept_": intercept,
        "_dual_coef_": -dual_coef if turned else dual_coef,
        "_intercept_": -intercept if turned else intercept.copy(),
    }


def _write_classifier(ours: Any) -> dict[str, Any]:
    n_classes, name = len(ours.classes_), type(ours).__name__
    if "probA_" in vars(ours):
        raise ConversionError(
            name,
            "it was fitted with probability=True, and scikit-learn computes other probabilities "
            "from its decisions",
            "Fit it with probability=False, and wrap the converted model in CalibratedClassifierCV",
        )
    if n_classes > 2 and ours.dual_coef_.shape[0] == n_classes:
        raise ConversionError(
            name,
            "multi_class='ovr' has a machine for each class, where scikit-learn has one for each "
            "pair",
            "Fit it with multi_class='ovo'",
        )
    known = _write(ours) | {
        "classes_": ours.classes_,
        "class_weight_": ours.class_weight_,
        "_n_support": ours.n_support_.astype(np.int32),
    }
    return known | _signed(known["dual_coef_"], known["intercept_"], turned=n_classes == 2)


def _write_single(ours: Any) -> dict[str, Any]:
    return _write(ours) | {"_n_support": np.full(2, len(ours.support_), np.int32)}


def _write_one_class(ours: Any) -> dict[str, Any]:
    return _write_single(ours) | {"offset_": ours.offset_}


def _write_settings(ours: Any) -> dict[str, Any]:
    """The kernel by its name if LIBSVM has it, otherwise as a function, which our kernels are."""
    kernel = getattr(ours, "kernel_", None)
    if kernel is None:
        return {}
    if "_objects" in vars(ours):
        return {"kernel": ours._objects.function}
    if isinstance(kernel, Precomputed):
        return {"kernel": "precomputed"}
    if not _is_of_libsvm(kernel):
        return {"kernel": kernel.function if isinstance(kernel, CallableKernel) else kernel}
    names = [name for name in ("degree", "coef0") if hasattr(kernel, name)]
    settings = {name: getattr(kernel, name) for name in names}
    if not isinstance(ours.kernel, str) and hasattr(kernel, "gamma"):
        settings["gamma"] = kernel.gamma
    return settings | {"kernel": kernel.name}


def _pair(name: str, module: str, read: Any, write: Any, read_settings: Any) -> Pair:
    return Pair(
        f"sklearn.svm:{name}",
        f"margrove.margin.svm.{module}:{name}",
        read,
        write,
        read_settings,
        _write_settings,
        _compare,
    )


def _no_class_weight(theirs: Any) -> dict[str, Any]:
    return {"class_weight": None}


KERNEL_MACHINES = (
    _pair("SVC", "svc", _read_classifier, _write_classifier, no_settings),
    _pair("NuSVC", "svc", _read_nu_classifier, _write_classifier, _no_class_weight),
    _pair("SVR", "svr", _read_single, _write_single, no_settings),
    _pair("NuSVR", "svr", _read_nu_regressor, _write_single, no_settings),
    _pair("OneClassSVM", "one_class_svm", _read_one_class, _write_one_class, no_settings),
)
