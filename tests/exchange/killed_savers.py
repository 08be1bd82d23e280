"""Processes that are killed while they save, and the file that is there afterwards.

Run as a program: `python -m tests.exchange.killed_savers FOLDER KILLS`. Prints how many kills there
were, how often the file was whole, how often a save was under way, and which models it held.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from margrove.exchange.model_file.files import load, save
from margrove.margin.kernels.feature_maps import PolynomialMap


def _bytes_of(model: PolynomialMap) -> bytes:
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


def _keep_saving(models: list[PolynomialMap], path: Path) -> None:
    number = 0
    while True:
        number += 1
        save(models[number % 2], path)


def main(folder: Path, n_kills: int) -> None:
    """Kill, look, and go on."""
    models = [PolynomialMap(degree=d).fit(np.zeros((1, n))) for d, n in ((4, 24), (3, 50))]
    whole = {_bytes_of(model): k for k, model in enumerate(models)}
    path, dice, seen = folder / "model.margrove", random.Random(0), Counter[str]()
    save(models[0], path)
    for _ in range(n_kills):
        child = os.fork()
        if child == 0:
            _keep_saving(models, path)
        time.sleep(dice.uniform(0.002, 0.05))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        content = path.read_bytes()
        seen["kills"] += 1
        if content in whole:
            seen["whole"] += 1
            seen[f"model {whole[content]}"] += 1
        left = [own for own in folder.iterdir() if own != path]
        seen["under way"] += len(left)
        for own in left:
            own.unlink()
    load(path)
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
