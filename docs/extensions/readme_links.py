"""Links of the README, which is part of the first page, lead to pages of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["setup"]

_PAGES = {
    "(benchmarks/RESULTS.md)": "(benchmarks.md)",
    "(CHANGELOG.md)": "(changelog.md)",
    "(docs/": "(",
}


def _lead_to_pages(app: Any, path: Path, parent: str, content: list[str]) -> None:
    if Path(path).name == "README.md":
        for there, here in _PAGES.items():
            content[0] = content[0].replace(there, here)


def setup(app: Any) -> dict[str, Any]:
    app.connect("include-read", _lead_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
