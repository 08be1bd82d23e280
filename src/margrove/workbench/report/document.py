"""The page: templates with autoescaping, and a policy that allows only our style and script.

The content security policy has the hashes of the one style sheet and the one script. If a text
became markup in spite of the escaping, it could still not run, load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import margrove
from margrove.workbench.report.blocks import Section, TreeFigure
from margrove.workbench.report.markup import Markup, as_script_data

__all__ = ["page_of", "require_jinja"]


def require_jinja() -> None:
    """Raise an ImportError that says how to install jinja2, if it is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'A report needs jinja2, which is not installed: pip install "margrove[report]".'
        ) from error


def page_of(title: str, source: str, sections: Sequence[Section]) -> str:
    """The HTML of the page. Title and source are shown as given: make them `visible` before."""
    style, script = _file("report.css"), _file("report.js")
    policy = (
        "default-src 'none'; "
        f"style-src {_hash_of(style)}; script-src {_hash_of(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = _environment()
    block = environment.get_template("blocks.html")
    page = environment.get_template("report.html").render(
        title=title,
        source=source,
        sections=sections,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        data=as_script_data(_data_of(sections)),
        version=margrove.__version__,
        render=lambda section_block: Markup(block.render(block=section_block)),
    )
    return str(page) + "\n"


def _data_of(sections: Sequence[Section]) -> dict[str, Any]:
    """The data of the script: the nodes of trees."""
    trees = {
        block.key: list(block.nodes)
        for section in sections
        for block in section.blocks
        if isinstance(block, TreeFigure)
    }
    return {"trees": trees}


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _file(name: str) -> str:
    return (
        resources.files("margrove.workbench.report")
        .joinpath("pages", name)
        .read_text(encoding="utf-8")
    )


@cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
