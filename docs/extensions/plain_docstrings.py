"""Docstrings are plain text first: a name that ends in an underscore is no link, |f(x)| no macro.

numpydoc hands reStructuredText on, in which `n_estimators_` outside of quotes would be a reference
and |x| a substitution. Examples and literal blocks stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["escaped", "setup"]

_QUOTED = re.compile(r"(`[^`]*`)")
_REFERENCE = re.compile(r"(?<![\w\\:*])([A-Za-z]\w*)_(?![\w*_])")
_AFTER_NUMPYDOC = 900


def escaped(lines: list[str]) -> list[str]:
    """The same lines, with what only looks like markup escaped."""
    found, is_example, literal_indent = [], False, None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        is_example = bool(line.strip()) and (is_example or line.lstrip().startswith(">>>"))
        if literal_indent is not None and line.strip() and indent <= literal_indent:
            literal_indent = None
        is_kept = is_example or literal_indent is not None or line.lstrip().startswith((".. ", "|"))
        found.append(line if is_kept else _escaped_text(line))
        if literal_indent is None and line.rstrip().endswith("::"):
            literal_indent = indent
    return found


def _escaped_text(line: str) -> str:
    parts = _QUOTED.split(line)
    return "".join(
        part if part.startswith("`") else _REFERENCE.sub(r"\1\\_", part).replace("|", r"\|")
        for part in parts
    )


def _escape(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = escaped(lines)


def setup(app: Any) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _escape, priority=_AFTER_NUMPYDOC)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
