"""`Picture`, which every drawing function returns: the axes and the data drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove._data import data_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Picture", "drawn", "grid_table", "table"]


@dataclass(frozen=True, eq=False, repr=False)
class Picture:
    """A drawing: its axes, and as a table what they show.

    It is a sequence of its panels. A picture with one panel also has all that its axes have, so
    that `picture.set_title("...")` and `picture.get_xlabel()` do what they do for axes; where
    matplotlib itself wants axes, pass `picture.ax`. The functions of `margrove.plot` take pictures
    where they take axes.

    Attributes
    ----------
    axes : tuple of matplotlib Axes
        The panels.
    data : object with `frame()`, or mapping of columns
        What is drawn: mostly what a function of `margrove.facts` has returned.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> picture = margrove.plot.impurity_curves(ax=Figure().subplots())
    >>> picture.ax.get_ylabel(), len(picture)
    ('impurity', 1)
    >>> picture.frame().columns.tolist()
    ['share', 'gini', 'entropy', 'error']
    """

    axes: tuple[Axes, ...]
    data: Any

    @property
    def ax(self) -> Axes:
        """The axes; of several panels, the first."""
        return self.axes[0]

    @property
    def figure(self) -> Any:
        """The figure of the axes."""
        return self.axes[0].figure

    def frame(self) -> Any:
        """What is drawn, as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
        """
        return data_frame(self.data) if isinstance(self.data, Mapping) else self.data.frame()

    def __len__(self) -> int:
        return len(self.axes)

    def __iter__(self) -> Iterator[Axes]:
        return iter(self.axes)

    def __getitem__(self, place: Any) -> Any:
        return self.axes[place]

    def __getattr__(self, name: str) -> Any:
        # Asked for what is no field; while a copy is being made, there are no fields at all.
        if name.startswith("__") or "axes" not in self.__dict__:
            raise AttributeError(name)
        if len(self.axes) != 1:
            raise AttributeError(
                f"A picture has no {name!r}, and this one has {len(self.axes)} panels, which may "
                f"have: take one, such as picture.axes[0].{name}."
            )
        return getattr(self.axes[0], name)

    def __repr__(self) -> str:
        panels = "1 panel" if len(self.axes) == 1 else f"{len(self.axes)} panels"
        return f"<Picture of {panels}; .axes to go on drawing, .frame() for the data>"


def drawn(axes: Axes | Sequence[Axes], data: Any) -> Picture:
    """The picture on these axes, or on the only ones."""
    panels = tuple(axes) if isinstance(axes, (Sequence, np.ndarray)) else (axes,)
    return Picture(panels, data)


def table(**columns: Any) -> dict[str, Any]:
    """Columns of a table: without those that are None; short ones end in NaN."""
    given = {name: values for name, values in columns.items() if values is not None}
    length = max((len(values) for values in given.values()), default=0)
    return {name: _filled(values, length) for name, values in given.items()}


def grid_table(x: np.ndarray, y: np.ndarray, **surfaces: Any) -> dict[str, np.ndarray]:
    """Surfaces of shape (len(y), len(x)) over a grid, a row for each of its points."""
    places = {"x": np.tile(x, len(y)), "y": np.repeat(y, len(x))}
    return places | {name: np.ravel(values) for name, values in surfaces.items()}


def _filled(values: Any, length: int) -> Any:
    if len(values) == length:
        return values
    return np.concatenate([np.asarray(values, np.float64), np.full(length - len(values), np.nan)])
