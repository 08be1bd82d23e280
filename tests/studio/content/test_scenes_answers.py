"""Every kind of request has an answer, and hostile ones get an error in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.studio.content.scene_cases import GRID, given, require_sendable

from margrove.studio.content import StudioError
from margrove.studio.worker.answers import ANSWERS
from margrove.studio.worker.worker_main import Job

PROTOCOL = Path(__file__).parents[3] / "studio-ui" / "src" / "protocol.ts"


def ask(kind, **fields):
    return ANSWERS[kind]({"kind": kind, "id": 1, "channel": "c", **fields}, Job())


def test_all_kinds_of_the_protocol_are_answered() -> None:
    if not PROTOCOL.exists():
        pytest.skip("the sources of the page are not there")
    text = PROTOCOL.read_text(encoding="utf-8")
    asks = text[text.index("export type Ask =") : text.index("export type Request")]
    kinds = set(re.findall(r'kind: "([a-z-]+)"', asks)) - {"cancel"}
    assert kinds == set(ANSWERS)


def test_points_pictures_and_code() -> None:
    told = ask("points", preset="circles", size=50, noise=0.1, seed=3)
    scene = given() | told
    require_sendable(told)
    for kind, fields in (
        ("picture", {"scene": scene, "grid": GRID, "surface": "score"}),
        ("map", {"scene": scene}),
        ("code", {"scene": scene}),
        ("tree", {"source": {"scene": scene | {"learner": "DecisionTreeClassifier"}}, "member": 0}),
    ):
        require_sendable(ask(kind, **fields))


@pytest.mark.parametrize("kind", sorted(ANSWERS))
@pytest.mark.parametrize("wrong", [None, [], "text", {"unknown": 1}, {"scene": None, "x": 1}])
def test_requests_that_are_none(kind, wrong) -> None:
    with pytest.raises(StudioError):
        ANSWERS[kind](wrong, Job())
