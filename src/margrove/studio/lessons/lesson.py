"""A lesson: some text, a picture beside it, and a question whose answer the library computes."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from margrove.studio.content import Scene, StudioError, points_of, scene_from
from margrove.studio.pictures import missing

__all__ = ["Choice", "Count", "Lesson", "Measure", "Right", "fitted_to", "preset_scene"]

Stage = Literal["playground", "steps", "compare", "map", "tree", "impurity", "bootstrap"]

_LONGEST = 60  # characters of an answer
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.IGNORECASE)


# -- right answers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A number, the tolerance of answers, and why it is that number."""

    value: float
    tolerance: float
    why: str

    def check_answer(self, given: float | str) -> tuple[bool, str]:
        is_right = isinstance(given, float) and abs(given - self.value) <= self.tolerance
        begin = "Right:" if is_right else "No, it is"
        return is_right, f"{begin} {self.value + 0.0:.4g}. {self.why}"


@dataclass(frozen=True)
class Count:
    """A whole number, and why it is that number."""

    value: int
    why: str

    def check_answer(self, given: float | str) -> tuple[bool, str]:
        is_right = given == self.value
        return is_right, f"{'Right:' if is_right else 'No, it is'} {self.value}. {self.why}"


@dataclass(frozen=True)
class Choice:
    """The choices that are right, and why."""

    right: tuple[str, ...]
    why: str

    def check_answer(self, given: float | str) -> tuple[bool, str]:
        is_right = given in self.right
        return is_right, f"{'Right:' if is_right else 'No, not'} {given}. {self.why}"


Right = Measure | Count | Choice


def _number_in(answer: str) -> float | None:
    """The number in a text such as 0.25, 0,25, 25 % or 1/4; None if there is none."""
    text = answer.strip()
    if not text or len(text) > _LONGEST:
        return None
    text, percent = (text[:-1].strip(), 0.01) if text.endswith("%") else (text, 1.0)
    terms = [_plain_number(term.strip()) for term in text.split("/")]
    if len(terms) > 2 or any(term is None for term in terms):
        return None
    numerator, *rest = (term for term in terms if term is not None)
    if rest and rest[0] == 0.0:
        return None
    found = percent * numerator / (rest[0] if rest else 1.0)
    return found if math.isfinite(found) else None


def _plain_number(text: str) -> float | None:
    text = text.replace(",", ".").replace("\N{MINUS SIGN}", "-")
    return float(text) if _NUMBER.fullmatch(text) else None


# -- lessons ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """Some text, a picture beside it, and a question.

    Attributes
    ----------
    name, title : str
    text : str
        Paragraphs of a few sentences each, with an empty line between them.
    stage : str
        The kind of the picture beside the text.
    question, hint : str
    right : callable
        ``right(scene)`` computes the right answer from the points on the page. The scene is None
        for stages without points.
    make_scene : callable, optional
        Makes the scene that the lesson starts from; it is always the same.
    others : tuple of dict
        Further learners of a comparison.
    steps, table : str, optional
    choices : tuple of str
        Empty: the answer is a number to type.
    values : tuple of float
        The numbers to resample, for "bootstrap".
    """

    name: str
    title: str
    text: str
    stage: Stage
    question: str
    hint: str
    right: Callable[[Any], Right]
    make_scene: Callable[[], Scene] | None = None
    others: tuple[dict[str, Any], ...] = ()
    steps: str | None = None
    table: str | None = None
    choices: tuple[str, ...] = ()
    values: tuple[float, ...] = ()

    @cached_property
    def paragraphs(self) -> tuple[str, ...]:
        """The text without its line breaks."""
        return tuple(" ".join(paragraph.split()) for paragraph in self.text.strip().split("\n\n"))

    @cached_property
    def scene(self) -> Scene | None:
        """The scene that the lesson starts from."""
        return None if self.make_scene is None else self.make_scene()

    def as_dict(self) -> dict[str, Any]:
        """`Lesson` of the protocol."""
        return {
            "name": self.name,
            "title": self.title,
            "paragraphs": list(self.paragraphs),
            "stage": self.stage,
            "scene": None if self.scene is None else self.scene.as_dict(),
            "others": [dict(other) for other in self.others],
            "steps": self.steps,
            "table": self.table,
            "question": self.question,
            "choices": list(self.choices),
            "values": list(self.values),
            "hint": self.hint,
        }

    def check(self, answer: Any, scene: Scene | None = None) -> dict[str, Any]:
        """Judge an answer: `Checked` of the protocol.

        Parameters
        ----------
        answer : str
            As it was typed or chosen; it is not trusted.
        scene : Scene, optional
            The scene on the page, whose points may have been moved. By default that of the lesson.

        Returns
        -------
        dict

        Examples
        --------
        >>> from margrove.studio.lessons import LESSONS
        >>> LESSONS["impurity"].check("0.46875")["isRight"]
        True
        """
        given = self._read(answer if isinstance(answer, str) else "")
        if given is None:
            return {"isRight": False, "text": self._how_to_answer()}
        is_right, why = self.right(self._on_page(scene)).check_answer(given)
        return {"isRight": is_right, "text": why}

    def _read(self, answer: str) -> float | str | None:
        """The number or the choice in an answer; None if there is none."""
        if not self.choices:
            return _number_in(answer)
        text = answer.strip().casefold()
        return next((choice for choice in self.choices if choice.casefold() == text), None)

    def _how_to_answer(self) -> str:
        if self.choices:
            return f"Choose one of these: {', '.join(self.choices)}."
        return "That is not a number. Type one, such as 3, 0.25 or 1/4."

    def _on_page(self, scene: Scene | None) -> Scene | None:
        """The scene of the page, if it has the points that the lesson is about."""
        if self.scene is None or scene is None or scene.task != self.scene.task:
            return self.scene
        return scene


def preset_scene(
    preset: str,
    learner: str,
    parameters: dict[str, Any] | None = None,
    *,
    size: int = 40,
    noise: float = 0.0,
    seed: int = 0,
    test_share: float = 0.0,
) -> Scene:
    """A scene with the points of a preset."""
    points = points_of(preset, size=size, noise=noise, seed=seed)
    return scene_from(
        points
        | {
            "version": 1,
            "testShare": test_share,
            "seed": seed,
            "learner": learner,
            "parameters": parameters or {},
        }
    )


def fitted_to(scene: Scene, learner: str, **parameters: Any) -> Any:
    """A learner fitted to the training points of a scene.

    `parameters` override those of the scene, which count if it has the same learner.
    """
    current = scene.parameters if scene.learner == learner else {}
    asked = scene.with_learner(learner, {**current, **parameters})
    lacking = missing(asked)
    if lacking:
        raise StudioError(lacking)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture shows the warnings
        try:
            return asked.estimator().fit(*asked.training())
        except (ValueError, ArithmeticError) as error:
            raise StudioError(f"{learner}: {error}") from error
