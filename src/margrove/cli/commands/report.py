"""margrove report"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from margrove.cli.options import (
    LearnerName,
    force_option,
    output_option,
    seed_option,
    shows_results,
    takes_table,
)
from margrove.cli.output_files import check_output
from margrove.cli.results import show_columns
from margrove.cli.screen import Screen, duration
from margrove.cli.table_requests import TableRequest

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
    type=LearnerName(),
    help="Report on this learner. [default: the winner of the comparison]",
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
    help="Calibrate probabilities of classes, also for machines; takes six times as long.",
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
    """Compare, choose, tune and test, and write a report as one HTML file.

    The file is complete: it loads nothing from the network and can be read without JavaScript.
    """
    path = output or Path(f"{request.stem}.html")
    check_output(path, force=force, inputs=(request.file, model_file))
    if model_file is not None:
        if calibrate:
            raise click.UsageError(
                "--calibrate cannot be used with --model, which is fitted already."
            )
        found = _of_model(request, model_file, screen)
    else:
        options = _Options(
            learner, compare, tune, calibrate, test_size, max_time, jobs, seed, output
        )
        found = _of_table(request, screen, options)
    found.save(path, overwrite=force)
    if screen.quiet:
        screen.say(str(path))
    else:
        screen.say(f"Written to {path}. It opens in any browser.", style="bold")
    screen.json({"file": str(path), "bytes": path.stat().st_size})


@dataclass(frozen=True)
class _Options:
    """The options of the fit."""

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
        """The same options as words of a command, with the chosen learner."""
        words = ["--learner", learner]
        words += [] if self.compare or self.learner is None else ["--no-compare"]
        words += [] if self.tune else ["--no-tune"]
        words += ["--calibrate"] if self.calibrate else []
        words += ["--seed", str(self.seed), "--test-size", str(self.test_size)]
        words += [] if self.max_time is None else ["--max-time", str(self.max_time)]
        return words + ([] if self.output is None else ["-o", str(self.output)])


def _of_table(request: TableRequest, screen: Screen, options: _Options) -> Any:
    from margrove.workbench.report import report
    from margrove.workbench.workflow import Plan, diagnosis_of, run_workflow

    task = request.read(screen)
    show_columns(task, screen)
    diagnosis = diagnosis_of(task)
    n_found = len(diagnosis.findings)
    screen.note(f"The doctor has {n_found} finding{'' if n_found == 1 else 's'}.")
    plan = Plan(
        learner=options.learner,
        compare="all" if options.compare else "named",
        tune="if possible" if options.tune else "no",
        calibrate=options.calibrate,
        test_size=options.test_size,
        seed=options.seed,
        max_time=options.max_time,
        n_jobs=options.jobs,
        refit=False,
        on_interrupt="keep",
    )
    outcome = run_workflow(task, plan, screen)
    fitted = outcome.fitted
    if fitted.score is not None and not screen.quiet:
        screen.say(fitted.score.sentence)
    took = duration(fitted.seconds)
    screen.note(f"{fitted.learner} was fitted and tested in {took}; writing the report.")
    return report(
        fitted.tested,
        task.X[outcome.rows.train],
        task.y[outcome.rows.train],
        X_test=task.X[outcome.rows.test],
        y_test=task.y[outcome.rows.test],
        test_rows=outcome.rows.test,
        comparison=None if outcome.comparison is None else outcome.comparison.comparison,
        diagnosis=diagnosis,
        tuning=fitted.tuning,
        title=f"{task.target} of {task.name}",
        source=task.name,
        seed=options.seed,
        recipe=_recipe(request, task, options, fitted.learner),
    )


def _of_model(request: TableRequest, model_file: Path, screen: Screen) -> Any:
    from margrove.cli.models import open_model
    from margrove.tables import task_of_table
    from margrove.workbench.report import report
    from margrove.workbench.workflow import diagnosis_of, digest_of

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
        screen.note(f"{model_file.name} was trained on these rows: scores on them are too good.")
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


def _recipe(request: TableRequest, task: Any, options: _Options, learner: str) -> dict[str, Any]:
    """The command that does the same, with names quoted, and settings for the report."""
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
        "command": shlex.join(words + options.words(learner)),
        "target": task.target,
        "task": task.kind,
        "seed": options.seed,
        "test-size": options.test_size,
    }
