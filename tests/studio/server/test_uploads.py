"""Tables that are loaded in the page."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import shutil
import socket
import stat
import time

import httpx
import numpy as np
import pytest
from tests.interrupts import PATIENCE

from margrove.studio.server.uploads import UploadLimits, safe_file_name


@pytest.fixture
def upload(studio, tab):
    """Send a table as the page does; what it leaves behind is taken away."""
    uploads = studio.studio.uploads

    def send(content, name="people.csv", **headers):
        given = {"Origin": studio.origin, "X-Margrove-Key": tab.key, "X-Margrove-Name": name}
        given["Content-Type"] = "application/octet-stream"
        return httpx.post(f"{studio.origin}/tables", content=content, headers=given | headers)

    yield send
    for path in uploads.paths().values():
        shutil.rmtree(path.parent)
    uploads._paths, uploads._n_bytes = {}, 0


def test_a_table_is_known_by_a_random_name_and_read_by_the_child(studio, tab, upload):
    answer = upload(b"a,b\n1,2\n", "Meine%20Leute.csv")
    assert answer.status_code == 200
    name = answer.json()["table"]
    assert len(name) >= 22
    assert tab.ask("tables")["body"] == {name: ["Meine-Leute.csv", "a,b\n1,2\n"]}
    path = studio.studio.uploads.paths()[name]
    assert path.is_relative_to(studio.folder)
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert studio.get(f"/tables/{name}").status_code == 404  # it is never served


def test_128_a_table_that_is_too_large_is_refused_before_or_while_it_comes(studio, upload):
    assert upload(bytes(100_001)).status_code == 413

    def pieces():
        for _ in range(1000):
            yield bytes(1000)

    answer = upload(pieces())  # chunked: without a length
    assert answer.status_code == 413
    assert "--max-upload" in answer.text
    assert studio.studio.uploads.paths() == {}
    assert not list(studio.folder.iterdir())


def test_128_a_table_that_comes_too_slowly_is_not_waited_for(studio, upload, monkeypatch):
    limits = UploadLimits(max_bytes=100_000, seconds=0.4)
    monkeypatch.setattr(studio.studio.uploads, "_limits", limits)

    def slowly():
        yield b"a,b\n"
        time.sleep(0.7)
        yield b"1,2\n"

    assert upload(slowly()).status_code == 408

    assert studio.studio.uploads.paths() == {}


def test_128_a_length_that_is_a_lie_leaves_nothing_behind(studio, tab):
    head = (
        f"POST /tables HTTP/1.1\r\nHost: {studio.host}\r\nOrigin: {studio.origin}\r\n"
        f"X-Margrove-Key: {tab.key}\r\nContent-Length: 1000\r\n\r\nabc"
    )
    with socket.create_connection(("127.0.0.1", studio.address.port), PATIENCE) as raw:
        raw.sendall(head.encode())
    while studio.studio.uploads._n_active:
        time.sleep(0.01)
    assert studio.studio.uploads.paths() == {}
    assert not list(studio.folder.iterdir())


def test_128_tables_are_counted(studio, upload):
    assert [upload(b"a\n1\n").status_code for _ in range(7)] == 6 * [200] + [429]


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]
)
def test_123_forms_are_refused(upload, kind):
    assert upload(b"a\n1\n", **{"Content-Type": kind}).status_code == 415


def test_128_a_compressed_body_and_an_empty_one_are_refused(upload):
    assert upload(b"a\n1\n", **{"Content-Encoding": "gzip"}).status_code == 415
    assert upload(b"").status_code == 400


def _bomb():
    return gzip.compress(bytes(30_000_000))


def _pickle():
    return pickle.dumps({"a": [1.5]})


def _array():
    file = io.BytesIO()
    np.savez(file, a=np.ones(3))
    return file.getvalue()


@pytest.mark.parametrize("made", [_bomb, _pickle, _array], ids=["bomb", "pickle", "npz"])
def test_128_129_what_is_no_table_is_an_error_of_the_child(tab, upload, made):
    pytest.importorskip("polars")
    name = upload(made(), "table.csv").json()["table"]
    answer = tab.ask("read", table=name)
    assert answer["kind"] == "error"
    assert "table.csv" in answer["message"]
    assert "/" not in answer["message"]


def test_128_134_a_full_disk_is_said_to_be_full(studio, upload, monkeypatch):
    usage = shutil.disk_usage(studio.folder)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    assert upload(b"a\n1\n").status_code == 507
    assert not list(studio.folder.iterdir())


def test_128_tables_take_so_much_room_together(studio, upload, monkeypatch):
    monkeypatch.setattr(studio.studio.uploads, "_n_bytes", 499_999)
    assert upload(b"a\n1\n").status_code == 507


@pytest.mark.parametrize("key", ["", "wrong"])
def test_122_without_a_key_nothing_is_taken(upload, key):
    assert upload(b"a\n1\n", **{"X-Margrove-Key": key}).status_code == 401


def test_123_without_our_origin_nothing_is_taken(upload):
    assert upload(b"a\n1\n", Origin="http://evil.com").status_code == 403


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("people.csv", "people.csv"),
        ("PEOPLE.CSV.GZ", "PEOPLE.csv.gz"),
        ("a.parquet", "a.parquet"),
        ("../../etc/passwd", "passwd.txt"),
        ("..%2F..%2Fetc%2Fshadow.csv", "shadow.csv"),
        ("C:\\x\\y.tsv", "y.tsv"),
        ("\\\\host\\share\\z.jsonl", "z.jsonl"),
        ("CON", "table-CON.txt"),
        ("nul.csv", "table-nul.csv"),
        ("", "table.txt"),
        ("...", "table.txt"),
        (".csv", "table.csv"),
        ("model.pkl", "model-pkl.txt"),
        ("page.html", "page-html.txt"),
        ("a.csv.exe", "a-csv-exe.txt"),
        ("x\x00y.csv", "x-y.csv"),
        ("<script>.csv", "script.csv"),
        ("%E2%80%AEvsc.exe.csv", "vsc-exe.csv"),
        ("a" * 500 + ".csv", "a" * 60 + ".csv"),
    ],
)
def test_127_128_130_of_a_name_only_harmless_letters_are_kept(given, name):
    assert safe_file_name(given) == name
