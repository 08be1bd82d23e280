"""From the command to the page and back."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace

import httpx
import pytest
from tests.interrupts import PATIENCE, wait_until
from tests.studio.server.asked import asked
from tests.studio.server.running import SETTINGS, Tab, written_page
from websockets.sync.client import connect

from margrove.cli import main
from margrove.studio.server import addresses, browsers
from margrove.studio.server.addresses import Address, bound_sockets, is_loopback
from margrove.studio.server.application import Studio


@pytest.fixture
def refused(capsys):
    """Run a command line that is wrong; gives the one line it prints."""

    def run_wrong(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main(["studio", *arguments])
        out, err = capsys.readouterr()
        assert (stopped.value.code, out, err.count("\n")) == (2, "", 1)
        return err

    return run_wrong


# -- where it is served --------------------------------------------------------------------------


def test_120_by_default_it_is_served_to_this_machine_only():
    address, sockets = bound_sockets("127.0.0.1", None)
    places = {own.getsockname()[0] for own in sockets}
    for own in sockets:
        own.close()
    assert "127.0.0.1" in places
    assert places <= {"127.0.0.1", "::1"}
    assert {own.getsockname()[1] for own in sockets if own.fileno() >= 0} <= {address.port}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "*", ""])
def test_120_not_to_all_addresses_at_once(refused, host):
    assert "Name the one that browsers will use" in refused("--host", host, "--i-understand")


def test_120_serving_to_others_has_to_be_understood(refused):
    for host in ("192.0.2.1", "example.org", "127.0.0.1.evil.com", "2001:db8::1"):
        assert "--i-understand" in refused("--host", host)


def test_120_an_address_of_another_machine_is_said_to_be_one(capsys):
    with pytest.raises(SystemExit):
        main(["studio", "--host", "192.0.2.1", "--i-understand"])
    err = capsys.readouterr().err
    assert err.startswith("Warning: the studio is served on 192.0.2.1, unencrypted")
    assert "This machine cannot serve on the address 192.0.2.1" in err


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9"])
def test_120_loopback_is_known(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org", "127.0.0.1.nip.io", "10.0.0.1", "x"])
def test_120_other_addresses_are_no_loopback(host):
    assert not is_loopback(host)


def test_121_hosts_are_exact_and_the_token_is_in_the_fragment():
    assert Address("127.0.0.1", 8642).hosts == ("127.0.0.1:8642", "localhost:8642", "[::1]:8642")
    assert Address("10.0.0.1", 8642).hosts == ("10.0.0.1:8642",)
    assert Address("2001:db8::1", 8642).hosts == ("[2001:db8::1]:8642",)
    assert "127.0.0.1" in Address("127.0.0.1", 80).hosts  # browsers leave that port out
    assert Address("127.0.0.1", 8642).link("t") == "http://127.0.0.1:8642/#token=t"


# -- ports ---------------------------------------------------------------------------------------


def test_137_a_taken_port_is_left_for_the_next_unless_it_was_asked_for(monkeypatch, refused):
    first, sockets = bound_sockets("127.0.0.1", None)
    monkeypatch.setattr(addresses, "_DEFAULT_PORT", first.port)
    second, more = bound_sockets("127.0.0.1", None)
    assert second.port > first.port
    message = refused("--port", str(first.port))
    assert f"Port {first.port} is in use" in message
    for own in (*sockets, *more):
        own.close()


def test_137_a_port_is_free_only_if_it_is_for_both_addresses(monkeypatch):
    """Else `localhost` might lead to another program."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    try:
        taken = addresses._bound_to("::1", 0)
    except OSError:
        pytest.skip("no IPv6")
    port = taken.getsockname()[1]
    with pytest.raises(OSError, match="in use"):
        bound_sockets("127.0.0.1", port)
    taken.close()


def test_137_a_machine_may_be_without_ipv6(monkeypatch):
    bind = addresses._bound_to

    def without(host, port):
        if ":" in host:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return bind(host, port)

    monkeypatch.setattr(addresses, "_bound_to", without)
    address, sockets = bound_sockets("localhost", None)
    assert [own.getsockname() for own in sockets] == [("127.0.0.1", address.port)]
    sockets[0].close()


# -- what is missing -----------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["starlette", "uvicorn", "websockets"])
def test_without_the_extra_it_is_said_what_to_install(monkeypatch, refused, module):
    monkeypatch.setitem(sys.modules, module, None)
    assert 'pip install "margrove[studio]"' in refused()


@pytest.mark.parametrize("name", ["nothing.csv", ".", "a\x00b"])
def test_a_file_that_cannot_be_read_is_refused_at_once(refused, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "margrove: " in refused(name)


def test_a_page_that_was_not_built_is_said_so(tmp_path):
    without = Studio(replace(SETTINGS, hosts=["h"], folder=tmp_path, page=tmp_path / "nowhere"))
    assert not without.has_page
    found = asked(without.application, headers=[(b"host", b"h")])
    assert found.status == 503
    assert b"npm run build" in found.body


def test_the_files_of_the_page_have_types_that_browsers_accept(tmp_path):
    page = written_page(tmp_path)
    studio = Studio(replace(SETTINGS, hosts=["h"], folder=tmp_path, page=page))
    assert studio.has_page
    for path, kind in (
        ("/", "text/html; charset=utf-8"),
        ("/assets/index-3f2a.js", "text/javascript; charset=utf-8"),
        ("/assets/index-3f2a.css", "text/css; charset=utf-8"),
    ):
        found = asked(studio.application, path, headers=[(b"host", b"h")])
        assert found.headers["content-type"] == kind


# -- browsers ------------------------------------------------------------------------------------


def test_122_the_browser_is_led_to_the_link_by_a_file_that_others_cannot_read(tmp_path):
    for _ in range(2):
        path = browsers.written_redirect(tmp_path, "http://127.0.0.1:1/#token=a&b")
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "url=http://127.0.0.1:1/#token=a&amp;b" in path.read_text()
    assert "no-referrer" in path.read_text()


def test_137_without_a_browser_none_is_opened(tmp_path, monkeypatch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not browsers._is_opened(tmp_path / "x.html")
    opened = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(browsers.webbrowser, "open", lambda url: opened.append(url) or True)
    assert browsers._is_opened(tmp_path / "x.html")
    assert opened == [(tmp_path / "x.html").as_uri()]  # not the link: others could see it


def test_137_a_browser_that_is_waited_for_keeps_nobody_waiting(tmp_path, monkeypatch):
    """Such as one in a terminal; whether it could be opened is known otherwise."""
    closed = threading.Event()
    monkeypatch.setattr(browsers, "_BROWSER_SECONDS", 0.05)
    monkeypatch.setattr(browsers, "_is_opened", lambda path: closed.wait(30))
    assert asyncio.run(browsers.is_opened_soon(tmp_path))
    closed.set()
    monkeypatch.setattr(browsers, "_is_opened", lambda path: False)
    monkeypatch.setattr(browsers, "_BROWSER_SECONDS", 30.0)
    assert not asyncio.run(browsers.is_opened_soon(tmp_path))


# -- the whole ------------------------------------------------------------------------------------


class _Command:
    """`margrove studio` as a process, in front of a terminal or not."""

    def __init__(self, folder, terminal=None):
        self.folder = folder
        program = (
            "import sys; from margrove.studio.server.launching import *; "
            "options = Launch(lambda text: print(text, flush=True), opens_browser=False, "
            "answers='tests.studio.server.own_answers'); sys.exit(launch(options))"
        )
        environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.getcwd()}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, text=True,
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def link(self):
        for line in self.process.stdout:
            if (found := re.search(r"http://\S+", line)) is not None:
                return found[0]
        raise AssertionError(self.process.stderr.read())

    def everybody(self):
        """The numbers of all processes of its session."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "-s", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return [int(word) for word in listed.stdout.split()]

    def ended(self, number):
        """The exit code after a signal, when nothing is left, neither a process nor a file."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        wait_until(lambda: not self.everybody() and not list(self.folder.iterdir()))
        assert err == ""
        return self.process.returncode


@pytest.mark.skipif(os.name != "posix", reason="needs signals and a terminal")
def test_ctrl_c_closes_the_studio_and_enter_gives_another_link(tmp_path):
    import pty

    ours, theirs = pty.openpty()
    command = _Command(tmp_path, theirs)
    first = command.link()
    os.write(ours, b"\n")
    second = command.link()
    assert first != second
    assert first.split("#")[0] == second.split("#")[0]
    assert httpx.get(first.split("#")[0] + "health").status_code == 200
    host = second.split("/")[2]
    with connect(f"ws://{host}/socket", origin=f"http://{host}", proxy=None) as connection:
        tab = Tab(nullcontext(connection), second.split("=")[1])
        tab.send("deaf", seconds=600)
        assert command.ended(signal.SIGINT) == signal.SIGINT
    os.close(ours)
    os.close(theirs)


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_134_whoever_kills_the_server_has_killed_all_of_it(tmp_path):
    """kill -9: the child notices, ends, and takes the tables with it."""
    command = _Command(tmp_path)
    command.link()
    wait_until(
        lambda: len(command.everybody()) >= 3
    )  # its child, and Python's keeper of shared things
    time.sleep(0.5)
    assert command.ended(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_command_ends_in_order_when_it_is_told_to(tmp_path, number):
    command = [sys.executable, "-m", "margrove", "studio", "--no-browser"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as process:  # fmt: skip
        while "Ctrl-C" not in process.stdout.readline():
            pass
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []
