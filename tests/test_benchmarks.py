"""The harness claims nothing that it has not seen."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def compare():
    specification = importlib.util.spec_from_file_location("compare", HERE / "compare.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["compare"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["compare"]


class Clock:
    """Goes on when somebody works."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def work(self, seconds, result):
        self.now += seconds
        return result


def contest(compare, our_quality, peer_quality, decisive="accuracy", allowance=0.0):
    clock = Clock()
    case = compare.Case(
        name="a case",
        data=lambda: None,
        ours={"margrove": lambda data: clock.work(0.01, our_quality)},
        peers={
            "slow": lambda data: clock.work(0.02, peer_quality),
            "slower": lambda data: clock.work(0.04, peer_quality),
        },
        quality=lambda result, data: {"accuracy": result},
        decisive=decisive,
        allowance=allowance,
        repeats=2,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "time", clock)
        return compare.run_case(case, "nothing", None, with_memory=False)


def test_ratios_to_each_peer_and_to_the_fastest(compare) -> None:
    table = contest(compare, 0.9, 0.9)
    assert table.count("x |") == 2
    assert "to the fastest peer (slow): " in table
    assert "no claim" not in table


@pytest.mark.parametrize(
    ("ours", "peers", "decisive", "allowance", "claimed"),
    [
        (0.8, 0.9, "accuracy", 0.0, False),
        (0.8, 0.9, "accuracy", 0.2, True),
        (0.9, 0.8, "accuracy", 0.0, True),
        (1e-3, 1e-6, "-accuracy", 0.0, False),
        (1e-6, 1e-3, "-accuracy", 0.0, True),
    ],
)
def test_no_speed_is_claimed_at_lower_quality(
    compare, ours, peers, decisive, allowance, claimed
) -> None:
    table = contest(compare, ours, peers, decisive, allowance)
    assert ("no claim: lower quality" not in table) == claimed


def test_sections_are_replaced_one_by_one(compare, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(compare, "RESULTS", tmp_path / "RESULTS.md")
    compare.write_section("one", "first")
    compare.write_section("two", "second")
    compare.write_section("one", "third")
    text = (tmp_path / "RESULTS.md").read_text()
    assert "first" not in text
    assert text.index("third") < text.index("second")
    assert "cores" in text


def test_every_benchmark_offers_cases_or_a_report() -> None:
    for path in HERE.glob("bench_*.py"):
        source = path.read_text()
        assert "\nCASES = " in source or "\ndef report(" in source, path
