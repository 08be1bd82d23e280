"""margrove studio"""

from __future__ import annotations

import signal
from pathlib import Path

import click

__all__ = ["command"]


@click.command("studio")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port to serve on. [default: the first free port from 8642]",
)
@click.option("--browser/--no-browser", default=True, help="Open it in the browser. [default: yes]")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to serve on. Addresses other than this machine's own need --i-understand.",
)
@click.option(
    "--i-understand",
    "is_understood",
    is_flag=True,
    help="Serve to the network without encryption, which the studio is not made for.",
)
@click.option(
    "--max-upload",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    default=200,
    show_default=True,
    metavar="MB",
    help="Size of the largest table that can be loaded in the page.",
)
def command(
    file: Path | None,
    port: int | None,
    browser: bool,
    host: str,
    is_understood: bool,
    max_upload: float,
) -> None:
    """See learning happen, in the browser: drag points, step through solvers, explore a table.

    Everything is computed by this library on this machine, and served to this machine only. FILE is
    a table to start with. Ctrl-C ends the studio.
    """
    from margrove.studio.server import Launch, launch, require_studio

    require_studio()
    _check_host(host, is_understood)
    options = Launch(
        say=click.echo,
        file=_readable(file),
        host=host,
        port=port,
        opens_browser=browser,
        max_upload_bytes=round(1e6 * max_upload),
    )
    number = launch(options)
    if number == signal.SIGINT:  # the usual way to close the studio
        click.echo("The studio is closed.")
    elif number:
        raise click.exceptions.Exit(128 + number)


def _readable(file: Path | None) -> Path | None:
    if file is None:
        return None
    try:
        path = file.resolve(strict=True)
        if not path.is_file():
            raise click.UsageError(f"{file} is not a file. Name a table, or leave it out.")
        with path.open("rb"):
            return path
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise click.UsageError(f"{file} cannot be read: {reason}.") from None


def _check_host(host: str, is_understood: bool) -> None:
    """Raise unless serving to the network was confirmed, and with a single address."""
    from margrove.cli.screen import visible
    from margrove.studio.server import is_loopback

    if is_loopback(host):
        return
    if host.strip("[]") in ("", "0.0.0.0", "::", "*"):
        raise click.UsageError(
            f"--host {visible(host)!r} is not a single address. Name the one that browsers will "
            "use, so that requests under any other name can be refused."
        )
    if not is_understood:
        raise click.UsageError(
            f"--host {visible(host)} would serve the studio to the network: anyone who sees its "
            "link or reads the unencrypted traffic can use this machine and read your tables. Add "
            "--i-understand if that is what you want, or reach it through ssh -L."
        )
    click.echo(
        f"Warning: the studio is served on {visible(host)}, unencrypted, to anyone with the link.",
        err=True,
    )
