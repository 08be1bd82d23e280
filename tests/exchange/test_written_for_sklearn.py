"""A program that was written for scikit-learn runs unchanged, and its numbers agree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parent / "written_for_sklearn.py"
SEEDS = range(4)


def scores(*command: str) -> dict[str, np.ndarray]:
    """The scores that the program prints, for some seeds each."""
    found: dict[str, list[float]] = {}
    for seed in SEEDS:
        out = subprocess.run(
            [sys.executable, *command, str(PROGRAM), str(seed)],
            capture_output=True,
            text=True,
            check=True,
        )
        for name, score in json.loads(out.stdout).items():
            found.setdefault(name, []).append(score)
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.nightly
def test_the_numbers_agree_within_the_spread_of_seeds() -> None:
    theirs, ours = scores(), scores("-m", "margrove", "run")
    assert set(ours) - set(theirs) == {"HistGradientBoosting RFE"}  # by our importances
    assert set(theirs) < set(ours)
    apart = {}
    for name in theirs:
        spread = np.hypot(np.ptp(theirs[name]), np.ptp(ours[name]))
        difference = abs(theirs[name].mean() - ours[name].mean())
        if difference > spread + 0.02:
            apart[name] = theirs[name].mean(), ours[name].mean()
    assert not apart
