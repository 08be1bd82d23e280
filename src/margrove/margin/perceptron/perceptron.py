"""Estimator: Perceptron."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import (
    CanonicalForm,
    RowScan,
    TrainingLabels,
    canonical_form,
    check_and_scan,
    check_batch,
    check_training_labels,
    given_order,
    seed_of,
)
from margrove._runtime import (
    RANDOM_STATE,
    RUN_CONTROL,
    require_memory,
    resolve_n_jobs,
    using_checkpoints,
)
from margrove.exceptions import InvalidDataError
from margrove.margin.decisions import (
    SparseCoefficients,
    dense_coefficients,
    linear_decisions,
    n_problems_of,
)
from margrove.margin.perceptron.mistake_driven import (
    MistakeDriven,
    mistake_attributes,
    separation_attributes,
)
from margrove.margin.solvers.perceptron import (
    LinearState,
    PerceptronProcess,
    Rule,
    measure_separation,
)

__all__ = ["Perceptron"]


class Perceptron(SparseCoefficients, MistakeDriven):
    """Rosenblatt's perceptron: learn from mistakes, one example at a time.

    A replacement for `sklearn.linear_model.Perceptron` that also reports whether it separates the
    data, with which margin, and Novikoff's bound on the number of mistakes.

    Several classes are learnt one-vs-rest, all in one pass over the data.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet"} or None, default=None
        Regularisation added to the perceptron loss.
    alpha : float, default=0.0001
        Strength of the penalty.
    l1_ratio : float, default=0.15
        Share of L1 in the "elasticnet" penalty.
    fit_intercept : bool, default=True
        Whether to learn an intercept, as the weight of a constant feature 1.
    max_iter : int, default=1000
        Maximum number of epochs.
    tol : float or None, default=1e-3
        Stop a class when its mean loss has improved by less than `tol` in `n_iter_no_change`
        epochs.
        An epoch without a mistake always stops it.
    shuffle : bool, default=True
        Visit the rows in a new order in each epoch. With False they are visited in their given
        order, and a row with weight 2 is then not the same as the row twice.
    verbose : int, default=0
        Show a progress bar.
    eta0 : float, default=1
        Step length. It scales the weights and does not change the predictions, except with a
        penalty, a margin or initial weights.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the shuffling.
    early_stopping : bool, default=False
        Hold out `validation_fraction` of each class, and stop when the error on it does not fall.
    validation_fraction : float, default=0.1
        Share that is held out for early stopping.
    n_iter_no_change : int, default=5
        Epochs without improvement before a class stops.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes.
    warm_start : bool, default=False
        Start `fit` from the previous solution.
    margin : float, default=0
        A row is a mistake if y f(x) <= margin: the margin perceptron.
    average : bool or int, default=False
        Predict with the average of all iterates; an int is the number of presentations after which
        averaging starts. Only without a penalty, which changes the weights between mistakes.
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
        Number of epochs; the maximum over the classes.
    t_ : float
        Presentations so far (summed weight), plus one.
    mistakes_ : int or float
        Number of presentations that were mistakes; fractional only with fractional weights.
    class_mistakes_ : ndarray
        The same for each one-vs-rest problem.
    separated_ : bool
        Whether every training row is on the right side.
    margin_ : float
        The smallest distance of a training row to the hyperplane, in the space of (x, 1),
        negative if a row is on the wrong side. The smallest over the one-vs-rest problems.
    class_margins_ : ndarray
        The same for each problem.
    radius_ : float
        The largest norm of a training row, in the space of (x, 1).
    novikoff_bound_ : float
        (radius / margin)^2, summed over the problems: `mistakes_` cannot exceed it. Infinite if
        the data are not separated, and with a penalty or initial weights, for which the theorem
        does not hold.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import Perceptron
    >>> X = [[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-2.0, -1.0]]
    >>> model = Perceptron().fit(X, ["up", "up", "down", "down"])
    >>> model.predict([[1.0, 1.0]])
    array(['up'], dtype='<U4')
    >>> model.separated_, model.mistakes_ <= model.novikoff_bound_
    (True, True)
    """

    coef_: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "warm_start": ["boolean"],
        "margin": [Interval(Real, 0, None, closed="left")],
        "average": ["boolean", Interval(Integral, 0, None, closed="left")],
        **RANDOM_STATE,
        **RUN_CONTROL,
    }

    def __init__(
        self,
        *,
        penalty: Literal["l2", "l1", "elasticnet"] | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        margin: float = 0.0,
        average: bool | int = False,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.margin = margin
        self.average = average
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def fit(
        self,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from mistakes until there are none, or until the loss does not improve.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        coef_init, intercept_init : array-like, optional
            Weights to start from.
        sample_weight : array-like of shape (n_samples,), optional
            A weight k counts as k copies of the row, 0 as none.

        Returns
        -------
        self
        """
        self._check_parameters()
        table = check_and_scan(X, self, n_threads=resolve_n_jobs(self.n_jobs))
        labels = check_training_labels(y, sample_weight, self.class_weight, table.X.shape[0])
        start = self._starting_state(labels.classes, table.X.shape[1], coef_init, intercept_init)
        is_fresh = not (start.coef.any() or start.intercept.any())
        form = self._presented_rows(table.X, labels, table.scan)
        norms = table.scan.squared_norms
        process = self._process(table.X, labels, form, norms, start, self._rule(self.max_iter))
        ending = self._drive(
            process,
            X,
            y,
            sample_weight,
            lambda: table.attributes | self._learnt(process, labels.classes),
        )
        learnt = self._learnt(process, labels.classes)
        separation = self._separation(table.X, labels, norms, learnt, is_fresh)
        mistakes = mistake_attributes(process.mistakes, earlier=self if self.warm_start else None)
        self._commit(table.attributes | learnt | mistakes | separation)
        self._warn_unless_converged(ending, process.stopping)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch, in one epoch.

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
        """
        self._check_parameters()
        if self.early_stopping:
            raise ValueError("early_stopping should be False with partial_fit.")
        batch = check_batch(self, X, y, classes, sample_weight, self.class_weight)
        if batch is None:
            return self
        labels = batch.labels
        start = self._starting_state(labels.classes, batch.X.shape[1], None, None, stream=True)
        form = self._presented_rows(batch.X, labels, batch.scan)
        norms = batch.scan.squared_norms
        process = self._process(batch.X, labels, form, norms, start, self._rule(1, stream=True))
        with using_checkpoints(None):  # no checkpoint for each batch of a stream
            self._drive(
                process,
                X,
                y,
                sample_weight,
                lambda: batch.attributes | self._learnt(process, labels.classes),
            )
        learnt = self._learnt(process, labels.classes)
        mistakes = mistake_attributes(process.mistakes, earlier=self)
        self._commit(batch.attributes | learnt | mistakes)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The decision values w.x + b.

        Shape (n_samples,) for two classes, positive for `classes_[1]`, else
        (n_samples, n_classes). The value of a row does not depend on the other rows.
        """
        return linear_decisions(self, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- the steps of fit --

    def _rule(self, max_epochs: int, *, stream: bool = False) -> Rule:
        l1_share = {None: 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}[self.penalty]
        strength = self.alpha if self.penalty is not None else 0.0
        if self.average is not False and self.penalty is not None:
            raise ValueError(
                f"average={self.average!r} cannot be combined with penalty={self.penalty!r}: "
                "averaging is defined for updates without a penalty. Set penalty=None or "
                "average=False."
            )
        return Rule(
            eta=float(self.eta0),
            margin=float(self.margin),
            fit_intercept=self.fit_intercept,
            l1=l1_share * strength,
            l2=(1.0 - l1_share) * strength,
            average_from=self._average_from(),
            shuffle=self.shuffle,
            seed=seed_of(self.random_state),
            shuffle_key=int(getattr(self, "t_", 0)) % 2**62 if stream else 0,
            max_epochs=max_epochs,
            tol=None if stream else self.tol,
            patience=self.n_iter_no_change,
        )

    def _starting_state(
        self,
        classes: np.ndarray,
        n_features: int,
        coef_init: Any,
        intercept_init: Any,
        *,
        stream: bool = False,
    ) -> LinearState:
        n_problems = n_problems_of(classes)
        averaging = self.average is not False
        require_memory(
            (8.0 if averaging else 5.0) * 8 * n_problems * n_features,
            f"Perceptron with {n_problems} one-vs-rest problems of {n_features} features",
            "Merge classes, or hash the features to fewer, for example with "
            "sklearn.feature_extraction.FeatureHasher.",
        )
        state = LinearState.zeros(n_problems, n_features, average=averaging)
        if (self.warm_start or stream) and hasattr(self, "coef_"):
            self._continue_from_last_fit(state)
        if coef_init is not None:
            state.coef[:] = _initial_weights(coef_init, state.coef.shape, "coef_init")
        if intercept_init is not None:
            shape = state.intercept.shape
            state.intercept[:] = _initial_weights(intercept_init, shape, "intercept_init")
        return state

    def _continue_from_last_fit(self, state: LinearState) -> None:
        """Start from `coef_`, which the user may have set; with averaging, also from its sums."""
        coef = dense_coefficients(self)
        if coef.shape != state.coef.shape:
            raise InvalidDataError(
                f"warm_start: the earlier fit had weights of shape {coef.shape}, but these data "
                f"need {state.coef.shape}. Set warm_start=False."
            )
        state.coef[:] = coef
        state.intercept[:] = self.intercept_
        state.presentations[:] = getattr(self, "t_", 1.0) - 1.0
        behind = getattr(self, "_behind_average", None)
        if not state.drift_coef.size or behind is None:
            return
        earlier = replace(state, **behind)
        mean = earlier.averaged(self._average_from())
        if np.array_equal(mean.coef, coef) and np.array_equal(mean.intercept, self.intercept_):
            for name, value in behind.items():
                getattr(state, name)[:] = value

    def _average_from(self) -> int:
        if self.average is False:
            return -1
        return 0 if self.average is True else int(self.average)

    def _presented_rows(self, X: Any, labels: TrainingLabels, scan: RowScan) -> CanonicalForm:
        if not self.shuffle:
            return given_order(labels.weight)
        return canonical_form(X, labels.codes, labels.weight, scan)

    def _process(
        self,
        X: Any,
        labels: TrainingLabels,
        form: CanonicalForm,
        norms: np.ndarray,
        start: LinearState,
        rule: Rule,
    ) -> PerceptronProcess:
        held_out = None
        codes = labels.codes[form.rows]
        if self.early_stopping:
            held_out = _held_out_groups(codes, self.validation_fraction, rule.seed)
        return PerceptronProcess(
            X,
            labels.codes,
            len(start.coef),
            form.rows,
            labels.counted(form),
            norms,
            rule,
            start,
            held_out=held_out,
            n_threads=resolve_n_jobs(self.n_jobs),
        )

    def _learnt(self, process: PerceptronProcess, classes: np.ndarray) -> dict[str, Any]:
        state = process.weights
        behind_average = None
        if state.drift_coef.size:
            names = ("coef", "intercept", "drift_coef", "drift_intercept", "presentations")
            behind_average = {name: getattr(state, name).copy() for name in names}
        return {
            **process.attributes(),
            "_behind_average": behind_average,
            "classes_": classes,
            "n_iter_": max(1, int(process.stopping.n_iter.max())),
            "t_": float(state.presentations.max()) + 1.0,
        }

    def _separation(
        self,
        X: Any,
        labels: TrainingLabels,
        norms: np.ndarray,
        learnt: dict[str, Any],
        is_fresh: bool,
    ) -> dict[str, Any]:
        found = measure_separation(
            X,
            labels.codes,
            labels.weight,
            norms,
            learnt["coef_"],
            learnt["intercept_"],
            fit_intercept=self.fit_intercept,
            n_threads=resolve_n_jobs(self.n_jobs),
        )
        return separation_attributes(
            found.margin,
            found.radius,
            extra_room=2.0 * self.margin / self.eta0,
            theorem_applies=is_fresh and self.penalty is None,
        )


def _initial_weights(given: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape not in (shape, shape[1:]) or weights.size != np.prod(shape):
        raise ValueError(
            f"Provided {name} does not match dataset: got {weights.shape}, need {shape}."
        )
    if not np.isfinite(weights).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return weights.reshape(shape)


def _held_out_groups(codes: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """A stratified sample of the groups of a canonical form; identical rows stay together."""
    rng = np.random.default_rng([seed, 0x5EED])
    chosen = []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        count = min(round(fraction * len(members)), len(members) - 1)
        chosen.append(rng.permutation(members)[:count])
    held_out = np.concatenate(chosen)
    if len(held_out) == 0:
        raise ValueError(
            f"Splitting the dataset of {len(codes)} different rows with validation_fraction="
            f"{fraction:g} led to an empty validation set. Consider a larger validation_fraction."
        )
    return np.sort(held_out)
