"""Where do we lose? Every estimator on tables of many shapes, against its peers.

    python benchmarks/compare.py shapes                        all rows: two hours
    python benchmarks/bench_shapes.py --family SVC --family linear
    python benchmarks/bench_shapes.py --most-rows 500 --table "0/1" --defaults

Each library has a process of its own; they take turns. A row of the report is a fit, or a
prediction of 1, 100 or 100,000 rows, of an estimator with its default parameters or with one of two
other common settings. A ratio is the median over the turns of the time of a peer divided by ours:
above 1 we are faster, below .95 we lose. What has not ended after a minute counts as a minute. A
ratio is marked with ! where our result is worse: an objective by more than 0.2 %, an error or a
loss on test rows by more than two standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shapes.contestants import OURS, PLAIN, Estimator, entries
from shapes.tables import TABLES, Table
from shapes.workers import Failed, Library, TookTooLong

LIMIT = 60.0  # seconds of a call
LEAST = 0.02  # seconds of a turn: short calls are repeated
TURNS = ((0.2, 5), (2.0, 3), (8.0, 2), (math.inf, 1))  # as many, for calls of up to so long
LOSS = 0.95
PREDICTED = (1, 100, 100_000)
PICTURE = Path(__file__).with_name("shapes.svg")


@dataclass
class Row:
    """One operation of one estimator on one table.

    seconds    of each library
    ratios     of each peer; above 1 ours is faster
    is_worse   the peers whose result is better than ours
    """

    family: str
    estimator: str
    settings: str
    table: str
    n: int
    operation: str
    seconds: dict[str, float]
    ratios: dict[str, float]
    is_worse: list[str]

    @property
    def least(self) -> float:
        return min(self.ratios.values())


@dataclass(frozen=True)
class Choice:
    """Which rows are measured."""

    families: tuple[str, ...] = ()
    estimators: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    least_rows: int = 0
    most_rows: int = 10**9
    defaults: bool = False

    def has_table(self, table: Table) -> bool:
        is_named = not self.tables or any(part in table.name for part in self.tables)
        return is_named and self.least_rows <= table.n <= self.most_rows

    def has(self, estimator: Estimator, settings: dict[str, Any]) -> bool:
        return (
            (not self.families or estimator.family in self.families)
            and (not self.estimators or estimator.name in self.estimators)
            and not (self.defaults and settings)
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--family", action="append", default=[], help="only these families")
    parser.add_argument("--estimator", action="append", default=[], help="only these estimators")
    parser.add_argument("--table", action="append", default=[], help="only tables with this name")
    parser.add_argument("--least-rows", type=int, default=0)
    parser.add_argument("--most-rows", type=int, default=10**9)
    parser.add_argument("--defaults", action="store_true", help="only default parameters")
    parser.add_argument("--save", type=Path, help="the rows as JSON")
    given = parser.parse_args()
    chosen = tuple(map(tuple, (given.family, given.estimator, given.table)))
    rows = measured(Choice(*chosen, given.least_rows, given.most_rows, given.defaults))
    if given.save:
        given.save.write_text(json.dumps([asdict(row) for row in rows]))
    print(table_of(rows))


def report() -> str:
    """All rows."""
    rows = measured(Choice())
    draw(rows, PICTURE)
    return f"![ratio against the number of rows]({PICTURE.name})\n\n{table_of(rows)}"


# -- measuring --


def measured(choice: Choice) -> list[Row]:
    rows, start = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        libraries: dict[str, Library] = {}
        for table in filter(choice.has_table, TABLES):
            path = Path(folder, f"table {TABLES.index(table)}")
            for estimator, settings in entries(table):
                if not choice.has(estimator, settings):
                    continue
                if not path.exists():
                    path.write_bytes(pickle.dumps(table.make(), protocol=5))
                for name in (OURS, PLAIN, *estimator.peers):
                    libraries.setdefault(name, Library(name, Path(folder)))
                for row in _rows(table, path.name, estimator, settings, libraries):
                    print(f"{time.perf_counter() - start:6.0f} s  {_line(row)}", flush=True)
                    rows.append(row)
            path.unlink(missing_ok=True)
        for library in libraries.values():
            library.stop()
    return rows


def _rows(
    table: Table,
    file: str,
    estimator: Estimator,
    settings: dict[str, Any],
    libraries: dict[str, Library],
) -> Iterator[Row]:
    """The fit, and predictions."""
    names = [OURS, PLAIN, *estimator.peers]
    fits = _measured(names, libraries, "fit", LIMIT, file, estimator, settings)
    quality, present = {}, []
    for name in fits:
        try:
            quality[name] = libraries[name].ask("quality", file, estimator, seconds=2 * LIMIT)
            present.append(name)
        except (Failed, TookTooLong):
            continue
    worse = _worse(quality)
    described = ", ".join(f"{key}={value}" for key, value in settings.items())
    about = (estimator.family, estimator.name, described, table.name, table.n)
    if OURS not in fits or len(fits) < 2:
        return
    yield _row(about, "fit", fits, worse)
    for n in PREDICTED:
        if OURS not in present or len(present) < 2:
            return
        found = _measured(present, libraries, "predict", LIMIT, file, estimator, n)
        present = [name for name in present if name in found and min(found[name]) < LIMIT]
        if OURS in found and len(found) > 1:
            yield _row(about, f"predict {n}", found, worse)


def _measured(
    names: list[str], libraries: dict[str, Library], what: str, limit: float, *arguments: Any
) -> dict[str, list[float]]:
    """Seconds of each turn, by library; the libraries take turns."""
    seconds, repeats = {}, {}
    for name in names:  # a turn that is not counted, but where it took long
        try:
            first = libraries[name].ask(what, *arguments, 1, seconds=limit)
            if first < 1.0 or name == OURS:  # it may have been due to loading or compiling
                first = libraries[name].ask(what, *arguments, 1, seconds=limit)
            repeats[name] = max(1, int(LEAST / max(first, 1e-7)))
            seconds[name] = [first]
        except TookTooLong:
            seconds[name] = [limit]
        except Failed as error:
            print(f"          {name}, {what}: {error}", file=sys.stderr, flush=True)
    if not repeats:
        return seconds
    longest = max(seconds[name][0] for name in repeats)
    turns = next(count for most, count in TURNS if longest <= most)
    if turns > 1:
        for name in repeats:
            seconds[name] = []
        for turn in range(turns):
            order = list(repeats)
            for name in order if turn % 2 == 0 else order[::-1]:
                own = libraries[name].ask(what, *arguments, repeats[name], seconds=20 * limit)
                seconds[name].append(own)
    return seconds


def _worse(quality: dict[str, tuple[float, float]]) -> list[str]:
    """The peers to whom we lose in quality."""
    if OURS not in quality:
        return []
    found, _ = quality[OURS]
    return [
        name
        for name, (theirs, allowance) in quality.items()
        if name != OURS and not found <= theirs + allowance
    ]


def _row(about: Any, operation: str, seconds: dict[str, list[float]], worse: list[str]) -> Row:
    ratios = {}
    for name, own in seconds.items():
        if name != OURS:
            ours = seconds[OURS]
            pairs = zip(own, ours, strict=True) if len(own) == len(ours) else [
                (statistics.median(own), statistics.median(ours))
            ]  # fmt: skip
            ratios[name] = statistics.median(theirs / our for theirs, our in pairs)
    medians = {name: statistics.median(own) for name, own in seconds.items()}
    return Row(*about, operation, medians, ratios, [name for name in worse if name in ratios])


# -- the table --


def table_of(rows: list[Row]) -> str:
    """Markdown: families, and all rows, the worst first."""
    head = (
        "| family | rows | geometric mean, fit | predict | slower than scikit-learn | "
        "fastest peer, at least 0.9x |\n|---|---|---|---|---|---|\n"
    )
    families = [
        _summary(family, [row for row in rows if row.family == family])
        for family in dict.fromkeys(row.family for row in rows)
    ]
    worst = sorted(rows, key=lambda row: row.least)
    losses = [row for row in worst if row.least < LOSS]
    table = "| ratio | estimator | table | operation | ms | of peers |\n|---|---|---|---|---|---|\n"
    return (
        f"{len(rows)} rows, of which {len(losses)} are slower than a peer. Ratios are to the "
        f"fastest peer; ! where our result is worse.\n\n{head}" + "\n".join(families)
        + f"\n\n{table}" + "\n".join(_cells(row) for row in losses) + "\n"
    )  # fmt: skip


def _summary(family: str, rows: list[Row]) -> str:
    fits = [row for row in rows if row.operation == "fit"]
    others = [row for row in rows if row.operation != "fit"]
    slower = sum(row.ratios.get(PLAIN, 1.0) < LOSS for row in rows)
    near = sum(row.least >= 0.9 for row in rows) / max(len(rows), 1)
    return f"| {family} | {len(rows)} | {_mean(fits)} | {_mean(others)} | {slower} | {near:.0%} |"


def _mean(rows: list[Row]) -> str:
    if not rows:
        return ""
    return f"{math.exp(statistics.fmean(math.log(row.least) for row in rows)):.2f}"


def _cells(row: Row) -> str:
    name = f"{row.estimator} {row.settings}".strip()
    peers = ", ".join(
        f"{peer} {row.ratios[peer]:.2f}{'!' if peer in row.is_worse else ''}" for peer in row.ratios
    )
    ms = 1e3 * row.seconds[OURS]
    return f"| {row.least:.2f} | {name} | {row.table} | {row.operation} | {ms:.3g} | {peers} |"


def _line(row: Row) -> str:
    return _cells(row).strip("| ").replace(" | ", "  ")


def draw(rows: list[Row], path: Path) -> None:
    """The ratio against the number of rows, a line for each family."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    for panel, is_fit in zip(panels, (True, False), strict=True):
        for family in dict.fromkeys(row.family for row in rows):
            found: dict[int, list[float]] = {}
            for row in rows:
                if row.family == family and (row.operation == "fit") == is_fit:
                    found.setdefault(row.n, []).append(math.log(row.least))
            sizes = sorted(found)
            panel.plot(sizes, [math.exp(statistics.fmean(found[n])) for n in sizes], label=family)
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set(xscale="log", yscale="log", xlabel="rows", title="fit" if is_fit else "predict")
    panels[0].set_ylabel("fastest peer / margrove")
    panels[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
