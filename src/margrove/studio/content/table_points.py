"""A scene from a table: two of its columns, or two principal components of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.studio.content.checks import LARGEST_SEED, StudioError, brief, checked_whole
from margrove.studio.content.presets import view_of
from margrove.studio.content.scenes import MAX_CLASSES, MAX_POINTS, scene_from
from margrove.studio.content.user_tables import as_studio_errors, table_task

__all__ = ["scene_of_table"]

_LEARNER = {"classification": "RandomForestClassifier", "regression": "RandomForestRegressor"}
_REST: dict[str, Any] = {"version": 1, "testShare": 0.25, "seed": 0, "parameters": {}}
_UNEQUAL = 20.0  # ratio of two standard deviations from which both columns are scaled
_LARGE = 1e6
_LONGEST = 60  # characters of a column's name in the name of an axis
_FEW_LABELS, _LONGEST_LABEL = 4, 12


def scene_of_table(
    job: Any, table: Any, target: Any, features: Any, rows: Any, seed: Any
) -> dict[str, Any]:
    """A `Scene` of the protocol from a table, with a forest as its learner.

    Parameters
    ----------
    job : Job
    table, target : str
    features : pair of str or None
        Columns to draw; None draws the first two principal components of the prepared table. In
        regression only the first is drawn, and the target over it.
    rows : int
        The number of rows, which are drawn at random.
    seed : int
    """
    task = table_task(job, table, target)
    n = checked_whole(rows, "rows", 1, MAX_POINTS)
    rng = np.random.default_rng(checked_whole(seed, "seed", 0, LARGEST_SEED))
    chosen = np.sort(rng.permutation(task.n_rows)[:n])
    X, y = task.X[chosen], task.y[chosen]
    n_axes = 2 if task.kind == "classification" else 1
    if features is None:
        x, names = _components(X, task.types, n_axes)
    else:
        x, names = _drawn_columns(X, _pair(features, task)[:n_axes])
    kept = np.isfinite(x).all(axis=1)
    x, y = x[kept], y[kept]
    if not len(x):
        raise StudioError("No row has values in both of these columns. Choose other columns.")
    second = "" if n_axes == 1 else names[1]
    scene: dict[str, Any] = {"task": task.kind, "features": [names[0], second]}
    if task.kind == "classification":
        codes, classes = _classes(y)
        scene |= {"y": codes.tolist(), "classes": classes, "view": view_of(x).as_dict()}
        scene["target"] = task.target
    else:
        values, name = _moderate(np.asarray(y, dtype=np.float64), task.target)
        scene |= {"y": values.tolist(), "classes": [], "view": view_of(x, values).as_dict()}
        scene["target"] = name
        scene["features"][1] = name
    return scene_from(
        scene | {"x": x.tolist()} | _REST | {"learner": _LEARNER[task.kind]}
    ).as_dict()


# -- coordinates -----------------------------------------------------------------------------------


def _pair(features: Any, task: Any) -> list[str]:
    is_pair = isinstance(features, (list, tuple)) and len(features) == 2
    if not is_pair or not all(isinstance(name, str) for name in features):
        raise StudioError("features must be the names of two columns.")
    for name in features:
        if name not in task.X.columns:
            known = [column for column in task.X.columns if column != name][:10]
            raise StudioError(
                f"There is no feature {brief(name)}. There are {', '.join(map(ascii, known))}."
            )
    return list(features)


def _drawn_columns(X: Any, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Coordinates, and the names of the axes, which say what numbers stand for labels."""
    read = [_numbers(X[[name]], name) for name in names]
    x = np.column_stack([values for values, _, _ in read])
    axis_names = [axis_name for _, axis_name, _ in read]
    if any(is_label for _, _, is_label in read):
        return x, axis_names
    return _comparable(x, axis_names)


def _numbers(column: Any, name: str) -> tuple[np.ndarray, str, bool]:
    """Values of a column as numbers, the name of its axis, and whether it holds labels.

    Dates become years. Labels become numbers in the order of their names, -1 if missing.
    """
    from margrove._data import DateCells, LabelCells
    from margrove.workbench.tables.prepare import frame_columns, typed_columns

    cells = typed_columns(frame_columns(column).cells)[0].cells
    if cells.is_missing.all():
        return np.zeros(len(cells)), name, False
    if isinstance(cells, LabelCells):
        order = np.argsort(np.argsort(np.array(cells.labels, dtype=str), kind="stable"))
        codes = np.where(cells.is_missing, -1.0, order[np.maximum(cells.codes, 0)].astype(float))
        return codes, _with_labels(name, sorted(cells.labels), bool(cells.is_missing.any())), True
    if isinstance(cells, DateCells):
        days = cells.values.astype("datetime64[D]").astype(np.float64)
        return np.where(cells.is_missing, np.nan, 1970.0 + days / 365.25), name, False
    values = np.asarray(cells.values, dtype=np.float64)
    known = values[np.isfinite(values)]
    median = float(np.median(known)) if len(known) else 0.0
    filled = f"{name[:_LONGEST]} (missing: the median)" if np.isnan(values).any() else name
    return np.where(np.isnan(values), median, values), filled, False


def _with_labels(name: str, labels: list[str], has_gaps: bool) -> str:
    """The name of an axis of labels; it lists the labels if they are few."""
    if len(labels) <= _FEW_LABELS:
        described = ", ".join(f"{k} {label[:_LONGEST_LABEL]}" for k, label in enumerate(labels))
    else:
        described = f"{len(labels)} labels in the order of their names"
    return f"{name[:_LONGEST]} ({described}{', -1 missing' if has_gaps else ''})"


def _components(X: Any, types: dict[str, str], n_axes: int) -> tuple[np.ndarray, list[str]]:
    """The first principal components of the prepared rows, and their names."""
    from margrove.tables import TablePreparation

    with as_studio_errors():
        prepared = TablePreparation("numbers", types=types, max_words=300).fit_transform(X)
    rows = prepared.toarray() if sp.issparse(prepared) else np.asarray(prepared, dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    order = np.argsort(-values)[:n_axes]
    total = float(values.sum()) or 1.0
    along = vectors[:, order]
    along = along * np.where(along[np.argmax(np.abs(along), axis=0), range(len(order))] < 0, -1, 1)
    x = rows @ along
    names = [
        f"component {k + 1} ({max(values[axis], 0.0) / total:.0%} of the variance)"
        for k, axis in enumerate(order.tolist())
    ]
    if x.shape[1] < n_axes:  # a table of one column
        x = np.column_stack([x, np.zeros(len(x))])
        names.append("no second component")
    return x, names


def _comparable(x: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Columns of similar size: large numbers in other units, very unequal spreads standardised."""
    moderate = [_moderate(x[:, k], name) for k, name in enumerate(names)]
    x = np.column_stack([values for values, _ in moderate])
    names = [name for _, name in moderate]
    with np.errstate(invalid="ignore"):
        spreads = np.nanstd(np.where(np.isfinite(x), x, np.nan), axis=0)
    if len(names) < 2 or not (spreads > 0).all() or spreads.max() <= _UNEQUAL * spreads.min():
        return x, names
    means = np.nanmean(np.where(np.isfinite(x), x, np.nan), axis=0)
    return (x - means) / spreads, [f"{name[:_LONGEST]} (scaled)" for name in names]


def _moderate(values: np.ndarray, name: str) -> tuple[np.ndarray, str]:
    """Large numbers divided by a power of ten, and the name with the divisor."""
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max(initial=0.0))
    if largest <= _LARGE:
        return values, name
    power = 3 * int(np.log10(largest) // 3)
    return values / 10.0**power, f"{name[:_LONGEST]} / 1e{power}"


# -- classes ---------------------------------------------------------------------------------------


def _classes(y: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Class codes and names; of many classes, the most frequent ones and all others together."""
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    names = [str(label) for label in labels.tolist()]
    if len(labels) <= MAX_CLASSES:
        return codes, names
    frequent = np.sort(np.argsort(-counts, kind="stable")[: MAX_CLASSES - 1])
    number_of = np.full(len(labels), MAX_CLASSES - 1)
    number_of[frequent] = np.arange(len(frequent))
    kept = [names[label] for label in frequent.tolist()]
    other = "other" if "other" not in kept else "all other classes"
    return number_of[codes], [*kept, other]
