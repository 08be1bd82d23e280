"""Facts about margin machines, as frozen dataclasses.

Facts             a model: parameters, kernel, support vectors, proof
  ClassifierFacts, RegressorFacts, OneClassFacts, PerceptronFacts, LinearFacts
MachineFacts      one decision function of it; PerceptronMachineFacts, LinearMachineFacts
KernelFacts, Proof, Trace, Probabilities, WeightedFeature    parts of these
StrongFeatures    the largest weights of one machine of any linear model
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.facts.plain_values import Plain
from margrove.facts.values import Outline, SupportKind

__all__ = [
    "ClassifierFacts",
    "Facts",
    "KernelFacts",
    "LinearFacts",
    "LinearMachineFacts",
    "MachineFacts",
    "OneClassFacts",
    "PerceptronFacts",
    "PerceptronMachineFacts",
    "Probabilities",
    "Proof",
    "RegressorFacts",
    "StrongFeatures",
    "Trace",
    "WeightedFeature",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelFacts(Plain):
    """A kernel with its parameters as resolved.

    Attributes
    ----------
    name : str
        As in `margrove.kernels.KERNELS`, "precomputed", or the name of a user's function.
    parameters : dict of numbers
    formula : str
        The first line of its documentation.
    is_positive_definite, is_translation_invariant : bool
        Properties that the kernel has by definition.
    feature_scale : float
        The power of two that features are multiplied by first; 1 for features of ordinary size.
    """

    name: str
    parameters: dict[str, Any]
    formula: str
    is_positive_definite: bool
    is_translation_invariant: bool
    feature_scale: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof(Plain):
    """Bounds of the optimal objective, and the largest KKT violation.

    Attributes
    ----------
    primal, dual, gap, relative_gap, violation : float
        See `margrove.certificate`. For a model of several machines, sums and the largest violation.
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
class Trace(Plain):
    """Progress of a solver, one entry for each measurement.

    Attributes
    ----------
    iterations : ndarray of int
    dual : ndarray
        The dual objective, which rises. For nu machines, and for targets that had to be scaled, it
        is in the units of the solver, not of the proof.
    violation : ndarray
        The largest KKT violation, as measured by the solver.
    """

    iterations: np.ndarray
    dual: np.ndarray
    violation: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class MachineFacts(Plain):
    """One decision function f(x) = sum_i coefficients_i K(x_i, x) + intercept.

    Attributes
    ----------
    name : str
        "'a' against 'b'", "'a' against the rest", "regression" or "one class". f is positive for
        the one named first.
    n_support, n_free, n_bounded : int or None
        The number of all support vectors, of those below their bound, and of those at it. The last
        two are None without a proof, and so is the first for a linear machine, which keeps weights
        but no vectors.
    support : ndarray of int
        Rows that are support vectors.
    coefficients : ndarray
        Of these rows, signed.
    bounded : ndarray of int or None
        Rows at their bound.
    kinds : tuple of SupportKind
        By their position, from the margin to the wrong side. Empty without a proof.
    intercept : float
    weights : ndarray of shape (n_features,) or None
        Of the linear kernel: f(x) = weights . x + intercept.
    norm : float or None
        ||w|| in feature space.
    margin_width : float or None
        Of a support vector classifier: 2 / ||w||.
    iterations : int or None
    converged : bool or None
        None if it is not known, for example which of several machines did not converge.
    proof : Proof or None
    trace : Trace or None
        None if the model was pickled.
    """

    name: str
    n_support: int | None
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
class WeightedFeature(Plain):
    """A feature, its column and its weight in one machine."""

    name: str
    index: int
    weight: float


@dataclass(frozen=True, kw_only=True, eq=False)
class StrongFeatures(Plain):
    """The features with the largest weights of one machine, the largest first."""

    machine: str
    features: tuple[WeightedFeature, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearMachineFacts(MachineFacts):
    """One machine f(x) = weights . x + intercept of LinearSVC or LinearSVR.

    Attributes
    ----------
    strongest : tuple of WeightedFeature
        The ten features with the largest absolute weights, the largest first; features with weight
        zero are left out.
    """

    strongest: tuple[WeightedFeature, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts(Outline):
    """Facts about any margin machine.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; values that are not numbers or strings as text.
    kernel : KernelFacts or None
    machines : tuple of MachineFacts
    n_samples : int or None
        Rows given to `fit`.
    n_support : int or None
        None if it is not known: for a linear machine without a proof.
    support : ndarray of int
        Rows that are support vectors of any machine; -1 for rows of earlier batches of a stream.
    support_vectors : ndarray or CSR of shape (n_support, n_features), or None
        None for a precomputed kernel, and if they are not known.
    kinds : tuple of SupportKind
        Over all machines; every row has one kind, the worst it has in any. Empty without a proof.
    margin_level : float or None
        |f| on the margins, if there is one machine and it has margins.
    iterations : int
        The sum over all machines.
    converged : bool or None
    proof : Proof or None
    unproven : str
        Why there is no proof.
    """

    parameters: dict[str, Any]
    kernel: KernelFacts | None
    machines: tuple[MachineFacts, ...]
    n_samples: int | None
    n_support: int | None
    support: np.ndarray
    support_vectors: Any
    kinds: tuple[SupportKind, ...] = ()
    margin_level: float | None = None
    iterations: int
    converged: bool | None
    proof: Proof | None = None
    unproven: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probabilities(Plain):
    """How decision values become probabilities: P = 1 / (1 + exp(-slope f)), a slope a machine.

    Attributes
    ----------
    slopes : ndarray
    log_loss : float
        Of the probabilities that are returned, by cross-validation.
    log_loss_unconstrained : float
        Of probabilities that need not agree with `predict`.
    price_of_agreement : float
        The difference.
    n_rows_changed : int
        Rows whose most probable class is changed by the agreement.
    """

    slopes: np.ndarray
    log_loss: float
    log_loss_unconstrained: float
    price_of_agreement: float
    n_rows_changed: int


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassifierFacts(Facts):
    """Facts about SVC and NuSVC.

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
    """Facts about SVR and NuSVR: errors up to `tube` have no loss."""

    tube: float


@dataclass(frozen=True, kw_only=True, eq=False)
class OneClassFacts(Facts):
    """Facts about OneClassSVM: `nu` bounds the share of outliers, `offset` is -intercept."""

    nu: float
    offset: float


@dataclass(frozen=True, kw_only=True, eq=False)
class PerceptronFacts(Facts):
    """Facts about Perceptron and KernelPerceptron; distances are in the space of (x, 1).

    Attributes
    ----------
    epochs : int
    mistakes : float
    separated : bool or None
        Whether every training row is on its side. This and the next are None after `partial_fit`.
    margin, radius : float or None
    novikoff_bound : float or None
        The largest number of mistakes by Novikoff's theorem; infinite if it does not apply.
    """

    epochs: int
    mistakes: float
    separated: bool | None
    margin: float | None
    radius: float | None
    novikoff_bound: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearFacts(Facts):
    """Facts about LinearSVC and LinearSVR. Crammer and Singer's machines share one proof.

    Attributes
    ----------
    loss : str
        As in the parameter.
    penalty : "l2" or "l1"
    n_nonzero : int
        Weights that are not zero, over all machines.
    """

    loss: str
    penalty: str
    n_nonzero: int
