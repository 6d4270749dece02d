"""Files appear whole or not at all, and what killed processes left is cleared away."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from hybandits.foundation.files import (
    alive,
    clear_parts,
    discard,
    make_writable_folder,
    naming,
    part_of,
    read_toml,
    write_atomically,
)


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_gets_its_folder_and_ordinary_permissions(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "file.txt"
    write_atomically(path, lambda name: Path(name).write_text("new"))
    umask = os.umask(0)
    os.umask(umask)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert names(path.parent) == ["file.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_replaced_file_keeps_its_permissions_and_is_private_while_written(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    path.chmod(mode)
    seen = []

    def write(name: str) -> None:
        Path(name).write_text("new")
        seen.append(stat.S_IMODE(os.stat(name).st_mode))

    write_atomically(path, write)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert seen == [0o600]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "file.txt"
    target.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    write_atomically(link, lambda name: Path(name).write_text("new"))
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, problem: BaseException) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail(name: str) -> None:
        Path(name).write_text("half")
        assert path.read_text() == "old"
        raise problem

    with pytest.raises(type(problem)):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    def fail(name: str) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file", name)

    with pytest.raises(OSError, match=r"the disk is full .* free some space, or write elsewhere") as full:
        write_atomically(tmp_path / "file.txt", fail)
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, str(tmp_path / "file.txt"))
    with pytest.raises(OSError, match=r"^a library's own$"), naming(tmp_path):
        raise OSError("a library's own")


def test_what_an_earlier_process_of_the_same_number_left_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    part_of(path).mkdir()
    write_atomically(path, lambda name: Path(name).write_text("new"))
    assert names(tmp_path) == ["file.txt"]


def test_threads_write_one_file_under_names_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    both = threading.Barrier(2)
    problems: list[BaseException] = []

    def save(text: str) -> None:
        def write(name: str) -> None:
            both.wait()
            Path(name).write_text(text)
            both.wait()
            assert Path(name).read_text() == text

        try:
            write_atomically(path, write)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=save, args=(letter * 1000,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert path.read_text() in ("a" * 1000, "b" * 1000)
    assert names(tmp_path) == ["file.txt"]


@pytest.mark.slow
def test_only_parts_of_these_paths_and_of_dead_processes_are_cleared(tmp_path: Path, dead: int) -> None:
    path, folder = tmp_path / "unit.1.parquet", tmp_path / "log"
    gone = [f".{path.name}.{dead}-{dead}.part", f".{path.name}.{dead}.part", f".{path.name}.{10**30}.part"]
    stays = [
        f".{path.name}.{os.getppid()}-1.part",
        f".other.{dead}-{dead}.part",
        f".{path.name}.part",
        f".{path.name}.x.part",
        f"{path.name}.{dead}-1.part",
        part_of(path).name,
    ]
    for name in (*gone, *stays):
        (tmp_path / name).write_text("x")
    left = tmp_path / f".log.{dead}-{dead}.part"
    (left / "rounds").mkdir(parents=True)
    clear_parts([path, folder, tmp_path / "no such folder" / "file"])
    assert names(tmp_path) == sorted(stays)


def test_discard_follows_no_link(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(folder)
    discard(link)
    assert names(tmp_path) == ["folder"]
    discard(folder)
    discard(folder)
    assert names(tmp_path) == []


@pytest.mark.slow
def test_alive(dead: int) -> None:
    assert alive(os.getpid())
    assert alive(1)  # may be another user's
    assert not alive(dead)
    assert not alive(10**30)


def test_toml_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_toml(tmp_path / "missing.toml")
    for text in (b"d1 = ", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(text)
        with pytest.raises(ValueError, match="not valid TOML"):
            read_toml(tmp_path / "bad.toml")


def test_a_folder_to_write_to(tmp_path: Path) -> None:
    make_writable_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").touch()
    for place in ("file", "file/deeper"):
        with pytest.raises(ValueError, match="is a file: give a folder"):
            make_writable_folder(tmp_path / place)
    with pytest.raises(ValueError, match="cannot be written"):
        make_writable_folder(Path("/proc/hybandits"))
