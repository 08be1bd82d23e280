"""Kernels, criteria and losses that the user has registered, on the workers.

Estimators refer to them by name, and the process of a worker has registries of its own. So a fit
sends those that its estimator names. Functions and classes of a module are sent as references,
which import that module on the worker. Those of a script or a notebook are sent by value.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from margrove.exceptions import ClusterError

__all__ = ["Registration", "pickled", "register_on_worker", "registrations_of", "unpickled"]

# On a worker: what earlier fits have sent.
_received: dict[tuple[str, str], bytes] = {}


@dataclass(frozen=True)
class Registration:
    """An entry of a registry.

    registry   "kernel", "criterion" or "loss": the parameter of estimators that names entries
    content    the entry, pickled
    """

    registry: str
    name: str
    content: bytes


def _registries() -> dict[str, dict[str, Any]]:
    from margrove.ensemble.gradient.losses import GRADIENT_LOSSES
    from margrove.grove import CRITERIA
    from margrove.margin.kernels import KERNELS

    return {"kernel": KERNELS, "criterion": CRITERIA, "loss": GRADIENT_LOSSES}


def registrations_of(estimator: Any) -> list[Registration]:
    """The kernels, criteria and losses that the parameters of an estimator name.

    Parameters of nested estimators count, too. Those of margrove are among them: workers have them
    already, and leave them as they are.
    """
    registries = _registries()
    found = {}
    for parameter, value in estimator.get_params(deep=True).items():
        registry = parameter.rpartition("__")[2]
        if isinstance(value, str) and value in registries.get(registry, {}):
            found[registry, value] = registries[registry][value]
    return [Registration(*key, pickled(_entry_to_send(entry))) for key, entry in found.items()]


def _entry_to_send(entry: Any) -> Any:
    """The class of a kernel that was made from a function is not in any module: an instance is."""
    return entry() if isinstance(entry, type) and "__reduce__" in vars(entry) else entry


def register_on_worker(registrations: list[Registration]) -> None:
    """Add what was sent to the registries of this process.

    An entry that is there stays, unless an earlier fit has sent it with other content.
    """
    registries = _registries()
    for sent in registrations:
        key, registry = (sent.registry, sent.name), registries[sent.registry]
        is_replaced = _received.get(key, sent.content) != sent.content
        if sent.name in registry and not is_replaced:
            continue
        registry.pop(sent.name, None)
        entry = unpickled(sent.content, f"{sent.registry}={sent.name!r}")
        if sent.name not in registry:
            registry[sent.name] = entry
        _received[key] = sent.content


def pickled(thing: Any) -> bytes:
    """A pickle in which functions and classes of a script or a notebook are contained by value."""
    import cloudpickle  # type: ignore[import-untyped]

    found: bytes = cloudpickle.dumps(thing)
    return found


def unpickled(content: bytes, what: str) -> Any:
    """What was pickled; ClusterError if a module that it refers to is not on this worker."""
    try:
        return pickle.loads(content)
    except (ImportError, AttributeError) as error:
        raise ClusterError(
            f"A worker cannot load {what}: {error}. Install the module that defines it on the "
            "workers, or add its folder to their PYTHONPATH, or define it in the script that fits."
        ) from error
