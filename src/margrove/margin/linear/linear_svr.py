"""Estimator: LinearSVR."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import (
    canonical_form,
    check_target_batch,
    check_targets,
    check_weights,
    kernel_rows,
    moderate,
)
from margrove.margin.decisions import linear_decisions
from margrove.margin.linear.linear_machine import LINEAR_PARAMETERS, LinearMachine, LinearTraining
from margrove.margin.linear.problems import LinearProblem, tube_loss
from margrove.margin.linear.row_facts import LinearFacts
from margrove.margin.solvers.linear import Kind, LinearResult, SgdRows, SgdState
from margrove.margin.svm import TargetScale

__all__ = ["LinearSVR"]


class LinearSVR(RegressorMixin, LinearMachine):
    """Linear support vector regression: errors within a tube cost nothing.

    A replacement for `sklearn.svm.LinearSVR`, except that the intercept is not penalised unless
    `intercept_scaling` is a number, and that `tol` bounds the duality gap.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube.
    tol : float, default=1e-4
        The duality gap to stop at, relative to the objective.
    C : float, default=1.0
        Penalty on errors beyond the tube.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=None
        None leaves the intercept free. A number s penalises it as LIBLINEAR does: as the weight of
        a constant feature s.
    dual : "auto" or bool, default="auto"
        Accepted for compatibility; every solver here gives both the primal and the dual solution.
    verbose : int, default=0
        Show a progress bar.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the order in which coordinates are visited. None is a fixed order.
    max_iter : int, default=10000
        Maximum number of passes over the data, or of Newton steps.
    solver : {"auto", "cd", "newton", "sgd"}, default="auto"
        "cd" is dual coordinate descent. "newton" is Newton's method, for data with many rows and
        few features. "auto" chooses one of these. "sgd" is averaged stochastic gradient descent,
        which is fast but does not prove its result: it stops when an epoch lowers the objective by
        less than the share `tol`. `partial_fit` always uses it.
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
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    n_iter_ : int
    t_ : float
        After `partial_fit`: the summed weight of all rows seen, plus one.
    certificate_ : Certificate
        Primal and dual objective, duality gap, largest violation.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import LinearSVR
    >>> model = LinearSVR(C=100).fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0])
    >>> model.coef_.round(2), model.intercept_.round(2)
    (array([2.]), array([1.]))
    """

    epsilon: float
    loss: str

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "solver": [StrOptions({"auto", "cd", "newton", "sgd"})],
        **LINEAR_PARAMETERS,
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive"] = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        dual: Literal["auto"] | bool = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 10_000,
        solver: Literal["auto", "cd", "newton", "sgd"] = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Minimise the norm of the weights plus C times the errors beyond the tube.

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
        table = self._checked(X)
        targets = check_targets(y, table.X.shape[0])
        n_rows = table.X.shape[0]
        weight = moderate(check_weights(sample_weight, n_rows, leave_out_negative=True))
        training = self._training(table, targets, weight)
        is_free = self.fit_intercept and self.intercept_scaling is None
        scale = TargetScale.of(targets[training.rows], centred=is_free)
        problem = self._problem(training, targets, scale)

        def learnt(result: LinearResult) -> dict[str, Any]:
            return table.attributes | self._learnt(training.scale, scale, result)

        units = (training.scale, training.scale)
        record = self._solve(problem, "l2", training, (X, y, sample_weight), learnt, units, scale)
        self._commit(learnt(record.result) | {"_record": record})
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one more batch of a stream, by averaged stochastic gradient descent.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            An empty batch changes nothing.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._check_parameters()
        batch = check_target_batch(self, X, y, sample_weight)
        if batch is None:
            return self
        form = canonical_form(batch.X, batch.targets, batch.weight, batch.scan)
        data = SgdRows(
            kernel_rows(batch.X),
            batch.X.shape[1],
            form.rows,
            batch.scan.squared_norms[form.rows],
            batch.targets[form.rows],
            form.weight,
            1,
            float(self.C),
            self.loss == "squared_epsilon_insensitive",
            float(self.epsilon),
            True,
            *self._bias_gain(),
        )

        def learnt(state: SgdState) -> dict[str, Any]:
            coef, intercept = state.mean()
            return batch.attributes | {"coef_": coef[0], "intercept_": intercept}

        self._commit(self._learn_batch(data, (X, y), learnt))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The values w.x + b of the rows."""
        return linear_decisions(self, X, unset="all")

    # -- the steps of fit --

    def _problem(
        self, training: LinearTraining, targets: np.ndarray, scale: TargetScale
    ) -> LinearProblem:
        squared = self.loss == "squared_epsilon_insensitive"
        of_target = () if squared else (1.0 / scale.factor,)
        loss = tube_loss(
            scale.apply(targets[training.rows]),
            self._prices(training.form.weight, training.scale, training.scale, *of_target),
            min(float(self.epsilon) * scale.factor, 1e300),
            squared=squared,
        )
        return LinearProblem(
            training.X,
            training.n_features,
            training.rows,
            training.norms,
            loss,
            self._bias_price(training.scale, 2),
        )

    def _problem_of_rows(
        self, training: LinearTraining, targets: np.ndarray, facts: LinearFacts, kind: Kind
    ) -> LinearProblem:
        """The problem of some rows, without X; see `member_rows`."""
        return self._problem(training, targets, facts.target_scale)

    def _learnt(self, scale: float, targets: TargetScale, result: LinearResult) -> dict[str, Any]:
        return {
            "coef_": result.coef[0] * (scale / targets.factor),
            "intercept_": result.intercept / targets.factor + targets.centre,
            "n_iter_": max(1, int(result.epochs)),
        }
