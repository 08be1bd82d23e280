"""margrove predict"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from margrove.cli.options import force_option, output_option, requests_as_usage
from margrove.cli.output_files import FORMATS, check_output, format_of, write_table
from margrove.cli.screen import Screen
from margrove.cli.table_requests import TableRequest

if TYPE_CHECKING:
    from margrove.cli.models import OpenedModel

__all__ = ["command"]


@click.command("predict")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--data", help="Built-in data set instead of FILE.")
@click.option("--id", "id_column", help="Column to keep. [default: the --id of `fit`]")
@click.option(
    "--probabilities/--no-probabilities",
    default=True,
    show_default=True,
    help="Write probabilities of each class, if the model has them.",
)
@click.option(
    "--confidence",
    default=0.9,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Confidence level of intervals around numbers, if the model has them.",
)
@output_option("[default: standard output]")
@click.option("--format", "form", type=click.Choice(FORMATS), help="[default: by --output, or csv]")
@click.option(
    "--safe-csv/--raw-csv",
    default=True,
    show_default=True,
    help="Put ' before text that a spreadsheet would read as a formula.",
)
@force_option
@click.option("--quiet", is_flag=True, help="No notes.")
def command(
    model: Path | None,
    file: Path | None,
    data: str | None,
    id_column: str | None,
    probabilities: bool,
    confidence: float,
    output: Path | None,
    form: str | None,
    safe_csv: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Predict with a saved MODEL for every row of FILE.

    Columns are matched by name, in any order; others are ignored. The result has the id
    column, the prediction, probabilities of classes, and intervals around numbers.
    """
    from margrove.cli.models import open_model

    screen = Screen(quiet=quiet)
    if file is not None and data is not None:
        raise click.UsageError("Give either a FILE or --data, not both.")
    if model is not None and file is None and data is None:
        raise click.UsageError("Give the rows to predict: a FILE, - for standard input, or --data.")
    form = format_of(output, form)
    if output is not None:
        check_output(output, force=force, inputs=(model, file))
    opened = open_model(model, screen)
    # Columns that the model does not need may contain anything.
    others = None if opened.types is None else "ignored"
    with requests_as_usage():
        table = TableRequest(file, data).raw(screen, opened.types, others)
    with screen.warnings_as_notes():
        predictions = predicted(opened, table.frame, id_column, probabilities, confidence)
    write_table(predictions, output, form, safe=safe_csv)
    if probabilities and opened.is_classifier and not hasattr(opened.model, "predict_proba"):
        screen.note("This model has no probabilities; `margrove fit --calibrate` makes them.")
    if output is not None:
        screen.note(f"{predictions.height:,} predictions are in {output}.")


def predicted(
    opened: OpenedModel, frame: Any, id_column: str | None, probabilities: bool, confidence: float
) -> Any:
    """A polars.DataFrame of predictions, one row for each row of the table."""
    import numpy as np
    import polars as pl

    id_column = id_column or (opened.id_column if opened.id_column in frame.columns else None)
    if id_column is not None and id_column not in frame.columns:
        raise click.UsageError(f"The table has no column {id_column!r} to keep.")
    if frame.height == 0:
        raise click.UsageError("The table has no rows to predict.")
    rows = _needed_columns(opened, frame)
    labels = np.asarray(opened.model.predict(rows))
    name = "prediction" if opened.target is None else f"predicted {opened.target}"
    columns: dict[str, Any] = {}
    columns[name] = [str(label) for label in labels] if labels.dtype.kind in "OU" else labels
    if probabilities and opened.is_classifier and hasattr(opened.model, "predict_proba"):
        shares = opened.model.predict_proba(rows)
        for place, label in enumerate(opened.model.classes_):
            columns[f"probability of {label}"] = shares[:, place]
    bounds = _interval(opened, rows, confidence)
    if bounds is not None:
        columns |= {"low": bounds[:, 0], "high": bounds[:, 1]}
    if id_column is None:
        return pl.DataFrame(columns)
    if id_column in columns:  # the id keeps its name
        columns = {f"{column} (predicted)": values for column, values in columns.items()}
    return pl.DataFrame({id_column: frame[id_column]} | columns)


def _needed_columns(opened: OpenedModel, frame: Any) -> Any:
    """The columns that the model needs, if it does not select them itself (as from a cluster)."""
    names = None if opened.types is not None else opened.feature_names
    if names is None:
        return frame
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise click.UsageError(f"The table has no column {missing[0]!r}, which the model needs.")
    return frame.select(names)


def _interval(opened: OpenedModel, frame: Any, confidence: float) -> Any:
    """Prediction intervals of a regression forest with out-of-bag errors, or None."""
    last = opened.last_step
    if opened.is_classifier or not hasattr(last, "predict_interval"):
        return None
    try:
        return last.predict_interval(opened.prepared(frame), confidence)
    except ValueError:  # a forest without out-of-bag rows has no intervals
        return None
