"""Options that several commands share."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from margrove.cli.screen import Screen
from margrove.cli.table_requests import TableRequest

__all__ = [
    "LearnerName",
    "complete_parameter",
    "force_option",
    "learner_options",
    "output_option",
    "parsed_parameters",
    "requests_as_usage",
    "seed_option",
    "shows_results",
    "takes_table",
]

Command = Callable[..., Any]

_TYPES = ("number", "category", "date", "text", "ignored")


class LearnerName(click.Choice):
    """The name of a learner, checked by the registry when the command runs."""

    def __init__(self) -> None:
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        from margrove.select.learners import LEARNERS, require_modules

        require_modules()
        return tuple(LEARNERS)

    @choices.setter
    def choices(self, given: Any) -> None:
        """Ignored: the base class sets them once, but the registry can grow."""


def takes_table(command: Command) -> Command:
    """Options that name a table and how to read it; the command gets a `TableRequest`."""

    @click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
    @click.option("--data", help="Built-in data set instead of FILE; see `margrove datasets`.")
    @click.option("--target", help="Column to predict. [default: the last one]")
    @click.option(
        "--task",
        type=click.Choice(["classification", "regression"]),
        help="[default: found from the values of the target]",
    )
    @click.option("--id", "id_column", help="Column that names the rows; it is not a feature.")
    @click.option(
        "--ignore", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated."
    )
    @click.option(
        "--type",
        "types",
        multiple=True,
        metavar="COLUMN=TYPE",
        help=f"Read a column as {', '.join(_TYPES)}; may be repeated.",
    )
    @functools.wraps(command)
    def with_request(
        file: Path | None,
        data: str | None,
        target: str | None,
        task: str | None,
        id_column: str | None,
        ignore: tuple[str, ...],
        types: tuple[str, ...],
        **others: Any,
    ) -> Any:
        if file is not None and data is not None:
            raise click.UsageError("Give either a FILE or --data, not both.")
        request = TableRequest(file, data, target, task, id_column, ignore, _parsed_types(types))
        return command(request, **others)

    return with_request


def _parsed_types(given: tuple[str, ...]) -> dict[str, str]:
    types = {}
    for pair in given:
        column, equals, kind = pair.rpartition("=")
        if not equals or kind not in _TYPES:
            raise click.UsageError(
                f"--type needs COLUMN=TYPE, where TYPE is one of {', '.join(_TYPES)}. Got {pair!r}."
            )
        types[column] = kind
    return types


def shows_results(command: Command) -> Command:
    """--json and --quiet: the command gets a `Screen`."""

    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
    @click.option("--quiet", is_flag=True, help="Print only the result: no notes, no progress.")
    @functools.wraps(command)
    def with_screen(*arguments: Any, as_json: bool, quiet: bool, **others: Any) -> Any:
        screen = Screen(as_json=as_json, quiet=quiet or as_json)
        with screen.warnings_as_notes(), requests_as_usage():
            return command(*arguments, screen=screen, **others)

    return with_screen


def complete_parameter(context: Any, option: Any, incomplete: str) -> list[Any]:
    """Shell completion of --param: the registered kernels and losses."""
    from click.shell_completion import CompletionItem

    from margrove.ensemble.gradient.losses import GRADIENT_LOSSES
    from margrove.margin.kernels import KERNELS

    offered = {f"kernel={name}": kernel.summary() for name, kernel in KERNELS.items()}
    offered |= {f"loss={name}": loss.summary for name, loss in GRADIENT_LOSSES.items()}
    return [
        CompletionItem(text, help=summary)
        for text, summary in offered.items()
        if text.startswith(incomplete)
    ]


@contextmanager
def requests_as_usage() -> Iterator[None]:
    """Turn an InvalidRequestError into a usage error, whose message names options."""
    from margrove.select import InvalidRequestError

    try:
        yield
    except InvalidRequestError as error:
        raise click.UsageError(error.for_commands) from error


def learner_options(command: Command) -> Command:
    """Options of a fit: --param, --jobs, --max-time."""
    options = [
        click.option(
            "--param",
            "parameters",
            multiple=True,
            metavar="NAME=VALUE",
            help="Parameter of the learner, such as C=10 or kernel=poly; may be repeated.",
            shell_complete=complete_parameter,
        ),
        click.option(
            "--max-time",
            type=click.FloatRange(min=0, min_open=True),
            help="Seconds that one fit may take.",
        ),
        click.option(
            "--jobs", type=int, default=-1, show_default=True, help="Threads; -1 is all cores."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


seed_option = click.option(
    "--seed",
    default=0,
    type=click.IntRange(0, 2**32 - 1),
    show_default=True,
    help="The same seed gives the same result.",
)

force_option = click.option("--force", is_flag=True, help="Replace an existing file.")


def output_option(text: str) -> Callable[[Command], Command]:
    """The option -o, --output."""
    path = click.Path(path_type=Path, dir_okay=False)
    return click.option("-o", "--output", type=path, help=text)


def parsed_parameters(given: tuple[str, ...]) -> dict[str, Any]:
    """Parameters from `name=value` texts; values are Python literals or words, never code."""
    found: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--param needs NAME=VALUE, such as C=10. Got {pair!r}.")
        found[name] = _literal(name, text)
    return found


def _literal(name: str, text: str) -> Any:
    if name == "kernel" or (text.isidentifier() and text not in ("True", "False", "None")):
        return text  # such as kernel=poly
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise click.UsageError(
            f"--param {name} must be a number, a word, True, False, None, or a list of these. "
            f"Got {text!r}."
        ) from None
