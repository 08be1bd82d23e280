"""Data sets as a Bunch, a pair, or dataframes of any library."""

from __future__ import annotations

from importlib.util import find_spec
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

__all__ = ["AsFrame", "as_bunch", "require_samples"]

AsFrame = bool | Literal["pandas", "polars", "pyarrow"]


def require_samples(n_samples: Any, least: int) -> None:
    """Raise unless n_samples is a whole number, at least `least`."""
    if not isinstance(n_samples, Integral) or n_samples < least:
        raise ValueError(
            f"n_samples must be a whole number, at least {least}. Got {n_samples!r} instead."
        )


def as_bunch(
    data: np.ndarray,
    target: np.ndarray,
    *,
    feature_names: list[str],
    description: str,
    return_X_y: bool = False,
    as_frame: AsFrame = False,
    **facts: Any,
) -> Any:
    """A Bunch of data, target, names, description and `facts`; or the pair (data, target)."""
    frame = None
    if as_frame:
        backend = _backend(as_frame)
        columns = {name: data[:, j].tolist() for j, name in enumerate(feature_names)}
        frame = _frame(columns | {"target": target.tolist()}, backend)
        data_out, target_out = _frame(columns, backend), _series(target.tolist(), backend)
    else:
        data_out, target_out = data, target
    if return_X_y:
        return data_out, target_out
    return Bunch(
        data=data_out,
        target=target_out,
        frame=frame,
        feature_names=feature_names,
        DESCR=description,
        **facts,
    )


def _backend(as_frame: AsFrame) -> str:
    known = ["pandas", "polars", "pyarrow"]
    if isinstance(as_frame, str):
        if as_frame not in known:
            raise ValueError(
                f"as_frame must be a bool or one of {known}. Got {as_frame!r} instead."
            )
        return as_frame
    for name in known:
        if find_spec(name) is not None:
            return name
    raise ImportError(
        "as_frame=True needs a dataframe library: pip install polars (or pandas, or pyarrow)."
    )


def _frame(columns: dict[str, list[Any]], backend: Any) -> Any:
    import narwhals.stable.v2 as nw

    return nw.from_dict(columns, backend=backend).to_native()


def _series(values: list[Any], backend: Any) -> Any:
    import narwhals.stable.v2 as nw

    return nw.new_series(name="target", values=values, backend=backend).to_native()
