"""Results as tables of pandas, which is imported when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["data_frame"]


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas.DataFrame, or an error that says how to get pandas."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            "frame() needs pandas, which is not installed: pip install pandas."
        ) from error
    return pd.DataFrame(dict(columns))
