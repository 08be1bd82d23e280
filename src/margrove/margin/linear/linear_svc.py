"""Estimator: LinearSVC."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from margrove._data import (
    TrainingLabels,
    canonical_form,
    check_batch,
    check_training_labels,
    kernel_rows,
)
from margrove.margin.decisions import (
    SparseCoefficients,
    decided_classes,
    linear_decisions,
    n_problems_of,
)
from margrove.margin.linear.linear_machine import LINEAR_PARAMETERS, LinearMachine, LinearTraining
from margrove.margin.linear.problems import OneVsRest
from margrove.margin.linear.row_facts import LinearFacts
from margrove.margin.solvers.linear import Kind, LinearResult, SgdRows, SgdState

__all__ = ["LinearSVC"]


class LinearSVC(ClassifierMixin, SparseCoefficients, LinearMachine):
    """A linear support vector classifier for many rows, many features and many classes.

    A replacement for `sklearn.svm.LinearSVC` with two differences. The intercept is not penalised
    unless `intercept_scaling` is a number, so that `LinearSVC(loss="hinge")` has the same solution
    as `SVC(kernel="linear")`. And `tol` bounds the duality gap relative to the objective, so that
    the quality of the solution is proven (`certificate_`).

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        "l1" makes most weights exactly zero; it requires the squared hinge.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    dual : "auto" or bool, default="auto"
        Accepted for compatibility; every solver here gives both the primal and the dual solution.
    tol : float, default=1e-4
        The duality gap to stop at, relative to the objective.
    C : float, default=1.0
        Penalty on errors: a large C means few errors, a small C means a wide margin.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One machine for each class against the rest, or one joint problem (with the hinge).
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=None
        None leaves the intercept free. A number s penalises it as LIBLINEAR does: as the weight of
        a constant feature s.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for the classes.
    verbose : int, default=0
        Show a progress bar.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order in which coordinates are visited. None is a fixed order.
    max_iter : int, default=10000
        Maximum number of passes over the data, or of Newton steps.
    solver : {"auto", "cd", "newton", "sgd"}, default="auto"
        "cd" is coordinate descent: over the rows in the dual, over the features for the L1 penalty.
        "newton" solves linear systems whose size is the number of features, for data with many rows
        and few features. "auto" chooses one of these. "sgd" is averaged stochastic gradient
        descent, which is fast but does not prove its result: it stops when an epoch lowers the
        objective by less than the share `tol`. `partial_fit` always uses it.
    warm_start : bool, default=False
        Start `fit` from the last solution, if its rows were the same; C may differ.
    n_jobs : int or None, default=None
        Threads; None means all cores. The result does not depend on it.
    max_time : float or None, default=None
        Seconds after which `fit` keeps what it has learnt, with a warning.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: leave the estimator as it was, or keep what has been learnt so far.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Passes over the data, or Newton steps; the maximum over the machines.
    t_ : float
        After `partial_fit`: the summed weight of all rows seen, plus one.
    certificate_ : Certificate
        Primal and dual objective, duality gap, largest violation, of each machine.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import LinearSVC
    >>> X = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]]
    >>> model = LinearSVC(loss="hinge", C=10).fit(X, list("aabb"))
    >>> model.coef_.round(3) + 0.0, model.intercept_.round(3)
    (array([[1., 0.]]), array([-1.]))
    >>> model.certificate_.relative_gap < 1e-4
    True
    """

    classes_: np.ndarray
    penalty: str
    loss: str
    multi_class: str
    class_weight: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "solver": [StrOptions({"auto", "cd", "newton", "sgd"})],
        **LINEAR_PARAMETERS,
    }

    def __init__(
        self,
        penalty: Literal["l2", "l1"] = "l2",
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        *,
        dual: Literal["auto"] | bool = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: Literal["ovr", "crammer_singer"] = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 10_000,
        solver: Literal["auto", "cd", "newton", "sgd"] = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the widest margin.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight k counts as k copies of the row, 0 as none.

        Returns
        -------
        self
        """
        kind = self._kind()
        table = self._checked(X)
        n_rows = table.X.shape[0]
        labels = check_training_labels(
            y, sample_weight, self.class_weight, n_rows, leave_out_negative=True
        )
        training = self._training(table, labels.codes, labels.weight)
        problem = self._problem(training, labels, kind)

        def learnt(result: LinearResult) -> dict[str, Any]:
            return table.attributes | self._learnt(training.scale, labels.classes, result)

        units = (training.scale,) if kind == "l1" else (training.scale, training.scale)
        record = self._solve(problem, kind, training, (X, y, sample_weight), learnt, units)
        self._commit(learnt(record.result) | {"_record": record})
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of a stream, by averaged stochastic gradient descent.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            An empty batch changes nothing.
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All classes that can occur in the stream; required in the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from margrove import LinearSVC
        >>> X = np.random.default_rng(0).normal(size=(1000, 5))
        >>> y = X[:, 0] > 0.5
        >>> model = LinearSVC()
        >>> for batch in np.array_split(np.arange(1000), 10):
        ...     model = model.partial_fit(X[batch], y[batch], classes=[False, True])
        >>> model.score(X, y) > 0.95
        True
        """
        if self._kind() != "l2":
            raise ValueError(
                "partial_fit supports penalty='l2' and multi_class='ovr' only. Got "
                f"penalty={self.penalty!r}, multi_class={self.multi_class!r}."
            )
        batch = check_batch(self, X, y, classes, sample_weight, self.class_weight)
        if batch is None:
            return self
        labels = batch.labels
        form = canonical_form(batch.X, labels.codes, labels.weight, batch.scan)
        data = SgdRows(
            kernel_rows(batch.X),
            batch.X.shape[1],
            form.rows,
            batch.scan.squared_norms[form.rows],
            labels.codes[form.rows].astype(np.float64),
            labels.counted(form),
            n_problems_of(labels.classes),
            float(self.C),
            self.loss == "squared_hinge",
            0.0,
            False,
            *self._bias_gain(),
        )

        def learnt(state: SgdState) -> dict[str, Any]:
            coef, intercept = state.mean()
            found = {"coef_": coef, "intercept_": intercept, "classes_": labels.classes}
            return batch.attributes | found

        self._commit(self._learn_batch(data, (X, y), learnt))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The decision values w.x + b.

        Shape (n_samples,) for two classes, positive for `classes_[1]`, else
        (n_samples, n_classes). The value of a row does not depend on the other rows.
        """
        return linear_decisions(self, X, unset="all")

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        return decided_classes(self, self.decision_function(X))

    # -- the steps of fit --

    def _kind(self) -> Kind:
        self._check_parameters()
        squared = self.loss == "squared_hinge"
        if self.multi_class == "crammer_singer":
            if self.solver in ("newton", "sgd"):
                raise ValueError(
                    f"solver={self.solver!r} is for one-vs-rest. With multi_class='crammer_singer' "
                    "use solver='cd' or 'auto'."
                )
            return "crammer_singer"
        if self.penalty == "l1":
            if not squared:
                raise ValueError(
                    "Unsupported set of arguments: The combination of penalty='l1' and "
                    "loss='hinge' is not supported, Parameters: penalty='l1', loss='hinge', "
                    f"dual={self.dual}. Use loss='squared_hinge'."
                )
            if self.solver == "sgd":
                raise ValueError(
                    "solver='sgd' is for penalty='l2'. With penalty='l1' use solver='cd', 'newton' "
                    "or 'auto'."
                )
            return "l1"
        return "l2"

    def _problem(self, training: LinearTraining, labels: TrainingLabels, kind: Kind) -> OneVsRest:
        power = 1 if kind == "l1" else 2
        weight = labels.counted(training.form)
        return OneVsRest(
            X=training.X,
            n_features=training.n_features,
            rows=training.rows,
            norms=training.norms,
            codes=labels.codes[training.rows],
            C=self._prices(weight, *[training.scale] * power),
            n_machines=_machines_of(labels.classes, kind),
            squared=kind != "crammer_singer" and self.loss == "squared_hinge",
            bias_price=self._bias_price(training.scale, power),
        )

    def _problem_of_rows(
        self, training: LinearTraining, codes: np.ndarray, facts: LinearFacts, kind: Kind
    ) -> OneVsRest:
        """The problem of some rows, without X; see `member_rows`."""
        assert facts.classes is not None
        assert facts.factors is not None
        weight = training.form.row_weight
        labels = TrainingLabels(codes, facts.classes, weight, facts.factors, facts.largest)
        return self._problem(training, labels, kind)

    def _learnt(self, scale: float, classes: np.ndarray, result: LinearResult) -> dict[str, Any]:
        coef, intercept = result.coef, result.intercept
        if scale != 1.0:
            coef = coef * scale
        if len(classes) == 2 and len(coef) == 2:  # two classes of Crammer and Singer's machine
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return {
            "coef_": coef,
            "intercept_": intercept,
            "classes_": classes,
            "n_iter_": max(1, int(result.epochs)),
        }


def _machines_of(classes: np.ndarray, kind: Kind) -> int:
    return len(classes) if kind == "crammer_singer" else n_problems_of(classes)
