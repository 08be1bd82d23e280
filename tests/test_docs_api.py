"""The reference page names everything that is public."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import margrove

PAGE = (Path(__file__).parent.parent / "docs/api.md").read_text()
MODULES = {
    name: importlib.import_module(f"margrove.{name}")
    for name in ("datasets", "exceptions", "facts", "plot", "tables")
}
OTHER_MODULES = {"kernels", "losses", "tune"}


def named_on_the_page() -> set[str]:
    """Full names of what autodoc is asked to show, members of whole modules included."""
    found, module = set(), "margrove"
    for kind, name in re.findall(r"^\.\. (currentmodule|auto\w+|py:\w+):: ([\w.]+)", PAGE, re.M):
        if kind == "currentmodule":
            module = name
        else:
            found.add(name if name.startswith("margrove.") else f"{module}.{name}")
    for name, options in re.findall(r"^\.\. automodule:: ([\w.]+)\n((?:   :.*\n)+)", PAGE, re.M):
        if ":members:\n" in options:
            left_out = re.search(r":exclude-members: (.*)", options)
            hidden = set(left_out[1].split(", ")) if left_out else set()
            members = importlib.import_module(name).__all__
            found |= {f"{name}.{member}" for member in members if member not in hidden}
    return found


def resolved(name: str):
    """The object of a full name."""
    module, found = name, None
    while found is None:
        try:
            found = importlib.import_module(module)
        except ImportError:
            module = module.rpartition(".")[0]
    for part in name.removeprefix(module).split(".")[1:]:
        found = getattr(found, part)
    return found


def test_every_public_name_is_in_the_reference() -> None:
    shown = {id(resolved(name)) for name in named_on_the_page()}
    for name in set(margrove.__all__) - {"__version__", *MODULES, *OTHER_MODULES}:
        public = getattr(margrove, name)
        if inspect.ismodule(public):  # a package that is called like a function
            public = getattr(public, name)
        assert id(public) in shown, name


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_module_is_in_the_reference(module) -> None:
    found = named_on_the_page()
    missing = [name for name in MODULES[module].__all__ if f"margrove.{module}.{name}" not in found]
    assert missing == []


def test_modules_of_kernels_losses_and_criteria_have_a_section() -> None:
    found = named_on_the_page()
    for home in ("margin.kernels.functions", "margin.losses", "grove.criteria"):
        assert f"margrove.{home}" in found, home


def test_whatever_the_reference_names_exists() -> None:
    for name in sorted(named_on_the_page()):
        assert resolved(name) is not None
