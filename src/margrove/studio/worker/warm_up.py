"""Small fits that load or compile the kernels of the first pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["warm_steps"]

# In the order in which people usually look at them.
_LEARNERS = (
    "SVC",
    "DecisionTreeClassifier",
    "Perceptron",
    "LinearSVC",
    "RandomForestClassifier",
    "AdaBoostClassifier",
    "KernelPerceptron",
    "NuSVC",
    "SVR",
    "DecisionTreeRegressor",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
)


def warm_steps(answers: Mapping[str, Any]) -> Iterator[Callable[[], None]]:
    """Functions to call; each takes about 0.1 s once its kernels are in the cache."""
    for name in _LEARNERS:
        yield lambda name=name: _fit_small(name)  # type: ignore[misc]
    if "catalogue" in answers:
        yield lambda: _ask_catalogue(answers)


def _fit_small(name: str) -> None:
    import numpy as np

    import margrove

    y = np.arange(24) % 2
    X = np.random.default_rng(0).random((24, 2)) + 0.7 * y[:, None]
    model = getattr(margrove, name)().fit(X, y)
    model.predict(X)
    for method in ("decision_function", "predict_proba"):
        if hasattr(model, method):
            getattr(model, method)(X)


def _ask_catalogue(answers: Mapping[str, Any]) -> None:
    """The first request of every page."""
    from margrove.studio.worker.worker_main import Job

    answers["catalogue"]({"kind": "catalogue"}, Job())
