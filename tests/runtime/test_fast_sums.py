"""Sums whose order the compiler chooses: it must not depend on where arrays are in memory.

A loop that also writes to an array is compiled twice, with and without vector registers, and the
code checks at run time whether the arrays are too close to each other. So such loops must not sum.
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import margrove
from margrove.margin.kernels.expansions import write_points

SOURCES = Path(margrove.__file__).parent
# Whole numbers; sums of zeros and ones; sums of which only the sign is used.
EXACT = {"_scan_tile": {"total"}, "visit_lanes": {"idle", "moved"}}


def fast_kernels() -> dict[str, ast.FunctionDef]:
    found = {}
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "fast_sums=True" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and any(
                "fast_sums=True" in ast.unparse(each) for each in node.decorator_list
            ):
                found[f"{path.relative_to(SOURCES).as_posix()} {node.name}"] = node
    return found


def innermost_loops(function: ast.AST) -> list[ast.For | ast.While]:
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For | ast.While)]
    return [
        loop
        for loop in loops
        if not any(isinstance(node, ast.For | ast.While) for node in ast.walk(loop) if node != loop)
    ]


def writes(loop: ast.AST) -> bool:
    targets = [
        target
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return any(isinstance(node, ast.Subscript) for target in targets for node in ast.walk(target))


def sums(loop: ast.AST) -> set[str]:
    return {
        node.target.id
        for node in ast.walk(loop)
        if isinstance(node, ast.AugAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
        and not isinstance(node.value, ast.Constant)
    }


KERNELS = fast_kernels()


def test_there_are_such_kernels() -> None:
    assert len(KERNELS) > 20
    assert any(sums(loop) for each in KERNELS.values() for loop in innermost_loops(each))


@pytest.mark.parametrize("name", KERNELS)
def test_no_loop_both_writes_and_sums(name) -> None:
    function = KERNELS[name]
    for loop in innermost_loops(function):
        if writes(loop):
            assert sums(loop) <= EXACT.get(function.name, set()), f"line {loop.lineno}"


@pytest.mark.parametrize("d", [2, 4, 7, 16, 33])
def test_norms_do_not_depend_on_where_arrays_are(d) -> None:
    rng = np.random.default_rng(d)
    X, origin = rng.normal(size=(64, d)), rng.normal(size=d)
    expected = None
    for gap in (0, 1, 2, 3, 4, 8, 16, 32, 64, 1000):
        memory = np.zeros(d + gap + 64 * d)
        shift, A, norms = memory[:d], memory[d + gap :].reshape(64, d), np.empty(64)
        shift[:] = origin
        write_points(X, 1.0, shift, A, norms)
        assert np.array_equal(A, X - origin)
        expected = norms if expected is None else expected
        assert np.array_equal(norms, expected)
    assert np.allclose(expected, ((X - origin) ** 2).sum(axis=1), rtol=1e-13)
