"""Any tables, model files and arguments give a result, or an error of one line."""

from __future__ import annotations

import io
import json
import sys

import pytest
from tests.cli.command_cases import case_of, fill, good_table

from margrove.cli import main

N_CASES = 1000
FEW = range(60)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Model files of classes and of numbers."""
    folder = tmp_path_factory.mktemp("models")
    found = []
    for task in ("classification", "regression"):
        table, model = folder / f"{task}.csv", folder / f"{task}.margrove"
        table.write_text(good_table(task))
        arguments = ["fit", str(table), "--learner", "tree", "-o", str(model), "--quiet"]
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        found.append(model.read_bytes())
    return found


def check(seed, models, folder, capsys, monkeypatch) -> None:
    case = case_of(seed, models)
    fill(folder, case)
    monkeypatch.chdir(folder)
    piped = io.BytesIO(next(iter(case.files.values())))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(piped))
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(list(case.arguments))
    code = stopped.value.code
    out, err = capsys.readouterr()
    story = f"seed {seed}: {case.arguments!r} ended with {code}\n{out[-500:]}\n{err[-1000:]}"
    assert code in (0, 1, 2), story
    assert "Traceback" not in out + err, story
    assert "bug in margrove" not in err, story
    assert "\x1b" not in out + err, story
    made = {path.name for path in folder.iterdir()} - set(case.files)
    if code == 0:
        assert len(made) <= 1, story
        assert not any(name.startswith(".") for name in made), story
        if "--json" in case.arguments and out.startswith("{"):
            json.loads(out)
    else:
        assert not made, story
        assert err.splitlines()[-1].startswith("margrove: "), story
        if {"--quiet", "--json"} & set(case.arguments):
            assert err.count("\n") == 1, story
    for name, data in case.files.items():
        assert (folder / name).read_bytes() == data or "--force" in case.arguments, story


@pytest.mark.parametrize("seed", FEW)
def test_a_few_bent_commands(seed, models, tmp_path, capsys, monkeypatch) -> None:
    check(seed, models, tmp_path, capsys, monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(len(FEW), N_CASES))
def test_many_bent_commands(seed, models, tmp_path, capsys, monkeypatch) -> None:
    check(seed, models, tmp_path, capsys, monkeypatch)
