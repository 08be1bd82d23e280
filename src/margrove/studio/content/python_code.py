"""A scene as a Python script that does the same with margrove alone.

Names that the user has given are in it as literals with ASCII characters only, never as code and
never in a comment.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from margrove.studio.content.scenes import Scene

__all__ = ["python_of"]

_WIDTH = 96

_SCRIPT = '''\
"""A scene of the margrove studio, as a script. It needs margrove and nothing else."""

import numpy as np

import margrove

FEATURES = {features}
TARGET = {target}
{classes}
X = np.array(
    [
{points}
    ]
){no_points}
y = np.array(
    [
{values}
    ]{dtype}
)
is_test = np.zeros(len(y), dtype=bool)
is_test[{test_rows}] = True

model = margrove.{call}
model.fit(X[~is_test], y[~is_test])


def error_of(rows):
{error}


print(f"training error: {{error_of(~is_test):.6f}}")
if is_test.any():
    print(f"test error: {{error_of(is_test):.6f}}")
'''
_CLASS_ERROR = '''\
    """The share of points that are misclassified."""
    return np.mean(model.predict(X[rows]) != y[rows])'''
_NUMBER_ERROR = '''\
    """The root of the mean squared error."""
    return np.sqrt(np.mean((model.predict(X[rows]) - y[rows]) ** 2))'''


def python_of(scene: Scene) -> str:
    """The script: points as literals, the estimator with its parameters, its errors printed.

    Examples
    --------
    >>> from margrove.studio.content.presets import points_of
    >>> from margrove.studio.content.scenes import scene_from
    >>> from margrove.studio.content.python_code import python_of
    >>> points = points_of("boosting_points", size=10, noise=0, seed=0)
    >>> scene = scene_from(points | {
    ...     "version": 1, "testShare": 0, "seed": 0, "learner": "DecisionTreeClassifier",
    ...     "parameters": {"max_depth": 2},
    ... })
    >>> exec(python_of(scene))
    training error: 0.100000
    """
    is_class = scene.task == "classification"
    d = 2 if is_class else 1
    classes = f"CLASSES = {list(scene.classes)!a}  # of y: 0, 1, ...\n" if is_class else ""
    return _SCRIPT.format(
        features=ascii(list(scene.features[:d])),
        target=ascii(scene.target),
        classes=classes,
        points=_lines([ascii(row) for row in scene.x.tolist()], 8),
        no_points="" if len(scene.x) else f".reshape(0, {d})",
        values=_lines([ascii(value) for value in scene.y.tolist()], 8),
        dtype="" if len(scene.y) else ", dtype=int",
        test_rows=ascii(np.flatnonzero(scene.is_test).tolist()),
        call=_call(scene),
        error=_CLASS_ERROR if is_class else _NUMBER_ERROR,
    )


def _call(scene: Scene) -> str:
    asked = scene.offered.arguments(scene.parameters, scene.seed)
    arguments = []
    if asked.member is not None:
        inner = ", ".join(f"{name}={_literal(value)}" for name, value in asked.of_member.items())
        arguments.append(f"margrove.{asked.member}({inner})")
    arguments += [f"{name}={_literal(value)}" for name, value in asked.of_estimator.items()]
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"{asked.estimator}(\n{lines})"


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return ascii(value)


def _lines(items: list[str], indent: int) -> str:
    """Items with commas, as many as fit in a line."""
    lines, line = [], " " * indent
    for item in items:
        if len(line) + len(item) + 2 > _WIDTH and line.strip():
            lines.append(line)
            line = " " * indent
        line += f"{item}, "
    lines.append(line)
    return "\n".join(line.rstrip() for line in lines)
