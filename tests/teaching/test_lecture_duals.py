"""Steps of SMO and of coordinate ascent lie where the formulas of the lectures put them."""

from __future__ import annotations

import numpy as np
import pytest

from margrove import SVC, LinearSVC
from margrove.datasets import make_gaussians
from margrove.exceptions import InvalidDataError
from margrove.teaching.facts.smo import coordinate_path, smo_boxes

X, Y = make_gaussians(40, random_state=2, return_X_y=True)
SIGNS = np.where(Y == 1, 1.0, -1.0)


def dual(alpha, K):
    return alpha.sum() - 0.5 * (alpha * SIGNS) @ K @ (alpha * SIGNS)


@pytest.mark.parametrize("machine", [SVC(kernel="linear", C=0.5), SVC(C=3.0)], ids=["line", "rbf"])
def test_every_step_ends_at_the_clipped_optimum(machine) -> None:
    told = smo_boxes(X, Y, estimator=machine)
    C = machine.C
    K, alpha = machine.fit(X, Y).kernel_(X), np.zeros(len(Y))
    assert len(told.boxes) > 5
    for box in told.boxes:
        i, j = box.first, box.second
        assert box.before == pytest.approx(alpha[[i, j]])
        a1, a2 = box.before
        if SIGNS[i] != SIGNS[j]:
            bounds = max(0.0, a2 - a1), min(C, C + a2 - a1)
        else:
            bounds = max(0.0, a1 + a2 - C), min(C, a1 + a2)
        assert (box.low, box.high) == pytest.approx(bounds)
        E = K @ (alpha * SIGNS) - SIGNS
        eta = K[i, i] + K[j, j] - 2 * K[i, j]
        assert box.unclipped == pytest.approx(a2 + SIGNS[j] * (E[i] - E[j]) / eta)
        assert box.after[1] == pytest.approx(np.clip(box.unclipped, *bounds), abs=1e-5 * C)
        assert box.is_clipped == (not bounds[0] <= box.unclipped <= bounds[1])
        before = dual(alpha, K)
        alpha[[i, j]] = box.after
        assert alpha @ SIGNS == pytest.approx(0.0, abs=1e-9)  # the line is kept
        assert box.gain(*box.after) == pytest.approx(dual(alpha, K) - before, abs=1e-9)
        assert box.gain(*box.after) > 0
        assert box.on_line(box.after[1]) == pytest.approx(box.after, abs=1e-9)


def test_the_unclipped_optimum_is_the_highest_point_of_the_line() -> None:
    for box in smo_boxes(X, Y).boxes[:10]:
        along = np.linspace(box.unclipped - 0.5, box.unclipped + 0.5, 101)
        gains = box.gain(*box.on_line(along).T)
        assert np.argmax(gains) == 50


def test_all_steps_are_told_and_end_at_the_solution() -> None:
    told = smo_boxes(X, Y, estimator=SVC(C=3.0))
    frame = told.frame()
    assert len(frame) == len(told.boxes) <= told.n_steps
    assert frame["is_clipped"].any()
    assert not frame["is_clipped"].all()
    assert (frame["L"] <= frame["H"]).all()


def test_equal_rows_share_a_variable() -> None:
    """Each of two copies may have C: the box is twice as large."""
    twice, labels = np.repeat(X, 2, axis=0), np.repeat(Y, 2)
    told = smo_boxes(twice, labels, estimator=SVC(kernel="linear", C=0.25))
    alone = smo_boxes(X, Y, estimator=SVC(kernel="linear", C=0.5))
    assert told.boxes[0].bounds == (0.5, 0.5)
    assert told.boxes[0].after == pytest.approx(alone.boxes[0].after)


@pytest.mark.parametrize(
    "machine",
    [SVC(C=np.inf), SVC(solver="hull"), SVC(class_weight="balanced"), SVC(fit_intercept=False)],
    ids=["hard", "hull", "weighted", "no bias"],
)
def test_machines_that_take_no_such_steps(machine) -> None:
    with pytest.raises(ValueError, match="estimator must have solver='smo'"):
        smo_boxes(X, Y, estimator=machine)


def test_what_is_no_machine_of_two_classes() -> None:
    with pytest.raises(TypeError, match=r"margrove\.SVC"):
        smo_boxes(X, Y, estimator=LinearSVC())
    with pytest.raises(InvalidDataError, match="two classes"):
        smo_boxes(X, np.arange(len(X)) % 3)


# -- coordinates ---------------------------------------------------------------------------------


def test_each_step_is_the_highest_point_along_its_axis() -> None:
    told = coordinate_path()
    Q = told.curvature
    for k, variable in enumerate(told.variables):
        before, after = told.path[k], told.path[k + 1]
        if variable >= 0:
            slope = 1.0 - Q[variable] @ before
            best = np.clip(before[variable] + slope / Q[variable, variable], 0.0, told.C)
            assert after[variable] == pytest.approx(best, abs=1e-9)
            assert after[1 - variable] == before[1 - variable]
    objectives = told.frame()["objective"]
    assert objectives.is_monotonic_increasing
    assert told.path[-1] == pytest.approx(np.linalg.solve(Q, np.ones(2)), abs=1e-2)
    assert (told.variables >= 0).sum() > 3  # a way to look at


def test_the_box_ends_the_way() -> None:
    machine = SVC(kernel="linear", solver="cd", fit_intercept=False, C=0.3)
    told = coordinate_path([[1.0, 0.2], [-1.0, 0.3]], ["b", "a"], estimator=machine)
    assert told.path.max() == pytest.approx(0.3)
    assert told.C == 0.3


def test_ways_that_cannot_be_drawn() -> None:
    with pytest.raises(InvalidDataError, match="two rows of two classes"):
        coordinate_path(X, Y)
    with pytest.raises(ValueError, match="belong together"):
        coordinate_path(X)
    with pytest.raises(ValueError, match="solver='cd'"):
        coordinate_path(estimator=SVC())
