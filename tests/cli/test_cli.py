"""The command line as a person uses it: help, exit codes, signals, no tracebacks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest
from tests.interrupts import run_with_signals

from margrove import __version__
from margrove.cli import _COMMANDS

ENDLESS = """
import sys
from margrove.cli import main
import margrove.workbench.workflow.comparison as comparison

def forever(*arguments, **settings):
    from margrove import Perceptron
    from margrove.datasets import make_xor
    X, y = make_xor(500, return_X_y=True)
    Perceptron(max_iter=5, tol=None).fit(X, y)  # compiled before the signal comes
    print("now", flush=True)
    while True:
        Perceptron(max_iter=10**9, tol=None).fit(X, y)

comparison.compare_learners = forever
main(["compare", "--data", "iris", "--quiet"])
"""


def test_version_and_help(run) -> None:
    assert run("--version")[:2] == (0, f"margrove {__version__}\n")
    code, out, _ = run("--help")
    assert code == 0
    for name in _COMMANDS:
        assert name in out


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_every_command_has_help_and_the_summary_of_the_list(name, run) -> None:
    code, out, _ = run(name, "--help")
    assert code == 0
    assert "Usage: margrove " + name in out


def test_module_and_script_are_the_same_program() -> None:
    for command in ([sys.executable, "-m", "margrove"], [f"{sys.prefix}/bin/margrove"]):
        out = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert out.stdout == f"margrove {__version__}\n"


def test_no_arguments_show_the_help(run) -> None:
    code, out, _ = run()
    assert code == 0
    assert out.count("\n") > 5


def test_unknown_commands(refused) -> None:
    assert "No such command 'grow'" in refused("grow")


def test_an_interrupt_is_exit_code_130(run, monkeypatch) -> None:
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("margrove.workbench.workflow.comparison.compare_learners", interrupted)
    code, _, err = run("compare", "--data", "iris", "--quiet")
    assert code == 130
    assert err.strip() == "margrove: interrupted"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_end_a_fit(number, code, tmp_path) -> None:
    done = run_with_signals(ENDLESS, number=number, cwd=tmp_path)
    assert done.returncode == code
    assert re.fullmatch(r"margrove: (interrupted|terminated)", done.stderr.strip()), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m margrove datasets digits | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_warmup(run) -> None:
    code, out, _ = run("warmup")
    assert code == 0
    assert "All kernels are ready" in out


def test_without_polars_the_message_says_what_to_install(folder, refused, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    assert "margrove[" in refused("compare", "iris.csv")
