"""Load files that were altered and sealed again, and ask what has been loaded.

Run as a program, so that a crash is seen: `python -m tests.exchange.altered_files SEED COUNT`.
Loading may raise ModelFileError and nothing else; a model that was loaded may raise what it likes
when it is asked, but it must not crash, hang, or ask for all memory when it is loaded.
"""

from __future__ import annotations

import faulthandler
import io
import random
import resource
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from tests.exchange.golden_files import path_of
from tests.exchange.zoo import ZOO, answers

from margrove._files import pack, seal, unpack
from margrove.exceptions import ModelFileError
from margrove.exchange.model_file.files import load

_STRANGE = (0, 1, -1, 2, 7, 100, 2**15, 2**31 - 1, -(2**31), 2**31, 2**53, 2**63 - 1, -(2**63))
_STRANGE_FLOATS = (0.0, -1.0, 1e300, -1e300, float("nan"), float("inf"), 0.5, 1e9, -0.0)
_HEADER, _DIGEST = 24, 32
_MOST_MEMORY = 6 << 30


def altered_bytes(data: bytes, dice: random.Random) -> bytes:
    """Some bytes are others; the digest is right."""
    body = bytearray(data[_HEADER:-_DIGEST])
    for _ in range(dice.choice([1, 1, 2, 4])):
        place = dice.randrange(len(body))
        match dice.randrange(4):
            case 0:
                body[place] ^= 1 << dice.randrange(8)
            case 1:
                body[place] = dice.choice([0, 1, 255, 127, 128])
            case 2:
                size = dice.choice([4, 8])
                strange = dice.choice(_STRANGE) % 2 ** (8 * size)
                body[place : place + size] = strange.to_bytes(size, "little")
            case _:
                del body[place : place + dice.choice([1, 8])]
    return b"".join(seal([bytes(body)]))


def altered_values(data: bytes, dice: random.Random) -> bytes:
    """One of the values is another; all else fits."""
    kind, values = unpack(data)
    for _ in range(dice.choice([1, 1, 1, 2])):
        container, key = dice.choice(list(_places(values)))
        container[key] = _altered(container[key], dice)
    return b"".join(pack(kind, _with_tuples(values)))


def _places(values: Any) -> Any:
    """All (container, key) of values; tuples have become lists that remember it."""
    items = list(values.items() if isinstance(values, dict) else enumerate(values))
    for key, own in items:
        if type(own) is tuple:
            own = values[key] = _Tuple(own)  # noqa: PLW2901
        yield values, key
        if isinstance(own, (dict, list)):
            yield from _places(own)


class _Tuple(list[Any]):
    """A tuple that can be altered."""


def _with_tuples(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _with_tuples(own) for key, own in values.items()}
    if isinstance(values, list):
        made = [_with_tuples(own) for own in values]
        return tuple(made) if isinstance(values, _Tuple) else made
    return values


def _altered(value: Any, dice: random.Random) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _altered_array(value, dice)
    if sp.issparse(value):
        other = value.copy()
        other.data = _altered_array(other.data, dice)
        return value if len(other.data) != len(value.data) else other
    if isinstance(value, (int, np.integer)):
        return dice.choice([*_STRANGE, value + 1, value - 1])
    if isinstance(value, float):
        return dice.choice(_STRANGE_FLOATS)
    if isinstance(value, str):
        return dice.choice(
            ["", "SVC", "PackedTree", "numbers", "labels", "shares", "\0", value[1:]]
        )
    if isinstance(value, (list, dict)) and value:
        key = dice.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if dice.random() < 0.5:
            del value[key]
        elif isinstance(value, list):
            value.append(value[key])
        return value
    return dice.choice([None, 0, 1.0, "x", [], {}, np.zeros(3)])


def _altered_array(array: np.ndarray, dice: random.Random) -> np.ndarray:
    other = array.copy()
    choice = dice.randrange(6)
    if choice == 0:
        return other[: max(0, len(other) - 1)] if other.ndim else other
    if choice == 1 and other.ndim:
        return np.concatenate([other, other[-1:]])
    if choice == 2:
        other_type = dice.choice(["i4", "i8", "f8", "f4", "u4", "i1"])
        with np.errstate(all="ignore"):
            return other.astype(other_type) if other.dtype.kind in "biuf" else other
    if choice == 3 and other.ndim > 1:
        return other[:, :-1]
    if not other.size or other.dtype.kind not in "biuf":
        return other
    flat = other.reshape(-1)
    if choice == 4 and other.dtype == np.int64:  # a bit of a link
        flat[dice.randrange(flat.size)] ^= np.int64(1) << np.int64(dice.randrange(63))
        return other
    strange = dice.choice(_STRANGE if other.dtype.kind != "f" else _STRANGE_FLOATS)
    if other.dtype.kind in "iu":
        info = np.iinfo(other.dtype)
        strange = min(max(int(strange), int(info.min)), int(info.max))
    with np.errstate(all="ignore"):
        flat[dice.randrange(flat.size)] = strange
    return other


def _complaints(model: Any, X: Any) -> Iterator[str]:
    """Ask a model for all it has; the errors it raises."""
    questions: list[Callable[[], Any]] = [
        lambda: dict(answers(model, X)),
        lambda: model.feature_importances_,
        lambda: model.estimators_samples_,
        lambda: model.estimators_[0].predict(X),
        lambda: model.tree_,
        lambda: model.predict_quantiles(X),
        lambda: model.predict_variance(X),
        lambda: model.predict_interval(X),
        lambda: model.coef_,
    ]
    for question in questions:
        try:
            question()
        except AttributeError:  # most have not all of them
            continue
        except Exception as error:
            yield f"{type(error).__name__}: {str(error)[:40]!r}"


def main(seed: int, count: int) -> None:
    """Alter `count` files and say how it went."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    dice, outcomes = random.Random(seed), Counter[str]()
    files = {name: path_of(name).read_bytes() for name in ZOO}
    names = list(files)
    for number in range(count):
        name = names[number % len(names)]
        alter = altered_values if dice.random() < 0.7 else altered_bytes
        data = alter(files[name], dice)
        signal.alarm(60)
        try:
            model = load(io.BytesIO(data))
        except ModelFileError:
            outcomes["refused"] += 1
            continue
        outcomes["loaded"] += 1
        X = ZOO[name].X
        if isinstance(X, np.ndarray) and number % 3 == 0 and "precomputed" not in name:
            X = np.tile(X, (16, 1))  # many rows go other ways
        outcomes.update(_complaints(model, X))
        signal.alarm(0)
    for outcome, times in outcomes.most_common():
        sys.stdout.write(f"{times:6d} {outcome}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
