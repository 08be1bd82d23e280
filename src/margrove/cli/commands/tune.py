"""margrove tune"""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

_MAX_ROWS = 12


@click.command("tune")
@takes_table
@click.option(
    "--learner",
    type=LearnerName(),
    default="svm",
    show_default=True,
    help="What to tune.",
)
@learner_options
@click.option(
    "--test-size",
    default=0.2,
    type=click.FloatRange(0, 1, max_open=True),
    show_default=True,
    help="Share of the rows to test the choice with.",
)
@output_option("Save the tuned model here.")
@force_option
@seed_option
@shows_results
def command(
    request: TableRequest,
    screen: Screen,
    learner: str,
    parameters: tuple[str, ...],
    max_time: float | None,
    jobs: int,
    test_size: float,
    output: Path | None,
    force: bool,
    seed: int,
) -> None:
    """Tune the most important parameters of a learner, and show the settings that were tried.

    C and gamma of support vector machines, the pruning of a tree and the rounds of boosting are
    chosen by cross-validation, the number of trees of a forest by its out-of-bag error.
    """
    from margrove.workbench.workflow import fit_learner

    if output is not None:
        check_output(output, force=force, inputs=(request.file,))
    task = request.read(screen)
    show_columns(task, screen)
    fitted = fit_learner(
        task,
        learner,
        screen,
        parameters=parsed_parameters(parameters),
        tune=True,
        test_size=test_size,
        seed=seed,
        max_time=max_time,
        n_jobs=jobs,
    )
    _show_tuning(fitted.tuning, learner, screen)
    if output is not None:
        save_fitted(fitted, task, output, seed)
    show_fitted(fitted, output, screen, seed)
    screen.json(fitted_as_dict(fitted, task, output, seed) | {"tried": _tried(fitted.tuning)})


def _show_tuning(tuning: Any, learner: str, screen: Screen) -> None:
    """Print the best candidates, the chosen one in bold."""
    order = sorted(range(len(tuning.scores)), key=lambda k: (-tuning.scores[k], k))[:_MAX_ROWS]
    if tuning.chosen not in order:
        order[-1] = tuning.chosen
    rows = [
        (
            ", ".join(f"{name}={_short(value)}" for name, value in tuning.candidates[k].items()),
            f"{tuning.scores[k]:.4g}",
            f"{tuning.standard_errors[k]:.2g}",
        )
        for k in order
    ]
    screen.table(
        f"{learner}: the best {len(rows)} of {len(tuning.scores)} tried",
        ("parameters", tuning.scoring, "± standard error"),
        rows,
        caption=f"by {tuning.measured_by}; the chosen one in bold",
        best=order.index(tuning.chosen),
    )


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _tried(tuning: Any) -> list[dict[str, Any]]:
    return [
        {"parameters": {k: repr(v) for k, v in candidate.items()}, "score": score, "error": error}
        for candidate, score, error in zip(
            tuning.candidates, tuning.scores.tolist(), tuning.standard_errors.tolist(), strict=True
        )
    ]
