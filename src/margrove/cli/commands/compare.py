"""margrove compare"""

from __future__ import annotations

import click

from margrove.cli.options import LearnerName, seed_option, shows_results, takes_table
from margrove.cli.results import show_columns, show_comparison
from margrove.cli.screen import Screen
from margrove.cli.table_requests import TableRequest

__all__ = ["command"]


@click.command("compare")
@takes_table
@click.option(
    "--learner",
    "learners",
    multiple=True,
    type=LearnerName(),
    help="Compare this one; may be repeated. [default: all]",
)
@click.option(
    "--folds",
    type=click.IntRange(2, 100),
    help="Folds of cross-validation. [default: 5; 3 above 50,000 rows]",
)
@click.option(
    "--test-size",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Share of the rows to test with, instead of cross-validation.",
)
@click.option("--score", help="One of scikit-learn's scores. [default: accuracy, or r2]")
@seed_option
@click.option(
    "--max-time",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds that one fit may take. [default: 30]",
)
@click.option("--jobs", type=int, default=-1, show_default=True, help="Threads; -1 is all cores.")
@shows_results
def command(
    request: TableRequest,
    screen: Screen,
    learners: tuple[str, ...],
    folds: int | None,
    test_size: float | None,
    score: str | None,
    seed: int,
    max_time: float | None,
    jobs: int,
) -> None:
    """Cross-validate the learners on a table and rank them.

    FILE is a CSV, TSV, Parquet or JSON lines file, optionally with .gz or .zst, or - for standard
    input; without one, a built-in data set is used. The preparation that a learner needs (missing
    values, categories, dates, texts, scales) is learnt in each fold again.
    """
    from margrove.workbench.workflow import comparison

    if folds is not None and test_size is not None:
        raise click.UsageError("Give either --folds or --test-size, not both.")
    task = request.read(screen)
    show_columns(task, screen)
    found = comparison.compare_learners(
        task,
        screen,
        learners=learners,
        folds=folds,
        test_size=test_size,
        scoring=score,
        seed=seed,
        max_time=max_time,
        n_jobs=jobs,
        on_interrupt="keep",
    )
    show_comparison(found, screen)
    screen.json(found.as_dict())
