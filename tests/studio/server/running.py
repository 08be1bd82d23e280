"""A studio that runs on a thread of the test, and a tab that speaks to it."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
from tests.interrupts import PATIENCE
from websockets.sync.client import connect

from margrove.studio.server.addresses import bound_sockets
from margrove.studio.server.application import Settings, Studio
from margrove.studio.server.serving import quiet_server
from margrove.studio.server.uploads import UploadLimits
from margrove.studio.worker.worker_supervisor import Limits

TYPES = {"f4": np.float32, "f8": np.float64, "i4": np.int32, "u1": np.uint8}
SETTINGS = Settings(
    hosts=(),
    folder=Path(),
    answers="tests.studio.server.own_answers",
    is_warmed=False,
    memory_bytes=1_600_000_000,
    limits=Limits(seconds=PATIENCE, grace=PATIENCE),
    uploads=UploadLimits(max_bytes=100_000, max_tables=6),
    most_sockets=6,
)


def written_page(folder):
    """A page as a build leaves it."""
    folder.joinpath("index.html").write_text("<!DOCTYPE html><title>studio</title>")
    folder.joinpath("assets").mkdir()
    folder.joinpath("assets", "index-3f2a.js").write_text("export {}")
    folder.joinpath("assets", "index-3f2a.css").write_text("body {}")
    folder.joinpath("secret.py").write_text("password = 1")
    return folder


class RunningStudio:
    """Served for real, on a free port."""

    def __init__(self, folder, **changes):
        self.address, self._sockets = bound_sockets("127.0.0.1", None)
        self.folder = folder
        self.studio = Studio(replace(SETTINGS, hosts=self.address.hosts, folder=folder, **changes))
        self.server = quiet_server(self.studio.application)
        serving = self.server.serve(sockets=self._sockets)
        self._thread = threading.Thread(target=asyncio.run, args=(serving,))
        self._thread.start()
        while not self.server.started:
            time.sleep(0.01)

    @property
    def host(self):
        return self.address.hosts[0]

    @property
    def origin(self):
        return f"http://{self.host}"

    def stop(self):
        self.server.should_exit = True
        self._thread.join()

    def get(self, path, **headers):
        return httpx.get(self.origin + path, headers=headers)

    def socket(self, **others):
        """To be used in a `with` statement."""
        given = {"origin": self.origin, "proxy": None, "max_size": None, "compression": None}
        return connect(f"ws://{self.host}/socket", **(given | others))

    def tab(self):
        """A tab that has come in by a link."""
        return Tab(self.socket(), self.studio.keys.new_token())


class Tab:
    """What the page does, in a few lines."""

    def __init__(self, connecting, token):
        self._connection = connecting
        self.socket = socket = connecting.__enter__()
        socket.send(json.dumps({"kind": "hello", "token": token}))
        self.welcome = json.loads(socket.recv(timeout=PATIENCE))
        self.key = self.welcome.get("key")
        self.notes = []
        self._id = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._connection.__exit__(*error)

    def send(self, kind, channel="c", **ask):
        self._id += 1
        self.socket.send(json.dumps({"kind": kind, "id": self._id, "channel": channel} | ask))
        return self._id

    def next(self):
        message = self.socket.recv(timeout=PATIENCE)
        return json.loads(message) if isinstance(message, str) else unpacked(message)

    def answer(self):
        """The next message that is no progress."""
        while (message := self.next())["kind"] == "progress":
            self.notes.append(message)
        return message

    def ask(self, kind, channel="c", **ask):
        self.send(kind, channel, **ask)
        return self.answer()

    def wait_for_progress(self):
        while self.next()["note"] == "starting":
            pass


def unpacked(frame):
    """A result, read as the page reads it."""
    (length,) = struct.unpack_from("<I", frame)
    header = json.loads(frame[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8
    arrays = {}
    for name, place in header["arrays"].items():
        assert place["offset"] % 8 == 0
        count = int(np.prod(place["shape"]))
        values = np.frombuffer(frame, TYPES[place["dtype"]], count, start + place["offset"])
        arrays[name] = values.reshape(place["shape"])
    return {**header, "body": _with_arrays(header["body"], arrays)}


def _with_arrays(value, arrays):
    if isinstance(value, dict):
        if list(value) == ["array"]:
            return arrays[value["array"]]
        return {key: _with_arrays(own, arrays) for key, own in value.items()}
    if isinstance(value, list):
        return [_with_arrays(own, arrays) for own in value]
    return value
