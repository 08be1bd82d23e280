"""One machine alone, and members that are threads of this process."""

from __future__ import annotations

import numpy as np
import pytest
from tests.members import run_members

from margrove._runtime import ALONE, sum_together


def test_one_machine_changes_nothing():
    sums = np.array([1.5, -2.0])
    ALONE.sum(sums)
    ALONE.max(sums)
    assert sums.tolist() == [1.5, -2.0]
    assert ALONE.gather("own") == ["own"]
    assert (ALONE.rank, ALONE.size) == (0, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_members_have_the_same_sums(size):
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(size, 7))

    def member(collective, own):
        total, largest = own.copy(), own.copy()
        collective.sum(total)
        collective.max(largest)
        return total, largest, collective.gather(collective.rank)

    found = run_members(member, [(row,) for row in rows])
    for total, largest, ranks in found:
        assert total.tobytes() == found[0][0].tobytes()
        np.testing.assert_allclose(total, rows.sum(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(largest, rows.max(axis=0))
        assert ranks == list(range(size))


@pytest.mark.parametrize("size", [1, 3])
def test_arrays_are_summed_in_one_message(size):
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(size, 2, 3)), rng.normal(size=(size, 1)), rng.normal(size=(size, 0, 4))

    def member(collective, *own):
        total = [array.copy() for array in own]
        total[0] = total[0].T  # need not be contiguous
        sum_together(collective, *total)
        return total, collective.n_calls

    for total, n_calls in run_members(member, list(zip(*rows, strict=True))):
        assert n_calls == (size > 1)
        np.testing.assert_allclose(total[0].T, rows[0].sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(total[1], rows[1].sum(axis=0), rtol=1e-12)
        assert total[2].shape == (0, 4)


def test_the_error_of_a_member_ends_all():
    def member(collective, own):
        if own == 1:
            raise ZeroDivisionError("the second member")
        collective.sum(np.ones(3))

    with pytest.raises(ZeroDivisionError, match="second"):
        run_members(member, [(0,), (1,), (2,)])
