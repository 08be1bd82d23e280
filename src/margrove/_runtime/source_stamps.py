"""Stamps of source files: they tell when a kernel must be compiled again.

The machine code of a kernel contains what the kernel's module imports: kernels that it calls and
constants that it reads. So the stamp of a module is a hash of its own source and of the sources of
all modules of this package that it imports, directly or through others. After an edit, only the
machine code of modules that import the edited file is invalid.
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
_EXPORT = re.compile(r"^from \.([\w.]+) import (\w+) as \w+$", re.MULTILINE)  # in a stub
_COMMENT = re.compile(r"#[^\n]*")


class SourceStamps:
    """The stamps of all modules of the package in a folder. Files are read once, when needed."""

    def __init__(self, package: Path) -> None:
        self._package = package

    @functools.cache  # noqa: B019  (there is one for the whole process)
    def stamp(self, module: str) -> str:
        """A hash of the sources that the machine code of this module's kernels depends on."""
        digest = hashlib.sha256()
        for name in sorted(self.dependencies(module)):
            digest.update(name.encode())
            digest.update(self._source(name))
        return digest.hexdigest()[:16]

    @functools.cache  # noqa: B019
    def of_package(self) -> str:
        """A hash of all sources of the package."""
        digest = hashlib.sha256()
        for path in sorted(self._package.rglob("*.py")):
            digest.update(str(path.relative_to(self._package)).encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    def dependencies(self, module: str) -> set[str]:
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
                found.add(self._module_of(statement["package"], name))
        return found - {"margrove"}  # the package itself has no kernels

    def _module_of(self, package: str, name: str) -> str:
        """The module that defines an imported name.

        It is the module that `__init__.pyi` gives, a module of that name, or the package itself.
        """
        if name in (exports := self._exports(package)):
            return self._module_of(f"{package}.{exports[name]}", name)
        inner = f"{package}.{name}"
        return inner if self._path(inner) is not None else package

    @functools.cache  # noqa: B019
    def _exports(self, package: str) -> dict[str, str]:
        """What `__init__.pyi` exports: {name: module of the package that defines it}."""
        stub = self._package.parent.joinpath(*package.split("."), "__init__.pyi")
        if not stub.is_file():
            return {}
        return {name: module for module, name in _EXPORT.findall(stub.read_text())}

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
