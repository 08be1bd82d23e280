"""What is to be known about a fitted model, as plain values.

`describe` is the one place that looks into an estimator. Plots, reports, the command line and web
pages render what it returns: frozen dataclasses of numbers, strings and read-only arrays, which
`as_dict` turns into what JSON can hold. Rows are always rows of the X that `fit` got.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from margrove._data import read_only
from margrove._threads import resolve_n_jobs
from margrove.exceptions import InvalidDataError
from margrove.margin.certificate import Certificate, MachineCertificate, certificate
from margrove.margin.expansions import kernel_sums
from margrove.margin.kernel_machine import KernelMachine
from margrove.margin.kernel_perceptron import KernelPerceptron
from margrove.margin.kernels import CallableKernel, Kernel, Linear, Precomputed
from margrove.margin.mistake_driven import MistakeDriven
from margrove.margin.multiclass import machine_coefs, pairs_of
from margrove.margin.perceptron import Perceptron
from margrove.margin.solvers.result import TracePoint
from margrove.margin.support_vector_machine import SupportVectorMachine
from margrove.margin.svc import SVC, NuSVC
from margrove.margin.svr import SVR, NuSVR, OneClassSVM

__all__ = [
    "ClassifierFacts",
    "Facts",
    "KernelFacts",
    "MachineFacts",
    "OneClassFacts",
    "Outline",
    "PerceptronFacts",
    "PerceptronMachineFacts",
    "Probabilities",
    "Proof",
    "RegressorFacts",
    "SupportKind",
    "Trace",
    "describe",
    "is_described",
    "outline",
]


# -- the facts -----------------------------------------------------------------------------------


class _Plain:
    """Values without behaviour."""

    def as_dict(self) -> dict[str, Any]:
        """All fields as what JSON can hold.

        Arrays become lists, NumPy's numbers Python's, NaN and infinity None, a sparse matrix its
        shape and its (row, column, value) triples.
        """
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: _as_json(getattr(self, field.name)) for field in fields}


@dataclass(frozen=True, kw_only=True, eq=False)
class Outline(_Plain):
    """What is known of every fitted estimator, of this library or not.

    Attributes
    ----------
    estimator : str
        The name of its class.
    task : str
        "classification", "regression", "outlier detection", or "" for anything else.
    classes : ndarray or None
    n_features : int
    feature_names : tuple of str or None
    is_pairwise : bool
        Whether X is a Gram matrix rather than features.
    needs_positive : bool
        Whether negative features are refused.
    """

    estimator: str
    task: str
    classes: np.ndarray | None
    n_features: int
    feature_names: tuple[str, ...] | None
    is_pairwise: bool
    needs_positive: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelFacts(_Plain):
    """A kernel with its parameters as resolved.

    Attributes
    ----------
    name : str
        As in `margrove.kernels.KERNELS`, "precomputed", or the name of a user's function.
    parameters : dict of numbers
    formula : str
        The first line of its documentation.
    is_positive_definite, is_translation_invariant : bool
        What the kernel promises.
    feature_scale : float
        The power of two that features are multiplied by before, 1 for features of ordinary size.
    """

    name: str
    parameters: dict[str, Any]
    formula: str
    is_positive_definite: bool
    is_translation_invariant: bool
    feature_scale: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportKind(_Plain):
    """Support vectors that lie alike: a name for people, how many, and their rows."""

    name: str
    count: int
    rows: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof(_Plain):
    """Objectives that enclose the best possible value, and the largest KKT violation.

    Attributes
    ----------
    primal, dual, gap, relative_gap, violation : float
        See `margrove.certificate`. Of a whole model: sums, and the largest violation.
    place : str
        Where the largest violation is, in words; "" if there is none.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    violation: float
    place: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace(_Plain):
    """How a solver came to its solution, one entry a look.

    Attributes
    ----------
    iterations : ndarray of int
    dual : ndarray
        The dual objective, which rises. Of the nu machines and of targets that had to be scaled,
        in the units of the solver, not of the proof.
    violation : ndarray
        The largest KKT violation, as the solver saw it.
    """

    iterations: np.ndarray
    dual: np.ndarray
    violation: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class MachineFacts(_Plain):
    """One decision function f(x) = sum_i coefficients_i K(x_i, x) + intercept.

    Attributes
    ----------
    name : str
        "'a' against 'b'", "'a' against the rest", "regression" or "one class". f is positive for
        the one named first.
    n_support, n_free, n_bounded : int
        Support vectors in all, below their bound, and at it. The latter two are None without a
        proof.
    support : ndarray of int
        Rows that are support vectors.
    coefficients : ndarray
        Of these rows, signed.
    bounded : ndarray of int or None
        Rows at their bound.
    kinds : tuple of SupportKind
        By where they lie, the harmless ones first. Empty without a proof.
    intercept : float
    weights : ndarray of shape (n_features,) or None
        Of the linear kernel: f(x) = weights . x + intercept.
    norm : float or None
        ||w|| in feature space.
    margin_width : float or None
        Of a support vector classifier: 2 / ||w||.
    iterations : int or None
    converged : bool or None
        None where it is not known, such as which of several machines fell short.
    proof : Proof or None
    trace : Trace or None
        As long as the model remembers its fit.
    """

    name: str
    n_support: int
    support: np.ndarray
    coefficients: np.ndarray
    intercept: float
    weights: np.ndarray | None
    norm: float | None
    n_free: int | None = None
    n_bounded: int | None = None
    bounded: np.ndarray | None = None
    kinds: tuple[SupportKind, ...] = ()
    margin_width: float | None = None
    iterations: int | None = None
    converged: bool | None = None
    proof: Proof | None = None
    trace: Trace | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PerceptronMachineFacts(MachineFacts):
    """One problem of a perceptron.

    Attributes
    ----------
    mistakes : float
    margin : float or None
        The smallest distance of a training row to the plane, in the space of (x, 1), negative if
        a row is on the wrong side. None after `partial_fit`.
    """

    mistakes: float
    margin: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts(Outline):
    """What is known of every margin machine.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; anything but numbers and strings in words.
    kernel : KernelFacts or None
    machines : tuple of MachineFacts
    n_samples : int or None
        Rows given to `fit`.
    n_support : int
    support : ndarray of int
        Rows that are support vectors of any machine; -1 for rows of earlier batches of a stream.
    support_vectors : ndarray or CSR of shape (n_support, n_features), or None
        None for a precomputed kernel.
    kinds : tuple of SupportKind
        Over all machines, every row once, as the worst that it is. Empty without a proof.
    margin_level : float or None
        |f| on the margins, where there is one machine that has them.
    iterations : int
        Of all machines together.
    converged : bool or None
    proof : Proof or None
    unproven : str
        Why there is no proof.
    """

    parameters: dict[str, Any]
    kernel: KernelFacts | None
    machines: tuple[MachineFacts, ...]
    n_samples: int | None
    n_support: int
    support: np.ndarray
    support_vectors: Any
    kinds: tuple[SupportKind, ...] = ()
    margin_level: float | None = None
    iterations: int
    converged: bool | None
    proof: Proof | None = None
    unproven: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probabilities(_Plain):
    """How decision values become probabilities: P = 1 / (1 + exp(-slope f)), a slope a machine.

    Attributes
    ----------
    slopes : ndarray
    log_loss : float
        Of the probabilities that are returned, cross-validated.
    log_loss_unconstrained : float
        Of probabilities that need not agree with `predict`.
    price_of_agreement : float
        The difference.
    n_rows_changed : int
        Rows whose most probable class the agreement changed.
    """

    slopes: np.ndarray
    log_loss: float
    log_loss_unconstrained: float
    price_of_agreement: float
    n_rows_changed: int


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierFacts(Facts):
    """Of SVC and NuSVC.

    Attributes
    ----------
    n_support_per_class : ndarray of int
    class_weights : ndarray
    probabilities : Probabilities or None
    """

    n_support_per_class: np.ndarray
    class_weights: np.ndarray
    probabilities: Probabilities | None


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressorFacts(Facts):
    """Of SVR and NuSVR: `tube` is half the width of the tube in which errors are free."""

    tube: float


@dataclass(frozen=True, kw_only=True, eq=False)
class OneClassFacts(Facts):
    """Of OneClassSVM: `nu` bounds the share of outliers, `offset` is minus the intercept."""

    nu: float
    offset: float


@dataclass(frozen=True, kw_only=True, eq=False)
class PerceptronFacts(Facts):
    """Of Perceptron and KernelPerceptron; distances are in the space of (x, 1).

    Attributes
    ----------
    epochs : int
    mistakes : float
    separated : bool or None
        Whether every training row is on its side. This and the next are None after `partial_fit`.
    margin, radius : float or None
    novikoff_bound : float or None
        The most mistakes that Novikoff's theorem allows; infinite where it says nothing.
    """

    epochs: int
    mistakes: float
    separated: bool | None
    margin: float | None
    radius: float | None
    novikoff_bound: float | None


# -- from estimators to facts --------------------------------------------------------------------


def describe(model: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Facts:
    """Everything there is to say about a fitted margin machine, as plain values.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, Perceptron or KernelPerceptron
    X, y, sample_weight : optional
        What it was fitted to. A support vector machine remembers that itself, but not across
        pickling, and without them there are no proof and no kinds of support vectors. Perceptrons
        do not need them.

    Returns
    -------
    ClassifierFacts, RegressorFacts, OneClassFacts or PerceptronFacts

    Examples
    --------
    >>> from margrove import SVC
    >>> from margrove.facts import describe
    >>> model = SVC(kernel="linear", C=10).fit([[0, 0], [0, 2], [2, 0], [2, 2]], list("aabb"))
    >>> facts = describe(model)
    >>> facts.kernel.formula, facts.machines[0].name
    ('x.z', "'b' against 'a'")
    >>> round(facts.machines[0].margin_width, 3)
    2.0
    >>> sorted(facts.machines[0].as_dict()["proof"])
    ['dual', 'gap', 'place', 'primal', 'relative_gap', 'violation']
    """
    describer = _describer_of(model)
    if describer is None:
        known = ", ".join(sorted(cls.__name__ for cls in _DESCRIBERS))
        raise TypeError(f"describe knows {known}, of margrove. Got {_class_name(model)}.")
    check_is_fitted(model)
    return describer(model, (X, y, sample_weight))


def is_described(model: Any) -> bool:
    """Whether `describe` knows this kind of estimator.

    Examples
    --------
    >>> from margrove import SVC, facts
    >>> facts.is_described(SVC()), facts.is_described("SVC")
    (True, False)
    """
    return _describer_of(model) is not None


def outline(model: Any) -> Outline:
    """What every fitted estimator under scikit-learn's API tells of itself.

    Parameters
    ----------
    model : fitted estimator

    Returns
    -------
    Outline

    Examples
    --------
    >>> from margrove import SVR, facts
    >>> facts.outline(SVR().fit([[0.0], [1.0]], [0.0, 1.0])).task
    'regression'
    """
    check_is_fitted(model)
    return Outline(**_outline_of(model))


Given = tuple[Any, Any, Any]  # X, y, sample_weight


def _describer_of(model: Any) -> Callable[[Any, Given], Facts] | None:
    return next((_DESCRIBERS[cls] for cls in type(model).__mro__ if cls in _DESCRIBERS), None)


def _class_name(model: Any) -> str:
    return f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__


_TASKS = {
    "classifier": "classification",
    "regressor": "regression",
    "outlier_detector": "outlier detection",
}


def _outline_of(model: Any) -> dict[str, Any]:
    tags = get_tags(model)
    classes = getattr(model, "classes_", None)
    names = getattr(model, "feature_names_in_", None)
    return {
        "estimator": type(model).__name__,
        "task": _TASKS.get(tags.estimator_type, ""),
        "classes": None if classes is None else _frozen(classes),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else tuple(str(name) for name in names),
        "is_pairwise": bool(tags.input_tags.pairwise),
        "needs_positive": bool(tags.input_tags.positive_only),
    }


def _common(model: Any) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    return _outline_of(model) | {
        "parameters": {name: _in_words(value) for name, value in parameters.items()}
    }


def _kernel_facts(model: KernelMachine) -> KernelFacts:
    kernel = model.kernel_
    fields = dataclasses.fields(kernel)
    parameters = {field.name: getattr(kernel, field.name) for field in fields}
    name, documented = kernel.name or type(kernel).__name__, inspect.getdoc(type(kernel))
    if isinstance(kernel, CallableKernel):
        function = parameters.pop("function")
        name = getattr(function, "__name__", type(function).__name__)
        documented = inspect.getdoc(function) if hasattr(function, "__name__") else documented
    return KernelFacts(
        name=name,
        parameters={key: _in_words(value) for key, value in parameters.items()},
        formula=(documented or "").partition("\n")[0],
        is_positive_definite=bool(kernel.positive_definite),
        is_translation_invariant=bool(kernel.translation_invariant),
        feature_scale=float(getattr(model, "feature_scale_", 1.0)),
    )


def _support_facts(model: KernelMachine) -> dict[str, Any]:
    vectors = None if isinstance(model.kernel_, Precomputed) else model.support_vectors_
    return {
        "kernel": _kernel_facts(model),
        "n_support": len(model.support_),
        "support": _frozen(model.support_),
        "support_vectors": vectors if sp.issparse(vectors) else _frozen(vectors),
    }


# -- support vector machines --


def _classifier_facts(model: Any, given: Given) -> ClassifierFacts:
    names = model.classes_.tolist()
    n_classes = len(names)
    if n_classes > 2 and len(model.dual_coef_) == n_classes - 1:
        titles = [f"{names[i]!r} against {names[j]!r}" for i, j in pairs_of(n_classes)]
    else:
        titles = _against_the_rest(names)
    codes = np.repeat(np.arange(n_classes), model.n_support_)
    n = len(model.support_)
    coefs = list(machine_coefs(model.dual_coef_, np.arange(n), codes, n_classes, n))
    fields = _svm_fields(model, titles, coefs, _CLASSIFIER_KINDS, given)
    machines = tuple(
        dataclasses.replace(machine, margin_width=_margin_width(machine.norm))
        for machine in fields.pop("machines")
    )
    return ClassifierFacts(
        **fields,
        machines=machines,
        margin_level=1.0 if len(machines) == 1 else None,
        n_support_per_class=_frozen(model.n_support_),
        class_weights=_frozen(model.class_weight_),
        probabilities=_probabilities(model),
    )


def _regressor_facts(model: Any, given: Given) -> RegressorFacts:
    fields = _svm_fields(model, ["regression"], list(model.dual_coef_), _REGRESSOR_KINDS, given)
    tube = model.epsilon_ if hasattr(model, "epsilon_") else model.epsilon
    return RegressorFacts(**fields, tube=float(tube))


def _one_class_facts(model: Any, given: Given) -> OneClassFacts:
    fields = _svm_fields(model, ["one class"], list(model.dual_coef_), _ONE_CLASS_KINDS, given)
    return OneClassFacts(**fields, nu=float(model.nu), offset=-float(model.intercept_[0]))


def _against_the_rest(names: list[Any]) -> list[str]:
    if len(names) == 2:
        return [f"{names[1]!r} against {names[0]!r}"]
    return [f"{name!r} against the rest" for name in names]


def _margin_width(norm: float | None) -> float | None:
    if norm is None:
        return None
    return 2.0 / norm if norm > 0 else math.inf


Rows = Callable[[MachineCertificate], np.ndarray]


def _with_slack(machine: MachineCertificate) -> np.ndarray:
    return np.setdiff1d(machine.support, machine.on_margin)


_CLASSIFIER_KINDS: dict[str, Rows] = {
    "on the margin": lambda machine: machine.on_margin,
    "inside the margin": lambda machine: machine.inside_margin,
    "misclassified": lambda machine: machine.misclassified,
}
_REGRESSOR_KINDS: dict[str, Rows] = {
    "on the edge of the tube": lambda machine: machine.on_margin,
    "outside the tube": _with_slack,
}
_ONE_CLASS_KINDS: dict[str, Rows] = {
    "on the boundary": lambda machine: machine.on_margin,
    "outside the region": _with_slack,
}


def _svm_fields(
    model: SupportVectorMachine,
    names: list[str],
    coefs: list[np.ndarray],
    kinds: dict[str, Rows],
    given: Given,
) -> dict[str, Any]:
    """The fields of `Facts`; `coefs` are those of all support vectors, for each machine."""
    found, unproven = _certificate_of(model, given)
    fitted: Any = model
    iterations = np.atleast_1d(fitted.n_iter_)
    converged = fitted.fit_status_ == 0
    intercepts = np.asarray(model.intercept_)
    traces: list[Trace | None] = [*_traces(model), *[None] * len(names)]
    machines = []
    for k, (name, coef) in enumerate(zip(names, coefs, strict=True)):
        proven = None if found is None else found.machines[k]
        expansion = _expansion_facts(model, coef, norm=None if proven is None else proven.norm)
        machines.append(
            MachineFacts(
                name=name,
                **expansion,
                **({} if proven is None else _proven_fields(proven, kinds)),
                intercept=float(intercepts[k]),
                iterations=int(iterations[k]),
                converged=True if converged else (None if len(names) > 1 else False),
                trace=traces[k],
            )
        )
    return {
        **_common(model),
        **_support_facts(model),
        "machines": tuple(machines),
        "n_samples": int(model.shape_fit_[0]),
        "kinds": _worst_kinds([machine.kinds for machine in machines]),
        "iterations": int(iterations.sum()),
        "converged": bool(converged),
        "proof": None if found is None else _model_proof(found, names),
        "unproven": unproven,
    }


def _certificate_of(model: Any, given: Given) -> tuple[Certificate | None, str]:
    """The proof, or why there is none."""
    X, y, sample_weight = given
    if X is not None:
        if y is None and not isinstance(model, OneClassSVM):
            raise InvalidDataError(
                "describe got X but no y, and a proof needs both. Pass the y that the model was "
                "fitted to, or neither."
            )
        return certificate(model, X, y, sample_weight), ""
    try:
        return model.certificate_, ""
    except AttributeError:
        return None, (
            "The training data are not remembered across pickling. Pass them: "
            "describe(model, X, y, sample_weight)."
        )
    except (InvalidDataError, TypeError) as error:  # X was changed since, or a subclass
        return None, str(error)


def _proven_fields(machine: MachineCertificate, kinds: dict[str, Rows]) -> dict[str, Any]:
    return {
        "n_free": len(machine.free),
        "n_bounded": len(machine.bounded),
        "bounded": _frozen(machine.bounded),
        "kinds": tuple(_support_kind(name, rows_of(machine)) for name, rows_of in kinds.items()),
        "proof": _proof(machine, machine.place),
    }


def _support_kind(name: str, rows: np.ndarray) -> SupportKind:
    return SupportKind(name=name, count=len(rows), rows=_frozen(rows))


def _worst_kinds(of_machines: Sequence[tuple[SupportKind, ...]]) -> tuple[SupportKind, ...]:
    """The kinds of all machines together, each row as the last kind that it is of."""
    together: list[SupportKind] = []
    taken = np.empty(0, dtype=np.int64)
    for same in reversed(list(zip(*of_machines, strict=True))):
        rows = np.setdiff1d(np.concatenate([kind.rows for kind in same]), taken)
        taken = np.union1d(taken, rows)
        together.insert(0, _support_kind(same[0].name, rows))
    return tuple(together)


def _proof(found: Certificate | MachineCertificate, place: str) -> Proof:
    return Proof(
        primal=float(found.primal),
        dual=float(found.dual),
        gap=float(found.gap),
        relative_gap=float(found.relative_gap),
        violation=float(found.violation),
        place=place,
    )


def _model_proof(found: Certificate, names: list[str]) -> Proof:
    worst = max(range(len(names)), key=lambda k: found.machines[k].violation)
    place = found.machines[worst].place
    return _proof(found, f"{names[worst]}: {place}" if place and len(names) > 1 else place)


def _traces(model: Any) -> list[Trace | None]:
    record = vars(model).get("_record")
    return [_trace(points) if points else None for points in getattr(record, "traces", [])]


def _trace(points: list[TracePoint]) -> Trace:
    return Trace(
        iterations=_frozen([point.iterations for point in points]),
        dual=_frozen([0.0 - point.objective for point in points]),
        violation=_frozen([point.violation for point in points]),
    )


def _probabilities(model: Any) -> Probabilities | None:
    if "probA_" not in vars(model):
        return None
    price = model.price_of_agreement_
    return Probabilities(
        slopes=_frozen(-model.probA_),
        log_loss=float(price.log_loss),
        log_loss_unconstrained=float(price.log_loss_unconstrained),
        price_of_agreement=float(price.difference),
        n_rows_changed=int(price.n_rows_changed),
    )


# -- expansions in support vectors --


def _expansion_facts(model: Any, coef: np.ndarray, *, norm: float | None = None) -> dict[str, Any]:
    """Of one machine: its vectors, coefficients, weights and norm."""
    own = np.flatnonzero(coef)
    weights = _linear_weights(model, own, coef[own])
    if weights is not None:
        norm = float(np.linalg.norm(weights))
    elif norm is None:
        norm = _feature_norm(model, own, coef[own])
    return {
        "n_support": len(own),
        "support": _frozen(model.support_[own]),
        "coefficients": _frozen(coef[own]),
        "weights": _frozen(weights),
        "norm": norm,
    }


def _linear_weights(model: Any, own: np.ndarray, coef: np.ndarray) -> np.ndarray | None:
    if not isinstance(model.kernel_, Linear):
        return None
    scale = float(getattr(model, "feature_scale_", 1.0))
    return np.asarray(coef @ (model.support_vectors_[own] * scale)) * scale


def _feature_norm(model: Any, own: np.ndarray, coef: np.ndarray) -> float | None:
    """||w|| = sqrt(c' K c), from the support vectors alone."""
    kernel: Kernel = model.kernel_
    if isinstance(kernel, Precomputed):
        return None
    if len(own) == 0:
        return 0.0
    vectors = model.support_vectors_[own].astype(np.float64)
    vectors = vectors * float(getattr(model, "feature_scale_", 1.0))
    points = kernel.points(vectors, shift=kernel.centre(vectors))
    n_threads = resolve_n_jobs(model.n_jobs, unset="all")
    values = kernel_sums(kernel, points, points, coef[:, None], n_threads=n_threads)
    return math.sqrt(max(0.0, float(coef @ values[:, 0])))


# -- perceptrons --


def _perceptron_facts(model: Any, given: Given) -> PerceptronFacts:
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
    nothing = _frozen(np.empty(0, dtype=np.int64))
    expansions = [
        {
            "n_support": 0,
            "support": nothing,
            "coefficients": _frozen(np.empty(0)),
            "weights": _frozen(weights),
            "norm": float(np.linalg.norm(weights)),
        }
        for weights in coef
    ]
    return PerceptronFacts(
        **_mistake_fields(model, expansions),
        kernel=None,
        n_samples=None,
        n_support=0,
        support=nothing,
        support_vectors=None,
    )


def _kernel_perceptron_facts(model: Any, given: Given) -> PerceptronFacts:
    expansions = [_expansion_facts(model, coef) for coef in model.dual_coef_]
    mistakes_per_row = getattr(model, "alpha_", None)
    return PerceptronFacts(
        **_mistake_fields(model, expansions),
        **_support_facts(model),
        n_samples=None if mistakes_per_row is None else len(mistakes_per_row),
    )


def _mistake_fields(model: MistakeDriven, expansions: list[dict[str, Any]]) -> dict[str, Any]:
    fitted: Any = model
    margins = getattr(model, "class_margins_", [None] * len(expansions))
    machines = tuple(
        PerceptronMachineFacts(
            name=name,
            **expansion,
            intercept=float(intercept),
            mistakes=_number(mistakes),
            margin=_optional_float(margin),
        )
        for name, expansion, intercept, mistakes, margin in zip(
            _against_the_rest(model.classes_.tolist()),
            expansions,
            fitted.intercept_,
            fitted.class_mistakes_,
            margins,
            strict=True,
        )
    )
    return {
        **_common(model),
        "machines": machines,
        "margin_level": _nearest_level(machines, bool(fitted.fit_intercept)),
        "iterations": int(fitted.n_iter_),
        "converged": None,
        "unproven": "A perceptron minimises no objective: its mistakes and its margin say it all.",
        "epochs": int(fitted.n_iter_),
        "mistakes": _number(fitted.mistakes_),
        "separated": getattr(model, "separated_", None),
        "margin": _optional_float(getattr(model, "margin_", None)),
        "radius": _optional_float(getattr(model, "radius_", None)),
        "novikoff_bound": _optional_float(getattr(model, "novikoff_bound_", None)),
    }


def _nearest_level(
    machines: tuple[PerceptronMachineFacts, ...], fit_intercept: bool
) -> float | None:
    """|f| of the training rows nearest to the plane, if it separates two classes."""
    only = machines[0]
    if len(machines) > 1 or only.margin is None or only.margin <= 0 or only.norm is None:
        return None
    return only.margin * math.hypot(only.norm, only.intercept if fit_intercept else 0.0)


def _optional_float(value: Any) -> float | None:
    return None if value is None else float(value)


def _number(value: Any) -> float:
    """An int where it is whole."""
    return int(value) if float(value).is_integer() else float(value)


_DESCRIBERS: dict[type, Callable[[Any, Given], Facts]] = {
    SVC: _classifier_facts,
    NuSVC: _classifier_facts,
    SVR: _regressor_facts,
    NuSVR: _regressor_facts,
    OneClassSVM: _one_class_facts,
    Perceptron: _perceptron_facts,
    KernelPerceptron: _kernel_perceptron_facts,
}


# -- from facts to JSON --------------------------------------------------------------------------


def _frozen(values: Any) -> Any:
    """As a read-only array, which the estimator may share; None stays None."""
    return None if values is None else read_only(np.asarray(values))


def _in_words(value: Any) -> Any:
    """Numbers and strings as they are, their collections too, everything else by its repr."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _in_words(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_words(own) for own in value]
    if inspect.isroutine(value):
        return str(getattr(value, "__qualname__", value.__name__))
    try:
        text = repr(value)
    except Exception:  # a stranger's repr
        text = type(value).__name__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biu" or (value.dtype == np.float64 and np.isfinite(value).all()):
            return value.tolist()
        return _as_json(list(value)) if value.ndim else _as_json(value[()])
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if sp.issparse(value):
        return _sparse_as_json(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _as_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _as_json(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(own) for own in value]
    return str(value)


def _sparse_as_json(matrix: Any) -> dict[str, Any]:
    triples = matrix.tocoo()
    return {
        "shape": list(matrix.shape),
        "rows": triples.row.tolist(),
        "columns": triples.col.tolist(),
        "values": _as_json(triples.data),
    }
