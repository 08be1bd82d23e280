"""`margrove studio` as a person starts it: a process of its own, whose links are read from it."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from urllib.parse import urlsplit

_LINK = re.compile(r"http://\S+/#token=\S+")
_PATIENCE = 60.0  # seconds until it has said its link, on a machine that is busy


def free_port() -> str:
    """One that no other studio looks for: they try those from 8642 on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


class RunningStudio:
    """A studio, to be closed by `close`."""

    def __init__(self, *arguments: str) -> None:
        environment = {key: own for key, own in os.environ.items() if key != "MARGROVE_TRACEBACK"}
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "margrove", "studio", "--no-browser", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
        )
        self._links: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._next = self._links.get(timeout=_PATIENCE)
        address = urlsplit(self._next)
        self.host = address.netloc
        self.port = int(address.port or 0)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            for line in said:
                if found := _LINK.search(line):
                    self._links.put(found.group())

    def link(self) -> str:
        """One that nobody has used. The next is printed when a link was used."""
        if not self._next:
            self._next = self._links.get(timeout=_PATIENCE)
        given, self._next = self._next, ""
        return given

    def complaints(self) -> str:
        """What it has said about faults of its own."""
        self._errors.flush()
        self._errors.seek(0)
        return self._errors.read()

    def close(self) -> None:
        """As Ctrl-C does."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._errors.close()
