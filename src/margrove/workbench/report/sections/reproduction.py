"""How to reproduce the model: code to copy, versions and the seed.

All values of the user are written as literals, so that a name cannot become code.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import margrove
from margrove.workbench.report.blocks import Block, Code, Pairs, Section
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import visible

__all__ = ["reproduction_section", "written"]

_PACKAGES = ("margrove", "numpy", "scipy", "scikit-learn", "numba")
_MAX_LINE = 88
_MAX_CODE = 20_000
_MAX_LITERAL = 2_000


def reproduction_section(subject: Subject, source: str, seed: Any, recipe: Any) -> Section:
    blocks: list[Block] = []
    if isinstance(recipe, str):
        blocks.append(Code("How this was made", _multiline(recipe)))
    elif isinstance(recipe, Mapping):
        command = recipe.get("command")
        if isinstance(command, str):
            blocks.append(Code("On the command line", _multiline(command)))
        rest = {str(key): value for key, value in recipe.items() if key != "command"}
        if rest:
            pairs = tuple(
                (visible(key), visible(_literal(value), 400)) for key, value in rest.items()
            )
            blocks.append(Pairs("Settings", pairs[:60]))
    settings = recipe if isinstance(recipe, Mapping) else {}
    blocks.append(Code("In Python", python_code(subject, source, seed, settings)))
    blocks.append(Pairs("Versions", tuple(_versions(seed))))
    return Section("reproduction", "How to do it again", blocks)


def python_code(subject: Subject, source: str, seed: Any, settings: Mapping[str, Any]) -> str:
    """A program that fits this model, from the file or from rows named X and y."""
    imports: set[str] = set()
    model_code = written(subject.model, imports)
    given = f"X_test=X_test, y_test=y_test{'' if seed is None else f', seed={_literal(seed)}'}"
    if not subject.is_held_out:
        given = "" if seed is None else f"seed={_literal(seed)}"
    lines = ["import margrove", ""]
    if source:
        lines.append(f"source = {_literal(source)}")
    if subject.target:
        lines.append(f"target = {_literal(subject.target)}")
    if subject.target and Path(source).suffix and _takes_raw_tables(subject.inner):
        lines.append("task = margrove.tables.task_of_table(margrove.read_table(source), target)")
        lines += _split_code(subject, settings, imports)
    elif subject.is_held_out:
        lines.append("# X and y are the training rows, X_test and y_test the held-out rows")
    else:
        lines.append("# X and y are the training rows")
    lines[1:1] = sorted(imports)
    lines += [
        f"model = {model_code}",
        "model.fit(X, y)",
        f"margrove.report(model, X, y{', ' if given else ''}{given}).save('report.html')",
    ]
    return _multiline("\n".join(lines))


def _split_code(subject: Subject, settings: Mapping[str, Any], imports: set[str]) -> list[str]:
    """Code that splits the table into training and held-out rows, as it was done."""
    share, seed = settings.get("test-size"), settings.get("seed")
    if not subject.is_held_out or subject.is_of_other_rows or share is None:
        held_out = ["X_test, y_test = X, y"] if subject.is_held_out else []
        return ["X, y = task.X, task.y", *held_out]
    imports.add("from sklearn.model_selection import train_test_split")
    stratify = ", stratify=task.y" if subject.task == "classification" else ""
    return [
        "X, X_test, y, y_test = train_test_split(",
        f"    task.X, task.y, test_size={_literal(share)}, random_state={_literal(seed)}{stratify}",
        ")",
    ]


def _takes_raw_tables(model: Any) -> bool:
    return hasattr(model, "steps") and isinstance(model.steps[0][1], margrove.TablePreparation)


def written(value: Any, imports: set[str], depth: int = 0) -> str:
    """The call that makes an estimator, with its parameters that differ from the defaults."""
    if hasattr(value, "steps"):
        imports.add("from sklearn.pipeline import Pipeline")
        steps = [
            f"({_literal(name)}, {written(step, imports, depth + 2)})" for name, step in value.steps
        ]
        flat = f"Pipeline([{', '.join(steps)}])"
        if len(flat) <= _MAX_LINE - 4 * depth and "\n" not in flat:
            return flat
        inner = "    " * (depth + 1)
        return f"Pipeline([\n{inner}" + f",\n{inner}".join(steps) + f",\n{'    ' * depth}])"
    cls = type(value)
    if hasattr(value, "get_params") and cls.__name__.isidentifier():
        is_ours = getattr(margrove, "__all__", None) and cls.__name__ in margrove.__all__
        if is_ours and cls.__module__.startswith("margrove."):
            name = f"margrove.{cls.__name__}"
        else:
            imports.add(f"from {_home(cls)} import {cls.__name__}")
            name = cls.__name__
        return _call(name, _arguments(value, imports, depth), depth)
    return _literal(value)


def _home(cls: type) -> str:
    """The public module of a class: without private parts."""
    parts = [part for part in cls.__module__.split(".") if part.isidentifier()]
    public = []
    for part in parts:
        if part.startswith("_"):
            break
        public.append(part)
    return ".".join(public) or "__main__"


def _arguments(estimator: Any, imports: set[str], depth: int) -> list[str]:
    try:
        default = type(estimator)().get_params(deep=False)
    except TypeError:  # it needs arguments
        default = {}
    found = []
    for name, value in estimator.get_params(deep=False).items():
        if not name.isidentifier() or (name in default and _is_same(value, default[name])):
            continue
        found.append(f"{name}={written(value, imports, depth + 1)}")
    return found


def _is_same(one: Any, other: Any) -> bool:
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # arrays, for example
        return False


def _call(name: str, arguments: list[str], depth: int) -> str:
    flat = f"{name}({', '.join(arguments)})"
    if len(flat) <= _MAX_LINE - 4 * depth or not arguments:
        return flat
    inner = "    " * (depth + 1)
    return f"{name}(\n{inner}" + f",\n{inner}".join(arguments) + f",\n{'    ' * depth})"


def _literal(value: Any) -> str:
    """The value as a Python literal; for other objects, a string with the name of the type."""
    if value is None or isinstance(value, (bool, int, float, str)):
        text = ascii(value)
    elif isinstance(value, (list, tuple, set)):
        inner = ", ".join(_literal(item) for item in list(value)[:200])
        ends = {list: "[]", tuple: "()", set: "{}"}.get(type(value), "[]")
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        text = ends[0] + inner + comma + ends[1]
    elif isinstance(value, Mapping):
        pairs = [f"{_literal(key)}: {_literal(item)}" for key, item in list(value.items())[:200]]
        text = "{" + ", ".join(pairs) + "}"
    elif hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        text = _literal(value.item())
    else:
        text = ascii(f"a {type(value).__name__}, to be made by hand")
    return text if len(text) <= _MAX_LITERAL else ascii(text[:_MAX_LITERAL])


def _multiline(text: str) -> str:
    """The text with every line made `visible`; only the ends of lines are kept."""
    lines = text[:_MAX_CODE].splitlines()
    return "\n".join(visible(line, 2_000) if line.strip() == line and line else
                     _indented(line) for line in lines)  # fmt: skip


def _indented(line: str) -> str:
    inner = line.strip()
    spaces = len(line) - len(line.lstrip(" "))
    return " " * spaces + (visible(inner, 2_000) if inner else "")


def _versions(seed: Any) -> list[tuple[str, str]]:
    found = [("seed", _literal(seed))] if seed is not None else []
    found.append(("Python", platform.python_version()))
    for name in _PACKAGES:
        if name == "margrove":
            found.append((name, margrove.__version__))
            continue
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found
