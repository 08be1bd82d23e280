"""margrove warmup"""

from __future__ import annotations

import time

import click

__all__ = ["command"]


@click.command("warmup")
def command() -> None:
    """Compile all numerical kernels now, so that later runs start at once."""
    from margrove._runtime import PARTS, cache_directory, fill_cache, run_parts

    click.echo("Compiling, on the first run only ...", err=True)
    start = time.perf_counter()
    if not fill_cache():  # without a cache, at least check that all kernels compile
        run_parts(list(PARTS))
    seconds, directory = time.perf_counter() - start, cache_directory()
    where = (
        f"stored in {directory}"
        if directory
        else "not stored: no private, writable cache directory"
    )
    click.echo(f"All kernels are ready after {seconds:.1f} s, {where}.")
