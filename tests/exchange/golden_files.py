"""Golden files: a model of each kind in each version of the format, and what it answers.

`python -m tests.exchange.golden_files` writes those that are missing; none is ever written anew.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding
from tests.exchange.zoo import ZOO, Specimen, answers
from threadpoolctl import threadpool_info

from margrove._files import FORMAT_VERSION, read_archive, write_archive
from margrove.exchange.model_file.files import save

__all__ = ["GOLDEN", "architecture", "few_rows", "golden_answers", "path_of"]

GOLDEN = Path(__file__).parent.parent / "golden"
_FEW = 6


def path_of(name: str, version: int = FORMAT_VERSION) -> Path:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return GOLDEN / f"version-{version}" / f"{slug}.margrove"


def few_rows(specimen: Specimen) -> Any:
    return specimen.X[:_FEW]


def architecture() -> str:
    """The processor, and what computed matrix products: others round otherwise."""
    found = {str(own.get("architecture")) for own in threadpool_info()} - {"None"}
    return " ".join([*sorted(found), binding.get_host_cpu_name()])


def golden_answers(path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """The architecture (in old files without the processor), and what the model answered there."""
    _, values = read_archive(path.with_suffix(".answers"))
    return values["architecture"], values["answers"]


def main() -> None:
    """Write what is missing."""
    for name, specimen in ZOO.items():
        path = path_of(name)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        model, file = specimen.fitted(), io.BytesIO()
        save(model, file)
        path.write_bytes(file.getvalue())
        found = dict(answers(model, few_rows(specimen)))
        write_archive(
            path.with_suffix(".answers"),
            "answers",
            {"architecture": architecture(), "answers": found},
        )


if __name__ == "__main__":
    main()
