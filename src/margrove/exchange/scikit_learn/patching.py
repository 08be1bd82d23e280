"""Lets unchanged programs for scikit-learn run on margrove.

Names in scikit-learn's public packages are replaced. Its private modules keep their names, because
its pickles and its own ensembles need them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import sklearn
from sklearn.utils.fixes import parse_version

from margrove.exchange.scikit_learn.replacements import (
    PUBLIC_HOMES,
    Replacement,
    original,
    replacement,
)

__all__ = [
    "Patched",
    "load_ipython_extension",
    "patch_sklearn",
    "patched",
    "unload_ipython_extension",
    "unpatch_sklearn",
]

_OLDEST = "1.8"
# Modules of scikit-learn that import names from the public packages. They are imported before
# anything is replaced.
_IMPORTERS = ("sklearn.calibration", "sklearn.inspection")
_DRAWINGS = ("export_graphviz", "export_text", "plot_tree")  # they need trees of scikit-learn

_replaced: dict[str, Any] = {}  # the original classes of the replaced names


@dataclass(frozen=True)
class Patched:
    """Which classes of scikit-learn are replaced.

    Attributes
    ----------
    replaced : tuple of str
        Names in scikit-learn that now are classes of margrove, such as "sklearn.svm.SVC".
    bound_before : tuple of str
        Names in other modules that were imported before the patch and still are scikit-learn's.
    """

    replaced: tuple[str, ...]
    bound_before: tuple[str, ...]


def patch_sklearn(names: Iterable[str] | None = None, *, fallback: bool = True) -> None:
    """Replace estimators of scikit-learn by those of margrove.

    After this, `from sklearn.svm import SVC` imports the class of margrove. Names that were
    imported before stay classes of scikit-learn; `patched` lists them. A fit that margrove refuses
    and scikit-learn accepts runs in scikit-learn, with a `FallbackWarning`.

    Parameters
    ----------
    names : iterable of str, optional
        Names of estimators, such as ["SVC", "RandomForestClassifier"]. Default: all.
    fallback : bool, default=True
        False raises margrove's error instead of falling back to scikit-learn.

    Examples
    --------
    >>> import margrove
    >>> margrove.patch_sklearn(["SVC"])
    >>> from sklearn.svm import SVC
    >>> issubclass(SVC, margrove.SVC)
    True
    >>> margrove.patched().replaced
    ('sklearn.svm.SVC',)
    >>> margrove.unpatch_sklearn()
    """
    _require_version()
    chosen = _chosen(names)
    again = [name for name in chosen if name in _replaced]
    if again:
        raise ValueError(
            f"{', '.join(again)} of scikit-learn is patched already. Call "
            "margrove.unpatch_sklearn() first."
        )
    for module in (*PUBLIC_HOMES.values(), *_IMPORTERS):
        importlib.import_module(module)
    made = {name: replacement(name) for name in chosen}  # all errors come before the first change
    Replacement.falls_back = fallback
    for name, ours in made.items():
        _replaced[name] = original(name)
        setattr(sys.modules[PUBLIC_HOMES[name]], name, ours)
    _translate_drawings()


def unpatch_sklearn(names: Iterable[str] | None = None) -> None:
    """Undo `patch_sklearn`.

    Parameters
    ----------
    names : iterable of str, optional
        Names that were patched. Default: all of them.
    """
    chosen = list(_replaced) if names is None else _chosen(names)
    absent = [name for name in chosen if name not in _replaced]
    if absent:
        raise ValueError(f"{', '.join(absent)} of scikit-learn is not patched.")
    for name in chosen:
        setattr(sys.modules[PUBLIC_HOMES[name]], name, _replaced.pop(name))
    if not _replaced:
        _restore_drawings()
        Replacement.falls_back = True


def patched() -> Patched:
    """Which names `patch_sklearn` has replaced, and which are still classes of scikit-learn.

    Returns
    -------
    Patched
    """
    replaced = tuple(f"{PUBLIC_HOMES[name]}.{name}" for name in sorted(_replaced))
    return Patched(replaced, tuple(sorted(_bound_before())))


def _bound_before() -> Iterable[str]:
    """Names of replaced classes in modules that belong to neither scikit-learn nor margrove."""
    theirs = {id(found) for found in _replaced.values()}
    for module_name, module in list(sys.modules.items()):
        if module is None or module_name.partition(".")[0] in ("sklearn", "margrove"):
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if isinstance(value, type) and id(value) in theirs:
                yield f"{module_name}.{name}"


def _require_version() -> None:
    if parse_version(sklearn.__version__) < parse_version(_OLDEST):
        raise ImportError(
            f"patch_sklearn needs scikit-learn {_OLDEST} or later. Got {sklearn.__version__}; "
            "upgrade scikit-learn."
        )


def _chosen(names: Iterable[str] | None) -> list[str]:
    if names is None:
        return list(PUBLIC_HOMES)
    chosen = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    unknown = [name for name in chosen if name not in PUBLIC_HOMES]
    if unknown:
        raise ValueError(
            f"names has {unknown[0]!r}, which margrove does not replace. It can be any of "
            f"{', '.join(sorted(PUBLIC_HOMES))}."
        )
    return chosen


# -- functions that draw trees --


def _translate_drawings() -> None:
    """Let the functions of scikit-learn that draw trees accept trees of margrove."""
    tree = sys.modules["sklearn.tree"]
    for name in _DRAWINGS:
        function = getattr(tree, name)
        if not hasattr(function, "_of_their_trees"):
            setattr(tree, name, _translated(function))


def _restore_drawings() -> None:
    tree = sys.modules["sklearn.tree"]
    for name in _DRAWINGS:
        function = getattr(tree, name)
        setattr(tree, name, getattr(function, "_of_their_trees", function))


def _translated(function: Callable[..., Any]) -> Callable[..., Any]:
    from margrove.grove import DecisionTree

    @functools.wraps(function)
    def drawn(decision_tree: Any, *args: Any, **more: Any) -> Any:
        is_ours = isinstance(decision_tree, DecisionTree)
        return function(decision_tree.to_sklearn() if is_ours else decision_tree, *args, **more)

    drawn._of_their_trees = function  # type: ignore[attr-defined]
    return drawn


# -- notebooks --


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext margrove` patches scikit-learn, unless it is patched already."""
    if not _replaced:
        patch_sklearn()


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext margrove` undoes the patch."""
    unpatch_sklearn()
