"""The table of losses on the page of gradient boosting is the registry of losses."""

from __future__ import annotations

from typing import Any

__all__ = ["MARK", "setup", "with_table"]

MARK = "<!-- table of losses -->"


def with_table(text: str) -> str:
    """The text of a page, with the table in the place of its mark."""
    from margrove.ensemble.gradient.losses import loss_table

    return text.replace(MARK, loss_table())


def _fill_in(app: Any, name: str, content: list[str]) -> None:
    if MARK in content[0]:
        content[0] = with_table(content[0])


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", _fill_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
