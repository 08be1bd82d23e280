"""Tennis: which question to ask first."""

from __future__ import annotations

from margrove.studio.content import lecture_table
from margrove.studio.lessons.lesson import Lesson, Measure
from margrove.teaching.facts import split_children

__all__ = ["LESSON"]


def _right(scene: None) -> Measure:
    table = lecture_table("play_tennis")
    gains = {
        name: children.gain
        for name, children in zip(
            table.columns, split_children(table.rows, table.target), strict=True
        )
    }
    best = max(gains, key=lambda name: gains[name])
    others = ", ".join(f"{name} {gain:.3f}" for name, gain in gains.items() if name != "wind")
    return Measure(
        gains["wind"],
        0.002,
        f"The other questions gain {others}. So the tree asks for the {best} first.",
    )


LESSON = Lesson(
    name="tennis",
    title="Tennis: which question first",
    text="""
    On fourteen days somebody wrote down the weather and whether there was tennis. A tree asks
    one question after the other until all days that are left agree.

    Which question comes first? The one whose answer tells most. What one does not know is
    measured by the entropy, in bits: 1 if both outcomes are equally likely, 0 if one of them is
    certain. Of all fourteen days, nine with tennis and five without, it is 0.940.

    After a question there is an entropy for each answer. Their mean, weighted by the number of
    days, is what is left. The gain is the entropy before the question minus what is left.
    """,
    stage="tree",
    table="play_tennis",
    question="How many bits does one gain by asking for the wind, before anything else?",
    hint=(
        "With weak wind there were 6 days with tennis and 2 without, with strong wind 3 and 3. The "
        "first group has an entropy of 0.811 bits, the second of 1."
    ),
    right=_right,
)
