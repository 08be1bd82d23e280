"""margrove fit"""

from __future__ import annotations

from pathlib import Path

import click

from margrove.cli.options import (
    LearnerName,
    force_option,
    learner_options,
    output_option,
    parsed_parameters,
    seed_option,
    shows_results,
    takes_table,
)
from margrove.cli.output_files import check_output
from margrove.cli.results import fitted_as_dict, save_fitted, show_columns, show_fitted
from margrove.cli.screen import Screen
from margrove.cli.table_requests import TableRequest

__all__ = ["command"]


@click.command("fit")
@takes_table
@click.option(
    "--learner",
    type=LearnerName(),
    help="The learner. [default: the winner of a comparison]",
)
@click.option("--tune", is_flag=True, help="Tune the most important parameters.")
@click.option(
    "--calibrate",
    is_flag=True,
    help="Calibrate probabilities of classes, also for machines; takes six times as long.",
)
@learner_options
@click.option(
    "--test-size",
    default=0.2,
    type=click.FloatRange(0, 1, max_open=True),
    show_default=True,
    help="Share of the rows to test with; the saved model is then fitted to all rows.",
)
@click.option(
    "--cluster",
    metavar="local[:WORKERS]|ADDRESS",
    help="Fit on a Dask cluster; FILE is then a Parquet or CSV file, or a quoted pattern.",
)
@output_option("Model file. [default: named after FILE, .margrove]")
@force_option
@seed_option
@shows_results
def command(
    request: TableRequest,
    screen: Screen,
    learner: str | None,
    tune: bool,
    calibrate: bool,
    parameters: tuple[str, ...],
    max_time: float | None,
    jobs: int,
    test_size: float,
    cluster: str | None,
    output: Path | None,
    force: bool,
    seed: int,
) -> None:
    """Fit a model to a table, measure how good it is, and save it.

    The model file contains the preparation of raw tables: `margrove predict` reads tables with the
    same columns, in any order.
    """
    from margrove.workbench.workflow import plan as plans

    if cluster is not None:
        if tune or calibrate:
            raise click.UsageError("--tune and --calibrate are not for clusters. Leave them out.")
        _fit_on_cluster(request, screen, cluster, learner, parameters, max_time, test_size,
                        output, force, seed)  # fmt: skip
        return
    path = output or Path(f"{request.stem}.margrove")
    check_output(path, force=force, inputs=(request.file,))
    given = parsed_parameters(parameters)
    if given and learner is None:
        raise click.UsageError("--param needs --learner: it is a parameter of one learner.")
    task = request.read(screen)
    show_columns(task, screen)
    plan = plans.Plan(
        learner=learner,
        parameters=given,
        tune="yes" if tune else "no",
        calibrate=calibrate,
        test_size=test_size,
        seed=seed,
        max_time=max_time,
        n_jobs=jobs,
        on_interrupt="keep",
    )
    fitted = plans.run_workflow(task, plan, screen).fitted
    save_fitted(fitted, task, path, seed)
    show_fitted(fitted, path, screen, seed)
    screen.json(fitted_as_dict(fitted, task, path, seed))


def _fit_on_cluster(
    request: TableRequest,
    screen: Screen,
    cluster: str,
    learner: str | None,
    parameters: tuple[str, ...],
    max_time: float | None,
    test_size: float,
    output: Path | None,
    force: bool,
    seed: int,
) -> None:
    from margrove.cli.clusters import (
        fit_on_cluster,
        fitted_on_cluster_as_dict,
        read_on_cluster,
        running_cluster,
    )

    path = output or Path(f"{request.stem.strip('*') or 'table'}.margrove")
    check_output(path, force=force, inputs=(request.file,))
    given = parsed_parameters(parameters)
    if learner is None:
        learner = "boosting"
        screen.note("Learners are not compared on a cluster: boosting is used. See --learner.")
    with running_cluster(cluster, screen) as client:
        task = read_on_cluster(request, screen)
        fitted = fit_on_cluster(
            task,
            learner,
            screen,
            client,
            parameters=given,
            test_size=test_size,
            seed=seed,
            max_time=max_time,
        )
    save_fitted(fitted, task, path, seed)
    show_fitted(fitted, path, screen, seed)
    screen.json(fitted_on_cluster_as_dict(fitted, task, path, seed))
