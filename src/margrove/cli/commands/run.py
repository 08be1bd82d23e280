"""margrove run"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import click

__all__ = ["command"]


@click.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--report", is_flag=True, help="At exit, say which fits ran where and how long.")
@click.option(
    "--only", metavar="NAMES", help="Estimators to replace, such as SVC,LinearSVC. Default: all."
)
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(report: bool, only: str | None, script: Path, arguments: tuple[str, ...]) -> None:
    """Run a Python SCRIPT that uses scikit-learn, with margrove's estimators.

    The script is not changed: what it imports from scikit-learn are margrove's classes under
    scikit-learn's names.
    """
    from margrove.exchange.scikit_learn import patch_sklearn

    if not script.is_file():
        what = "is a folder" if script.is_dir() else "does not exist"
        raise click.UsageError(f"{script} {what}. Name a Python script.")
    patch_sklearn([name.strip() for name in only.split(",")] if only is not None else None)
    try:
        _run_as_main(script, arguments)
    finally:
        if report:
            click.echo(_report(), err=True)


def _run_as_main(script: Path, arguments: tuple[str, ...]) -> None:
    """Run the script like `python script arguments`, with the same tracebacks."""
    import runpy

    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except (SystemExit, KeyboardInterrupt):
        raise
    except Exception as error:
        _print_traceback(error, str(script))
        sys.exit(1)


def _print_traceback(error: Exception, script: str) -> None:
    """Print the traceback from the script on, without the frames of margrove that run it."""
    frames: Any = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != script:
        frames = frames.tb_next
    traceback.print_exception(error.with_traceback(frames or error.__traceback__))


def _report() -> str:
    from margrove.exchange.scikit_learn import fit_counts

    counts = fit_counts()
    if not counts:
        return "margrove: none of the replaced estimators was fitted in this process."
    width = max(len(count.estimator) for count in counts)
    lines = ["margrove: fits in this process"]
    for count in counts:
        lines.append(
            f"  {count.estimator:{width}}  {count.fits:6,} in {count.library:12}"
            f"  {count.seconds:9.3f} s"
        )
    return "\n".join(lines)
