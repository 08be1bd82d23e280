"""From a table to a report: compare all families, tune and test the best one, save a model."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.panel import Panel

from margrove.cli import main as command_line

DATA = "breast_cancer"
BUILD = Path("build")
console = Console(width=100, highlight=False)


def show(what: str, *command: str) -> None:
    """Print a command and run it."""
    console.rule(what)
    console.print(f"$ margrove {' '.join(command)}", style="bold")
    try:
        command_line(list(command))
    except SystemExit as ended:
        if ended.code:
            sys.exit(ended.code)


def main() -> None:
    logging.basicConfig(format="%(message)s")
    logging.getLogger("margrove").setLevel(logging.INFO)
    start = time.perf_counter()
    BUILD.mkdir(exist_ok=True)
    report, model, answers = (str(BUILD / f"{DATA}.{end}") for end in ("html", "margrove", "csv"))
    show(
        "All families are compared; the best one is tuned, tested and reported",
        "report", "--data", DATA, "-o", report, "--force",
    )  # fmt: skip
    show(
        "A forest is fitted and saved",
        "fit", "--data", DATA, "--learner", "forest", "-o", model, "--force", "--quiet",
    )  # fmt: skip
    show(
        "The model file predicts for other tables",
        "predict", model, "--data", DATA, "-o", answers, "--force",
    )  # fmt: skip
    show(
        "A prediction is explained",
        "explain", model, "--data", DATA, "--row", "0", "--top", "5", "--quiet",
    )  # fmt: skip
    console.print(
        Panel(
            f"Open [bold]{report}[/bold] in a browser: all results on one page.\n"
            f"The model is {model}, its predictions are {answers}.\n"
            "Your own table: [bold]margrove report FILE.csv --target COLUMN[/bold]",
            title=f"The demo took {time.perf_counter() - start:.0f} s",
            expand=False,
        )
    )


if __name__ == "__main__":
    main()
