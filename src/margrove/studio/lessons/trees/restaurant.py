"""The restaurant: a question that gains nothing."""

from __future__ import annotations

from margrove.studio.content import lecture_table
from margrove.studio.lessons.lesson import Choice, Lesson
from margrove.teaching.facts import split_children

__all__ = ["LESSON"]

_TITLES = {
    "Pat": "how full it is (Pat)",
    "Hun": "whether they are hungry (Hun)",
    "Type": "the kind of food (Type)",
    "Est": "how long one waits (Est)",
}
_NOTHING = 1e-9  # bits


def _right(scene: None) -> Choice:
    table = lecture_table("restaurant")
    gains = {
        name: children.gain
        for name, children in zip(
            table.columns, split_children(table.rows, table.target), strict=True
        )
    }
    useless = tuple(_TITLES[name] for name in _TITLES if gains[name] < _NOTHING)
    listed = ", ".join(f"{name} {abs(gains[name]):.3f}" for name in _TITLES)
    return Choice(
        useless,
        f"In bits, the questions gain {listed}. For every kind of food, half of the guests "
        "wait and half of them leave, so the answer gains nothing.",
    )


LESSON = Lesson(
    name="restaurant",
    title="The restaurant: a question that gains nothing",
    text="""
    Twelve guests come to a restaurant where no table is free. Six of them wait, six leave. Ten
    things are known about each: whether there is a bar, how full the place is, what is cooked,
    how long one is told to wait.

    A question is good if the guests differ from answer to answer. After an answer that leaves
    only guests who wait, there is nothing more to ask. After one that leaves as many of both
    kinds, one has learnt nothing.

    Look at the tree: it asks first how full the place is. With nobody there, or only some
    people, all guests that were asked did the same. Only for a full house does it need further
    questions.
    """,
    stage="tree",
    table="restaurant",
    question="One of these questions, asked first, gains nothing at all. Which one?",
    choices=tuple(_TITLES.values()),
    hint="For each answer, count the guests who wait and who leave.",
    right=_right,
)
