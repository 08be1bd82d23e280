"""The house is built as docs/architecture.md says."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import margrove
from margrove.cli import _COMMANDS

PACKAGE = Path(margrove.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

TESTS = Path(__file__).parent
# What only helpers may use that deal with other processes, and programs that are run as such.
HELPERS = {
    "interrupts.py", "dask/killing.py", "exchange/killed_savers.py", "exchange/altered_files.py",
}  # fmt: skip
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time"}
KEPT_FROM_TESTS = {
    "time": CLOCKS | {f"{name}_ns" for name in CLOCKS},
    "os": {"kill", "killpg"},
    "signal": {"alarm", "setitimer", "raise_signal", "pthread_kill"},
    "_thread": {"interrupt_main"},
}


def test_every_room_is_there() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {
        "margin", "grove", "ensemble", "select", "plot", "workbench", "cli", "studio", "exchange",
        "datasets",
    } <= rooms  # fmt: skip
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_each_module_says_what_it_is_for(path) -> None:
    tree = ast.parse(path.read_text())
    if path.name != "_version.py":
        assert ast.get_docstring(tree)
    assert path.stem not in {"utils", "helpers", "common", "base", "misc"}


FOLDERS = sorted({path.parent for path in MODULES} - {PACKAGE})
# In their `__init__.py` there is code: registries that read all files of a folder, commands, Dask.
WITH_CODE = {
    "cli", "dask", "datasets", "ensemble/gradient/losses", "select/learners", "studio/lessons",
}  # fmt: skip


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(("margrove", *parts)).removesuffix(".__init__")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_each_folder_lists_its_contents(folder) -> None:
    """`__init__.py` names every file and folder beside it, and there are not too many of them."""
    contents = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    words = set(re.findall(r"\w+", contents))
    entries = {
        path.stem
        for path in folder.iterdir()
        if (path.suffix == ".py" and path.stem[:2] != "__") or (path / "__init__.py").exists()
    }
    if folder.name != "losses":  # every file there is a loss, and to add one is to add the file
        assert entries <= words, entries - words
    assert len(entries) <= 18


def test_folders_are_entered_by_their_doors() -> None:
    """A module imports files of its own folder and of those around it; else from `__init__`."""
    names = {name_of(path): path for path in MODULES}
    packages = {name for name, path in names.items() if path.name == "__init__.py"}
    for name, path in names.items():
        here = name if name in packages else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text())):
            module = getattr(node, "module", None) or ""
            if not isinstance(node, ast.ImportFrom) or not module.startswith("margrove."):
                continue
            folder = module.rpartition(".")[0]
            is_near = folder == "margrove" or f"{here}.".startswith(f"{folder}.")
            assert is_near or module in packages, f"{name} imports {module}, not {folder}"


def test_private_names_stay_in_their_module() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("margrove"):
                private = [a.name for a in node.names if re.match(r"_[^_]", a.name)]
                assert all((PACKAGE / name).is_dir() for name in private), (path, private)


def test_doors_offer_what_is_there() -> None:
    """Every name in an `__init__.pyi` can be imported, and no door runs anything else."""
    doors = [folder for folder in FOLDERS if (folder / "__init__.pyi").exists()]
    assert len(doors) > 50
    for folder in doors:
        package = importlib.import_module(name_of(folder / "__init__.py"))
        for name in package.__all__:
            assert getattr(package, name) is not None, (folder, name)
        tree = ast.parse((folder / "__init__.py").read_text())
        if folder.relative_to(PACKAGE).as_posix() not in WITH_CODE:
            assert [type(node) for node in tree.body] == [ast.Expr, ast.Import, ast.Assign], folder


def test_numba_is_used_through_the_one_decorator() -> None:
    for path in MODULES:
        if path.name not in ("jit.py", "instructions.py", "waiting.py", "regions.py"):
            assert not re.search(r"\bnjit\b|import numba|from numba", path.read_text()), path


def test_frames_are_read_in_one_place() -> None:
    for path in MODULES:
        if path.parent.name not in ("_data", "datasets"):  # datasets make frames
            assert "import narwhals" not in path.read_text(), path


def test_public_names_exist() -> None:
    assert len(set(margrove.__all__)) == len(margrove.__all__)
    for name in margrove.__all__:
        assert getattr(margrove, name) is not None
    assert dir(margrove) == sorted(margrove.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        margrove.nonsense  # noqa: B018


def test_import_is_lazy() -> None:
    heavy = "{'numpy', 'sklearn', 'numba', 'click'}"
    code = f"import sys, margrove; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom margrove.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'sklearn', 'numba', 'rich'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip().endswith("[]")
    assert all(name in out.stdout for name in _COMMANDS)


def test_each_command_has_its_file() -> None:
    for name in _COMMANDS:
        assert (PACKAGE / "cli" / "commands" / f"{name}.py").exists()


def test_tests_ask_no_clock_and_signal_no_process_of_their_own() -> None:
    """Machines are busy, and late signals end the run of all tests: see `tests.interrupts`."""
    refused = set()
    for path in TESTS.rglob("*.py"):
        used = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.add((node.value.id, node.attr))
            elif isinstance(node, ast.ImportFrom):
                used |= {(node.module, alias.name) for alias in node.names}
        name = path.relative_to(TESTS).as_posix()
        refused |= {(name, *own) for own in used if own[1] in KEPT_FROM_TESTS.get(own[0], ())}
    assert {name for name, *_ in refused} <= HELPERS, refused
