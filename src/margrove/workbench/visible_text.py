"""Text from files as one line without invisible characters."""

from __future__ import annotations

import unicodedata
from typing import Any

__all__ = ["visible"]


def visible(text: Any) -> str:
    """The text as one line, with invisible and direction-changing characters escaped."""
    line = " ".join(str(text).split())
    return "".join(c if _is_visible(c) else ascii(c)[1:-1] for c in line)


def _is_visible(character: str) -> bool:
    """Whether it is neither a control character nor one that changes the text direction."""
    return character.isprintable() and unicodedata.category(character) not in ("Cf", "Zl", "Zp")
