"""`Picture`, which every drawing function returns: axes and data; and where the data come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove._data import data_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Picture", "drawn", "facts_of", "grid_table", "table"]


@dataclass(frozen=True, eq=False, repr=False)
class Picture:
    """A drawing: its axes, and the data that they show.

    It is a sequence of its panels. A picture with one panel also has all attributes of its axes, so
    that `picture.set_title("...")` and `picture.get_xlabel()` work as for axes. For functions of
    matplotlib that take axes, pass `picture.ax`. The functions of `margrove.plot` take pictures
    where they take axes.

    Attributes
    ----------
    axes : tuple of matplotlib Axes
        The panels.
    data : object with `frame()`, or mapping of columns
        The data that are drawn, mostly the result of a function of `margrove.facts`.

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
        """The axes; the first ones if there are several panels."""
        return self.axes[0]

    @property
    def figure(self) -> Any:
        """The figure of the axes."""
        return self.axes[0].figure

    def frame(self) -> Any:
        """The data that are drawn.

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
        # Called for names that are not fields; while a copy is made, there are no fields yet.
        if name.startswith("__") or "axes" not in self.__dict__:
            raise AttributeError(name)
        if len(self.axes) != 1:
            raise AttributeError(
                f"A picture of {len(self.axes)} panels has no {name!r}. Use one of them, such as "
                f"picture.axes[0].{name}."
            )
        return getattr(self.axes[0], name)

    def __repr__(self) -> str:
        panels = "1 panel" if len(self.axes) == 1 else f"{len(self.axes)} panels"
        return f"<Picture of {panels}; .axes to continue drawing, .frame() for the data>"


def drawn(axes: Axes | Sequence[Axes], data: Any) -> Picture:
    """The picture on one or several axes."""
    panels = tuple(axes) if isinstance(axes, (Sequence, np.ndarray)) else (axes,)
    return Picture(panels, data)


def table(**columns: Any) -> dict[str, Any]:
    """A table of columns; those that are None are left out, short ones are filled with NaN."""
    given = {name: values for name, values in columns.items() if values is not None}
    length = max((len(values) for values in given.values()), default=0)
    return {name: _filled(values, length) for name, values in given.items()}


def grid_table(x: np.ndarray, y: np.ndarray, **surfaces: Any) -> dict[str, np.ndarray]:
    """Surfaces of shape (len(y), len(x)) over a grid as a table with a row for each point."""
    places = {"x": np.tile(x, len(y)), "y": np.repeat(y, len(x))}
    return places | {name: np.ravel(values) for name, values in surfaces.items()}


def _filled(values: Any, length: int) -> Any:
    if len(values) == length:
        return values
    return np.concatenate([np.asarray(values, np.float64), np.full(length - len(values), np.nan)])


def facts_of(
    source: Any, kind: type[Any], find: Callable[..., Any], X: Any, y: Any, **settings: Any
) -> Any:
    """`source` if it is of the type `kind`, else find(source, X, y): the facts of a model."""
    if isinstance(source, kind):
        if X is not None or y is not None:
            raise ValueError(f"X and y are for a model. {kind.__name__} has its data already.")
        return source
    if X is None or y is None:
        raise ValueError(
            f"A model needs X and y, the rows to predict. Got only {type(source).__name__}. Pass "
            f"them, or the {kind.__name__} of margrove.facts.{find.__name__}."
        )
    return find(source, X, y, **settings)
