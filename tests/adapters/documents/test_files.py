"""Outputs are whole: the old file or the new one, all of them or none, nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.adapters.documents.files import MARK, Output, is_ours, read_bytes, write_atomically, write_together
from ebbtide.errors import InputError, PermanentError


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o604)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o604
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_bytes() == b"new"


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomically(path, b"old" * 100)
    with path.open("rb") as reader:
        write_atomically(path, b"new")
        assert reader.read() == b"old" * 100  # the old file itself was never touched


def test_all_or_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    outputs = [Output(path=tmp_path / name, content=b"new") for name in ("a", "b", "folder")]
    with pytest.raises(InputError) as caught:
        write_together(outputs)
    assert caught.value.kind == "not_a_file"
    assert (tmp_path / "a").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["a", "folder"]


def test_a_rename_that_fails_late_undoes_the_earlier_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")
    real = os.replace

    def failing(source: Path, target: Path) -> None:
        if Path(target).name == "c":
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr("ebbtide.adapters.documents.files.os.replace", failing)
    with pytest.raises(PermanentError) as caught:
        write_together([Output(path=tmp_path / name, content=b"new") for name in ("a", "b", "c")])
    assert "No space left" in str(caught.value)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ebbtide.adapters.documents.files.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a", b"new")
    assert os.listdir(tmp_path) == []


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        write_atomically(tmp_path / "nowhere" / "a", b"new")
    assert caught.value.kind == "no_folder"


def test_our_own_outputs(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content, ours in ((MARK, True), (b"<!-- " + MARK + b" -->", True), (b"x" * 5000 + MARK, False), (b"", False)):
        path.write_bytes(content)
        assert is_ours(path) is ours


def test_reading_stops_beyond_the_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert len(read_bytes(tmp_path / "a", at_most=10)) == 11


def test_a_path_that_no_system_knows() -> None:
    with pytest.raises(InputError) as caught:
        read_bytes(Path("a\0b"), at_most=10)
    assert caught.value.kind == "bad_path"


# A run that stops in the middle of its writing, says so, and waits to be killed.
HALF = """
import sys
from pathlib import Path
from ebbtide.adapters.documents import files
def stop(source, target):
    print("half", flush=True)
    sys.stdin.read()
files.os.replace = stop
files.write_atomically(Path(sys.argv[1]), b"new")
"""


def half_way(path: Path) -> subprocess.Popen[str]:
    run = subprocess.Popen(
        [sys.executable, "-c", HALF, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "half\n"
    return run


def end(run: subprocess.Popen[str]) -> None:
    run.send_signal(signal.SIGKILL)
    run.communicate()


def test_what_a_killed_run_left_goes_with_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    for name in (".b.01234567.tmp", ".a.0123456.tmp", ".a.01234567.tmp2", ".a.xyzzy.tmp"):
        (tmp_path / name).write_bytes(b"someone else's")
    (tmp_path / ".a.89abcdef.tmp").symlink_to(path)
    before = set(os.listdir(tmp_path))
    end(half_way(path))
    assert len(set(os.listdir(tmp_path)) - before) == 2  # the new content and the old file's second name
    write_atomically(path, b"newer")
    assert set(os.listdir(tmp_path)) == before
    assert path.read_bytes() == b"newer"


def test_a_living_run_keeps_its_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    run = half_way(path)
    try:
        held = set(os.listdir(tmp_path))
        assert len(held) == 3
        write_atomically(path, b"newer")
        assert set(os.listdir(tmp_path)) == held
    finally:
        end(run)
    write_atomically(path, b"newest")
    assert os.listdir(tmp_path) == ["a"]


def test_the_old_file_is_put_back_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("ebbtide.adapters.documents.fresh_files.os.link", refused)
    test_a_rename_that_fails_late_undoes_the_earlier_ones(tmp_path, monkeypatch)


def test_what_is_no_file_is_said_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # a socket's path may have no more than 107 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        kinds = {"pipe": "a pipe", "socket": "a socket", "/dev/zero": "a device", ".": "a directory"}
        for name, words in kinds.items():
            with pytest.raises(InputError) as caught:
                read_bytes(Path(name), at_most=10)
            assert (caught.value.kind, caught.value.message) == ("not_a_file", f"is {words}, no file")
