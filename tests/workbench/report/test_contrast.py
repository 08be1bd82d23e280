"""Text has enough contrast with its background in both themes: WCAG's ratio for AA is 4.5."""

from __future__ import annotations

import re
from importlib import resources

import pytest

_STYLE = (
    resources.files("margrove.workbench.report").joinpath("pages", "report.css").read_text("utf-8")
)


def _theme(opening: str) -> dict[str, str]:
    start = _STYLE.index(opening)
    return dict(
        re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", _STYLE[start : _STYLE.index("}", start)])
    )


def _brightness(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _ratio(one: str, other: str) -> float:
    low, high = sorted([_brightness(one), _brightness(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "opening", [":root {", ':root[data-theme="dark"] {'], ids=["light", "dark"]
)
def test_text_has_enough_contrast(opening) -> None:
    theme = _theme(opening)
    pairs = [
        (text, paper) for text in ("ink", "soft", "faint", "accent") for paper in ("paper", "plate")
    ]
    pairs += [(tone, f"{tone}-soft") for tone in ("good", "warning", "critical", "notice")]
    pairs += [
        ("ink", f"{tone}-soft") for tone in ("good", "warning", "critical", "notice", "accent")
    ]
    pairs += [("soft", "notice-soft"), ("soft", "warning-soft"), ("on-heat", "heat")]
    for text, paper in pairs:
        assert _ratio(theme[text], theme[paper]) >= 4.5, (text, paper)


def test_both_ways_to_the_dark_have_the_same_colours() -> None:
    assert _theme(':root[data-theme="dark"] {') == _theme(':root:not([data-theme="light"]) {')
