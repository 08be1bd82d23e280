"""margrove report"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from margrove.cli.learners import LEARNERS, for_task
from margrove.cli.options import (
    force_option,
    output_option,
    seed_option,
    shows_results,
    takes_table,
)
from margrove.cli.requests import TableRequest, check_output
from margrove.cli.screen import Screen, duration
from margrove.cli.understanding import diagnosis_of, show_columns

__all__ = ["command"]


@click.command("report")
@takes_table
@click.option(
    "--model",
    "model_file",
    type=click.Path(path_type=Path),
    help="Report on this model file, with FILE as rows to test it with.",
)
@click.option(
    "--learner",
    type=click.Choice(list(LEARNERS)),
    help="Report on this learner. [default: whatever wins the comparison]",
)
@click.option(
    "--compare/--no-compare",
    default=True,
    show_default=True,
    help="Compare all learners, even if --learner names one.",
)
@click.option("--tune/--no-tune", default=True, show_default=True, help="Tune the chosen learner.")
@click.option(
    "--calibrate",
    is_flag=True,
    help="Learn probabilities of classes, also for machines; takes six times as long.",
)
@click.option(
    "--test-size",
    default=0.25,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    show_default=True,
    help="Share of the rows that the chosen model is tested with.",
)
@click.option(
    "--max-time",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds that one fit may take. [default: 30]",
)
@click.option("--jobs", type=int, default=-1, show_default=True, help="Threads; -1 is all cores.")
@output_option("[default: named after FILE, .html]")
@force_option
@seed_option
@shows_results
def command(
    request: TableRequest,
    screen: Screen,
    model_file: Path | None,
    learner: str | None,
    compare: bool,
    tune: bool,
    calibrate: bool,
    test_size: float,
    max_time: float | None,
    jobs: int,
    output: Path | None,
    force: bool,
    seed: int,
) -> None:
    """Compare, choose, tune and test, and write all of it up as one HTML file.

    The file holds everything, asks nothing of the network, and can be read without JavaScript.
    """
    path = output or Path(f"{request.stem}.html")
    check_output(path, force=force, inputs=(request.file, model_file))
    if model_file is not None:
        if calibrate:
            raise click.UsageError("--calibrate is for learning; --model has learnt already.")
        found = _of_model(request, model_file, screen)
    else:
        wishes = _Wishes(learner, compare, tune, calibrate, test_size, max_time, jobs, seed, output)
        found = _of_table(request, screen, wishes)
    found.save(path, overwrite=force)
    if screen.quiet:
        screen.say(str(path))
    else:
        screen.say(f"Written to {path}. It opens in any browser.", style="bold")
    screen.json({"file": str(path), "bytes": path.stat().st_size})


@dataclass(frozen=True)
class _Wishes:
    """How a model is to be made, as the options say it."""

    learner: str | None
    compare: bool
    tune: bool
    calibrate: bool
    test_size: float
    max_time: float | None
    jobs: int
    seed: int
    output: Path | None

    def words(self, learner: str) -> list[str]:
        """Options that ask for the same, of the learner that was chosen."""
        words = ["--learner", learner]
        words += [] if self.compare or self.learner is None else ["--no-compare"]
        words += [] if self.tune else ["--no-tune"]
        words += ["--calibrate"] if self.calibrate else []
        words += ["--seed", str(self.seed), "--test-size", str(self.test_size)]
        words += [] if self.max_time is None else ["--max-time", str(self.max_time)]
        return words + ([] if self.output is None else ["-o", str(self.output)])


def _of_table(request: TableRequest, screen: Screen, wishes: _Wishes) -> Any:
    from margrove.cli.first_run import compile_learners
    from margrove.cli.learning import learn, tuning_folds
    from margrove.cli.trials import held_out, part_of, run_trial, show_trial
    from margrove.workbench.report import report

    task = request.read(screen)
    show_columns(task, screen)
    seed, jobs, max_time = wishes.seed, wishes.jobs, wishes.max_time
    compile_learners(task, for_task(task.kind), screen, jobs)
    diagnosis = diagnosis_of(task)
    n_found = len(diagnosis.findings)
    screen.note(f"The doctor has {n_found} finding{'' if n_found == 1 else 's'}.")
    train = held_out(task, wishes.test_size, seed)[0]  # the other rows have no part in any choice
    names = () if wishes.compare or wishes.learner is None else (wishes.learner,)
    trial = run_trial(
        part_of(task, train), screen, learners=names, seed=seed, max_time=max_time, n_jobs=jobs
    )
    if not screen.quiet:
        show_trial(trial, screen)
    chosen = wishes.learner or trial.winner
    tune = wishes.tune
    if tune and tuning_folds(task, train) < 2:
        screen.note("Not tuned: some class has too few rows to learn from and to choose by.")
        tune = False
    learnt = learn(
        task, chosen, screen, tune=tune, calibrate=wishes.calibrate, test_size=wishes.test_size,
        seed=seed, max_time=max_time, n_jobs=jobs, refit=False,
    )  # fmt: skip
    if learnt.score is not None and not screen.quiet:
        screen.say(learnt.score.sentence)
    screen.note(f"{chosen} was learnt and tested in {duration(learnt.seconds)}; writing.")
    return report(
        learnt.tested,
        task.X[learnt.train],
        task.y[learnt.train],
        X_test=task.X[learnt.test],
        y_test=task.y[learnt.test],
        test_rows=learnt.test,
        comparison=trial.comparison,
        diagnosis=diagnosis,
        tuning=learnt.tuning,
        title=f"{task.target} of {task.name}",
        source=task.name,
        seed=seed,
        recipe=_recipe(request, task, wishes, chosen),
    )


def _of_model(request: TableRequest, model_file: Path, screen: Screen) -> Any:
    from margrove.cli.keeping import digest_of
    from margrove.cli.models import open_model
    from margrove.tables import task_of_table
    from margrove.workbench.report import report

    opened = open_model(model_file, screen)
    target = request.target or opened.target
    raw = request.raw(screen, opened.types)
    known_id = opened.id_column if opened.id_column in raw.frame.columns else None
    task = task_of_table(
        raw,
        target,
        task=opened.task,
        types=request.types,
        ignore=request.ignore,
        id_column=request.id_column or known_id,
    )
    is_known = opened.about.get("answers_digest") == digest_of(task.y)
    if is_known:
        screen.note(f"{model_file.name} has learnt from these rows: what it says of them flatters.")
    unseen = {} if is_known else {"X_test": task.X, "y_test": task.y}
    return report(
        opened.model,
        task.X,
        task.y,
        **unseen,
        diagnosis=diagnosis_of(task),
        title=f"{model_file.name} on {task.name}",
        source=task.name,
    )


def _recipe(request: TableRequest, task: Any, wishes: _Wishes, learner: str) -> dict[str, Any]:
    """The command that does the same; files are as they were typed, and all names are quoted."""
    words = ["margrove", "report"]
    words += [str(request.file)] if request.file is not None else ["--data", request.name]
    words += ["--target", task.target, "--task", task.kind]
    for name in request.ignore:
        words += ["--ignore", name]
    for name, kind in request.types.items():
        words += ["--type", f"{name}={kind}"]
    if task.id_column is not None:
        words += ["--id", task.id_column]
    return {
        "command": shlex.join(words + wishes.words(learner)),
        "target": task.target,
        "task": task.kind,
        "seed": wishes.seed,
        "test-size": wishes.test_size,
    }
