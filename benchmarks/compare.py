"""Us and the peers on the same data, in the same run, at equal quality.

    python benchmarks/compare.py                      all benchmarks
    python benchmarks/compare.py perceptron kernels   some of them
    python benchmarks/compare.py perceptron --case news20 --repeats 9

Each `bench_<name>.py` offers `CASES`, or a function `report()` that returns markdown. A case has
data, contestants and figures of quality. Contestants take turns, repeat by repeat, so that a slow
minute of the machine hits them all; medians are compared. A ratio above 1 means that we are
faster. Where our quality is lower than a peer's by more than the case allows, no ratio is given.
Peak memory is that of a process of its own which does nothing but load the data and fit once.

Results are written to `benchmarks/RESULTS.md`, one section a benchmark, with machine and versions.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
sys.path.insert(0, str(HERE))


@dataclass(frozen=True)
class Case:
    """One comparison.

    data        -> whatever the contestants take; loaded once
    ours, peers name -> function of the data, returning something that `quality` understands
    quality     function of (result, data) -> named figures
    decisive    the figure that must not be worse than a peer's; higher is better unless it
                starts with "-"
    allowance   by how much our decisive figure may be worse
    """

    name: str
    data: Callable[[], Any]
    ours: Mapping[str, Callable[[Any], Any]]
    peers: Mapping[str, Callable[[Any], Any]]
    quality: Callable[[Any, Any], dict[str, float]]
    decisive: str
    allowance: float = 0.0
    note: str = ""
    repeats: int = 5

    @property
    def contestants(self) -> dict[str, Callable[[Any], Any]]:
        return {**self.ours, **self.peers}


@dataclass
class Measured:
    """What was seen of one contestant."""

    seconds: list[float] = field(default_factory=list)
    quality: dict[str, float] = field(default_factory=dict)
    peak_mb: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def run_case(case: Case, module: str, repeats: int | None, with_memory: bool) -> str:
    data = case.data()
    seen = {name: Measured() for name in case.contestants}
    for name, fit in case.contestants.items():  # one unmeasured turn: compilers, caches, pages
        seen[name].quality = case.quality(fit(data), data)
    for turn in range(repeats or case.repeats):
        names = list(case.contestants)
        for name in names if turn % 2 == 0 else names[::-1]:
            start = time.perf_counter()
            case.contestants[name](data)
            seen[name].seconds.append(time.perf_counter() - start)
    if with_memory:
        for name in case.contestants:
            seen[name].peak_mb = peak_memory(module, case.name, name)
    return table_of(case, seen)


def table_of(case: Case, seen: dict[str, Measured]) -> str:
    ours = {name: seen[name] for name in case.ours}
    figures = list(next(iter(seen.values())).quality)
    lines = [f"### {case.name}", ""]
    if case.note:
        lines += [case.note, ""]
    head = [
        "",
        "median s",
        "min s",
        *figures,
        "peak MB",
        *(f"{name} is faster by" for name in ours),
    ]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, measured in seen.items():
        ratios = ["" if name in ours else ratio(case, us, measured) for us in ours.values()]
        cells = [
            f"**{name}**" if name in ours else name,
            f"{measured.median:.4g}",
            f"{min(measured.seconds):.4g}",
            *(f"{measured.quality[figure]:.6g}" for figure in figures),
            "" if measured.peak_mb is None else f"{measured.peak_mb:.0f}",
            *ratios,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    for name, us in ours.items():
        fastest = min((seen[peer].median, peer) for peer in case.peers)[1] if case.peers else None
        if fastest is not None:
            lines.append(
                f"{name} to the fastest peer ({fastest}): {ratio(case, us, seen[fastest])}"
            )
    return "\n".join(lines) + "\n"


def ratio(case: Case, ours: Measured, peer: Measured) -> str:
    sign = -1 if case.decisive.startswith("-") else 1
    figure = case.decisive.removeprefix("-")
    if sign * (ours.quality[figure] - peer.quality[figure]) < -case.allowance:
        return "no claim: lower quality"
    return f"{peer.median / ours.median:.2f}x"


def peak_memory(module: str, case: str, contestant: str) -> float | None:
    """Megabytes beyond the loaded data, in a process of its own."""
    command = [sys.executable, __file__, "--measure", module, case, contestant]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def measure_memory(module: str, case_name: str, contestant: str) -> None:
    cases = importlib.import_module(f"bench_{module}").CASES
    case = next(case for case in cases if case.name == case_name)
    data = case.data()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading and of the parent
    before = memory_figure("VmRSS")
    case.contestants[contestant](data)
    print((memory_figure("VmHWM") - before) / 1024)


def memory_figure(name: str) -> float:
    """Kilobytes, as the kernel of Linux counts them."""
    status = Path("/proc/self/status").read_text()
    return float(re.search(rf"{name}:\s+(\d+) kB", status).group(1))


def machine() -> str:
    names = ["margrove", "numpy", "scipy", "scikit-learn", "numba", "scikit-learn-intelex",
             "lightgbm", "xgboost"]  # fmt: skip
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    processor = platform.processor() or platform.machine()
    cpu_info = Path("/proc/cpuinfo")
    if cpu_info.exists():
        model = re.search(r"model name\s*:\s*(.+)", cpu_info.read_text())
        processor = model.group(1) if model else processor
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{processor}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}; "
        + ", ".join(found)
    )


def write_section(module: str, body: str) -> None:
    """Replace one benchmark's section, leave the others."""
    day = datetime.now(UTC).date().isoformat()
    section = (
        f"<!-- {module} -->\n## {module}\n\nMeasured {day} on {machine()}.\n\n{body.strip()}\n"
        f"<!-- /{module} -->\n"
    )
    text = RESULTS.read_text() if RESULTS.exists() else "# Results\n\nWritten by compare.py.\n\n"
    pattern = re.compile(rf"<!-- {module} -->.*?<!-- /{module} -->\n", re.DOTALL)
    if pattern.search(text):
        text = pattern.sub(lambda _: section, text)
    else:
        text = text.rstrip() + "\n\n" + section
    RESULTS.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="benchmarks; all by default")
    parser.add_argument("--case", help="only cases whose name contains this; nothing is written")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.measure:
        measure_memory(*options.measure)
        return
    for name in options.names or sorted(
        p.stem.removeprefix("bench_") for p in HERE.glob("bench_*.py")
    ):
        module = importlib.import_module(f"bench_{name}")
        parts = [module.report()] if hasattr(module, "report") else []
        for case in getattr(module, "CASES", []):
            if options.case is None or options.case in case.name:
                parts.append(run_case(case, name, options.repeats, not options.no_memory))
                print(parts[-1], flush=True)
        if options.case is None:
            write_section(name, "\n".join(parts))
            if hasattr(module, "report"):
                print(parts[0])


if __name__ == "__main__":
    main()
