"""Fixtures of the tests of the command line."""

from __future__ import annotations

from datetime import date, timedelta

import polars as pl
import pytest

from margrove.cli import main
from margrove.datasets import load_iris


@pytest.fixture
def run(capsys):
    """Run a command line; gives its exit code, standard output and standard error."""

    def run_command(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return stopped.value.code, out, err

    return run_command


@pytest.fixture
def refused(run):
    """Run a wrong command line; returns the one line that it prints."""

    def run_wrong(*arguments):
        code, out, err = run(*arguments)
        assert (code, out) == (2, ""), (code, out, err)
        assert err.startswith("margrove: ")
        assert err.count("\n") == 1, err
        assert "Traceback" not in err
        return err

    return run_wrong


@pytest.fixture(scope="session")
def iris_frame():
    """Numbers with gaps, a category, a date, an id and a class of flowers."""
    X, y = load_iris(return_X_y=True)
    return pl.DataFrame(
        {
            "flower": [f"f{i:03d}" for i in range(150)],
            "width": X[:, 1],
            "length": [None if i % 10 == 0 else v for i, v in enumerate(X[:, 2])],
            "soil": ["clay" if v > 3 else "sand" for v in X[:, 1]],
            "seen": [date(2020, 1, 1) + timedelta(days=i % 30) for i in range(150)],
            "species": [f"iris-{k}" for k in y],
        }
    )


@pytest.fixture
def folder(tmp_path, iris_frame, monkeypatch):
    """The working folder, with that table in all formats."""
    iris_frame.write_csv(tmp_path / "iris.csv")
    iris_frame.write_csv(tmp_path / "iris.tsv", separator="\t")
    iris_frame.write_parquet(tmp_path / "iris.parquet")
    iris_frame.write_ndjson(tmp_path / "iris.jsonl")
    monkeypatch.chdir(tmp_path)
    return tmp_path
