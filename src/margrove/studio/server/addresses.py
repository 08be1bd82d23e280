"""Where the studio is: addresses of this machine, a port that is free, sockets that are bound."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
from dataclasses import dataclass

__all__ = ["Address", "bound_sockets", "is_loopback"]

_DEFAULT_PORT = 8642
_PORTS_TO_TRY = 20


@dataclass(frozen=True)
class Address:
    """Where the studio is: `host` as in the link, and the port."""

    host: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser may put into the header Host."""
        names = [self.host]
        if is_loopback(self.host):
            names = ["127.0.0.1", "localhost", "[::1]"]
        own = [f"{_bracketed(name)}:{self.port}" for name in names]
        return (*own, *names) if self.port == 80 else tuple(own)

    def link(self, token: str) -> str:
        """The token stands in the fragment, which browsers do not send."""
        return f"http://{_bracketed(self.host)}:{self.port}/#token={token}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach it there."""
    if host.lower() == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return False


def bound_sockets(host: str, port: int | None) -> tuple[Address, list[socket.socket]]:
    """Sockets that are bound, and where. Without a port, the first free one from 8642 on."""
    hosts = ("127.0.0.1", "::1") if is_loopback(host) else (host.strip("[]"),)
    shown = "127.0.0.1" if is_loopback(host) else host.strip("[]")
    tried = (
        [port] if port is not None else [*range(_DEFAULT_PORT, _DEFAULT_PORT + _PORTS_TO_TRY), 0]
    )
    for number in tried:
        try:
            bound = _bound(hosts, number)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES) or port is not None:
                raise OSError(_why_not_bound(error, shown, number)) from None
            continue
        return Address(shown, bound[0].getsockname()[1]), bound
    raise OSError(f"No port is free on {shown}. Name one with --port.")


def _why_not_bound(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is taken, perhaps by another studio. Name another with --port, or "
            "none, to have one chosen."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} is not for everybody. Name one from 1024 on with --port."
    reason = (error.strerror or "unknown reason").lower()
    return f"{host} is no address that this machine can serve ({reason}). See --host."


def _bound(hosts: tuple[str, ...], port: int) -> list[socket.socket]:
    """One socket for each address, all with the same port; a machine may be without IPv6."""
    bound: list[socket.socket] = []
    try:
        for host in hosts:
            number = bound[0].getsockname()[1] if bound else port
            try:
                bound.append(_bound_to(host, number))
            except OSError as error:
                is_taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
                if not bound or is_taken:
                    raise
    except OSError:
        for own in bound:
            own.close()
        raise
    return bound


def _bound_to(host: str, port: int) -> socket.socket:
    kind, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    own = socket.socket(kind, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let two studios share a port
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if kind == socket.AF_INET6:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        own.bind(place)
        own.listen(128)  # only then is the port ours
    except OSError:
        own.close()
        raise
    own.setblocking(False)
    return own
