"""The tables of the lectures."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.datasets.bunches import AsFrame, as_bunch

__all__ = ["load_boosting_points", "load_iris_ratios", "load_play_tennis", "load_restaurant"]

_TENNIS = """
sunny    hot  high   weak   no
sunny    hot  high   strong no
overcast hot  high   weak   yes
rain     mild high   weak   yes
rain     cool normal weak   yes
rain     cool normal strong no
overcast cool normal strong yes
sunny    mild high   weak   no
sunny    cool normal weak   yes
rain     mild normal weak   yes
sunny    mild normal strong yes
overcast mild high   strong yes
overcast hot  normal weak   yes
rain     mild high   strong no
"""

_RESTAURANT = """
Yes No  No  Yes Some $$$ No  Yes French  0-10  Yes
Yes No  No  Yes Full $   No  No  Thai    30-60 No
No  Yes No  No  Some $   No  No  Burger  0-10  Yes
Yes No  Yes Yes Full $   Yes No  Thai    10-30 Yes
Yes No  Yes No  Full $$$ No  Yes French  >60   No
No  Yes No  Yes Some $$  Yes Yes Italian 0-10  Yes
No  Yes No  No  None $   Yes No  Burger  0-10  No
No  No  No  Yes Some $$  Yes Yes Thai    0-10  Yes
No  Yes Yes No  Full $   Yes No  Burger  >60   No
Yes Yes Yes Yes Full $$$ No  Yes Italian 10-30 No
No  No  No  No  None $   No  No  Thai    0-10  No
Yes Yes Yes Yes Full $   No  No  Burger  30-60 Yes
"""


def _parsed(text: str) -> tuple[np.ndarray, np.ndarray]:
    table = np.array([line.split() for line in text.strip().splitlines()])
    return table[:, :-1], table[:, -1]


def load_play_tennis(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """Fourteen days: is it a day to play tennis? Four categorical features, two classes.

    Examples
    --------
    >>> from margrove.datasets import load_play_tennis
    >>> load_play_tennis().data[0]
    array(['sunny', 'hot', 'high', 'weak'], dtype='<U8')
    """
    data, target = _parsed(_TENNIS)
    return as_bunch(
        data,
        target,
        feature_names=["outlook", "temperature", "humidity", "wind"],
        description="Play tennis: 14 days, 4 categorical features, to play or not.",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_restaurant(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """Twelve guests: will they wait for a table? Ten categorical features, two classes.

    From Russell and Norvig. Two lectures differ in the Rain of the fourth guest; the value here is
    that of the textbook (Yes).
    """
    data, target = _parsed(_RESTAURANT)
    names = ["Alt", "Bar", "Fri", "Hun", "Pat", "Price", "Rain", "Res", "Type", "Est"]
    return as_bunch(
        data,
        target,
        feature_names=names,
        description="Restaurant: 12 guests, 10 categorical features, wait or leave.",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_boosting_points(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """Ten points in the plane, which three stumps of AdaBoost together classify without a mistake.

    Each stump alone makes three mistakes: eps = 0.30, 0.21, 0.14 and beta = 0.42, 0.65, 0.92. The
    lectures show the picture without coordinates; with these coordinates the rounds have the same
    numbers, if ties between stumps go to the lower feature and threshold.
    """
    points = [
        (1, 4),
        (2, 1.5),
        (4, 7),
        (5.5, 9),
        (7, 8),
        (3, 2.5),
        (4.5, 5),
        (6, 3.5),
        (8, 7.5),
        (9, 2),
    ]
    return as_bunch(
        np.array(points, dtype=np.float64),
        np.array([1] * 5 + [-1] * 5),
        feature_names=["x1", "x2"],
        description="Ten points, five + and five -, for three rounds of boosting.",
        return_X_y=return_X_y,
        as_frame=as_frame,
    )


def load_iris_ratios(*, return_X_y: bool = False, as_frame: AsFrame = False) -> Any:
    """The irises by two ratios: sepal length / width and petal length / width; three classes."""
    from sklearn.datasets import load_iris

    iris = load_iris()
    ratios = np.column_stack([iris.data[:, 0] / iris.data[:, 1], iris.data[:, 2] / iris.data[:, 3]])
    return as_bunch(
        ratios,
        iris.target,
        feature_names=["sepal ratio", "petal ratio"],
        description="Iris, by the ratios of length to width of sepals and petals.",
        return_X_y=return_X_y,
        as_frame=as_frame,
        target_names=iris.target_names,
    )
