"""Decision trees: `ccp_alpha` by cross-validation.

One tree is grown for each fold, and its prunings are scored on the held-out rows without fitting it
again. The values of ccp_alpha lie between those at which the tree of all rows changes (Breiman et
al. 1984, section 3.4).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from margrove.grove import CRITERIA
from margrove.grove.prune import cross_validated_alpha, prune
from margrove.select.autotune.scores import Scoring
from margrove.select.autotune.task import TuningTask
from margrove.select.autotune.tuning import Choice, Trials, choice_among

__all__ = ["tune_tree"]

_MAX_ALPHAS = 50  # where each pruning has to predict by itself


def tune_tree(task: TuningTask) -> Choice:
    """`ccp_alpha` of a decision tree."""
    default = "accuracy" if task.is_classifier else CRITERIA[task.last.criterion].scoring
    scoring, rule = task.scoring(default), task.rule("one_standard_error")
    trials = task.of_each_setting(
        {}, ("ccp_alpha",), lambda setting: _pruned(task, setting, scoring)
    )
    done = (
        f"A tree was grown for each of {len(task.folds)} folds, and pruned with all values of "
        "ccp_alpha that make a difference (the greater, the smaller the tree)."
    )
    return choice_among(trials, rule, scoring.name, done).saying(*task.remarks)


def _pruned(task: TuningTask, setting: dict[str, Any], scoring: Scoring) -> Trials:
    tree = clone(task.last).set_params(**setting, ccp_alpha=0.0)
    if task.has_steps_before or scoring.known_as not in ("accuracy", "neg_mean_squared_error"):
        return _scored_one_by_one(task, tree, setting, scoring)
    found = cross_validated_alpha(
        tree, task.rows.X, task.rows.y, cv=task.folds, sample_weight=task.rows.weight
    )
    errors = found.mean_errors[::-1]
    return Trials(
        tuple(setting | {"ccp_alpha": float(alpha)} for alpha in found.alphas[::-1]),
        1.0 - errors if scoring.known_as == "accuracy" else -errors,
        found.standard_errors[::-1],
        None,
    )


def _scored_one_by_one(
    task: TuningTask, tree: Any, setting: dict[str, Any], scoring: Scoring
) -> Trials:
    """Trials of each pruning of each fold's tree, whose predictions are scored."""
    path = tree.cost_complexity_pruning_path(
        task.all_rows.X_train, task.all_rows.y_train, sample_weight=task.all_rows.train_weight
    )
    alphas = _some_between(np.unique(path.ccp_alphas))

    def score(k: int) -> list[float]:
        fold = task.fold_rows[k]
        model = fold.fit(clone(tree))
        return [
            scoring(prune(model, ccp_alpha=alpha), fold.X_test, fold.y_test, fold.test_weight)
            for alpha in alphas
        ]

    by_fold = task.run_calls(score, [(k,) for k in range(len(task.fold_rows))])
    candidates = [setting | {"ccp_alpha": alpha} for alpha in alphas]
    return Trials.of_folds(candidates, np.array(by_fold).T, task.totals)


def _some_between(changes: np.ndarray) -> list[float]:
    """Descending alphas, one between each two values at which the tree changes.

    If there are more than 50, 50 evenly chosen ones.
    """
    above = np.append(changes[1:], 100.0 * changes[-1])
    between = np.unique(np.sqrt(changes) * np.sqrt(above))[::-1]
    n = min(len(between), _MAX_ALPHAS)
    return [float(alpha) for alpha in between[np.linspace(0, len(between) - 1, n).astype(int)]]
