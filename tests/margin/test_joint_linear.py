"""Linear machines whose rows are on several members: the same objective, the same proof."""

from __future__ import annotations

import tracemalloc
import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.members import run_members
from tests.oracles.linear import best_l1, best_l2, primal_l2

from margrove import LinearSVC, LinearSVR
from margrove.exceptions import DataWarning, InvalidDataError
from margrove.margin.linear import (
    LinearFacts,
    LinearRecord,
    MemberResult,
    RowFacts,
    certificate_of_members,
    member_rows,
    solve_rows,
)
from margrove.margin.solvers.linear import LinearResult

RNG = np.random.default_rng(0)
N, D = 120, 4
X = RNG.normal(size=(N, D)) * [1.0, 3.0, 0.2, 1.0]
SCORES = X @ RNG.normal(size=D) + RNG.normal(size=N)
TWO = (SCORES > 0.5).astype(np.int64)
THREE = np.array(["low", "middle", "up"])[np.digitize(SCORES, [-2.0, 2.0])]
WEIGHT = RNG.integers(0, 4, N).astype(np.float64)
WEIGHT[40:60] = 0.0  # all rows of a member
EDGES = {1: [0, N], 2: [0, 50, N], 4: [0, 1, 40, 60, N]}


@dataclass
class Block:
    """Rows of a member; on disk, X counts how often rows are read."""

    rows: Any
    y: np.ndarray
    weight: np.ndarray | None
    start: int
    is_on_disk: bool = False
    reads: list[int] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return int(self.rows.shape[0])

    def X(self, first: int = 0, last: int | None = None) -> Any:  # noqa: N802
        self.reads.append(self.n_rows if last is None else last - first)
        return self.rows[first:last]


@dataclass(frozen=True)
class Fitted:
    model: Any
    facts: LinearFacts
    members: list[MemberResult]
    blocks: list[list[Block]]
    steps: list[int]

    @property
    def result(self) -> LinearResult:
        return self.members[0].result


def blocks_of(X: Any, y: Any, weight: Any, edges: Any, *, on_disk: bool = False) -> list[Block]:
    return [
        Block(X[a:b], y[a:b], None if weight is None else weight[a:b], a, on_disk)
        for a, b in pairwise(edges)
    ]


def facts_of(model: Any, members: list[list[Block]]) -> LinearFacts:
    is_classifier = isinstance(model, LinearSVC)
    parts = [
        RowFacts.of(block.rows, block.y, block.weight, block.start, 1, of_classes=is_classifier)
        for blocks in members
        for block in blocks
    ]
    return LinearFacts.of(parts, model, None)


def fitted(model: Any, members: list[list[Block]], **settings: Any) -> Fitted:
    """Fit a model to the blocks of members, and set its attributes."""
    kind = "l1" if getattr(model, "penalty", "l2") == "l1" else "l2"
    facts, steps = facts_of(model, members), []

    def run(collective: Any, blocks: list[Block]) -> MemberResult:
        report = (lambda each: steps.append(each.rounds)) if collective.rank == 0 else id
        return solve_rows(collective, model, kind, facts, blocks, report=report, **settings)

    found = run_members(run, [(blocks,) for blocks in members])
    result, nothing = found[0].result, None
    scale = facts.target_scale if facts.classes is None else facts.classes
    vars(model).update(model._learnt(facts.scale, scale, result))
    model._record = LinearRecord(
        None, None, None, model.get_params(), nothing, kind, nothing, result,  # type: ignore[arg-type]
        (facts.scale,) * (1 if kind == "l1" else 2), facts.target_scale,
    )  # fmt: skip
    rows = [member.rows for member in found if member.rows is not None]
    model._record.certificate = certificate_of_members(model._record, facts.classes, rows)
    return Fitted(model, facts, found, members, steps)


def fitted_to(model: Any, y: Any, weight: Any, n_members: int, **settings: Any) -> Fitted:
    members = [[block] for block in blocks_of(X, y, weight, EDGES[n_members])]
    return fitted(model, members, **settings)


MACHINES: dict[str, tuple[Any, Any]] = {
    "squared hinge": (LinearSVC(), TWO),
    "hinge": (LinearSVC(loss="hinge"), TWO),
    "class weights": (LinearSVC(loss="hinge", class_weight={0: 1.0, 1: 2.5}), TWO),
    "three classes": (LinearSVC(C=0.3, class_weight="balanced"), THREE),
    "hinge of three classes": (LinearSVC(loss="hinge", class_weight="balanced"), THREE),
    "no intercept": (LinearSVC(fit_intercept=False, loss="hinge"), TWO),
    "penalised intercept": (LinearSVC(intercept_scaling=2.0, loss="hinge"), TWO),
    "l1": (LinearSVC("l1", C=0.2), TWO),
    "l1 of three classes": (LinearSVC("l1", C=0.2), THREE),
    "tube": (LinearSVR(epsilon=0.3), SCORES * 1e3 + 7.0),
    "squared tube": (LinearSVR(loss="squared_epsilon_insensitive"), SCORES),
    "extreme units": (LinearSVC(C=1e-20), TWO),
}


@pytest.mark.parametrize("n_members", EDGES)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
@pytest.mark.parametrize("name", MACHINES)
def test_objective_and_proof_are_those_of_a_local_fit(name, weight, n_members):
    prototype, y = MACHINES[name]
    settings = prototype.get_params() | {"tol": 1e-9, "solver": "newton"}
    model, local = type(prototype)(**settings), type(prototype)(**settings).fit(X, y, weight)
    found = fitted_to(model, y, weight, n_members)
    for machine, other in zip(
        model.certificate_.machines, local.certificate_.machines, strict=True
    ):
        assert machine.name == other.name
        assert machine.primal == pytest.approx(other.primal, rel=2e-9)
        assert machine.relative_gap <= 1e-9
        assert np.array_equal(machine.rows, other.rows)
        size = np.abs(other.decision).max()
        assert np.allclose(machine.decision, other.decision, rtol=0, atol=1e-3 * size)
    assert np.allclose(model.coef_, local.coef_, rtol=0, atol=1e-3 * np.abs(local.coef_).max())
    for member in found.members:  # bit for bit
        for attribute in ("coef", "intercept", "primal", "dual", "violation"):
            ours, theirs = getattr(found.result, attribute), getattr(member.result, attribute)
            assert np.array_equal(ours, theirs)


def terms(y: np.ndarray, C: np.ndarray, loss: str, epsilon: float = 0.0) -> Any:
    """Target, bounds, damping and tube of each row."""
    squared = loss.startswith("squared")
    bound = np.full(len(y), np.inf) if squared else C
    damping = 0.5 / C if squared else np.zeros(len(y))
    if "hinge" not in loss:
        return y, -bound, bound, damping, epsilon
    signs = np.where(y > 0, 1.0, -1.0)
    low, high = np.where(signs > 0, 0.0, -bound), np.where(signs > 0, bound, 0.0)
    return signs, low, high, damping, 0.0


INTERCEPTS = {"free": (True, None), "none": (False, None), 2.0: (True, 2.0)}


@pytest.mark.parametrize("n_members", EDGES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(
    "loss", ["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"]
)
def test_the_objective_is_the_best_one(loss, intercept, n_members):
    fit_intercept, scaling = INTERCEPTS[intercept]
    kind = LinearSVC if "hinge" in loss else LinearSVR
    model = kind(loss=loss, C=0.7, tol=1e-8, fit_intercept=fit_intercept, intercept_scaling=scaling)
    y = TWO if kind is LinearSVC else SCORES
    fitted_to(model, y, WEIGHT, n_members)
    used = WEIGHT > 0
    given = terms(y[used], 0.7 * WEIGHT[used], loss)
    best = best_l2(X[used], *given, intercept=intercept)
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    reached = primal_l2(X[used], *given, w, b, intercept=intercept)
    proof = model.certificate_
    assert abs(reached - best) <= 1e-6 * best
    assert proof.primal == pytest.approx(reached, rel=1e-9)
    assert proof.dual <= best * (1 + 1e-7)
    assert proof.relative_gap <= 1e-7


@pytest.mark.parametrize("n_members", EDGES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_l1_objective_is_the_best_one(intercept, n_members):
    fit_intercept, scaling = INTERCEPTS[intercept]
    model = LinearSVC("l1", C=0.1, tol=1e-8, fit_intercept=fit_intercept, intercept_scaling=scaling)
    fitted_to(model, TWO, WEIGHT, n_members)
    best = best_l1(X, np.where(TWO > 0, 1.0, -1.0), 0.1 * WEIGHT, intercept=intercept)
    assert model.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert model.certificate_.dual <= best * (1 + 1e-7)


# -- rows in files --


@pytest.fixture
def small_tiles(monkeypatch: Any) -> None:
    monkeypatch.setattr(member_rows, "_TILE_BYTES", 13 * 8 * D)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", MACHINES)
def test_rows_in_files_give_the_same_machine(name, form):
    prototype, y = MACHINES[name]
    models = [type(prototype)(**prototype.get_params() | {"tol": 1e-9}) for _ in range(2)]
    for model, on_disk in zip(models, (False, True), strict=True):
        blocks = blocks_of(form(X), y, WEIGHT, [0, 30, 75, N], on_disk=on_disk)
        fitted(model, [blocks[:2], blocks[2:]])
    proofs = [model.certificate_.machines for model in models]
    for machine, other in zip(*proofs, strict=True):
        assert machine.primal == pytest.approx(other.primal, rel=1e-12)
        assert machine.relative_gap <= 1e-9
        assert np.array_equal(machine.rows, other.rows)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("name", ["squared hinge", "l1", "squared tube"])
def test_rows_in_files_are_read_twice_a_step(name):
    prototype, y = MACHINES[name]
    model = type(prototype)(**prototype.get_params() | {"tol": 1e-9})
    block = blocks_of(X, y, None, [0, N], on_disk=True)
    found = fitted(model, [block], keeps_rows=False)
    # Once at the start; at the end to measure afresh, and for the violations.
    assert sum(block[0].reads) <= (2 * found.result.epochs + 4) * N


@pytest.mark.parametrize("name", ["squared hinge", "hinge", "l1", "tube", "squared tube"])
def test_what_is_kept_of_a_row_in_a_file_is_little(name):
    prototype, _ = MACHINES[name]
    model = type(prototype)(**prototype.get_params() | {"tol": 0.01})
    n = 200_000
    rows = np.random.default_rng(1).normal(size=(n, 4))
    scores = rows @ [1.0, 2.0, 0.5, 0.0] + np.random.default_rng(2).normal(size=n)
    y = scores if isinstance(model, LinearSVR) else (scores > 0).astype(np.int64)
    member = blocks_of(rows, y, None, [0, n], on_disk=True)
    facts = facts_of(model, [member])
    most: list[int] = []

    def run(collective: Any) -> None:
        kind = "l1" if name == "l1" else "l2"
        solve_rows(
            collective, model, kind, facts, member, keeps_rows=False,
            report=lambda report: most.append(tracemalloc.get_traced_memory()[0]),
        )  # fmt: skip

    tracemalloc.start()
    try:
        run_members(run, [()])
    finally:
        tracemalloc.stop()
    assert max(most) < 48 * n  # beside y


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", [name for name in MACHINES if not name.startswith("l1")])
def test_conjugate_gradients_solve_the_same_systems(name, form, on_disk):
    prototype, y = MACHINES[name]
    settings = prototype.get_params() | {"tol": 1e-9}
    model, local = type(prototype)(**settings), type(prototype)(**settings).fit(X, y, WEIGHT)
    blocks = blocks_of(form(X), y, WEIGHT, EDGES[4], on_disk=on_disk)
    fitted(model, [blocks[:1], blocks[1:3], blocks[3:]], by_gradients=True)
    for machine, other in zip(
        model.certificate_.machines, local.certificate_.machines, strict=True
    ):
        assert machine.primal == pytest.approx(other.primal, rel=2e-9)
        assert machine.relative_gap <= 1e-9


def test_machines_for_which_there_is_no_room_are_solved_later():
    models = [LinearSVC(loss="hinge", tol=1e-8) for _ in range(2)]
    steps = []
    for model, most in zip(models, (8, 1), strict=True):
        steps.append(fitted_to(model, THREE, WEIGHT, 2, most_together=most).steps)
    assert np.allclose(models[0].coef_, models[1].coef_, atol=1e-5)
    assert len(steps[1]) > len(steps[0])


# -- starts, steps --


@pytest.mark.parametrize("name", ["squared hinge", "hinge", "l1 of three classes"])
def test_a_start_from_the_solution_takes_fewer_steps(name):
    prototype, y = MACHINES[name]
    model = type(prototype)(**prototype.get_params() | {"tol": 1e-6})
    first = fitted_to(model, y, None, 2)
    again = fitted_to(model, y, None, 4, start=first.result)
    assert again.result.epochs <= first.result.epochs
    assert model.certificate_.relative_gap <= 1e-6


def test_reports_are_complete_steps():
    model = LinearSVC(loss="hinge", tol=1e-9)
    reports: list[Any] = []
    members = [[block] for block in blocks_of(X, THREE, WEIGHT, EDGES[2])]
    facts = facts_of(model, members)

    def run(collective: Any, blocks: Any) -> MemberResult:
        report = reports.append if collective.rank == 0 else id
        return solve_rows(collective, model, "l2", facts, blocks, report=report)

    result = run_members(run, [(blocks,) for blocks in members])[0].result
    assert [report.rounds for report in reports] == list(range(len(reports)))
    assert [report.is_over for report in reports] == [False] * (len(reports) - 1) + [True]
    signs = np.where(THREE[:, None] == np.unique(THREE), 1.0, -1.0)
    for report in reports:
        ((machines, news),) = report.news
        assert machines == range(3)
        slack = np.maximum(0.0, 1.0 - signs * (X @ news.coef.T + news.intercept))
        objective = 0.5 * (news.coef**2).sum(axis=1) + WEIGHT @ slack
        assert np.allclose(news.primal, objective, rtol=1e-9)
        assert (news.dual <= result.primal).all()


# -- what all rows say --


def test_facts_about_parts_are_those_of_all_rows():
    model = LinearSVC(class_weight="balanced")
    whole = facts_of(model, [blocks_of(X * 1e12, THREE, WEIGHT * 1e-180, [0, N])])
    parts = facts_of(model, [blocks_of(X * 1e12, THREE, WEIGHT * 1e-180, EDGES[4])])
    assert whole.scale == parts.scale != 1.0
    assert whole.classes.tolist() == parts.classes.tolist() == ["low", "middle", "up"]
    assert np.allclose(whole.factors, parts.factors)
    assert whole.largest == pytest.approx(parts.largest)
    weights = np.concatenate([parts.weights_of(WEIGHT[a:] * 1e-180, N - a)[:1] for a in range(N)])
    assert np.array_equal(weights, whole.weights_of(WEIGHT * 1e-180, N))
    assert 1.0 <= weights.max() < 2.0


def local_error(model: Any, *given: Any) -> str:
    with pytest.raises(InvalidDataError) as caught:
        model.fit(*given)
    return str(caught.value)


BAD = X.copy()
BAD[77, 3], BAD[100, 0] = np.nan, np.inf


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (LinearSVC(), (BAD, TWO, None)),
        (LinearSVC(), (X, np.zeros(N, np.int64), None)),
        (LinearSVC(), (X, TWO, np.zeros(N))),
        (LinearSVC(), (X, TWO, -np.ones(N))),
        (LinearSVC(), (X, TWO, TWO.astype(float))),
        (LinearSVR(), (X, SCORES, np.zeros(N))),
    ],
    ids=["not finite", "one class", "no weights", "negative", "one class left", "regression"],
)
def test_errors_are_those_of_a_local_fit(model, given):
    with pytest.raises(InvalidDataError) as caught:
        facts_of(model, [blocks_of(*given, EDGES[4])])
    assert str(caught.value) == local_error(model, *given)


def test_warnings_are_those_of_a_local_fit():
    weight = np.where(np.arange(N) == 90, -1.0, WEIGHT)
    weight[THREE == "low"] = 0.0
    caught = []
    for fit in (
        lambda: facts_of(LinearSVC(), [blocks_of(X * [1e9, 1, 1, 1], THREE, weight, EDGES[4])]),
        lambda: LinearSVC().fit(X * [1e9, 1, 1, 1], THREE, weight),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fit()
        caught.append(sorted(str(each.message) for each in found if each.category is DataWarning))
    assert caught[0] == caught[1]
    assert len(caught[0]) == 3


def test_constant_targets_are_the_intercept():
    model = LinearSVR(tol=1e-8)
    fitted_to(model, np.full(N, 7.0), None, 4)
    assert np.allclose(model.coef_, 0.0)
    assert model.intercept_ == pytest.approx(7.0)
