"""The addresses of the studio: loopback or not, a free port, bound sockets."""

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
    """The address of the studio: `host` as in the link, and the port."""

    host: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """The values that a browser may send in the Host header."""
        names = [self.host]
        if is_loopback(self.host):
            names = ["127.0.0.1", "localhost", "[::1]"]
        with_port = [f"{_bracketed(name)}:{self.port}" for name in names]
        return (*with_port, *names) if self.port == 80 else tuple(with_port)

    def link(self, token: str) -> str:
        """The link with the token in its fragment, which browsers do not send."""
        return f"http://{_bracketed(self.host)}:{self.port}/#token={token}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    if host.lower() == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    return False


def bound_sockets(host: str, port: int | None) -> tuple[Address, list[socket.socket]]:
    """Bind sockets; returns their address. Without a port, the first free one from 8642 on."""
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
    raise OSError(f"No port is free on {shown}. Choose one with --port.")


def _why_not_bound(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is in use, perhaps by another studio. Choose another one with --port, "
            "or leave --port out."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} needs special permission. Choose one from 1024 on with --port."
    reason = (error.strerror or "unknown reason").lower()
    return f"This machine cannot serve on the address {host} ({reason}). See --host."


def _bound(hosts: tuple[str, ...], port: int) -> list[socket.socket]:
    """One socket for each address, all with the same port; the machine may have no IPv6."""
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
        for opened in bound:
            opened.close()
        raise
    return bound


def _bound_to(host: str, port: int) -> socket.socket:
    kind, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(kind, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # on Windows it would let two studios share a port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if kind == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(place)
        bound.listen(128)  # only then is the port taken
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound
