"""Hostile files, folders and environments cause only an error of one line."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import subprocess
import sys

import polars as pl
import pytest
from tests.cli.command_cases import good_table
from tests.workbench.report.pages import require_harmless

import margrove
from margrove._runtime.jit import cache_directory

TREE = ("--learner", "tree", "--quiet")
EVERY_READER = {
    "compare": ("compare", "FILE", "--quiet"),
    "fit": ("fit", "FILE", *TREE),
    "tune": ("tune", "FILE", *TREE),
    "doctor": ("doctor", "FILE", "--no-estimate", "--quiet"),
    "report": ("report", "FILE", "--quiet", "-o", "out.html"),
    "predict": ("predict", "model.margrove", "FILE", "--quiet", "-o", "out.csv"),
    "explain": ("explain", "model.margrove", "FILE", "--quiet"),
}


@pytest.fixture(scope="module")
def model_of_table(tmp_path_factory):
    """The bytes of a tree of `good_table`, with the id column known."""
    from margrove.cli import main

    folder = tmp_path_factory.mktemp("model")
    (folder / "table.csv").write_text(good_table())
    arguments = ("fit", folder / "table.csv", "--id", "id", *TREE, "-o", folder / "m.margrove")
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert stopped.value.code == 0
    return (folder / "m.margrove").read_bytes()


@pytest.fixture
def place(tmp_path, model_of_table, monkeypatch):
    """The working folder, with a table and a model of it."""
    (tmp_path / "table.csv").write_text(good_table())
    (tmp_path / "model.margrove").write_bytes(model_of_table)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fails_alone(place, refused):
    """Run a command that must fail with one line and not change the folder."""

    def check(*arguments):
        before = {path.name: path.stat().st_size for path in place.iterdir()}
        err = refused(*arguments)
        assert {path.name: path.stat().st_size for path in place.iterdir()} == before
        return err

    return check


# -- places and files --


@pytest.mark.parametrize("command", EVERY_READER)
def test_places_that_hold_no_table(command, place, fails_alone) -> None:
    os.mkfifo(place / "pipe.csv")
    (place / "empty.csv").touch()
    (place / "names.csv").write_text("a,b,kind,day,y\n")
    (place / "folder.csv").mkdir()
    for name, message in {
        "gone.csv": "does not exist",
        "folder.csv": "is a directory",
        "pipe.csv": "is a pipe",
        "/dev/zero": "is a device",
        "empty.csv": "is empty",
        "names.csv": "no rows",
        "x" * 300: "cannot be read|name too long",
    }.items():
        arguments = (name if word == "FILE" else word for word in EVERY_READER[command])
        assert re.search(message, fails_alone(*arguments))


@pytest.mark.parametrize("command", EVERY_READER)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,b,kind,day,y\n1,2\n", "line 2 has 2 cells"),
        (b'a,b,kind,day,y\n1,2,"red,2024-01-15,no\n', "opens in line 2"),
        (good_table().encode("utf-16"), "UTF-16"),
        (good_table().replace("red", "r\u00e9d").encode("latin-1"), "not UTF-8: byte"),
        (good_table().replace("red", "r\0d").encode(), "NUL at byte"),
        (good_table().replace("kind", "a").encode(), "more than one column named 'a'"),
        (good_table().replace(",4.5,", ",1e999,").encode(), "'1e999'"),
        (gzip.compress(good_table().encode())[:-9], "cut off|damaged"),
    ],
    ids=["ragged", "quote", "utf16", "latin1", "nul", "twice", "infinite", "gzip"],
)
def test_files_that_hold_none(command, data, message, place, fails_alone) -> None:
    (place / "bad.csv").write_bytes(data)
    arguments = ("bad.csv" if word == "FILE" else word for word in EVERY_READER[command])
    assert re.search(message, fails_alone(*arguments))


def test_the_way_out_is_one_of_the_command_line(place, fails_alone) -> None:
    (place / "bad.csv").write_text(good_table().replace(",4.5,", ",50%,"))
    err = fails_alone("fit", "bad.csv", *TREE)
    assert "--type a=category" in err
    assert "types=" not in err


@pytest.mark.parametrize("limit", ["max_rows", "max_columns", "max_cell_length"])
def test_limits_are_told_without_python(limit, place, fails_alone, monkeypatch) -> None:
    small = margrove.tables.ReadLimits(**{limit: 2})
    monkeypatch.setattr("margrove.workbench.tables.read.reading.ReadLimits", lambda: small)
    err = fails_alone("compare", "table.csv", "--quiet")
    assert "ReadLimits" not in err
    assert re.search(r"at most 2 are (read|allowed)", err)


def test_delimiters_and_decimal_commas_are_said(place, run) -> None:
    text = good_table().replace(",", ";").replace(".", ",")
    (place / "german.csv").write_text("\ufeff" + text, encoding="utf-8")
    code, _, err = run("compare", "german.csv", "--learner", "tree", "--folds", "2")
    assert code == 0
    assert "the delimiter is ';'" in err
    assert "a comma is the decimal point in 'a'" in err
    assert "byte order mark" in err


def test_tables_that_unpack_to_too_much(place, fails_alone, monkeypatch) -> None:
    monkeypatch.setattr("margrove.workbench.tables.read.limits.ReadLimits.content_bytes", 1_000_000)
    (place / "bomb.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    assert "when decompressed" in fails_alone("compare", "bomb.csv.gz", "--quiet")


def test_too_many_columns_and_too_long_names(place, fails_alone) -> None:
    (place / "wide.csv").write_text(",".join(f"c{j}" for j in range(100_000)) + "\n")
    assert "100000 columns" in fails_alone("compare", "wide.csv", "--quiet")
    (place / "long.csv").write_text("n" * 1_000_000 + ",y\n1,2\n")
    assert "1000000 characters" in fails_alone("compare", "long.csv", "--quiet")


def test_damaged_and_nested_parquet(place, fails_alone) -> None:
    pl.DataFrame({"a": [1, 2], "y": ["p", "q"]}).write_parquet("t.parquet")
    data = (place / "t.parquet").read_bytes()
    for name, contents in {"cut": data[:-1], "footer": data[:-8] + b"\xff" * 4 + b"PAR1"}.items():
        (place / f"{name}.parquet").write_bytes(contents)
        assert f"{name}.parquet" in fails_alone("compare", f"{name}.parquet", "--quiet")
    pl.DataFrame({"a": [[1], [2]], "y": ["p", "q"]}).write_parquet("lists.parquet")
    err = fails_alone("compare", "lists.parquet", "--quiet")
    assert "column 'a' contains list values" in err
    assert "--type a=ignored" in err


# -- targets --


def test_targets_of_which_nothing_follows(place, fails_alone, run) -> None:
    assert "no column 'nope'" in fails_alone("fit", "table.csv", "--target", "nope", *TREE)
    frame = pl.read_csv("table.csv")
    frame.with_columns(y=pl.lit("yes")).write_csv("constant.csv")
    assert "in all rows" in fails_alone("fit", "constant.csv", *TREE)
    frame.with_columns(y=pl.lit(None)).write_csv("missing.csv")
    assert "missing in all rows" in fails_alone("fit", "missing.csv", *TREE)
    frame.with_columns(copy=pl.col("y")).write_csv("leak.csv")
    code, _, err = run("fit", "leak.csv", "--target", "y", "--learner", "tree", "-o", "m.margrove")
    assert code == 0
    assert "'copy' determines the target 'y'" in err


@pytest.mark.parametrize(("labels", "shown"), [(("true", "false"), "true"), (("1", "0"), "1")])
def test_labels_that_are_no_words(labels, shown, place, run) -> None:
    yes, no = labels
    (place / "t.csv").write_text(good_table().replace("yes", yes).replace(",no", f",{no}"))
    assert run("fit", "t.csv", "--id", "id", *TREE, "-o", "m.margrove")[0] == 0
    found = pl.read_csv(io.StringIO(run("predict", "m.margrove", "t.csv", "--quiet")[1]))
    assert f"probability of {shown}" in [name.lower() for name in found.columns]
    code, out, _ = run("explain", "m.margrove", "t.csv", "--row", "0", "--json")
    assert code == 0
    assert sum(json.loads(out)["added"].values()) > 0


def test_too_few_rows_to_test_or_to_tune_with(place, fails_alone, run) -> None:
    (place / "few.csv").write_text(good_table("regression", 4))
    assert "is one row" in fails_alone("fit", "few.csv", *TREE, "--task", "regression")
    (place / "rare.csv").write_text(good_table() + "r99,1,1,red,2024-01-15,maybe\n")
    assert "two training rows of each class" in fails_alone("tune", "rare.csv", *TREE)
    fit = ("fit", "table.csv", *TREE, "--tune", "--test-size", "0", "-o", "m.margrove", "--json")
    found = json.loads(run(*fit)[1])
    assert found["score"] is None
    assert found["tuned"]


def test_scores_that_are_none(place, fails_alone) -> None:
    err = fails_alone("compare", "table.csv", "--score", "acuracy", "--quiet")
    assert "such as accuracy" in err


# -- other tables to predict --


def test_one_row_with_a_new_label(place, run) -> None:
    (place / "one.csv").write_text("a,b,kind,day\n1,2,mauve,2024-01-15\n")
    code, out, err = run("predict", "model.margrove", "one.csv")
    assert code == 0
    assert out.count("\n") == 2
    assert "has not seen 'mauve'" in err
    assert ".py" not in err
    assert run("predict", "model.margrove", "one.csv", "--quiet")[1:] == (out, "")


def test_columns_that_the_model_does_not_use_may_hold_anything(place, run, fails_alone) -> None:
    lines = good_table().splitlines()
    cells = ["note", *("1" for _ in lines[2:]), "x"]
    mixed = [f"{line},{cell}" for line, cell in zip(lines, cells, strict=True)]
    (place / "more.csv").write_text("\n".join(mixed) + "\n")
    expected = run("predict", "model.margrove", "table.csv", "--quiet")
    assert expected[0] == 0
    assert run("predict", "model.margrove", "more.csv", "--quiet") == expected
    assert "'note'" in fails_alone("fit", "more.csv", "--target", "y", *TREE)
    ignoring = ("fit", "more.csv", "--target", "y", "--ignore", "note", *TREE, "-o", "m.margrove")
    assert run(*ignoring)[0] == 0


def test_numbers_that_have_become_words_and_columns_that_are_gone(place, fails_alone) -> None:
    (place / "words.csv").write_text("a,b,kind,day\nmany,2,red,2024-01-15\n")
    assert "'many'" in fails_alone("predict", "model.margrove", "words.csv", "--quiet")
    (place / "less.csv").write_text("a,b,day\n1,2,2024-01-15\n")
    assert "'kind'" in fails_alone("predict", "model.margrove", "less.csv", "--quiet")


@pytest.mark.parametrize("name", ["low", "high", "predicted y"])
def test_an_id_keeps_its_name_and_its_values(name, place, run) -> None:
    (place / "t.csv").write_text(good_table("regression").replace("id,", f"{name},", 1))
    fit = ("fit", "t.csv", "--learner", "forest", "--param", "n_estimators=10", "--quiet")
    assert run(*fit, "--id", name, "-o", "m.margrove")[0] == 0
    found = pl.read_csv(io.StringIO(run("predict", "m.margrove", "t.csv", "--quiet")[1]))
    assert found.width == 4
    assert found[name].to_list() == [f"r{k}" for k in range(24)]
    assert found.columns[1] == "predicted y (predicted)"


def test_model_files_may_say_anything_about_themselves(place, run) -> None:
    model = margrove.load("model.margrove")
    for about in (
        {"score": "high", "target": ["y"], "id_column": 7},
        {"score": {"name": "r2", "value": None}, "target": {"y": 1}},
        {"score": {"name": 1, "value": 1, "low": 1, "high": 1, "rows": 1}, "target": ""},
    ):
        margrove.save(model, "odd.margrove", about=about)
        for command in ("predict", "explain"):
            assert run(command, "odd.margrove", "table.csv")[0] == 0
        assert run("inspect", "odd.margrove")[0] == 0


# -- what is written --


def test_what_a_spreadsheet_would_run(place, run) -> None:
    text = good_table().replace("yes", "=1+1").replace("r1,", "@r1,").replace(",y", ",+y", 1)
    (place / "t.csv").write_text(text)
    assert run("fit", "t.csv", "--id", "id", *TREE, "-o", "m.margrove")[0] == 0
    out = run("predict", "m.margrove", "t.csv", "--quiet")[1]
    found = pl.read_csv(io.StringIO(out))
    assert found.columns[:2] == ["id", "predicted +y"]
    assert set(found["predicted +y"]) == {"'=1+1", "no"}
    assert found["id"][1] == "'@r1"
    assert not re.search(r"(^|,)[=+@]", out, re.MULTILINE)
    raw = run("predict", "m.margrove", "t.csv", "--quiet", "--raw-csv")[1]
    assert raw == out.replace("'", "")


def test_names_that_are_markup_in_a_report(place, run) -> None:
    nasty = {"a": "<script>alert(1)</script>", "b": '""><img src=x onerror=alert(1)>'}
    text = (
        good_table().replace("red", "</style><script>x</script>").replace("green", "javascript:x")
    )
    names = ["id", f'"{nasty["a"]}"', f'"{nasty["b"]}"', "</title>kind", "day", "<b>y</b>"]
    (place / "<i>t.csv").write_text("\n".join([",".join(names), *text.splitlines()[1:]]) + "\n")
    fit = ("fit", "<i>t.csv", "--id", "id", *TREE, "-o", "<u>m.margrove")
    assert run(*fit)[0] == 0
    made = ("report", "<i>t.csv", "--model", "<u>m.margrove", "-o", "r.html", "--quiet")
    assert run(*made)[0] == 0
    require_harmless((place / "r.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", ["compare", "fit", "doctor", "explain"])
def test_names_that_would_move_a_terminal(command, place, run) -> None:
    text = good_table().replace("kind", "\x1b]0;owned\x07").replace("red", "\u202ered\x1b[2J")
    (place / "t.csv").write_text(text)
    assert run("fit", "t.csv", "--id", "id", *TREE, "-o", "m.margrove")[0] == 0
    tree = ("--learner", "tree")
    arguments = {
        "compare": ("t.csv", *tree, "--folds", "2"),
        "fit": ("t.csv", *tree, "-o", "n.margrove"),
        "doctor": ("t.csv", "--no-estimate"),
        "explain": ("m.margrove", "t.csv", "--row", "1"),
    }
    code, out, err = run(command, *arguments[command])
    assert code == 0
    assert not re.search("[\x1b\x07\u202e]", out + err)


FULL = OSError(errno.ENOSPC, "No space left on device")
WRITERS = {
    "fit": ("fit", "table.csv", *TREE, "-o", "out.margrove"),
    "tune": ("tune", "table.csv", *TREE, "-o", "out.margrove"),
    "predict": ("predict", "model.margrove", "table.csv", "--quiet", "-o", "out.csv"),
    "datasets": ("datasets", "iris", "--quiet", "-o", "out.csv"),
    "report": (
        "report", "table.csv", "--model", "model.margrove", "--quiet", "-o", "out.html",
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", WRITERS)
def test_a_full_disk_leaves_nothing_half_written(command, place, run, monkeypatch) -> None:
    before = sorted(place.iterdir())

    def full(*arguments):
        raise FULL

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = run(*WRITERS[command])
    assert code == 1
    assert "No space left on device" in err
    assert err.count("\n") == 1
    assert sorted(place.iterdir()) == before


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limit")
def test_files_that_the_system_cuts_off(place) -> None:
    before = sorted(place.iterdir())
    program = (
        "import json, resource, sys\nfrom margrove.cli import main\n"
        "import margrove.workbench.workflow, margrove.workbench.report\n"
        "import margrove.exchange.model_file.files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    try:\n        main(words)\n"
        "    except SystemExit as stopped:\n        print(stopped.code)\n"
    )
    words = json.dumps([WRITERS[name] for name in ("datasets", "fit", "predict", "report")])
    found = subprocess.run(
        [sys.executable, "-c", program, words], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["1"] * 4, found.stderr
    assert found.stderr.count("nothing was saved") == 4
    assert "Traceback" not in found.stderr
    assert sorted(place.iterdir()) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["datasets", "iris"], ["datasets"]], ids=str)
def test_standard_output_that_is_full(words, unbuffered, place) -> None:
    program = f"from margrove.cli import main; main({words})"
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-c", program],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
    assert found.returncode == 1
    assert found.stderr.startswith("margrove: No space left on device")
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("command", WRITERS)
def test_a_file_that_is_there_or_is_read_stays(command, place, fails_alone) -> None:
    *words, output = WRITERS[command]
    (place / output).write_text("mine")
    assert "--force" in fails_alone(*words, output)
    assert (place / output).read_text() == "mine"
    if command != "datasets":
        assert "is an input of the command" in fails_alone(
            *words[:-1], "--force", "--output", "table.csv"
        )


def test_a_fault_of_our_own_is_one_line(place, run, monkeypatch) -> None:
    def faulty(*arguments, **settings):
        raise KeyError("\x1b[31m")

    monkeypatch.setattr("margrove.workbench.workflow.plan.run_workflow", faulty)
    monkeypatch.delenv("MARGROVE_TRACEBACK", raising=False)
    code, _, err = run("fit", "table.csv", *TREE)
    assert (code, err.count("\n")) == (1, 1)
    assert "a bug in margrove (KeyError" in err
    monkeypatch.setenv("MARGROVE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        run("fit", "table.csv", *TREE)


# -- surroundings --


FIT = ("fit", "table.csv", "--id", "id", *TREE, "-o", "NAME.margrove")
PREDICT = ("predict", "NAME.margrove", "table.csv", "-o", "NAME.csv", "--quiet")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such surroundings")
def test_nothing_depends_on_the_surroundings(place, run, tmp_path_factory) -> None:
    text = good_table().replace("red", "r\u00e9d")
    (place / "table.csv").write_text(text, encoding="utf-8")
    here, there = ([word.replace("NAME", name) for word in FIT] for name in ("here", "there"))
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o500)
    cache = cache_directory()
    surroundings = {
        "HOME": str(home),
        "LC_ALL": "C",
        "TZ": "Pacific/Kiritimati",
        "PYTHONHASHSEED": "7",
        "MARGROVE_CACHE_DIR": "" if cache is None else str(cache.parent),
    }
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "NUMBA_DISABLE_JIT")}
    program = (
        "import sys\nfrom margrove.cli import main\n"
        "for words in (sys.argv[1:10], sys.argv[10:]):\n"
        "    try:\n        main(words)\n"
        "    except SystemExit as stopped:\n        assert stopped.code == 0, stopped.code\n"
    )
    predict_there = [word.replace("NAME", "there") for word in PREDICT]
    subprocess.run(
        [sys.executable, "-c", program, *there, *predict_there],
        env=kept | surroundings,
        check=True,
        capture_output=True,
    )
    assert run(*here)[0] == 0
    assert run(*(word.replace("NAME", "here") for word in PREDICT))[0] == 0
    for end in ("margrove", "csv"):
        assert (place / f"there.{end}").read_bytes() == (place / f"here.{end}").read_bytes()
