"""Impurity curves, the bootstrap and the lecture tables of the studio."""

from __future__ import annotations

import numpy as np
import pytest
from tests.studio.content.scene_cases import require_sendable

import margrove
from margrove.grove.criteria import CRITERIA
from margrove.studio.content import StudioError
from margrove.studio.content.lectures import (
    LECTURE_TABLES,
    answer_bootstrap,
    answer_impurity,
    bootstrapped,
    impurities_at,
    lecture_table,
)

VALUES = [3.0, 4.5, 2.0, 9.5, 5.0, 3.5, 6.0, 2.5, 4.0, 7.5]


def ask(**changes):
    return {"values": VALUES, "statistic": "median", "resamples": 500, "seed": 0} | changes


# -- impurity --------------------------------------------------------------------------------------


def test_impurity_curves_are_the_criteria():
    told = answer_impurity({"share": 0.25})
    require_sendable(told)
    shares = told["shares"].astype(np.float64)
    assert shares[0] == 0
    assert shares[-1] == 1
    found = {own["name"]: own for own in told["curves"]}
    assert list(found) == ["gini", "entropy", "error"]
    wanted = {
        "gini": 2 * shares * (1 - shares),
        "error": np.minimum(shares, 1 - shares),
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name]["values"], values, atol=1e-6)
    assert found["entropy"]["values"].max() == 1.0
    assert found["gini"]["at"] == 0.375
    assert found["error"]["at"] == 0.25
    assert found["entropy"]["at"] == pytest.approx(0.811278, abs=1e-6)


@pytest.mark.parametrize("share", [0, 1, 0.0, 1.0])
def test_pure_leaves(share):
    assert set(impurities_at(share).values()) == {0.0}
    require_sendable(answer_impurity({"share": share}))


def test_a_registered_criterion_has_a_curve():
    def product(sums, weight):
        return sums[0] * sums[1] / weight**2

    margrove.register_criterion("product of shares", product)
    try:
        assert impurities_at(0.25)["product of shares"] == pytest.approx(0.1875)
    finally:
        del CRITERIA["product of shares"]


@pytest.mark.parametrize(
    "share", [-0.1, 1.1, float("nan"), float("inf"), "0.5", None, True, [0.5], {}]
)
def test_shares_that_are_none(share):
    with pytest.raises(StudioError, match="share must be"):
        answer_impurity({"share": share})
    with pytest.raises(StudioError):
        answer_impurity({})


# -- the bootstrap ---------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_the_bootstrap_is_that_of_the_library(statistic):
    told = answer_bootstrap(ask(statistic=statistic))
    require_sendable(told)
    wanted = margrove.bootstrap(
        VALUES, getattr(np, statistic), n_resamples=500, method="percentile", random_state=0
    )
    assert told["estimate"] == wanted.estimate
    assert (told["low"], told["high"]) == pytest.approx((wanted.low, wanted.high))
    assert told["standardError"] == pytest.approx(wanted.standard_error)
    assert told["counts"].sum() == 500
    assert len(told["edges"]) == len(told["counts"]) + 1
    assert told["edges"][0] <= wanted.resamples.min() + 1e-5
    assert told["edges"][-1] >= wanted.resamples.max() - 1e-5


def test_the_bootstrap_is_the_same_each_time():
    one, other = (answer_bootstrap(ask(seed=5)) for _ in range(2))
    np.testing.assert_array_equal(one["counts"], other["counts"])
    assert not np.array_equal(answer_bootstrap(ask(seed=6))["counts"], one["counts"])


def test_the_standard_error_of_a_mean_is_known():
    found = bootstrapped(VALUES, "mean", 10_000, 0)
    assert found.standard_error == pytest.approx(np.std(VALUES) / np.sqrt(10), rel=0.03)


def test_values_that_are_all_equal():
    told = answer_bootstrap(ask(values=[2.0, 2.0, 2.0]))
    require_sendable(told)
    assert told["low"] == told["high"] == told["estimate"] == 2.0
    assert told["standardError"] == 0.0
    assert told["counts"].sum() == 500


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"values": [1.0]}, "values must be a list of 2"),
        ({"values": []}, "values must be a list of 2"),
        ({"values": "123"}, "values must be a list of 2"),
        ({"values": None}, "values must be a list of 2"),
        ({"values": [1.0, "2"]}, "values must be a number"),
        ({"values": [1.0, True]}, "values must be a number"),
        ({"values": [1.0, float("nan")]}, "values must be a number"),
        ({"values": [1.0, 1e300]}, "values must be a number"),
        ({"values": [[1.0], [2.0]]}, "values must be a number"),
        ({"values": [0.0] * 10_001}, "values must be a list of 2"),
        ({"statistic": "mode"}, "statistic must be"),
        ({"statistic": None}, "statistic must be"),
        ({"statistic": ["mean"]}, "statistic must be"),
        ({"resamples": 1}, "resamples must be"),
        ({"resamples": 10**9}, "resamples must be"),
        ({"resamples": 10.5}, "resamples must be"),
        ({"resamples": float("inf")}, "resamples must be"),
        ({"resamples": "100"}, "resamples must be"),
        ({"seed": -1}, "seed must be"),
        ({"seed": True}, "seed must be"),
        ({"seed": 2**40}, "seed must be"),
    ],
)
def test_requests_that_make_no_sense(change, text):
    with pytest.raises(StudioError, match=text):
        answer_bootstrap(ask(**change))


# -- tables ----------------------------------------------------------------------------------------


def test_tables_of_the_lectures():
    assert {name: own.rows.shape for name, own in LECTURE_TABLES.items()} == {
        "play_tennis": (14, 4),
        "restaurant": (12, 10),
    }
    table = lecture_table("play_tennis")
    assert table.classes == ("no", "yes")
    told = table.as_dict()
    require_sendable(told)
    assert told["rows"][0] == ["sunny", "hot", "high", "weak"]
    assert told["target"][0] == "no"


def test_trees_of_tables_have_names_without_a_package_for_frames():
    tree = lecture_table("play_tennis").fitted()
    texts = [rule.text for rule in margrove.rules(tree)]
    assert "outlook = overcast: yes" in texts
    assert len(texts) == 5
    assert lecture_table("play_tennis").fitted({"max_depth": 1}).get_n_leaves() == 3
    assert lecture_table("play_tennis").fitted({"split": "binary"}).get_n_leaves() > 3


@pytest.mark.parametrize("name", ["", "iris", None, 3, ["play_tennis"], "x" * 9999])
def test_unknown_tables(name):
    with pytest.raises(StudioError, match="There is no"):
        lecture_table(name)


@pytest.mark.parametrize(
    "parameters",
    [
        {"criterion": "squared_error"},
        {"criterion": ["gini"]},
        {"split": "many"},
        {"max_depth": 0},
        {"max_depth": 1.5},
        {"max_depth": True},
        {"max_depth": "2"},
        {"min_samples_leaf": None},
        {"n_jobs": 2},
        {"verbose": 10},
        {3: 4},
        [],
        "criterion",
    ],
)
def test_parameters_that_are_not_offered(parameters):
    with pytest.raises(StudioError):
        lecture_table("play_tennis").fitted(parameters)
