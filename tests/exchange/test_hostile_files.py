"""Model files that were cut off, damaged or made up, and processes that die while they save."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.exchange.golden_files import path_of
from tests.exchange.zoo import ZOO

from margrove._files import pack, unpack
from margrove.exceptions import ModelFileError
from margrove.exchange.model_file.files import inspect_file, load

ROOT = Path(__file__).parents[2]


def golden(name: str) -> bytes:
    return path_of(name).read_bytes()


def test_cut_off_at_any_byte() -> None:
    for name in ("LinearSVR", "tree of classes"):
        data = golden(name)
        for size in range(len(data)):
            with pytest.raises(ModelFileError):
                load(io.BytesIO(data[:size]))


def test_any_flipped_byte() -> None:
    data, dice = golden("LinearSVR"), random.Random(0)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= dice.randrange(1, 256)
        with pytest.raises(ModelFileError):
            load(io.BytesIO(damaged))
        with pytest.raises(ModelFileError):
            inspect_file(io.BytesIO(damaged))


@pytest.mark.parametrize("name", ZOO)
def test_some_flipped_bytes(name) -> None:
    data, dice = golden(name), random.Random(name)
    for _ in range(20):
        damaged = bytearray(data)
        for _ in range(dice.randrange(1, 5)):
            damaged[dice.randrange(len(data))] ^= dice.randrange(1, 256)
        with pytest.raises(ModelFileError):
            load(io.BytesIO(damaged))


# -- sealed again --


def altered(name: str, alter: Callable[[dict[str, Any]], Any]) -> io.BytesIO:
    """The file of a model with another value in it; its digest is right."""
    kind, values = unpack(golden(name))
    alter(values)
    return io.BytesIO(b"".join(pack(kind, values)))


def put(*path: Any) -> Callable[[dict[str, Any]], None]:
    """put("fitted", "support_", 3, -1): values["fitted"]["support_"][3] = -1."""
    *way, key, value = path

    def alter(values: Any) -> None:
        for step in way:
            values = values[step]
        values[key] = value

    return alter


TREE = ("fitted", "arrays_")
FOREST = ("fitted", "trees_", 0)
STEP = ("parameters", "steps", 0, 1, "fitted")
ROUND = ("fitted", "_rounds", 0, 0)
MACHINE_TABLE = "machine of a raw table"
PREPARED = ("parameters", "steps", 0, 1, "fitted")
PART = (*PREPARED, "parts_")


@pytest.mark.parametrize(
    ("name", "alter", "reason"),
    [
        # trees
        ("tree of classes", put(*TREE, "children", 0, 10**6), "beyond"),
        ("tree of classes", put(*TREE, "children", 0, -(2**63)), "below"),
        ("tree of classes", put(*TREE, "children", 1, 1), "several parents|contradict"),
        ("tree of classes", put(*TREE, "parent", 1, 2), "contradict"),
        ("tree of classes", put(*TREE, "feature", 0, 3), "feature that is not there"),
        ("tree of classes", put(*TREE, "feature", 0, -(2**31)), "below"),
        ("tree of classes", put(*TREE, "threshold", 0, np.nan), "threshold is missing"),
        ("tree of classes", put(*TREE, "value", 0, np.inf), "not finite"),
        ("tree of classes", put(*TREE, "kind", 0, 9), "not sound"),
        ("tree of classes", put(*TREE, "n_children", 0, 2**31 - 1), "not sound"),
        ("tree of classes", put("fitted", "classes_", np.arange(2)), "n_classes_"),
        ("tree of classes", put("fitted", "n_features_in_", 1), "feature that is not there"),
        ("tree of categories", put(*TREE, "set_start", 0, 2**62), "beyond"),
        ("tree of categories", put(*TREE, "set_size", slice(None), 2**39), "ends after the end"),
        ("tree of many branches", put(*TREE, "branches", slice(None), 99), "no branch"),
        ("tree, oblique", put(*TREE, "set_start", slice(None), 5), "no coefficients"),
        ("tree of names", put("fitted", "feature_names_in_", np.array(["a"], object)), "entries"),
        # forests and boosting
        ("random forest", put(*FOREST, "nodes", 1, 2**33), "not sound"),
        ("random forest", put(*FOREST, "nodes", 1, -1), "not sound"),
        ("random forest", put(*FOREST, "nodes", np.zeros(3, np.int64)), "entries"),
        ("random forest", put(*FOREST, "nodes", np.zeros(4)), "not an array of i8"),
        ("random forest", put("fitted", "kind_", "n_classes", (2,)), "differ|no value"),
        ("random forest", put("fitted", "kind_", "n_categories", 0, 5), "categories_"),
        ("random forest", put("fitted", "trees_", []), "no trees"),
        ("random forest", put("fitted", "n_features_in_", 2**31), "number of columns"),
        ("random forest", put("fitted", "sampled_", "rows", 0, 10**6), "not there"),
        ("random forest of categories", put("fitted", "categories_", "pairs", []), "categories_"),
        ("random forest with samples",
         put("fitted", "leaf_samples_", "ranks", 0, 0, 10**6), "beyond"),
        ("random forest with samples",
         put("fitted", "leaf_samples_", "starts", 0, 1, 10**6), "do not add up"),
        ("boosting by histograms", put(*ROUND, "nodes", 1, 2**33), "not sound"),
        ("boosting by histograms", put("fitted", "_rounds", 0, []), "entries"),
        ("boosting by histograms", put("fitted", "_start", np.zeros(2)), "entries"),
        ("boosting by histograms", put("fitted", "_loss", "n_classes", 4), "entries"),
        ("boosting by histograms", put("fitted", "classes_", np.arange(9)), "one a score"),
        ("AdaBoost", put("fitted", "_members", "found", "classes", 0, 7), "not there"),
        ("AdaBoost", put("fitted", "_members", "found", "feature", 0, 7), "not there"),
        ("AdaBoost", put("fitted", "estimator_weights_", np.ones(2)), "entries"),
        ("AdaBoost of trees", put("fitted", "_members", "trees", ()), "entries|no members"),
        ("AdaBoost of machines", put("fitted", "n_features_in_", 2**31), "number of columns"),
        ("AdaBoost of numbers", put("fitted", "estimator_weights_", 0, -1.0), "below"),
        ("AdaBoost of numbers", put("fitted", "estimator_weights_", 0, np.nan), "below"),
        ("bagging", put("fitted", "estimators_features_", 0, 0, 99), "beyond"),
        ("bagging", put("fitted", "estimators_features_", 0, np.arange(2)), "number of columns"),
        ("bagging", put("fitted", "_samples", 1, 0, 5), "beyond"),
        ("bagging", put("fitted", "_samples", 0, 0, "line", "ends", 0, 10**6), "ascend"),
        ("bagging", put("fitted", "estimators_", 0, "x"), "not an estimator"),
        # margin machines
        ("SVC", put("fitted", "dual_coef_", np.ones((1, 3))), "entries"),
        ("SVC", put("fitted", "dual_coef_", 0, np.nan), "not finite"),
        ("SVC", put("fitted", "support_vectors_", 0, np.inf), "not finite"),
        ("SVC", put("fitted", "n_support_", np.array([-5, 50], np.int32)), "below"),
        ("SVC", put("fitted", "intercept_", np.zeros(3)), "entries"),
        ("SVC", put("fitted", "kernel_", "gamma", -1.0), "negative"),
        ("SVC", put("fitted", "kernel_", {"is": "os.system"}), "this margrove knows"),
        ("SVC", put("fitted", "kernel_", "rbf"), "is a str"),
        ("SVC", put("fitted", "classes_", np.array(["no"])), "entries|fewer"),
        ("SVC, precomputed", put("fitted", "support_", 0, 40), "not there"),
        ("SVC, sparse", put("fitted", "n_features_in_", 2), "entries"),
        ("LinearSVC", put("fitted", "coef_", np.zeros((3, 2))), "entries"),
        ("LinearSVC", put("fitted", "coef_", [1, 2]), "not an array"),
        ("LinearSVC of a stream", put("fitted", "_stream", "V", np.zeros((3, 9))), "entries"),
        ("PolynomialMap", put("fitted", "_parent", 3, 7), "no parent"),
        ("PolynomialMap", put("fitted", "_variable", 3, 7), "beyond"),
        # around them
        ("pipeline of texts",
         put("parameters", "steps", 0, ("a", {"is": "sklearn.svm.SVC"})), "this margrove knows"),
        ("pipeline of rare categories", put(*STEP, "_n_features_outs", [1]), "add up"),
        ("pipeline of rare categories",
         put(*STEP, "_default_to_infrequent_mappings", 0, 0, 9), "add up"),
        ("pipeline of a table",
         put(*STEP, "transformers_", 1, 1, "fitted", "categories_", [np.arange(4)[::-1]]),
         "not sorted"),
        ("pipeline of texts", put(*STEP, "vocabulary_", "the", 10**6), "numbered"),
        ("pipeline", put(*STEP, "mean_", np.zeros(2)), "entries"),
        ("pipeline", put("parameters", "memory", "/tmp"), "has an entry 'memory'"),
        ("SVC", put("parameters", "C", {"is": "type", "name": "os.system"}), "not known"),
        ("SVC", put("parameters", "callback", 1), "has an entry 'callback'"),
        ("SVC", put("fitted", "__class__", 1), "has an entry '__class__'"),
        ("SVC", put("fitted", "_record", 1), "has an entry '_record'"),
        ("SVC", put("extra", 1), "has an entry 'extra'"),
        ("SVC", put("parameters", []), "altered|contradict"),
        # raw tables
        (MACHINE_TABLE, put(*PREPARED, "parts_", ()), "not those of columns_"),
        (MACHINE_TABLE, put(*PREPARED, "columns_", ()), "entries"),
        (MACHINE_TABLE, put(*PREPARED, "_form", "forest"), "none of"),
        (MACHINE_TABLE, put(*PREPARED, "is_sparse_", 2), "neither True nor False"),
        (MACHINE_TABLE, put(*PREPARED, "feature_names_in_", 0, "width"), "other columns"),
        (MACHINE_TABLE, put(*PART, 0, "scale", 0.0), "below"),
        (MACHINE_TABLE, put(*PART, 0, "scale", np.nan), "not finite"),
        (MACHINE_TABLE, put(*PART, 0, "name", "width"), "not those of columns_"),
        (MACHINE_TABLE, put(*PART, 0, "fill", "x"), "not a number"),
        (MACHINE_TABLE, put(*PART, 1, "labels", np.array(["b", "a"], object)), "not sorted"),
        (MACHINE_TABLE, put(*PART, 1, "labels", np.array([1, 2], object)), "not all text"),
        (MACHINE_TABLE, put(*PART, 1, "other", "blue"), "one of the labels"),
        (MACHINE_TABLE, put(*PART, 2, "parts", ("days", "second")), "none of|entries"),
        (MACHINE_TABLE, put(*PART, 2, "parts", ("days", "days")), "twice"),
        (MACHINE_TABLE, put(*PART, 2, "fill", np.zeros(99)), "entries"),
        (MACHINE_TABLE, put(*PART, 3, "weights", np.zeros(99)), "entries"),
        (MACHINE_TABLE, put(*PART, 3, "weights", 0, -1.0), "below"),
        (MACHINE_TABLE, put(*PREPARED, "columns_", 0, "type", "text"), "is a NumberPart"),
        (MACHINE_TABLE, put(*PREPARED, "columns_", 0, "type", "os"), "none of"),
        (MACHINE_TABLE, put("about", 3), "about is a int"),
        (MACHINE_TABLE, put("about", {"a": np.zeros(3)}), r"about\['a'\] is a ndarray"),
        (MACHINE_TABLE, put("about", {"a": [[[[[[1]]]]]]}), "nested"),
    ],
)  # fmt: skip
def test_altered_values_are_refused_though_the_digest_is_right(name, alter, reason) -> None:
    with pytest.raises(ModelFileError, match=reason):
        load(altered(name, alter))


def test_kinds_that_are_not_known() -> None:
    for kind in ("os.system", "sklearn.svm.SVC", "builtins.eval", "kinds", "", "x" * 10_000):
        data = b"".join(pack(kind, {"parameters": {}, "fitted": {}}))
        with pytest.raises(ModelFileError, match="which is not a model that this margrove knows"):
            load(io.BytesIO(data))


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"tests.exchange.{module}", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def assert_nothing_crashes(seed: int, count: int) -> str:
    found = run("altered_files", seed, count)
    assert found.returncode == 0, found.stderr[-2000:]
    outcomes = {line[7:]: int(line[:6]) for line in found.stdout.splitlines()}
    assert outcomes["refused"] + outcomes["loaded"] == count
    assert min(outcomes["refused"], outcomes["loaded"]) > count // 10
    return found.stdout


def test_sealed_again_nothing_crashes() -> None:
    assert_nothing_crashes(seed=0, count=300)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 6))
def test_sealed_again_nothing_crashes_in_the_long_run(seed) -> None:
    assert_nothing_crashes(seed=seed, count=2000)


def kill(folder: Path, count: int) -> dict[str, int]:
    found = run("killed_savers", folder, count)
    assert found.returncode == 0, found.stderr[-2000:]
    seen: dict[str, int] = json.loads(found.stdout)
    return seen


def test_killed_while_saving_the_file_is_whole(tmp_path) -> None:
    seen = kill(tmp_path, 20)
    assert seen["kills"] == seen["whole"] == 20
    assert seen["under way"] > 0


@pytest.mark.nightly
def test_killed_two_hundred_times(tmp_path) -> None:
    seen = kill(tmp_path, 200)
    assert seen["kills"] == seen["whole"] == 200
    assert min(seen["under way"], seen["model 0"], seen["model 1"]) > 20
