"""What has been learnt, as a file, in words and as JSON."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margrove.cli.screen import duration, visible
from margrove.cli.understanding import columns_as_dicts

if TYPE_CHECKING:
    from margrove.cli.clusters import ClusterTask
    from margrove.cli.learning import Learnt
    from margrove.cli.screen import Screen
    from margrove.tables import Task

__all__ = ["about", "digest_of", "learnt_as_dict", "save_learnt", "show_learnt"]


def save_learnt(learnt: Learnt, task: Task | ClusterTask, path: Path, seed: int) -> None:
    """The model, and beside it what a prediction needs to know."""
    from margrove.exchange.model_file.files import save

    save(learnt.model, path, about=about(learnt, task, seed))


def digest_of(y: Any) -> str:
    """Tells whether a table is the one that was learnt from, without keeping any of it."""
    return hashlib.sha256("\x1f".join(map(str, y.tolist())).encode()).hexdigest()[:32]


def about(learnt: Learnt, task: Task | ClusterTask, seed: int) -> dict[str, Any]:
    """What a model file says of how its model was made; no clock, no folder, no host."""
    return {
        "table": visible(task.name),  # names of files may be no valid text
        "rows": task.n_rows,
        "task": task.kind,
        "target": task.target,
        "id_column": task.id_column,
        "learner": learnt.learner,
        "seed": seed,
        "answers_digest": digest_of(task.y),
        "score": None if learnt.score is None else learnt.score.as_dict(),
    }


def show_learnt(learnt: Learnt, path: Path | None, screen: Screen, seed: int) -> None:
    """What was learnt and where it is."""
    for remark in learnt.remarks:
        screen.note(remark)
    if learnt.tuning is not None:
        for sentence in learnt.tuning.explanation:
            screen.say(sentence)
    if learnt.score is not None:
        screen.say(learnt.score.sentence)
    where = "not saved (see --output)" if path is None else f"written to {path}"
    screen.say(
        f"{learnt.learner} after {duration(learnt.seconds)}, seed {seed}: {where}.", style="bold"
    )
    if path is not None:
        screen.note(f"Next: margrove predict {path} NEW_FILE, or margrove explain {path}")


def learnt_as_dict(learnt: Learnt, task: Task, path: Path | None, seed: int) -> dict[str, Any]:
    tuning = learnt.tuning
    return about(learnt, task, seed) | {
        "file": None if path is None else str(path),
        "seconds": learnt.seconds,
        "columns": columns_as_dicts(task),
        "tuned": None if tuning is None else {k: repr(v) for k, v in tuning.parameters.items()},
    }
