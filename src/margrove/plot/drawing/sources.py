"""Where pictures of predictions get their facts: from a model and rows, or as given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["facts_of"]


def facts_of(
    source: Any, kind: type[Any], find: Callable[..., Any], X: Any, y: Any, **settings: Any
) -> Any:
    """`source` if it is facts, else the facts of a model and rows."""
    if isinstance(source, kind):
        if X is not None or y is not None:
            raise ValueError(f"X and y are for a model. {kind.__name__} has its numbers already.")
        return source
    if X is None or y is None:
        raise ValueError(
            f"A model needs X and y, rows that it is judged by. Got {type(source).__name__} alone; "
            f"without them, pass the {kind.__name__} of margrove.facts.{find.__name__}."
        )
    return find(source, X, y, **settings)
