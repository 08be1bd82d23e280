"""A table of one's own: loaded, explored, compared, reported; and work that is cancelled."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
from tests.studio.browser.visits import expect
from tests.workbench.report.payloads import payloads


def csv_file(name, head, rows):
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows(rows)
    return {"name": name, "mimeType": "text/csv", "buffer": text.getvalue().encode()}


def flowers(n=90):
    """Three clouds that are easy to tell apart."""
    lot = np.random.default_rng(0)
    kinds = np.arange(n) % 3
    centres = np.array([[0.0, 0.0, 1.0], [3.0, 0.5, 0.0], [0.5, 3.0, 2.0]])
    values = centres[kinds] + 0.6 * lot.standard_normal((n, 3))
    names = np.array(["sage", "mint", "dill"])[kinds]
    rows = [[*np.round(own, 3).tolist(), kind] for own, kind in zip(values, names, strict=True)]
    return csv_file("herbs.csv", ["width", "length", "height", "herb"], rows), values, names


def upload(visit, file):
    visit.open_mode("table")
    visit.at("file-input").set_input_files(file)
    expect(visit.at("columns")).to_be_visible()
    expect(visit.at("table-working")).to_have_count(0)


def test_a_table_is_read_and_explored(visit):
    file, values, names = flowers()
    upload(visit, file)
    expect(visit.at("columns").locator("caption")).to_have_text("herbs.csv: 90 rows, 4 columns")
    expect(visit.at("target")).to_have_value("herb")
    herb = visit.at("columns").get_by_role("row", name=re.compile("^herb"))
    expect(herb.locator("td").nth(1)).to_have_text("3")
    visit.at("feature-0").select_option("width")
    visit.at("feature-1").select_option("length")
    visit.at("explore").click()
    expect(visit.at("mode-playground")).to_be_visible()
    expect(visit.at("stage")).to_have_attribute("data-points", "90")
    expect(visit.at("stage")).to_have_attribute("data-fitted", "yes")
    scene = visit.scene()
    assert scene["features"] == ["width", "length"]
    assert scene["target"] == "herb"
    found = {(*x, scene["classes"][k]) for x, k in zip(scene["x"], scene["y"], strict=True)}
    expected = {
        (*np.round(own[:2], 3).tolist(), str(kind)) for own, kind in zip(values, names, strict=True)
    }
    assert found == expected
    visit.open_mode("table")  # and the table is still open
    expect(visit.at("target")).to_have_value("herb")


def test_learners_are_compared_and_a_report_opens_in_its_sandbox(visit):
    upload(visit, flowers()[0])
    visit.at("table-seconds").select_option("10")
    visit.at("table-compare").click()
    board = visit.at("leaderboard")
    expect(board).to_be_visible(timeout=120_000)
    best = board.locator("tr.is-chosen")
    expect(best).to_contain_text("winner")
    score = float(best.locator("td").first.inner_text())
    assert 0.9 < score <= 1.0
    with visit.page.context.expect_page(timeout=120_000) as opened:
        best.get_by_role("button").click()
    report = opened.value
    report.wait_for_load_state()
    expect(report.locator("h1").first).to_be_visible()
    assert "/reports/" in report.url
    assert report.evaluate("() => window.origin") == "null"  # a sandbox: not the studio's origin
    assert report.evaluate("() => document.documentElement.classList.contains('js')")
    expect(visit.at("report-link")).to_be_visible()


def test_a_comparison_is_cancelled_and_the_page_goes_on(visit):
    upload(visit, flowers(600)[0])
    visit.at("table-seconds").select_option("300")
    visit.at("table-compare").click()
    expect(visit.at("table-working")).to_be_visible()
    expect(visit.at("table-compare")).to_be_disabled()
    visit.at("table-cancel").click()
    expect(visit.at("table-working")).to_have_count(0)
    expect(visit.at("leaderboard")).to_have_count(0)
    expect(visit.at("error")).to_have_count(0)
    visit.at("explore").click()
    expect(visit.at("stage")).to_have_attribute("data-points", "600")
    expect(visit.at("stage")).to_have_attribute("data-fitted", "yes")
    expect(visit.at("train-error")).to_have_text(re.compile("%$"))


def test_what_is_no_table_is_refused_in_words(visit):
    visit.open_mode("table")
    noise = np.random.default_rng(0).bytes(5000)
    visit.at("file-input").set_input_files(
        {"name": "x.parquet", "mimeType": "application/octet-stream", "buffer": noise}
    )
    expect(visit.at("error")).to_contain_text("x.parquet")
    upload(visit, flowers()[0])
    expect(visit.at("error")).to_have_count(0)


# -- names that would like to run ------------------------------------------------------------------

SAFE_TO_SEND = [
    own for own in payloads()
    if own.strip() and "\x00" not in own and "\ud800" not in own and len(own) <= 200
]  # fmt: skip


def require_nothing_ran(visit, title):
    assert visit.page.evaluate("() => window.pwned") is None
    assert visit.page.title() == title
    assert (
        visit.page.locator("main script, main iframe, main [onerror], main [onload]").count() == 0
    )


def hostile_table(names):
    """Their first is the target, whose classes are the next four; all others are columns."""
    target, classes, columns = names[0], names[1:5], names[5:]
    lot = np.random.default_rng(0)
    rows = [
        [*np.round(lot.standard_normal(len(columns)) + k % 4, 2).tolist(), classes[k % 4]]
        for k in range(60)
    ]
    return csv_file(f"{names[-1][:40]}.csv", [*columns, target], rows), columns


@pytest.mark.parametrize("part", range(8))
@pytest.mark.sampled(1)
def test_hostile_names_are_shown_and_run_nothing(visit, part):
    names = SAFE_TO_SEND[part::8]
    file, columns = hostile_table(names)
    upload(visit, file)
    title = visit.page.title()
    shown = visit.at("columns").locator("tbody th").all_text_contents()
    assert len(shown) == len(columns) + 1
    visit.at("target").select_option(index=len(columns))
    visit.at("feature-0").select_option(index=1)
    visit.at("feature-1").select_option(index=2)
    require_nothing_ran(visit, title)
    visit.at("explore").click()
    expect(visit.at("stage")).to_have_attribute("data-points", "60")
    expect(visit.at("stage")).to_have_attribute("data-fitted", "yes")
    visit.at("stage").focus()
    visit.page.keyboard.press("Enter")
    expect(visit.at("readout")).to_be_visible()
    visit.at("show-code").click()
    expect(visit.at("code")).to_contain_text("import margrove")
    visit.at("close-code").click()
    title = visit.page.title()
    require_nothing_ran(visit, title)
    for mode in ("steps", "compare", "tree", "table"):
        visit.open_mode(mode)
        visit.page.wait_for_timeout(300)
        require_nothing_ran(visit, visit.page.title())
        assert "pwned" not in visit.page.title()
