"""Names, numbers, ticks and markup, one by one."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrove.select.calibrate.reliability_figures import wilson_interval
from margrove.workbench.report import charts
from margrove.workbench.report.judgement import r2_interval
from margrove.workbench.report.markup import Markup, as_script_data, tag
from margrove.workbench.report.plot_area import PlotArea
from margrove.workbench.report.scales import Scale, round_ticks, scale_of
from margrove.workbench.report.texts import counted, duration, listed, number, percent, visible


@given(st.text())
def test_visible_text_is_printable_and_short(text) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert shown
    assert len(text) > 60 or "…" not in shown or "…" in text


def test_what_cannot_be_seen_is_escaped() -> None:
    assert visible("a\tb\n") == "'a\\tb\\n'"
    assert visible("") == "''"
    assert visible("x" * 100) == "x" * 59 + "…"
    assert visible("é 漢 א") == "é 漢 א"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (True, "True"),
        (3, "3"),
        (-1234, "\N{MINUS SIGN}1,234"),
        (0.0, "0"),
        (0.123456, "0.1235"),
        (123456.7, "123,457"),
        (1e-9, "1e-09"),
        (1e20, "1e+20"),
        (math.nan, "NaN"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (np.float32(0.5), "0.5"),
        (np.int64(7), "7"),
    ],
)
def test_numbers(value, text) -> None:
    assert number(value) == text


def test_words_for_amounts() -> None:
    assert counted(1, "class") == "1 class"
    assert counted(2000, "class") == "2,000 classes"
    assert percent(0.8642) == "86.4 %"
    assert percent(0.99999) == "more than 99.9 %"
    assert percent(0.00001) == "0.001 %"
    assert percent(1.0) == "100.0 %"
    assert duration(0.0123) == "12.3 ms"
    assert duration(600) == "10 min"
    assert listed(["a", "b", "c"]) == "a, b and c"


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_ticks_are_few_round_and_inside(one, other) -> None:
    low, high = min(one, other), max(one, other)
    ticks = round_ticks(low, high)
    assert 1 <= len(ticks) <= 6
    room = 1e-6 * max(high - low, 1e-300) + 1e-9 * max(abs(low), abs(high))
    assert all(low - room <= tick <= high + room for tick in ticks)
    assert ticks == sorted(ticks)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=8), st.booleans())
def test_scales_take_any_values(values, may_be_log) -> None:
    scale = scale_of(values, 10.0, 90.0, may_be_log=may_be_log)
    assert scale.low < scale.high
    for value in values:
        if math.isfinite(value):
            assert 10.0 <= scale.at(value) <= 90.0
    assert all(10.0 <= scale.at(tick) <= 90.0 for tick, _ in scale.ticks())


def test_a_scale_runs_from_end_to_end() -> None:
    scale = Scale(0.0, 10.0, 100.0, 0.0)
    assert (scale.at(0.0), scale.at(5.0), scale.at(10.0), scale.at(99.0)) == (100.0, 50.0, 0.0, 0.0)
    logarithmic = Scale(1.0, 100.0, 0.0, 1.0, is_log=True)
    assert logarithmic.at(10.0) == pytest.approx(0.5)
    assert [text for _, text in logarithmic.ticks()] == ["1", "10", "100"]


def test_tags_escape_texts_and_attributes() -> None:
    made = tag("text", "<b>", Markup("<i>x</i>"), data_x='"&', none=None)
    assert str(made) == '<text data-x="&quot;&amp;">&lt;b&gt;<i>x</i></text>'


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner, max_size=3)))
def test_data_of_a_script_never_ends_it(value) -> None:
    text = as_script_data({"x": value})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"x": value}


def test_wilson_contains_the_share_and_shrinks() -> None:
    for right, n in [(0, 5), (5, 5), (1, 10), (500, 1000)]:
        low, high = wilson_interval(right / n, n)
        assert 0.0 <= low <= right / n <= high <= 1.0
    assert np.diff(wilson_interval(0.5, 1000)) < np.diff(wilson_interval(0.5, 100))


def test_the_interval_of_r2() -> None:
    generator = np.random.default_rng(0)
    truth = generator.normal(size=300)
    said = truth + 0.5 * generator.normal(size=300)
    low, high = r2_interval(truth, said)
    r2 = 1 - np.sum((truth - said) ** 2) / np.sum((truth - truth.mean()) ** 2)
    assert low < r2 < high
    assert r2_interval(truth, said) == (low, high)
    assert r2_interval(np.ones(50), np.ones(50)) is None


def test_charts_take_what_is_not_finite() -> None:
    nan, inf = math.nan, math.inf
    area = PlotArea(
        {"values": [0, nan, 1]}, {"values": [inf, 1, 2]}, x_title="x", y_title="y", label="l"
    )
    area.line([0, 1, 2, 3], [1.0, nan, 2.0, inf])
    area.dots([0, nan], [1, 1], titles=["a", "b"])
    area.band([0, 1], [0, nan], [1, 1])
    area.spans([0, 1], [0, nan], [1, 1])
    assert "nan" not in area.svg()
    made = [
        charts.ranked_bars(
            ["a", "b"], [nan, 1.0], low=[0, nan], high=[1, inf], title="t", label="l"
        ),
        charts.interval_rows(["a"], [nan], [nan], [nan], series=[0], title="t", label="l"),
        charts.heat_map(["1"], ["2"], [[nan]], x_title="x", y_title="y", label="l"),
        charts.class_map([[nan, 0.5], [0.0, 1.0]], label="l"),
        charts.ranked_bars([], [], title="t", label="l"),
    ]
    for chart in made:
        assert 'nan"' not in chart
        assert 'inf"' not in chart


def test_a_line_of_many_points_is_thinned_and_keeps_its_ends() -> None:
    x = np.linspace(0, 1, 100_000)
    area = PlotArea({"values": x}, {"values": x}, x_title="x", y_title="y", label="l")
    area.line(x, x)
    assert len(area.svg()) < 30_000
