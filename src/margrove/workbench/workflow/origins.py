"""What a model file says about how its model was made."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol

from margrove.workbench.visible_text import visible

if TYPE_CHECKING:
    from margrove.workbench.workflow.fitted_models import FittedModel

__all__ = ["digest_of", "provenance"]


class _Source(Protocol):
    """What a task says about itself; a table on a cluster says as much."""

    @property
    def name(self) -> str: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def kind(self) -> Any: ...
    @property
    def target(self) -> str: ...
    @property
    def id_column(self) -> str | None: ...
    @property
    def y(self) -> Any: ...


def digest_of(y: Any) -> str:
    """Tells whether a table is the one that was learnt from, without keeping any of it."""
    return hashlib.sha256("\x1f".join(map(str, y.tolist())).encode()).hexdigest()[:32]


def provenance(fitted: FittedModel, task: _Source, seed: int) -> dict[str, Any]:
    """How a model was made, as plain values; no clock, no folder, no host."""
    return {
        "table": visible(task.name),  # names of files may be no valid text
        "rows": task.n_rows,
        "task": task.kind,
        "target": task.target,
        "id_column": task.id_column,
        "learner": fitted.learner,
        "seed": seed,
        "answers_digest": digest_of(task.y),
        "score": None if fitted.score is None else fitted.score.as_dict(),
    }
