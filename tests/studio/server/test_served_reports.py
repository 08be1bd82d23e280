"""Reports that were made in the studio."""

from __future__ import annotations

import numpy as np
import pytest

from margrove import DecisionTreeClassifier
from margrove.studio.server.served_reports import ServedReports, report_headers
from margrove.workbench.report import report


@pytest.fixture(scope="module")
def page():
    pytest.importorskip("jinja2")
    X = np.arange(24.0).reshape(12, 2)
    y = np.arange(12) // 6
    model = DecisionTreeClassifier().fit(X, y)
    return report(model, X, y, title="</title><script>alert(1)</script>").html


def test_a_report_is_served_with_its_own_policy_and_as_a_sandbox(studio, tab, page):
    name = tab.ask("report", html=page)["body"]["report"]
    assert len(name) >= 22
    answer = studio.get(f"/reports/{name}")
    assert answer.text == page
    policy = answer.headers["content-security-policy"]
    assert policy.count("sha256-") == 2
    assert "; sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    # A sandbox with an opener policy is not shown by browsers.
    assert answer.headers["cross-origin-opener-policy"] == "unsafe-none"
    assert studio.get(f"/reports/{name}x").status_code == 404


def test_the_policy_of_a_report_is_that_which_it_was_made_with(page):
    policy = report_headers(page.encode())["content-security-policy"]
    made_with = page.split('Content-Security-Policy" content="')[1].split('"')[0]
    assert policy.startswith(made_with.replace("&#39;", "'"))


@pytest.mark.parametrize(
    "content",
    [
        "default-src *",
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
        "",
    ],
)
def test_130_a_policy_of_somebody_else_is_not_believed(content):
    page = f'<meta http-equiv="Content-Security-Policy" content="{content}"><script>x</script>'
    policy = report_headers(page.encode())["content-security-policy"]
    assert policy.startswith("default-src 'none'; base-uri 'none'")
    assert "script-src" not in policy


def test_the_last_reports_are_kept_under_names_that_cannot_be_guessed():
    reports = ServedReports()
    names = [f"{k:032d}" for k in range(20)]
    for name in names:
        reports.keep(name, name.encode())
    assert [reports.page(name) is not None for name in names] == 4 * [False] + 16 * [True]
    for name in ("short", "../../etc/passwd" + 20 * "x"):
        with pytest.raises(ValueError, match="random"):
            reports.keep(name, b"")
