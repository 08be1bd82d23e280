"""The command line. Commands are loaded when they are called, so that --help is fast.

commands/        the commands, one file each
options          options that several commands share
table_requests   the table that a user names, and how to read it
models           model files for commands; without one, an example is fitted
results          results of the workflow as tables and sentences, and as JSON
screen           output on standard output and standard error
output_files     files that commands write
clusters         margrove fit --cluster: fits on a Dask cluster
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
    "explain": "Show what a model has learnt, and why it predicts what it predicts.",
    "report": "Compare, choose, tune and test, and write a report as one HTML file.",
    "inspect": "Show what is in a model file, without loading the model.",
    "run": "Run a script that uses scikit-learn, with margrove's estimators.",
    "datasets": "List the built-in data sets, or write one as a table.",
    "studio": "See learning happen, in the browser: drag points, step through solvers.",
    "warmup": "Compile all numerical kernels now, so that later runs start at once.",
}


# Errors of the machine, which other arguments would not avoid.
_SYSTEM_ERRORS = frozenset(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EMFILE", "ENFILE", "ENOMEM")
    if hasattr(errno, name)
)


class _LazyGroup(click.Group):
    """A group of commands that imports a command only to run it or to show its help."""

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
    """SIGTERM or SIGHUP: ends a fit between two slices, like Ctrl-C."""

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

    0 done, 1 the work failed, 2 the input was wrong, 130 interrupted, 143 terminated.
    """
    _escape_unprintable()
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
        _fail("terminated", 128 + error.number)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except BrokenPipeError:
        _discard_output()  # the reader of the pipe has closed it
        sys.exit(141)
    except OSError as error:
        _discard_output()
        _fail(*_system_error(error))
    except (ValueError, TypeError, ImportError) as error:
        # errors about tables have a message that names options of commands
        _fail(getattr(error, "for_commands", str(error)) or type(error).__name__, 2)
    except MemoryError:
        _fail("out of memory. Use fewer rows, or a machine with more memory.", 1)
    except Exception as error:
        if os.environ.get("MARGROVE_TRACEBACK"):
            raise
        _fail(
            f"this is a bug in margrove ({type(error).__name__}: {error}). Please report it, with "
            "the traceback that MARGROVE_TRACEBACK=1 in the environment shows.",
            1,
        )


def _discard_output() -> None:
    """Send pending output to /dev/null, so that Python does not try to write it at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escape_unprintable() -> None:
    """Write characters that the terminal cannot encode as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _system_error(error: OSError) -> tuple[str, int]:
    """The message and the exit code: 2 for unreadable files, 1 for errors such as a full disk."""
    if error.errno not in _SYSTEM_ERRORS:
        return str(error) or type(error).__name__, 2
    return f"{error.strerror}: the work could not be finished, and nothing was saved.", 1


def _fail(message: str, code: int) -> None:
    """Print one line and exit; names from files can contain line breaks or terminal escapes."""
    from margrove.cli.screen import visible

    click.echo(f"margrove: {visible(message)}", err=True)
    sys.exit(code)
