"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from margrove._files import atomic_files, write_atomically

pytestmark = pytest.mark.nojit


def test_a_file_appears_or_is_replaced(tmp_path) -> None:
    path = tmp_path / "a"
    write_atomically(path, [b"one"])
    write_atomically(str(path), [b"t", memoryview(b"wo")])
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_what_was_there(tmp_path, error) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def chunks():
        yield b"new"
        raise error

    with pytest.raises(type(error)):
        write_atomically(path, chunks())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_each_step_may_fail(tmp_path, monkeypatch, step) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, [b"new"])
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_may_not_grow(tmp_path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    code = (
        "import resource, sys\n"
        "from margrove._files import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        f"try: write_atomically({str(path)!r}, [bytes(100_000)])\n"
        "except OSError as error: print(error.errno)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "27"  # EFBIG
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_links_and_permissions_stay(tmp_path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_atomically(link, [b"new"])
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_only_plain_files_are_replaced(tmp_path) -> None:
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, [b"x"])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write_atomically(tmp_path / "pipe", [b"x"])
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere\. Create it first"):
        write_atomically(tmp_path / "nowhere" / "a", [b"x"])
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_to(tmp_path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError):
            write_atomically(tmp_path / "a", [b"new"])
        assert (tmp_path / "a").read_bytes() == b"old"
    finally:
        tmp_path.chmod(0o755)


def test_long_names(tmp_path) -> None:
    path = tmp_path / ("ñ" * 125)
    write_atomically(path, [b"x"])
    assert path.read_bytes() == b"x"
