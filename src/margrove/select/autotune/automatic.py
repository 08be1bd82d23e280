"""`autotune`: one call that picks what matters most for each kind of estimator, and says why.

    pruning   trees                     ccp_alpha                    cross-validation
    forest    forests, bags             n_estimators, max_features   out-of-bag rows
    rounds    gradient boosting         max_iter, n_estimators       cross-validated curve
              AdaBoost                  n_estimators                 cross-validated curve
    linear    linear machines           C                            warm-started paths
    epochs    perceptrons               max_iter, average            cross-validation
    kernel    support vector machines   C or nu, gamma               cross-validation

A tuner is a function from a `TuningTask` to a `Choice`. The registry of learners says which one a
learner has: one of these by name, a function of its own, or a grid of values to try.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import seed_of
from margrove._runtime import RANDOM_STATE, unwatched
from margrove.ensemble.bootstrap import check_arguments
from margrove.select.autotune.boosting import tune_boosting
from margrove.select.autotune.forests import tune_forest
from margrove.select.autotune.grids import tune_grid
from margrove.select.autotune.linear_machines import tune_linear
from margrove.select.autotune.perceptrons import tune_perceptron
from margrove.select.autotune.support_vector_machines import tune_svm
from margrove.select.autotune.task import Clock, TuningTask
from margrove.select.autotune.trees import tune_tree
from margrove.select.autotune.tuning import Choice, Rule, Tuning
from margrove.select.held_out import (
    LearningRows,
    final_step,
    require_estimator,
    weight_arguments,
)
from margrove.select.learners import LEARNERS, learner_of_class

__all__ = ["Tuning", "autotune"]

Tuner = Callable[[TuningTask], Choice]

_TUNERS: dict[str, Tuner] = {
    "pruning": tune_tree,
    "forest": tune_forest,
    "rounds": tune_boosting,
    "linear": tune_linear,
    "epochs": tune_perceptron,
    "kernel": tune_svm,
}

_ARGUMENTS: dict[str, list[Any]] = {
    "rule": [StrOptions({"best", "one_standard_error"}), None],
    "also": [Mapping, None],
    "max_estimators": [Interval(Integral, 1, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    **RANDOM_STATE,
}


def autotune(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = None,
    cv: Any = 5,
    rule: Rule | None = None,
    also: Mapping[str, Sequence[Any]] | None = None,
    max_estimators: int = 1000,
    sample_weight: Any = None,
    groups: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_time: float | None = None,
    verbose: int = 0,
) -> Any:
    """Fit an estimator after choosing the parameters that matter most for its kind.

    Trees are pruned, forests grow until more trees gain nothing, boosting stops where its
    cross-validated curve is best, machines get their price C. What was tried and why something was
    chosen is told by `tuning_` of the result.

    Parameters
    ----------
    estimator : estimator of margrove, or a pipeline that ends with one
        It stays as it is. Parameters that are not tuned are kept. Steps before the last one are
        fitted anew in every fold.
    X, y : training data
    scoring : str or callable, optional
        One of scikit-learn's names, or scorer(model, X, y): the greater, the better. By default
        "accuracy" for classes, "neg_log_loss" for gradient boosting of classes, and for numbers
        "neg_mean_squared_error", or the loss that boosting makes small itself.
    cv : int, splitter or iterable of (train, test), default=5
        A number means so many shuffled folds, stratified for classes. Forests of bootstrap samples
        need none.
    rule : {"best", "one_standard_error"}, optional
        Take the best score, or the simplest model whose score is within a standard error of it. By
        default the latter for trees, and for `max_features` of forests; the former for all others.
    also : dict of lists, optional
        Other parameters to choose along, such as {"learning_rate": [0.05, 0.2]}: all combinations
        are tried. By default half and twice the `max_features` of forests, and `average` of the
        Perceptron; {} tries nothing else.
    max_estimators : int, default=1000
        The most trees of a forest, or rounds of boosting. What the estimator has is not used.
    sample_weight : array of shape (n,), optional
        For fits and scores.
    groups : array of shape (n,), optional
        Rows of a group are held out together.
    random_state : int, RandomState, Generator or None, default=None
        Of the folds; and of the estimator, where it has a `random_state` of None.
    n_jobs : int, optional
        Folds at the same time, in threads; they do not change the result.
    max_time : float, optional
        Seconds after which nothing new is tried. The last fit comes on top.
    verbose : int, default=0
        Above 0, print what was done and why.

    Returns
    -------
    fitted estimator
        A clone, with the chosen parameters, fitted to all rows, as it would be by hand. It has
        `tuning_`, a `Tuning`.

    See Also
    --------
    margrove.cross_validated_alpha : For trees by themselves.

    Examples
    --------
    >>> import margrove
    >>> from margrove.select.autotune.automatic import autotune
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> tree = autotune(margrove.DecisionTreeClassifier(), X, y, random_state=0)
    >>> tree.get_n_leaves(), round(tree.tuning_.score, 2)
    (3, 0.93)
    >>> forest = autotune(margrove.RandomForestClassifier(), X, y, random_state=0)
    >>> forest.tuning_.measured_by, forest.n_estimators
    ('out-of-bag rows', 100)
    """
    check_arguments(_ARGUMENTS, locals(), "autotune")
    require_estimator(estimator, "autotune")
    prefix, last = final_step(estimator)
    tuner = _tuner_of(last)
    rows = LearningRows.of(estimator, X, y, sample_weight)
    seed = seed_of(random_state)
    seeded = _missing_seed(last, seed)
    clock = Clock(max_time)
    task = TuningTask(
        estimator=estimator,
        last=clone(last).set_params(**seeded, **_quietly(last)),
        rows=rows,
        make_folds=lambda: rows.folds(cv, groups, seed),
        given_scoring=scoring,
        given_rule=rule,
        also=also,
        max_estimators=int(max_estimators),
        has_groups=groups is not None,
        seed=seed,
        n_jobs=n_jobs,
        clock=clock,
    )
    with unwatched(), warnings.catch_warnings():
        # The last fit warns if it has reason to; those of settings that are only tried need not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
        choice = tuner(task)
    parameters = {f"{prefix}{name}": value for name, value in (seeded | choice.parameters).items()}
    tuned = clone(estimator).set_params(**parameters)
    tuned.fit(rows.X, rows.y, **weight_arguments(tuned, rows.weight))
    tuned.tuning_ = Tuning(
        parameters=parameters,
        candidates=choice.trials.candidates,
        scores=choice.trials.scores,
        standard_errors=choice.trials.standard_errors,
        by_fold=choice.trials.by_fold,
        chosen=choice.chosen,
        scoring=choice.scoring,
        measured_by=choice.measured_by,
        explanation=choice.sentences,
        seconds=clock.seconds,
    )
    if verbose:
        print(tuned.tuning_)  # noqa: T201, that is what verbose asks for
    return tuned


def _tuner_of(last: Any) -> Tuner:
    """The tuner that the registry of learners names for an estimator, or for a base class of it."""
    learner = learner_of_class(type(last))
    if learner is not None and learner.tuning is not None:
        tuning = learner.tuning
        if isinstance(tuning, str):
            return _TUNERS[tuning]
        return partial(tune_grid, grid=tuning) if isinstance(tuning, Mapping) else tuning
    known = ", ".join(
        sorted(
            estimator.class_name
            for own in LEARNERS.values()
            if own.tuning is not None
            for estimator in own.estimators
        )
    )
    name = last if isinstance(last, str) else type(last).__name__
    raise TypeError(
        f"autotune knows {known} of margrove, and pipelines that end with one of them. Got {name}: "
        "sklearn.model_selection.GridSearchCV tunes anything else."
    )


def _missing_seed(last: Any, seed: int) -> dict[str, int]:
    """A seed where there is none, so that all that is tried is tried with the same draws."""
    parameters = last.get_params(deep=False)
    return {"random_state": seed} if parameters.get("random_state", 0) is None else {}


def _quietly(last: Any) -> dict[str, Any]:
    """Settings of fits that are only tried."""
    wanted = {"verbose": 0, "warm_start": False}
    return {name: value for name, value in wanted.items() if name in last.get_params(deep=False)}
