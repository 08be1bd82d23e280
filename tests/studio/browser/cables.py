"""A cable between browser and studio that can be cut and mended."""

from __future__ import annotations

import contextlib
import socket
import threading


class Cable:
    """Forwards connections to a port of this machine, byte for byte."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._is_cut = False
        self._start(self._accept)

    def cut(self) -> None:
        """All connections end, and new ones end at once."""
        with self._lock:
            self._is_cut = True
            for own in self._open:
                _end(own)

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        self.cut()
        _end(self._listener)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _start(self, task, *arguments) -> None:
        thread = threading.Thread(target=task, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._connect(self._listener.accept()[0])

    def _connect(self, near: socket.socket) -> None:
        with self._lock:
            if self._is_cut:
                near.close()
                return
        try:
            far = socket.create_connection(self._target)
        except OSError:
            near.close()
            return
        with self._lock:
            self._open |= {near, far}
        self._start(self._forward, near, far)

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=_pump, args=(far, near), daemon=True)
        back.start()
        _pump(near, far)
        back.join()
        with self._lock:
            self._open -= {near, far}
        near.close()
        far.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    _end(source)
    _end(sink)


def _end(own: socket.socket) -> None:
    with contextlib.suppress(OSError):
        own.shutdown(socket.SHUT_RDWR)
