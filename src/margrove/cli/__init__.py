"""The command line: one command a file, loaded when it is called, so that --help is instant.

clusters         margrove fit --cluster: files that the workers of a Dask cluster read and learn
                 from
commands/        one command a file, loaded when it is called
models           model files as commands use them; without one, an example is fitted
options          options that several commands share
output_files     files that commands write
results          results of the workflow as people read them, and as programs do
screen           output for people: results on standard output
table_requests   which table a user asked for, and how it is to be read
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from margrove._version import __version__

__all__ = ["main"]

_COMMANDS = {
    "doctor": "Check a table before learning from it: what is wrong, what a fit costs.",
    "compare": "Cross-validate the learners on a table and rank them.",
    "fit": "Fit a model to a table, measure how good it is, and save it.",
    "tune": "Tune the parameters that matter most for a learner.",
    "predict": "Predict with a saved model for every row of a table.",
    "explain": "Show what a model has learnt, and why it answers as it does.",
    "report": "Compare, choose, tune and test, and write a report as one HTML file.",
    "inspect": "Show what is in a model file, without loading the model.",
    "run": "Run a script that uses scikit-learn, with margrove's estimators.",
    "datasets": "List the built-in data sets, or write one as a table.",
    "studio": "See learning happen, in the browser: drag points, step through solvers.",
    "warmup": "Compile all numerical kernels now, so that later runs start at once.",
}


# Faults of the machine: no other argument would help.
_SYSTEM_FAULTS = frozenset(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EMFILE", "ENFILE", "ENOMEM")
    if hasattr(errno, name)
)


class _LazyGroup(click.Group):
    """Knows the commands by name; imports a command only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"margrove.cli.commands.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="margrove", message="%(prog)s %(version)s")
def cli() -> None:
    """Margin machines and groves of trees."""


class _Terminated(BaseException):
    """SIGTERM or SIGHUP: ends a fit as Ctrl-C does, between two slices, with nothing half done."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise an exception, as Ctrl-C does; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        raise _Terminated(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; every failure is one line on standard error and an exit code.

    0 done, 1 the work failed, 2 the input was wrong, 130 interrupted, 143 told to end.
    """
    _spell_out_what_cannot_be_shown()
    try:
        with _ended_by_signals():
            code = cli.main(args=arguments, prog_name="margrove", standalone_mode=False)
            sys.stdout.flush()  # errors at exit could not be reported
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(0)
    except click.UsageError as error:
        hint = (
            f" Try 'margrove {error.ctx.info_name} --help'."
            if error.ctx and error.ctx.parent
            else ""
        )
        _fail(error.format_message() + hint, 2)
    except click.ClickException as error:
        _fail(error.format_message(), getattr(error, "failure_code", 2))
    except _Terminated as error:
        _fail("told to end", 128 + error.number)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except BrokenPipeError:
        _forget_output()  # the reader went away
        sys.exit(141)
    except OSError as error:
        _forget_output()
        _fail(*_of_system(error))
    except (ValueError, TypeError, ImportError) as error:
        # errors about tables name the option of the command that helps
        _fail(getattr(error, "for_commands", str(error)) or type(error).__name__, 2)
    except MemoryError:
        _fail("out of memory. Use fewer rows, or a machine with more.", 1)
    except Exception as error:
        if os.environ.get("MARGROVE_TRACEBACK"):
            raise
        _fail(
            f"this is a fault of margrove's own ({type(error).__name__}: {error}). Please report "
            "it, with what MARGROVE_TRACEBACK=1 in the environment shows.",
            1,
        )


def _forget_output() -> None:
    """Do not try again at exit to write what cannot be written: Python would complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _spell_out_what_cannot_be_shown() -> None:
    """Characters that a terminal cannot show are written as their codes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _of_system(error: OSError) -> tuple[str, int]:
    """The message and the exit code: unreadable files are wrong input, full disks are not."""
    if error.errno not in _SYSTEM_FAULTS:
        return str(error) or type(error).__name__, 2
    return f"{error.strerror}: the work could not be finished, and nothing was saved.", 1


def _fail(message: str, code: int) -> None:
    """Print one line; names from a user's file may hold line breaks or terminal escapes."""
    from margrove.cli.screen import visible

    click.echo(f"margrove: {visible(message)}", err=True)
    sys.exit(code)
