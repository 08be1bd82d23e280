"""margrove report: its statements about rows, and code that can be run."""

from __future__ import annotations

import html
import json
import re
import shlex

import polars as pl
import pytest

ALOUD = ("--learner", "tree", "--no-compare", "--no-tune", "--id", "flower")
QUICK = (*ALOUD, "--quiet")


def code_in(page, title):
    """The text of a block of code under a title."""
    found = re.search(rf"{title}.*?<code[^>]*>(.*?)</code>", page, re.DOTALL)
    assert found
    return html.unescape(re.sub(r"<[^>]+>", "", found.group(1)))


def test_a_report_is_written_and_says_how_good_it_is(folder, run) -> None:
    code, out, _ = run("report", "iris.csv", *QUICK, "--json")
    assert code == 0
    assert json.loads(out)["file"] == "iris.html"
    page = (folder / "iris.html").read_text()
    assert "it has not seen" in page
    assert "species" in page


def test_the_terminal_and_the_page_give_one_interval(folder, run) -> None:
    out = run("report", "iris.csv", *ALOUD)[1]
    said = re.search(r"accuracy ([\d.]+)%, 95 % interval ([\d.]+)% .. ([\d.]+)%", out)
    assert said
    page = (folder / "iris.html").read_text()
    assert f"{said[1]} % accuracy ({said[2]} to {said[3]})" in page.replace("\xa0", " ")


def test_the_code_in_it_runs_and_comes_to_the_same_score(folder, run) -> None:
    out = run("report", "iris.csv", *ALOUD)[1]
    page = (folder / "iris.html").read_text()
    program = code_in(page, "In Python").replace("report.html", "again.html")
    names: dict[str, object] = {}
    exec(program, names)
    score = names["model"].score(names["X_test"], names["y_test"])
    assert f"accuracy {score:.1%}" in out
    assert (folder / "again.html").exists()
    command = code_in(page, "On the command line")
    assert command.startswith("margrove report iris.csv --target species")
    assert f"accuracy {score:.1%}" in run(*shlex.split(command)[1:], "--force")[1]
    assert code_in((folder / "iris.html").read_text(), "On the command line") == command


def test_the_command_in_it_has_files_as_they_were_typed(folder, run) -> None:
    place = folder / "my data"
    place.mkdir()
    (folder / "iris.csv").rename(place / "iris.csv")
    arguments = ("my data/iris.csv", *QUICK, "--max-time", "9", "-o", "my data/it's.html")
    assert run("report", *arguments)[0] == 0
    command = code_in((place / "it's.html").read_text(), "On the command line")
    words = shlex.split(command)
    assert words[2] == "my data/iris.csv"
    assert words[-2:] == ["-o", "my data/it's.html"]
    assert words[words.index("--max-time") + 1] == "9.0"
    assert {"--no-compare", "--no-tune"} <= set(words)


def test_quiet_prints_the_path_alone(folder, run) -> None:
    assert run("report", "iris.csv", *QUICK) == (0, "iris.html\n", "")


def test_probabilities_of_a_machine_are_shown_if_asked_for(folder, run, refused) -> None:
    machine = ("--learner", "linear-svm", "--no-compare", "--no-tune", "--id", "flower", "--quiet")
    assert run("report", "iris.csv", *machine, "-o", "plain.html")[0] == 0
    assert "report --calibrate" in (folder / "plain.html").read_text()
    assert run("report", "iris.csv", *machine, "--calibrate")[0] == 0
    page = (folder / "iris.html").read_text()
    assert "do probabilities come true?" in page
    assert "LinearSVC predicts" in page
    assert "could not be made" not in page
    assert "--calibrate" in code_in(page, "On the command line")
    assert "--calibrate needs a classification" in refused(
        "report", "--data", "diabetes", *machine[:-3], "--calibrate", "--quiet"
    )


def test_rows_that_a_model_has_learnt_are_not_called_unseen(folder, run, iris_frame) -> None:
    fit = ("fit", "iris.csv", "--learner", "tree", "--id", "flower", "-o", "m.margrove")
    assert run(*fit, "--quiet")[0] == 0
    _, _, err = run("report", "iris.csv", "--model", "m.margrove")
    assert "was trained on these rows" in err
    assert "it has not seen" not in (folder / "iris.html").read_text()
    iris_frame[::3].write_csv("others.csv")
    _, _, err = run("report", "others.csv", "--model", "m.margrove")
    assert "has learnt" not in err
    page = (folder / "others.html").read_text()
    assert "it has not seen" in page
    assert "was trained on" not in page


def test_mistakes_are_named_by_their_rows_in_the_file(folder, run, iris_frame) -> None:
    assert run("report", "iris.csv", *QUICK, "--test-size", "0.5")[0] == 0
    page = (folder / "iris.html").read_text()
    table = re.search(r"Worst mistakes.*?</table>", page, re.DOTALL)
    assert table
    rows = re.findall(r"<tr>(.*?)</tr>", table.group(0), re.DOTALL)[1:]
    cells = [re.sub(r"<[^>]+>", " ", row).split() for row in rows]
    assert cells
    for row, truth, *_ in cells:
        assert iris_frame["species"][int(row)] == truth


@pytest.mark.parametrize("learner", ["tree", "linear-svm"])
def test_numbers(learner, tmp_path, run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("--learner", learner, "--no-compare", "--no-tune", "--quiet")
    assert run("report", "--data", "diabetes", *arguments)[0] == 0
    assert "R²" in (tmp_path / "diabetes.html").read_text()


def test_a_page_that_is_there_stays_unless_forced(folder, run, refused) -> None:
    (folder / "iris.html").write_text("mine")
    assert "--force" in refused("report", "iris.csv", *QUICK)
    assert (folder / "iris.html").read_text() == "mine"
    assert run("report", "iris.csv", *QUICK, "--force")[0] == 0
    assert (folder / "iris.html").read_text() != "mine"


def test_all_learners_are_compared_on_the_rows_that_are_learnt_from(folder, run) -> None:
    pl.read_csv("iris.csv").drop("flower", "seen").write_csv("small.csv")
    code, out, _ = run("report", "small.csv", "--no-tune", "--max-time", "1")
    assert code == 0
    assert "small.csv: 112 rows" in out
