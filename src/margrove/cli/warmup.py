"""margrove warmup"""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("warmup")
def command() -> None:
    """Compile all numerical kernels now, so that nothing waits later."""
    from margrove._jit import cache_directory, warmup

    click.echo("Compiling, on the first run only ...", err=True)
    seconds = warmup()
    directory = cache_directory()
    where = (
        f"kept in {directory}" if directory else "not kept: no private, writable cache directory"
    )
    click.echo(f"All kernels are ready after {seconds:.1f} s, {where}.")
