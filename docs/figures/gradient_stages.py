"""Draw docs/_static/gradient_stages.svg: a wave, as gradient boosting comes nearer to it."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from margrove import HistGradientBoostingRegressor
from margrove.plot import gradient_stages

TARGET = Path(__file__).parent.parent / "_static" / "gradient_stages.svg"

if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "margrove"  # the same file from the same numbers
    x = np.linspace(0.0, 6.0, 400)[:, None]
    wave = np.sin(x[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=400)
    model = HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=4).fit(x, wave)
    figure = Figure(figsize=(8.0, 5.5), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    gradient_stages(model, x[::4], wave[::4], rounds=(1, 5, 20, 100), axes=panels)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, metadata={"Date": None})
