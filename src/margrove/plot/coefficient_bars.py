"""The largest weights of a linear model as bars, a panel for each machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import StrongFeatures, strongest_features
from margrove.plot.drawing import Picture, class_style, drawn, given_panels, new_panels, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["coefficients"]

_MOST_PANELS = 9  # if `machines` is not given
_WIDTH, _FRAME_HEIGHT, _BAR_HEIGHT = 4.5, 1.0, 0.25  # inches of a panel


def coefficients(
    model: Any,
    *,
    n: int = 10,
    feature_names: Any = None,
    machines: Any = None,
    ax: Any = None,
) -> Picture:
    """Draw the features with the largest weights, as bars, for each machine of a linear model.

    The data are available from `margrove.facts.strongest_features`. Artists have a `gid`: bars are
    "positive" or "negative", the line between them is "zero".

    Parameters
    ----------
    model : fitted estimator with `coef_`
        Of margrove or under scikit-learn's API.
    n : int, default=10
        Largest number of features of each machine.
    feature_names : sequence of str, optional
        A name for each feature, such as `TfidfVectorizer().get_feature_names_out()`. By default
        those of the training data.
    machines : list, optional
        Which machines to draw, by class (if each class has one), by name, or by number. If classes
        are numbers, a number is a class. By default all machines, or the first nine; then the title
        says so.
    ax : matplotlib Axes, or as many of them as there are machines to draw, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> model = margrove.LinearSVC().fit([[0, 0, 1], [0, 1, 0], [2, 0, 1], [2, 1, 0]], list("aabb"))
    >>> names = ["size", "red", "green"]
    >>> ax = margrove.plot.coefficients(model, n=1, feature_names=names, ax=Figure().subplots())
    >>> ax.get_title(), [label.get_text() for label in ax.get_yticklabels()]
    ("'b' against 'a'", ['size'])
    """
    found = strongest_features(model, n, feature_names)
    chosen = _chosen(model, found, machines)
    axes = _panels(ax, len(chosen), int(n))
    for panel, k in zip(axes, chosen, strict=True):
        _draw(panel, found[k])
    if machines is None and len(chosen) < len(found):
        note = f"the first {len(chosen)} of {len(found)} machines; machines=[...] selects others"
        axes[0].figure.suptitle(note, fontsize="medium")
    bars = [(found[k].machine, feature) for k in chosen for feature in found[k].features]
    data = table(
        machine=[machine for machine, _ in bars],
        feature=[feature.name for _, feature in bars],
        weight=np.array([feature.weight for _, feature in bars], dtype=np.float64),
    )
    return drawn(axes, data)


# -- the machines to draw ------------------------------------------------------------------------


def _chosen(model: Any, found: Sequence[StrongFeatures], machines: Any) -> list[int]:
    if machines is None:
        return list(range(min(len(found), _MOST_PANELS)))
    if isinstance(machines, (str, bytes)) or not hasattr(machines, "__len__") or not len(machines):
        raise ValueError(
            "machines must be a list of classes, names or numbers of machines, such as [0, 2]. "
            f"Got {machines!r}."
        )
    place_of = _places(model, found)
    return [_place(machine, place_of, len(found)) for machine in machines]


def _places(model: Any, found: Sequence[StrongFeatures]) -> dict[Any, int]:
    """The places of machines, by name and, if each class has one, by class."""
    places: dict[Any, int] = {machine.machine: k for k, machine in enumerate(found)}
    classes = np.asarray(getattr(model, "classes_", [])).tolist()
    if len(classes) == 2 and len(found) == 1:
        return places | {classes[1]: 0}
    for label in classes:
        for name in (f"{label!r} against the rest", f"{label!r} among all"):
            if name in places:
                places[label] = places[name]
    return places


def _place(machine: Any, place_of: dict[Any, int], n_machines: int) -> int:
    label = machine.item() if isinstance(machine, np.generic) else machine
    if label in place_of:
        return place_of[label]
    is_number = isinstance(label, Integral) and not isinstance(label, bool)
    if is_number and 0 <= label < n_machines:
        return int(label)
    known = [repr(name) for name in place_of]
    shown = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    raise ValueError(
        f"machines has {label!r}, which is neither one of {shown} nor a number from 0 to "
        f"{n_machines - 1}."
    )


# -- drawing -------------------------------------------------------------------------------------


def _panels(ax: Any, n_panels: int, n_bars: int) -> list[Axes]:
    """The given axes, or those of a new figure in a grid."""
    if ax is None:
        n_columns = min(n_panels, math.ceil(math.sqrt(n_panels)))
        panels = new_panels(n_panels, n_columns, (_WIDTH, _FRAME_HEIGHT + _BAR_HEIGHT * n_bars))
    else:
        panels = given_panels(ax)
    if len(panels) != n_panels:
        raise ValueError(
            f"ax must hold one of matplotlib's Axes for each of the {n_panels} machines to draw. "
            f"Got {len(panels)}. Pass as many, or choose with machines=[...]."
        )
    return panels


def _draw(ax: Axes, machine: StrongFeatures) -> None:
    """Bars, the largest on top."""
    weights = [feature.weight for feature in machine.features]
    bars = ax.barh(range(len(weights)), weights, color=[_colour(weight) for weight in weights])
    for bar, weight in zip(bars, weights, strict=True):
        bar.set_gid("positive" if weight > 0 else "negative")
    ax.axvline(0.0, color="black", linewidth=1.0).set_gid("zero")
    # Names come from the user: a dollar sign in them does not start a formula.
    names = [feature.name for feature in machine.features]
    ax.set_yticks(range(len(names)), labels=names, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlabel("weight" if weights else "all weights are zero")
    ax.set_title(machine.machine, fontsize="medium", parse_math=False)


def _colour(weight: float) -> str:
    """The colours of the two sides of a boundary, as in `decision_boundary`."""
    return str(class_style(1 if weight > 0 else 0)["color"])
