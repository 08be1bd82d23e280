"""Comparison of models: the same folds for all, and statistics that know that folds overlap.

Who takes part is decided in `contestants`, how rows are parted in `examples`; here models are
fitted and scored, on threads and in slices, and `resampled_tests` judges their scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, Literal

from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import FitFailedWarning
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import seed_of
from margrove._runtime import (
    RANDOM_STATE,
    RUN_CONTROL,
    drive,
    processes_wanted,
    resolve_n_jobs,
    workers_wanted,
)
from margrove.ensemble.bagging import seeded_clone
from margrove.ensemble.bootstrap import check_arguments, stream
from margrove.select.compare.blending import BLENDS, BlendSettings, check_member_names, fit_blends
from margrove.select.compare.contestants import (
    check_scorer,
    default_models,
    named_models,
    task_of,
)
from margrove.select.compare.examples import (
    Examples,
    check_examples,
    fit,
    make_splits,
)
from margrove.select.compare.fits import Comparing, Contest, SpreadComparing
from margrove.select.compare.judging import Judge
from margrove.select.compare.result import Comparison, FailedModel
from margrove.select.refusals import ComparisonTimeoutError

__all__ = ["compare"]

_ARGUMENTS: dict[str, list[Any]] = {
    "repeats": [Interval(Integral, 1, None, closed="left"), None],
    "test": [StrOptions({"corrected_t", "bootstrap"})],
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "n_resamples": [Interval(Integral, 100, None, closed="left")],
    "blend": ["boolean", Mapping],
    "refit": ["boolean"],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}


def compare(
    models: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    repeats: int | None = None,
    scoring: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    test: Literal["corrected_t", "bootstrap"] = "corrected_t",
    confidence_level: float = 0.95,
    n_resamples: int = 2000,
    blend: bool | Mapping[str, int] = False,
    refit: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
    max_time: float | None = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
    verbose: int = 0,
) -> Comparison:
    """Compare models by cross-validation, and say which differences are more than chance.

    All models see the same folds. Scores of folds are not independent, because training parts
    overlap; tests that take them to be find differences where there are none. These do not.

    Parameters
    ----------
    models : dict, list or None
        Estimators of scikit-learn's kind: names and estimators, or a list of estimators, which are
        named by their classes (pipelines by their last step). None compares one of each family of
        this library. They stay as they are: clones are fitted. Where one has a `random_state` of
        None, clones get one that depends on the `random_state` given here and on the fold.
    X : array-like, frame or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,) or, for regressors, (n_rows, n_outputs)
        With `models` None, text and whole numbers of few values are classes (at most 20 values, or
        a tenth of the rows).
    cv : int, splitter or iterable, default=5
        The number of folds, which are shuffled and stratified by class; or a splitter of
        scikit-learn; or pairs of numbers of rows to train and to test.
    repeats : int, optional
        How often the folds are drawn anew, where `cv` is a number. By default 2.
    scoring : str or callable, optional
        One of scikit-learn's scorers or its name; more is better. By default "accuracy" for
        classifiers and "r2" for regressors.
    groups : array-like of shape (n_rows,), optional
        Rows of a group are never parted.
    sample_weight : array-like of shape (n_rows,), optional
        For fits and for scores. Of a pipeline, the last step gets them.
    test : {"corrected_t", "bootstrap"}, default="corrected_t"
        "corrected_t"
            The corrected resampled t-test of Nadeau and Bengio, about models that are fitted to
            new data of this size.
        "bootstrap"
            Intervals from resamples of the held-out rows (of their groups), which all models share:
            about new rows for the models as they were fitted here. Scores that are no means over
            rows are resampled by folds.
    confidence_level : float, default=0.95
        Of intervals. Models differ if their adjusted p is below 1 - `confidence_level`.
    n_resamples : int, default=2000
        For "bootstrap".
    blend : bool or dict, default=False
        Whether blends of all models take part: "voting", "selection" and "stacking". They are
        fitted to the training part of each fold and to nothing else. A dict sets `n_folds` (5, in
        which members are tried out), `n_rounds` (30, members that are selected at most) and
        `n_bags` (0) of this; see `margrove.select.compare.blending`.
    refit : bool, default=False
        Whether to fit the best model, and the blends, to all rows.
    n_jobs : int, optional
        Threads; they do not change the result. None is 1, -1 is all cores. With several, no model
        uses threads of its own.
    random_state : int, RandomState, Generator or None, default=None
        For the folds, for models without a seed of their own, and for resamples.
    max_time : float, optional
        Seconds after which to stop, with a warning, and to make do with the folds that are done.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or makes do with the folds that are done, with a warning.
    verbose : int, default=0
        Above 0, a progress bar.

    Returns
    -------
    Comparison

    Warns
    -----
    FitFailedWarning
        If a model failed. It is listed in `failed`, and the others are compared.
    DataWarning
        If a class has fewer rows than there are folds.

    References
    ----------
    Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52. Holm
    (1979), A simple sequentially rejective multiple test procedure. Caruana, Niculescu-Mizil, Crew
    and Ksikes (2004), Ensemble selection from libraries of models.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, SVC
    >>> from margrove.datasets import load_iris
    >>> from margrove.select.compare.comparison import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"tree": DecisionTreeClassifier(), "stump": DecisionTreeClassifier(max_depth=1)}
    >>> comparison = compare(models | {"machine": SVC()}, X, y, random_state=0)
    >>> comparison.ranking
    ('machine', 'tree', 'stump')
    >>> comparison.pair("machine", "tree").differs, comparison.pair("tree", "stump").differs
    (False, True)
    """
    check_arguments(_ARGUMENTS, locals(), "compare")
    settings = _blend_settings(blend)
    named = None if models is None else named_models(models)
    if y is None:
        raise ValueError("y is None. Pass the targets: scores are about them.")
    task = task_of(named, y)
    examples = check_examples(X, y, sample_weight, groups, task)
    named = default_models(task, examples.X) if named is None else named
    if settings is not None:
        _check_members(named, examples)
    scoring = check_scorer(
        scoring, task, next(iter(named.values())), has_weights=sample_weight is not None
    )
    seed = seed_of(random_state)
    of_folds, of_fits, of_resamples = (int(stream(seed, part)) for part in range(3))
    splits = make_splits(examples, task, cv, repeats, of_folds)
    by_rows = test == "bootstrap" and scoring.by_rows is not None
    n_needed = 1 if by_rows else 2
    if len(splits) < n_needed:
        raise ValueError(
            f"cv must make at least two folds, to see how scores vary. Got {len(splits)}."
        )
    contest = Contest(named, examples, task, splits, scoring, of_fits, settings, by_rows)
    n_threads = resolve_n_jobs(n_jobs)
    process = (
        SpreadComparing(contest, workers_wanted(n_jobs))
        if processes_wanted()
        else Comparing(contest, n_threads)
    )
    ending = drive(process, process, max_time=max_time, on_interrupt=on_interrupt, verbose=verbose)
    folds, entered = process.complete_folds(n_needed)
    if len(folds) < n_needed:
        if ending == "interrupt":  # there is nothing to keep
            raise KeyboardInterrupt
        raise ComparisonTimeoutError(
            f"The comparison ended before {n_needed} folds were done for all models. Raise "
            "max_time, or compare fewer models."
        )
    failed = process.failed(entered)
    _warn_of_failures(failed)
    judge = Judge(
        contest, process, folds, test, float(confidence_level), int(n_resamples), of_resamples >> 33
    )
    judged = judge.comparison(entered, failed)
    return _refitted(judged, contest) if refit else judged


def _blend_settings(blend: bool | Mapping[str, int]) -> BlendSettings | None:
    if not isinstance(blend, Mapping):
        return BlendSettings() if blend else None
    least = {"n_folds": 2, "n_rounds": 1, "n_bags": 0}
    known = [field.name for field in fields(BlendSettings)]
    for name, value in blend.items():
        if name not in known:
            raise ValueError(f"blend has no setting {name!r}. There are {', '.join(known)}.")
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least[name]:
            raise ValueError(
                f"blend[{name!r}] must be a whole number of at least {least[name]}. Got {value!r}."
            )
    return BlendSettings(**blend)


def _check_members(models: Mapping[str, Any], examples: Examples) -> None:
    if len(models) < 2:
        raise ValueError("blend=True needs at least two models to blend.")
    if examples.y.ndim > 1:
        raise ValueError("blend=True needs one target for each row. Compare without blending.")
    for name, model in models.items():
        if not is_classifier(model) and not is_regressor(model):
            raise ValueError(
                f"blend=True needs classifiers or regressors, and models[{name!r}] is neither."
            )
    check_member_names(list(models))


def _warn_of_failures(failed: tuple[FailedModel, ...]) -> None:
    """Warn once for each different error: blends often share theirs."""
    names: dict[str, list[str]] = {}
    for model in failed:
        names.setdefault(model.reason, []).append(model.name)
    for reason, own in names.items():
        message = f"{', '.join(own)} failed{reason}. The others are compared."
        warnings.warn(message, FitFailedWarning, stacklevel=3)


def _refitted(comparison: Comparison, contest: Contest) -> Comparison:
    """The comparison with the best model and the blends fitted to all rows."""
    key = contest.key(len(contest.splits))
    blends: dict[str, Any] = {}
    compared = [name for name in comparison.ranking if name in BLENDS and contest.blend]
    if compared and contest.blend is not None:
        members = {n: model for n, model in contest.models.items() if n in comparison.ranking}
        fitted = fit_blends(
            members, contest.examples, contest.task, contest.scoring.scorer, key, contest.blend
        )
        blends = {name: fitted[name].model for name in compared}
    if comparison.best in blends:
        best = blends[comparison.best]
    else:
        best = fit(seeded_clone(contest.models[comparison.best], key), contest.examples)
    return replace(comparison, fitted=best, blends=blends)
