"""Stamps of source files: when must a compiled kernel be compiled again?

Machine code of a kernel contains what the kernel's module imports: kernels that it calls,
constants that it reads. So the stamp of a module is a hash of its own source and of the sources of
all modules of this package that it imports, directly or through others. An edit of a tree's kernel
leaves the machine code of a support vector machine valid, and makes everything that the edited
file can reach into invalid.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

__all__ = ["SourceStamps"]

# Imports at the beginning of a line. A kernel cannot see what a function imports.
_IMPORT = re.compile(
    r"^(?:from\s+(?P<package>margrove[\w.]*)\s+import\s+(?:\((?P<lines>[^)]*)\)|(?P<line>[^\n]*))"
    r"|import\s+(?P<module>margrove[\w.]*))",
    re.MULTILINE,
)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")
_OFFER = re.compile(r"^from \.([\w.]+) import (\w+) as \w+$", re.MULTILINE)  # in a stub
_COMMENT = re.compile(r"#[^\n]*")


class SourceStamps:
    """The stamps of all modules of the package in a folder. Files are read once, when needed."""

    def __init__(self, package: Path) -> None:
        self._package = package

    @functools.cache  # noqa: B019  (there is one for the whole process)
    def stamp(self, module: str) -> str:
        """A hash of the sources that the machine code of this module's kernels depends on."""
        digest = hashlib.sha256()
        for name in sorted(self.reached(module)):
            digest.update(name.encode())
            digest.update(self._source(name))
        return digest.hexdigest()[:16]

    @functools.cache  # noqa: B019
    def whole(self) -> str:
        """A hash of all sources of the package."""
        digest = hashlib.sha256()
        for path in sorted(self._package.rglob("*.py")):
            digest.update(str(path.relative_to(self._package)).encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    def reached(self, module: str) -> set[str]:
        """The module and those that it imports, directly or through others."""
        found, todo = {module}, [module]
        while todo:
            new = self._imports(todo.pop()) - found
            found |= new
            todo += new
        return found

    @functools.cache  # noqa: B019
    def _imports(self, module: str) -> set[str]:
        text = self._source(module).decode()
        found = set()
        for statement in _IMPORT.finditer(text):
            if statement["module"]:
                found.add(statement["module"])
                continue
            names = _COMMENT.sub("", statement["lines"] or statement["line"])
            for name in _NAME.findall(names):
                found.add(self._home(statement["package"], name))
        return found - {"margrove"}  # the package itself has nothing that is compiled

    def _home(self, package: str, name: str) -> str:
        """Where an imported name is: the module that the contents of the package name for it, a
        module of that name, or the package itself."""
        if name in (contents := self._contents(package)):
            return self._home(f"{package}.{contents[name]}", name)
        inner = f"{package}.{name}"
        return inner if self._path(inner) is not None else package

    @functools.cache  # noqa: B019
    def _contents(self, package: str) -> dict[str, str]:
        """What `__init__.pyi` offers: {name: module of the package that has it}."""
        stub = self._package.parent.joinpath(*package.split("."), "__init__.pyi")
        if not stub.is_file():
            return {}
        return {name: module for module, name in _OFFER.findall(stub.read_text())}

    @functools.cache  # noqa: B019
    def _source(self, module: str) -> bytes:
        path = self._path(module)
        if path is None:
            raise ImportError(f"There is no source file of {module} under {self._package}.")
        return path.read_bytes()

    @functools.cache  # noqa: B019
    def _path(self, module: str) -> Path | None:
        place = self._package.parent.joinpath(*module.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
        return None
