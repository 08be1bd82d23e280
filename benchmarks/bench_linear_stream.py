"""partial_fit over ten shuffled chunks of covtype, beside a fit to all of it."""

from __future__ import annotations

import time

import numpy as np

import margrove
from data import ORIGIN, covtype

CHUNKS = 10


def stream(X, y, loss):
    model = margrove.LinearSVC(loss=loss)
    rows = np.random.default_rng(0).permutation(len(y))
    for chunk in np.array_split(rows, CHUNKS):
        model.partial_fit(X[chunk], y[chunk], classes=np.unique(y))
    return model


def report():
    X, codes = covtype(scaled=True)
    lines = [
        f"covtype, scaled, {CHUNKS} shuffled chunks, one pass. {ORIGIN}",
        "",
        "| loss | accuracy of the batch | of the stream | s of the batch | s of the stream |",
        "|---|---|---|---|---|",
    ]
    y = (codes == 1).astype(int)
    for loss in ("squared_hinge", "hinge"):
        margrove.LinearSVC(loss=loss, max_iter=2, tol=0.5).fit(X[:2000], y[:2000])
        stream(X[:2000], y[:2000], loss)  # compiled
        start = time.perf_counter()
        batch = margrove.LinearSVC(loss=loss).fit(X, y)
        middle = time.perf_counter()
        found = stream(X, y, loss)
        end = time.perf_counter()
        lines.append(
            f"| {loss} | {batch.score(X, y):.4f} | {found.score(X, y):.4f} "
            f"| {middle - start:.2f} | {end - middle:.2f} |"
        )
    return "\n".join(lines) + "\n"
