"""HTML and SVG elements with escaped texts.

`tag` is the only place where charts make markup: names of tags and attributes come from the code,
and every text goes through `visible` and `escape`.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from margrove.workbench.report.texts import visible

__all__ = ["Markup", "as_script_data", "joined", "tag"]


class Markup(str):
    """Text that is safe: templates insert it without escaping."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element. Underscores in names of attributes become hyphens; None leaves one out.

    Examples
    --------
    >>> from margrove.workbench.report.markup import tag
    >>> str(tag("text", "a < b", x=1.5, class_="tick", text_anchor=None))
    '<text x="1.5" class="tick">a &lt; b</text>'
    """
    attribute_text = "".join(
        f' {_attribute_name(key)}="{_attribute_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(_child(child) for child in children if child is not None)
    return Markup(
        f"<{name}{attribute_text}>{inner}</{name}>" if inner else f"<{name}{attribute_text}/>"
    )


def joined(parts: Any) -> Markup:
    """Elements one after the other."""
    return Markup("".join(_child(part) for part in parts))


def _attribute_name(key: str) -> str:
    return {"class_": "class", "viewBox": "viewBox"}.get(key, key.rstrip("_").replace("_", "-"))


def _attribute_value(value: Any) -> str:
    if isinstance(value, Markup):
        return str(value)
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return escape(visible(value, most=400), quote=True)


def _child(child: Any) -> str:
    return str(child) if isinstance(child, Markup) else escape(visible(child, most=400))


def as_script_data(value: Any) -> Markup:
    """JSON for a script element, without characters that could end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
