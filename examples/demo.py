"""From a table to a report: all families compared, the winner tuned, tested and written up."""

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
    """Run a command as a person would type it."""
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
        "All families are compared, the winner is tuned, tested and written up",
        "report", "--data", DATA, "-o", report, "--force",
    )  # fmt: skip
    show(
        "One of them becomes a file",
        "fit", "--data", DATA, "--learner", "forest", "-o", model, "--force", "--quiet",
    )  # fmt: skip
    show(
        "The file answers for other tables",
        "predict", model, "--data", DATA, "-o", answers, "--force",
    )  # fmt: skip
    show(
        "and says why",
        "explain", model, "--data", DATA, "--row", "0", "--top", "5", "--quiet",
    )  # fmt: skip
    console.print(
        Panel(
            f"Open [bold]{report}[/bold] in a browser: the whole story on one page.\n"
            f"The model is {model}, its predictions are {answers}.\n"
            "Your own table: [bold]margrove report FILE.csv --target COLUMN[/bold]",
            title=f"That was the demo, in {time.perf_counter() - start:.0f} s",
            expand=False,
        )
    )


if __name__ == "__main__":
    main()
