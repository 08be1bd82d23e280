"""The command line: one command a file, loaded when it is called, so that --help is instant."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from margrove._version import __version__

__all__ = ["main"]

_COMMANDS = {
    "compare": "Cross-validate the learners on a table and show who wins.",
    "doctor": "Look a table over before learning from it: what is wrong, what a fit costs.",
    "warmup": "Compile all numerical kernels now, so that nothing waits later.",
}


class _LazyGroup(click.Group):
    """Knows its commands by name; imports one only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"margrove.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="margrove", message="%(prog)s %(version)s")
def cli() -> None:
    """Margin machines and groves of trees."""


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; every failure is one line on standard error and an exit code.

    0 done, 1 the work failed, 2 the input was wrong, 130 interrupted.
    """
    try:
        code = cli.main(args=arguments, prog_name="margrove", standalone_mode=False)
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
        _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader went away; keep Python from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _fail(str(error), 2)
    except MemoryError:
        _fail("out of memory. Use fewer rows, or a machine with more.", 1)


def _fail(message: str, code: int) -> None:
    """One line: names from a user's file may hold line breaks or terminal escapes."""
    line = " ".join(message.split())
    visible = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    click.echo(f"margrove: {visible}", err=True)
    sys.exit(code)
