"""The bootstrap of a median."""

from __future__ import annotations

from functools import cache

from margrove.studio.content import bootstrapped
from margrove.studio.lessons.lesson import Lesson, Measure

__all__ = ["LESSON", "WAITING_TIMES"]

WAITING_TIMES = (3.0, 4.5, 2.0, 9.5, 5.0, 3.5, 6.0, 2.5, 4.0, 7.5)


@cache
def _right(scene: None) -> Measure:
    found = bootstrapped(WAITING_TIMES, "median", 10_000, 0)
    return Measure(
        float(found.standard_error),
        0.15,
        f"The median itself is {found.estimate:g}, and 95 % of the resamples have one between "
        f"{found.low:g} and {found.high:g}. Other seeds give slightly other numbers; with more "
        "resamples they differ less.",
    )


LESSON = Lesson(
    name="bootstrap",
    title="The bootstrap of a median",
    text="""
    Ten people waited 3, 4.5, 2, 9.5, 5, 3.5, 6, 2.5, 4 and 7.5 minutes. The median is 4.25. How
    far off may it be? Ten others would have waited other times, but nobody asked them.

    The bootstrap asks the same ten again. It draws ten times, with replacement, so that some
    count twice or more and others not at all, and takes the median of that draw. Then it does
    so a thousand times.

    How much these medians differ from each other is about how much the median would differ from
    one group of ten to another. Their standard deviation is the standard error, and the middle
    95 % of them are an interval. No formula for the median was needed: any number that can be
    computed from data can be bootstrapped.
    """,
    stage="bootstrap",
    values=WAITING_TIMES,
    question=(
        "Bootstrap the median of these ten waiting times, with 1000 resamples or more. What is its "
        "standard error?"
    ),
    hint="It is shown beside the histogram. One decimal is enough.",
    right=_right,
)
