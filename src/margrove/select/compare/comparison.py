"""compare: cross-validation of several models on the same folds, with tests of their differences.

`compared_models` names the models, `examples` makes the folds, `fits` fits and scores, and
`score_statistics` tests the differences.
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
from margrove.select.compare.compared_models import (
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
from margrove.select.compare.fits import Comparing, ComparisonSetup, SpreadComparing
from margrove.select.compare.result import Comparison, FailedModel
from margrove.select.compare.score_statistics import ScoreStatistics
from margrove.select.errors import ComparisonTimeoutError

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

    All models see the same folds. Scores of folds are not independent, because their training rows
    overlap. Tests that ignore this find differences where there are none; the tests used here are
    corrected for it.

    Parameters
    ----------
    models : dict, list or None
        Estimators with scikit-learn's API: a dict of names and estimators, or a list of estimators,
        which get the names of their classes (pipelines that of their last step). None compares one
        of each family of this library. They are not changed: clones are fitted. If the
        `random_state` of one is None, its clones get one that depends on the `random_state` given
        here and on the fold.
    X : array-like, frame or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,) or, for regressors, (n_rows, n_outputs)
        If `models` is None, texts are classes, and so are whole numbers with few different values
        (at most 20, or a tenth of the rows).
    cv : int, splitter or iterable, default=5
        The number of folds, which are shuffled and stratified by class; or a splitter of
        scikit-learn; or pairs of index arrays of training and test rows.
    repeats : int, optional
        How often new folds are drawn, if `cv` is a number. By default 2.
    scoring : str or callable, optional
        One of scikit-learn's scorers or its name; more is better. By default "accuracy" for
        classifiers and "r2" for regressors.
    groups : array-like of shape (n_rows,), optional
        Rows of a group stay together.
    sample_weight : array-like of shape (n_rows,), optional
        For fits and for scores. In a pipeline, the last step gets them.
    test : {"corrected_t", "bootstrap"}, default="corrected_t"
        "corrected_t"
            The corrected resampled t-test of Nadeau and Bengio. It is about models that are fitted
            to new data of this size.
        "bootstrap"
            Intervals from resamples of the held-out rows (or of their groups), which all models
            share. It is about new rows for the models as they were fitted here. Scores that are not
            means over rows are resampled by folds.
    confidence_level : float, default=0.95
        Of intervals. Models differ if their adjusted p is below 1 - `confidence_level`.
    n_resamples : int, default=2000
        For "bootstrap".
    blend : bool or dict, default=False
        Whether to compare blends of all models as well: "voting", "selection" and "stacking". They
        are fitted to the training rows of each fold only. A dict sets `n_folds` (5, for held-out
        predictions of the members), `n_rounds` (30, the most members that are selected) and
        `n_bags` (0); see `margrove.select.compare.blending`.
    refit : bool, default=False
        Whether to fit the best model, and the blends, to all rows.
    n_jobs : int, optional
        Threads; the result does not depend on it. None is 1, -1 is all cores. With several, each
        model uses one thread.
    random_state : int, RandomState, Generator or None, default=None
        For the folds, for models without a seed, and for resamples.
    max_time : float, optional
        Seconds after which to stop with a warning, and to compare by the folds that are done.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or warns and compares by the folds that are done.
    verbose : int, default=0
        Above 0, show a progress bar.

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
        raise ValueError("y is None. Pass the targets: models are scored by them.")
    task = task_of(named, y)
    examples = check_examples(X, y, sample_weight, groups, task)
    named = default_models(task, examples.X) if named is None else named
    if settings is not None:
        _check_members(named, examples)
    scoring = check_scorer(
        scoring, task, next(iter(named.values())), has_weights=sample_weight is not None
    )
    seed = seed_of(random_state)
    fold_seed, fit_seed, resample_seed = (int(stream(seed, number)) for number in range(3))
    splits = make_splits(examples, task, cv, repeats, fold_seed)
    by_rows = test == "bootstrap" and scoring.by_rows is not None
    n_needed = 1 if by_rows else 2
    if len(splits) < n_needed:
        raise ValueError(
            f"cv must make at least two folds, to estimate how scores vary. Got {len(splits)}."
        )
    setup = ComparisonSetup(named, examples, task, splits, scoring, fit_seed, settings, by_rows)
    n_threads = resolve_n_jobs(n_jobs)
    process = (
        SpreadComparing(setup, workers_wanted(n_jobs))
        if processes_wanted()
        else Comparing(setup, n_threads)
    )
    ending = drive(process, process, max_time=max_time, on_interrupt=on_interrupt, verbose=verbose)
    folds, compared = process.complete_folds(n_needed)
    if len(folds) < n_needed:
        if ending == "interrupt":  # there are no results to keep
            raise KeyboardInterrupt
        raise ComparisonTimeoutError(
            f"The comparison ended before {n_needed} folds were done for all models. Raise "
            "max_time, or compare fewer models."
        )
    failed = process.failed(compared)
    _warn_of_failures(failed)
    statistics = ScoreStatistics(
        setup, process, folds, test, float(confidence_level), int(n_resamples), resample_seed >> 33
    )
    comparison = statistics.comparison(compared, failed)
    return _refitted(comparison, setup) if refit else comparison


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
    """Warn once for each different error: blends often have the same one."""
    names: dict[str, list[str]] = {}
    for model in failed:
        names.setdefault(model.reason, []).append(model.name)
    for reason, failing in names.items():
        message = f"{', '.join(failing)} failed{reason}. The others are compared."
        warnings.warn(message, FitFailedWarning, stacklevel=3)


def _refitted(comparison: Comparison, setup: ComparisonSetup) -> Comparison:
    """The comparison with the best model and the blends fitted to all rows."""
    key = setup.key(len(setup.splits))
    blends: dict[str, Any] = {}
    compared = [name for name in comparison.ranking if name in BLENDS and setup.blend]
    if compared and setup.blend is not None:
        members = {n: model for n, model in setup.models.items() if n in comparison.ranking}
        fitted = fit_blends(
            members, setup.examples, setup.task, setup.scoring.scorer, key, setup.blend
        )
        blends = {name: fitted[name].model for name in compared}
    if comparison.best in blends:
        best = blends[comparison.best]
    else:
        best = fit(seeded_clone(setup.models[comparison.best], key), setup.examples)
    return replace(comparison, fitted=best, blends=blends)
