"""margrove report"""

from __future__ import annotations

import shlex
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
from margrove.cli.understanding import show_columns

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
        found = _of_model(request, model_file, screen)
    else:
        found = _of_table(request, screen, learner, compare, tune, test_size, max_time, jobs, seed)
    found.save(path, overwrite=force)
    screen.say(f"Written to {path}. It opens in any browser.", style="bold")
    screen.json({"file": str(path), "bytes": path.stat().st_size})


def _of_table(
    request: TableRequest,
    screen: Screen,
    learner: str | None,
    compare: bool,
    tune: bool,
    test_size: float,
    max_time: float | None,
    jobs: int,
    seed: int,
) -> Any:
    from margrove.cli.first_run import compile_learners
    from margrove.cli.learning import learn, tuning_folds
    from margrove.cli.trials import held_out, part_of, run_trial, show_trial
    from margrove.health.doctor import doctor
    from margrove.reports import report

    task = request.read(screen)
    show_columns(task, screen)
    compile_learners(task, for_task(task.kind), screen, jobs)
    diagnosis = doctor(task.X, task.y, task=task.kind, estimate=False)
    n_found = len(diagnosis.findings)
    screen.note(f"The doctor has {n_found} finding{'' if n_found == 1 else 's'}.")
    train = held_out(task, test_size, seed)[0]  # the other rows have no part in any choice
    names = () if compare or learner is None else (learner,)
    trial = run_trial(
        part_of(task, train), screen, learners=names, seed=seed, max_time=max_time, n_jobs=jobs
    )
    show_trial(trial, screen)
    chosen = learner or trial.winner
    if tune and tuning_folds(task, train) < 2:
        screen.note("Not tuned: some class has too few rows to learn from and to choose by.")
        tune = False
    learnt = learn(
        task, chosen, screen, tune=tune, test_size=test_size, seed=seed, max_time=max_time,
        n_jobs=jobs,
    )  # fmt: skip
    if learnt.score is not None:
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
        recipe=_recipe(request, task, chosen, {"seed": seed, "test-size": test_size}),
    )


def _of_model(request: TableRequest, model_file: Path, screen: Screen) -> Any:
    from margrove.cli.keeping import digest_of
    from margrove.cli.models import open_model
    from margrove.health.doctor import doctor
    from margrove.reports import report
    from margrove.tables import task_of_table

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
        diagnosis=doctor(task.X, task.y, task=opened.task, estimate=False),
        title=f"{model_file.name} on {task.name}",
        source=task.name,
    )


def _recipe(
    request: TableRequest, task: Any, learner: str, options: dict[str, Any]
) -> dict[str, Any]:
    """The command that does the same; names of the user's are quoted."""
    words = ["margrove", "report"]
    words += [request.file.name] if request.file is not None else ["--data", request.name]
    words += ["--target", task.target, "--task", task.kind, "--learner", learner]
    for name in request.ignore:
        words += ["--ignore", name]
    for name, kind in request.types.items():
        words += ["--type", f"{name}={kind}"]
    if task.id_column is not None:
        words += ["--id", task.id_column]
    for name, value in options.items():
        words += [f"--{name}", str(value)]
    return {"command": shlex.join(words), "target": task.target, "task": task.kind} | options
