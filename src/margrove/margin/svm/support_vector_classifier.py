"""The base class of SVC and NuSVC: classes and machines, predictions, probabilities."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin, clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.fixes import parse_version
from sklearn.utils.metaestimators import available_if

from margrove._data import CanonicalForm, TrainingLabels, check_training_labels, seed_of
from margrove._runtime import RANDOM_STATE, single_threaded_blas
from margrove.exceptions import NotFittedError
from margrove.margin.decisions import finite_decisions, require_shape
from margrove.margin.kernels import dual_coefficients, like_table, takes_objects
from margrove.margin.solvers.dual import SolverResult
from margrove.margin.svm.kernel_machine import TrainingSet
from margrove.margin.svm.multiclass import (
    has_ties,
    machine_coefs,
    pair_decisions,
    pairs_of,
    per_class_decisions,
    proved_largest,
    votes_of,
)
from margrove.margin.svm.probabilities import calibrate, probabilities_of
from margrove.margin.svm.problems import DualProblem
from margrove.margin.svm.support_vector_machine import (
    SVM_PARAMETERS,
    FitRecord,
    Machine,
    StatedFit,
    SupportVectorMachine,
)

__all__ = ["CLASSIFIER_PARAMETERS", "SupportVectorClassifier"]

CLASSIFIER_PARAMETERS: dict[str, list[Any]] = {
    **SVM_PARAMETERS,
    "probability": ["boolean"],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "multi_class": [StrOptions({"ovo", "ovr"})],
    "decision_function_shape": [StrOptions({"ovr", "ovo"})],
    "break_ties": ["boolean"],
    **RANDOM_STATE,
}


def _has_probabilities(model: Any) -> bool:
    if not model.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class _SigmoidParameter:
    """`probA_` and `probB_`: deprecated as in scikit-learn, empty without probabilities."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        if parse_version(sklearn.__version__) >= parse_version("1.9"):
            warnings.warn(
                f"Attribute `{self._name}` was deprecated in version 1.9 of scikit-learn and will "
                "be removed in 1.11. margrove.facts.describe(model).probabilities has the slopes.",
                FutureWarning,
                stacklevel=2,
            )
        return vars(model).get(self._name, np.empty(0))

    def __set__(self, model: Any, value: np.ndarray) -> None:
        vars(model)[self._name] = value


class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):
    """The base class of SVC and NuSVC: everything except the dual problem."""

    classes_: np.ndarray
    class_weight: Any
    multi_class: str
    decision_function_shape: str
    break_ties: bool
    probability: bool
    n_support_: np.ndarray
    _keeps_sums = False  # whether dual problems need their rows sorted by sign
    probA_ = _SigmoidParameter()  # noqa: N815
    probB_ = _SigmoidParameter()  # noqa: N815
    random_state: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the widest margin.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Or the Gram matrix (n_samples, n_samples) for kernel="precomputed", or a sequence of
            objects for a kernel function.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight k counts as k copies of the row, 0 as none.

        Returns
        -------
        self
        """
        if takes_objects(self.kernel, X):
            return self._fit_to_objects(X, y=y, sample_weight=sample_weight)
        with single_threaded_blas():  # once, because its limits take a while to set
            stated = self._stated(X, y, sample_weight)
            self._commit(stated.attributes(self._solve(stated)))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The signed decision values of the machines.

        Shape (n_samples,) for two classes, positive for `classes_[1]`. For more, (n_samples,
        n_classes), or, with `decision_function_shape="ovo"`, a column for each pair of classes:
        (n_samples, n_classes * (n_classes - 1) / 2). The values of a row do not depend on the other
        rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        values = self._machine_decisions(X)
        if self._uses_pairs() and self.decision_function_shape == "ovr":
            return per_class_decisions(values, len(self.classes_))
        return values

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._require_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        X = self._sound_rows(X)
        codes = self._proved_codes(X)
        if codes is None:
            decisions = self._decisions_of(X, only_signs=len(self.classes_) == 2)
            codes = self._predicted_codes(decisions)
        return np.asarray(self.classes_[codes])

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, calibrated; the largest is that of `predict`.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._require_fitted()
        if "probA_" not in vars(self):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False. Fit again."
            )
        decisions = self._machine_decisions(X)
        return probabilities_of(
            decisions,
            -vars(self)["probA_"],
            self._predicted_codes(decisions),
            len(self.classes_),
            self._uses_pairs(),
        )

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        probabilities = self.predict_proba(X)
        return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))

    def _predicted_codes(self, decisions: np.ndarray) -> np.ndarray:
        n_classes = len(self.classes_)
        if n_classes == 2:  # LIBSVM's rule: a tie goes to the second class
            return (decisions >= 0).astype(np.int64)
        if not self._uses_pairs():
            return np.asarray(decisions.argmax(axis=1))
        if self.break_ties:
            return np.asarray(per_class_decisions(decisions, n_classes).argmax(axis=1))
        return np.asarray(votes_of(decisions, n_classes).argmax(axis=1))

    # -- machines and classes --

    def _labels(self, y: Any, sample_weight: Any, n_rows: int) -> TrainingLabels:
        return check_training_labels(
            y, sample_weight, self.class_weight, n_rows, leave_out_negative=True
        )

    @abstractmethod
    def _dual_problem(self, signs: np.ndarray, bounds: np.ndarray) -> DualProblem:
        """The problem of one binary machine."""

    @abstractmethod
    def _bounds_of(self, training: TrainingSet, weight: np.ndarray) -> np.ndarray:
        """Upper bounds of the dual variables of rows with these weights."""

    @abstractmethod
    def _unscaled(self, machine: Machine, result: SolverResult) -> tuple[np.ndarray, float]:
        """alpha and rho such that f(x) = +-1 on the margin."""

    @abstractmethod
    def _scale_of(self, problem: DualProblem, result: SolverResult) -> float:
        """The factor by which the alphas of the solver must be divided for that."""

    def _scales(self, machines: list[Machine], results: list[SolverResult]) -> list[float]:
        pairs = zip(machines, results, strict=True)
        return [self._scale_of(machine.problem, r) / self._price() for machine, r in pairs]

    def _uses_pairs(self) -> bool:
        """Whether the fitted machines are one-vs-one; two classes always have one machine."""
        return len(self.classes_) > 2 and self.dual_coef_.shape[0] == len(self.classes_) - 1

    def _stated(self, X: Any, y: Any, sample_weight: Any = None) -> StatedFit:
        self._check_parameters()
        table = self._check_training_table(X)
        labels = self._labels(y, sample_weight, table.X.shape[0])
        form, order, codes = self._rows_by_class(table.X, labels)
        training = self._training_set(table.X, form, order)
        bounds = self._bounds_of(training, labels.counted(form)[order])
        machines = self._machines(codes, labels.classes, bounds)
        if self._has_solution_like(training.X, labels.classes, machines):
            machines = self._warm_started(training, machines, self._row_coefs(labels.codes))

        def learnt(results: list[SolverResult]) -> dict[str, Any]:
            return table.attributes | self._learnt(training, labels, codes, machines, results)

        def attributes(results: list[SolverResult]) -> dict[str, Any]:
            calibration = self._calibrated(training, labels, codes) if self.probability else {}
            record = FitRecord(
                X,
                y,
                sample_weight,
                [result.trace for result in results],
                self._scales(machines, results),
                self._parameters(),
            )
            return learnt(results) | calibration | {"_record": record}

        return StatedFit(training, machines, X, y, learnt, attributes)

    def _rows_by_class(
        self, X: Any, labels: TrainingLabels
    ) -> tuple[CanonicalForm, np.ndarray, np.ndarray]:
        """The canonical form of the rows, the order that sorts it by class, and sorted codes."""
        form = self._canonical_rows(X, labels.codes, labels.weight)
        codes = labels.codes[form.rows]
        order = np.argsort(codes, kind="stable")
        return form, order, codes[order]

    def _machines(
        self, codes: np.ndarray, classes: np.ndarray, bounds: np.ndarray
    ) -> list[Machine]:
        all_rows = np.arange(len(codes))
        if len(classes) == 2:
            sides = [(all_rows, codes == 1, "")]
        elif self.multi_class == "ovr":
            sides = []
            for k, label in enumerate(classes.tolist()):
                positive = codes == k
                members = np.argsort(~positive, kind="stable") if self._keeps_sums else all_rows
                sides.append((members, positive[members], f"{label!r} against the rest"))
        else:
            names = classes.tolist()
            of_class = [np.flatnonzero(codes == k) for k in range(len(classes))]
            sides = []
            for i, j in pairs_of(len(classes)):
                members = np.concatenate([of_class[i], of_class[j]])
                name = f"{names[i]!r} against {names[j]!r}"
                sides.append((members, codes[members] == i, name))
        return [
            Machine(
                members,
                self._dual_problem(np.where(positive, 1.0, -1.0), bounds[members]),
                name,
            )
            for members, positive, name in sides
        ]

    def _learnt(
        self,
        training: TrainingSet,
        labels: TrainingLabels,
        codes: np.ndarray,
        machines: list[Machine],
        results: list[SolverResult],
    ) -> dict[str, Any]:
        n_classes = len(labels.classes)
        found = [self._unscaled(m, result) for m, result in zip(machines, results, strict=True)]
        coefs = [m.problem.y * alpha for m, (alpha, _) in zip(machines, found, strict=True)]
        if n_classes == 2 or self.multi_class == "ovr":
            coef = np.zeros((len(codes), len(machines)))
            for k, machine in enumerate(machines):
                coef[machine.members, k] = coefs[k]
        else:
            coef = _compact_layout(coefs, machines, codes, n_classes)
        row_coef = training.shared_out(coef)
        support = np.flatnonzero(row_coef.any(axis=1))
        support = support[np.argsort(labels.codes[support], kind="stable")]
        n_support = np.bincount(labels.codes[support], minlength=n_classes)
        return {
            "support_": support.astype(np.int32),
            "support_vectors_": self._vectors(training.X, support),
            "n_support_": n_support.astype(np.int32),
            "dual_coef_": like_table(np.ascontiguousarray(row_coef[support].T), training.X),
            "intercept_": np.array([0.0 - rho for _, rho in found]),
            "classes_": labels.classes,
            "class_weight_": labels.factors,
            "kernel_": training.kernel,
            "feature_scale_": training.scale,
            "n_iter_": np.array([result.iterations for result in results], dtype=np.int32),
            "fit_status_": int(not all(result.converged for result in results)),
            "shape_fit_": training.X.shape,
        }

    def _calibrated(
        self, training: TrainingSet, labels: TrainingLabels, codes: np.ndarray
    ) -> dict[str, Any]:
        """`probA_`, `probB_` and `price_of_agreement_`, by cross-validation on the learnt rows."""
        factors = {k: float(factor) for k, factor in enumerate(labels.factors)}
        model = clone(self).set_params(
            probability=False,
            class_weight=factors,
            kernel=self.kernel if self._is_precomputed() else training.kernel,
            warm_start=False,
            on_interrupt="raise",
            verbose=0,
        )
        X = training.X[training.rows]
        if self._is_precomputed():
            X = X[:, training.rows]
        weight = training.form.weight[training.order]
        seed = seed_of(self.random_state)
        found = calibrate(model, X, codes, weight, len(labels.classes), seed)
        return {
            "probA_": -found.slopes,
            "probB_": np.zeros(len(found.slopes)),
            "price_of_agreement_": found.price,
        }

    def _has_solution_like(self, X: Any, classes: np.ndarray, machines: list[Machine]) -> bool:
        """Whether `warm_start` is set and the last solution has the same rows and classes."""
        return (
            self.warm_start
            and hasattr(self, "dual_coef_")
            and self.shape_fit_[0] == X.shape[0]
            and np.array_equal(self.classes_, classes)
            and len(self.intercept_) == len(machines)
        )

    def _row_coefs(self, codes: np.ndarray) -> Iterator[np.ndarray]:
        """The coefficients of all training rows, for each fitted machine."""
        return machine_coefs(
            dual_coefficients(self),
            self.support_,
            np.repeat(np.arange(len(self.classes_)), self.n_support_),
            len(self.classes_),
            len(codes),
        )

    def _machine_decisions(self, X: Any) -> np.ndarray:
        """Decision values, a column for each machine; a vector for two classes."""
        return self._decisions_of(self._sound_rows(X))

    def _sound_rows(self, X: Any) -> Any:
        """The X of `predict`, after checks of the fitted state."""
        self._require_fitted()
        n_classes, n_support = len(self.classes_), len(self.support_)
        by_pairs = self._uses_pairs()
        n_machines = 1 if n_classes == 2 else n_classes
        n_pairs = n_classes * (n_classes - 1) // 2
        require_shape(self, "intercept_", (n_pairs if by_pairs else n_machines,))
        require_shape(self, "n_support_", (n_classes,))
        if int(self.n_support_.sum()) != n_support or self.n_support_.min() < 0:
            raise ValueError(
                f"The fitted state was altered: n_support_ is {self.n_support_.tolist()}, but "
                f"there are {n_support} support vectors. Fit the estimator again."
            )
        require_shape(self, "dual_coef_", (n_classes - 1 if by_pairs else n_machines, n_support))
        return self._checked_rows(X)

    def _decisions_of(self, X: Any, *, only_signs: bool = False) -> np.ndarray:
        """`_machine_decisions` of checked rows.

        only_signs: there are two classes, and only the signs of the values are needed.
        """
        if only_signs:
            offset = float(self.intercept_[0])
            return finite_decisions(self._signed_expansion(X, dual_coefficients(self).T, offset))
        if not self._uses_pairs():
            return finite_decisions(self._expansion(X, dual_coefficients(self).T) + self.intercept_)
        sums = self._expansion(X, dual_coefficients(self).T, self._edges())
        return finite_decisions(pair_decisions(sums, self.intercept_))

    def _edges(self) -> np.ndarray:
        """The first support vector of each group whose sums are needed, and their number."""
        if not self._uses_pairs():
            return np.array([0, len(self.support_)])
        edges = np.zeros(len(self.n_support_) + 1, np.int64)
        self.n_support_.cumsum(out=edges[1:])
        return edges

    def _proved_codes(self, X: Any) -> np.ndarray | None:
        """`_predicted_codes` of few rows; None if their bounds do not prove all of them."""
        found = self._bounded_expansion(X, self._edges())
        if found is None:
            return None
        sums, bounds = found
        n_classes = len(self.classes_)
        if self._uses_pairs():
            values = pair_decisions(sums, self.intercept_)
            bounds = pair_decisions(bounds, np.zeros(values.shape[1]))
        else:
            values, bounds = sums[0] + self.intercept_, bounds[0]
            if n_classes > 2:
                return proved_largest(values, bounds)
        if not (np.abs(values) > bounds).all():
            return None
        if n_classes == 2:
            return (values[:, 0] >= 0.0).astype(np.int64)
        votes = votes_of(values, n_classes)
        return None if self.break_ties and has_ties(votes) else np.asarray(votes.argmax(axis=1))

    def _machine_coefs(self) -> Iterator[np.ndarray]:
        codes = np.repeat(np.arange(len(self.classes_)), self.n_support_)
        n_support = len(codes)
        coef = dual_coefficients(self)
        return machine_coefs(coef, np.arange(n_support), codes, len(self.classes_), n_support)


def _compact_layout(
    coefs: list[np.ndarray], machines: list[Machine], codes: np.ndarray, n_classes: int
) -> np.ndarray:
    """LIBSVM's layout, (n, n_classes - 1): each row is in one pair with each other class."""
    sizes = [len(coef) for coef in coefs]
    first, second = (np.repeat(classes, sizes) for classes in np.transpose(pairs_of(n_classes)))
    rows = np.concatenate([machine.members for machine in machines])
    compact = np.zeros((len(codes), n_classes - 1))
    compact[rows, np.where(codes[rows] == first, second - 1, first)] = np.concatenate(coefs)
    return compact
