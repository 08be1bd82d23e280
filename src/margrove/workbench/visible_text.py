"""Text of other people's files in one harmless line."""

from __future__ import annotations

import unicodedata
from typing import Any

__all__ = ["visible"]


def visible(text: Any) -> str:
    """One line in which what cannot be seen, or would change what is seen, is spelt out."""
    line = " ".join(str(text).split())
    return "".join(c if _is_harmless(c) else ascii(c)[1:-1] for c in line)


def _is_harmless(character: str) -> bool:
    """Not control characters, nor those that turn the direction of what follows."""
    return character.isprintable() and unicodedata.category(character) not in ("Cf", "Zl", "Zp")
