"""autotune: one call that chooses the main parameters of an estimator, and says why.

    pruning   trees                     ccp_alpha                    cross-validation
    forest    forests, bags             n_estimators, max_features   out-of-bag rows
    rounds    gradient boosting         max_iter, n_estimators       cross-validated curve
              AdaBoost                  n_estimators                 cross-validated curve
    linear    linear machines           C                            warm-started paths
    epochs    perceptrons               max_iter, average            cross-validation
    kernel    support vector machines   C or nu, gamma               cross-validation

A tuner is a function from a `TuningTask` to a `Choice`. The registry of learners has the tuner of
each learner: one of these names, another function, or a grid of values to try.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
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
from margrove.select.autotune.margin_machines import tune_linear, tune_perceptron, tune_svm
from margrove.select.autotune.task import Clock, TuningTask
from margrove.select.autotune.trees import tune_tree
from margrove.select.autotune.tuning import Choice, Rule, Tuning, choice_among
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
    cross-validated curve is best, and margin machines get their C. `tuning_` of the result has all
    settings that were tried, and the reasons of the choice.

    Parameters
    ----------
    estimator : estimator of margrove, or a pipeline that ends with one
        It is not changed. Parameters that are not tuned are kept. Steps before the last one are
        fitted again in every fold.
    X, y : training data
    scoring : str or callable, optional
        One of scikit-learn's names, or scorer(model, X, y): the greater, the better. By default
        "accuracy" for classification, "neg_log_loss" for gradient boosting of classes, and for
        regression "neg_mean_squared_error", or the loss that boosting minimises.
    cv : int, splitter or iterable of (train, test), default=5
        A number of folds: shuffled, and stratified for classification. Forests of bootstrap samples
        need no folds.
    rule : {"best", "one_standard_error"}, optional
        Take the best score, or the simplest model whose score is within a standard error of it. By
        default the latter for trees, and for `max_features` of forests; the former for all others.
    also : dict of lists, optional
        Other parameters to choose as well, such as {"learning_rate": [0.05, 0.2]}: all combinations
        are tried. By default half and twice the `max_features` of forests, and `average` of the
        Perceptron; {} adds nothing.
    max_estimators : int, default=1000
        The most trees of a forest, or rounds of boosting. The estimator's own number is ignored.
    sample_weight : array of shape (n,), optional
        For fits and scores.
    groups : array of shape (n,), optional
        Rows of a group are held out together.
    random_state : int, RandomState, Generator or None, default=None
        For the folds, and for the estimator if its `random_state` is None.
    n_jobs : int, optional
        Number of folds that run at the same time, in threads. The result does not depend on it.
    max_time : float, optional
        Seconds after which nothing new is tried. The last fit takes additional time.
    verbose : int, default=0
        Above 0, print the explanation.

    Returns
    -------
    fitted estimator
        A clone with the chosen parameters, fitted to all rows. It has `tuning_`, a `Tuning`.

    See Also
    --------
    margrove.cross_validated_alpha : The pruning of trees only.

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
    seed_parameter = _missing_seed(last, seed)
    clock = Clock(max_time)
    task = TuningTask(
        estimator=estimator,
        last=clone(last).set_params(**seed_parameter, **_trial_settings(last)),
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
        # The last fit may warn; warnings about settings that are only tried are noise.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
        choice = tuner(task)
    parameters = {
        f"{prefix}{name}": value for name, value in (seed_parameter | choice.parameters).items()
    }
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
        print(tuned.tuning_)  # noqa: T201, verbose asks for it
    return tuned


def _tuner_of(last: Any) -> Tuner:
    """The tuner of the learner of an estimator, or of one of its base classes."""
    learner = learner_of_class(type(last))
    if learner is not None and learner.tuning is not None:
        tuning = learner.tuning
        if isinstance(tuning, str):
            return _TUNERS[tuning]
        return partial(_tune_grid, grid=tuning) if isinstance(tuning, Mapping) else tuning
    names = ", ".join(
        sorted(
            estimator.class_name
            for known in LEARNERS.values()
            if known.tuning is not None
            for estimator in known.estimators
        )
    )
    name = last if isinstance(last, str) else type(last).__name__
    raise TypeError(
        f"estimator must be one of {names} of margrove, or a pipeline that ends with one of them. "
        f"Got {name}: for other estimators, use sklearn.model_selection.GridSearchCV."
    )


def _missing_seed(last: Any, seed: int) -> dict[str, int]:
    """A seed if the estimator has none, so that all settings are tried with the same draws."""
    parameters = last.get_params(deep=False)
    return {"random_state": seed} if parameters.get("random_state", 0) is None else {}


def _trial_settings(last: Any) -> dict[str, Any]:
    """Parameters of the fits of settings that are only tried."""
    wanted = {"verbose": 0, "warm_start": False}
    return {name: value for name, value in wanted.items() if name in last.get_params(deep=False)}


def _tune_grid(task: TuningTask, grid: Mapping[str, Sequence[Any]]) -> Choice:
    """All combinations of a grid whose values are sorted from the simplest model up."""
    default = "accuracy" if task.is_classifier else "neg_mean_squared_error"
    scoring, rule = task.scoring(default), task.rule("best")
    candidates = [
        dict(zip(grid, values, strict=True)) for values in product(*map(list, grid.values()))
    ]
    parts = task.of_each_setting(
        {},
        tuple(grid),
        lambda setting: task.tried([setting | values for values in candidates], scoring),
    )
    done = (
        f"{len(candidates)} settings of {', '.join(grid)} were tried on each of "
        f"{len(task.folds)} folds."
    )
    return choice_among(parts, rule, scoring.name, done).saying(*task.remarks)
