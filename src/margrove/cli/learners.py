"""The learners by the names they have on the command line, and what may be said about them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Literal

import click

__all__ = ["BASELINE", "LEARNERS", "Learner", "for_task", "made", "parsed_parameters"]

Task = Literal["classification", "regression"]

BASELINE = "baseline"


@dataclass(frozen=True)
class Learner:
    """A family of models.

    summary     what it is, in a few words
    classes     the estimator of classes, in margrove, None if there is none
    numbers     the estimator of numbers, likewise
    settings    parameters that differ from the defaults
    """

    summary: str
    classes: str | None
    numbers: str | None
    settings: dict[str, Any]

    def estimator_name(self, task: Task) -> str | None:
        return self.classes if task == "classification" else self.numbers


LEARNERS = {
    "perceptron": Learner("averaged perceptron", "Perceptron", None, {"average": True}),
    "linear-svm": Learner("linear support vector machine", "LinearSVC", "LinearSVR", {}),
    "svm": Learner("support vector machine with a Gaussian kernel", "SVC", "SVR", {}),
    "tree": Learner(
        "one decision tree of at most 64 leaves",
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        {"max_leaf_nodes": 64},
    ),
    "bagging": Learner("bagged trees", "BaggingClassifier", "BaggingRegressor", {}),
    "forest": Learner(
        "random forest", "RandomForestClassifier", "RandomForestRegressor", {"oob_score": True}
    ),
    "extra-trees": Learner(
        "extremely randomised trees", "ExtraTreesClassifier", "ExtraTreesRegressor", {}
    ),
    "adaboost": Learner("boosted stumps", "AdaBoostClassifier", "AdaBoostRegressor", {}),
    "boosting": Learner(
        "gradient boosting",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        {},
    ),
}


def for_task(task: Task) -> list[str]:
    """Names of the learners that can do it."""
    return [name for name, learner in LEARNERS.items() if learner.estimator_name(task)]


def made(
    name: str,
    task: Task,
    *,
    seed: int = 0,
    max_time: float | None = None,
    n_jobs: int | None = None,
    parameters: dict[str, Any] | None = None,
) -> Any:
    """A new estimator; seed, time and threads are set where it has them."""
    import margrove

    if name == BASELINE:
        return _baseline(task)
    learner = _known(name)
    class_name = learner.estimator_name(task)
    if class_name is None:
        raise click.UsageError(
            f"There is no {name} for {task}. There are {', '.join(for_task(task))}."
        )
    estimator = getattr(margrove, class_name)(**learner.settings)
    shared = {"random_state": seed, "max_time": max_time, "n_jobs": n_jobs}
    own = estimator.get_params(deep=False)
    estimator.set_params(**{key: value for key, value in shared.items() if key in own})
    for key in parameters or {}:
        if key not in own:
            raise click.UsageError(
                f"{class_name} has no parameter {key!r}. It has {', '.join(sorted(own))}."
            )
    _require_known_kernel((parameters or {}).get("kernel"))
    return estimator.set_params(**(parameters or {}))


def _require_known_kernel(kernel: Any) -> None:
    """Before the table is read and prepared."""
    from margrove.margin.kernels.registry import KERNELS

    if kernel is not None and kernel not in KERNELS:
        raise click.UsageError(
            f"There is no kernel {kernel!r}. There are {', '.join(sorted(KERNELS))}."
        )


def _known(name: str) -> Learner:
    if name not in LEARNERS:
        raise click.UsageError(f"There is no learner {name!r}. There are {', '.join(LEARNERS)}.")
    return LEARNERS[name]


def _baseline(task: Task) -> Any:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    if task == "classification":
        return DummyClassifier(strategy="most_frequent")
    return DummyRegressor(strategy="mean")


def parsed_parameters(given: tuple[str, ...]) -> dict[str, Any]:
    """`name=value` pairs; values are literals of Python or plain words, and never run."""
    found: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--param takes NAME=VALUE, such as C=10. Got {pair!r}.")
        found[name] = _literal(name, text)
    return found


def _literal(name: str, text: str) -> Any:
    if name == "kernel" or (text.isidentifier() and text not in ("True", "False", "None")):
        return text  # such as kernel=poly
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise click.UsageError(
            f"--param {name} takes a number, a word, True, False, None, or a list of these. "
            f"Got {text!r}."
        ) from None
