"""A real browser opens reports full of hostile names, and nothing runs, loads or complains."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from tests.workbench.report.pages import Page
from tests.workbench.report.payloads import RUN, payloads

from margrove import DecisionTreeClassifier
from margrove.workbench.report import report

_BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
     if (found := shutil.which(name))),
    None,
)  # fmt: skip

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(_BROWSER is None, reason="there is no Chromium to open pages with"),
]

_SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0", "--virtual-time-budget=2000",
)  # fmt: skip


def _opened(path, tmp_path) -> tuple[str, str]:
    """The page after its script has run, and the messages of the browser."""
    done = subprocess.run(
        [str(_BROWSER), *_SWITCHES, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
         path.as_uri()],
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def _messages(log: str) -> list[str]:
    return [line for line in log.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("part", range(5))
def test_hostile_names_run_nothing(part, tmp_path) -> None:
    names = payloads()[part * 50 : (part + 1) * 50]
    assert names
    generator = np.random.default_rng(0)
    X = pd.DataFrame(
        generator.normal(size=(150, len(names))), columns=pd.Index(names, dtype=object)
    )
    labels = [name for name in names if "\ud800" not in name and name.strip("\0")][:20]
    y = np.array((labels * 150)[:150], dtype=object)
    X[names[0]] = np.arange(150) % len(labels)
    found = report(
        DecisionTreeClassifier(max_depth=4).fit(X, y), X, y, title=names[1], source=names[2],
        recipe={"command": names[3], "target": names[4]},
    )  # fmt: skip
    before = Page(found.html)
    dom, log = _opened(found.save(tmp_path / "report.html"), tmp_path)
    after = Page(re.sub(r"^\s*<!DOCTYPE html>", "", dom, flags=re.IGNORECASE))
    assert _messages(log) == []
    assert after.texts["title"][0] == before.texts["title"][0]  # a payload that runs sets it
    classes = after.all("html")[0].get("class") or ""
    assert classes == "js"  # our own script has run
    assert {tag for tag, _ in after.tags} <= {tag for tag, _ in before.tags}
    for _, attributes in after.tags:
        assert not [name for name in attributes if name.startswith("on")]


def test_the_policy_stops_what_escaping_would_have_let_through(tmp_path) -> None:
    """Injected markup does not run; without the policy it does."""
    X = np.arange(12.0)[:, None]
    found = report(DecisionTreeClassifier().fit(X, X[:, 0] > 5), X, X[:, 0] > 5, title="mine")
    forced = found.html.replace(
        "<main>", f'<main><script>{RUN}</script><img src=x onerror="{RUN}">', 1
    )
    titles = {}
    for name, html in {
        "kept": forced,
        "removed": forced.replace("Content-Security-Policy", "X-Nothing"),
    }.items():
        path = tmp_path / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        titles[name] = Page(_opened(path, tmp_path)[0]).texts["title"][0]
    assert titles == {"kept": "mine", "removed": "pwned"}


def test_a_harmless_report_has_no_complaints_and_its_script_works(tmp_path) -> None:
    X = np.arange(60.0)[:, None] % 7
    y = np.where(X[:, 0] > 3, "high", "low")
    model = DecisionTreeClassifier().fit(X, y)
    path = report(model, X, y).save(tmp_path / "report.html")
    dom, log = _opened(path, tmp_path)
    page = Page(dom)
    assert _messages(log) == []
    heads = [button for button in page.all("button") if button.get("type") == "button"]
    assert len(heads) > 5  # heads of tables that sort
    groups = [group for group in page.all("g") if group.get("class") == "tree-group"]
    assert all(group.get("tabindex") == "0" for group in groups)
