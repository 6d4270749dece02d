"""Files and folders of logs, and their lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hybandits.logs.files import given_paths, list_files, read_lines, read_start
from hybandits.logs.store import LogError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", "notes.txt", ".hidden.csv"):
        (tmp_path / name).touch()
    (tmp_path / "c.csv").mkdir()
    return tmp_path


def is_csv(name: str) -> bool:
    return name.endswith(".csv")


def test_a_folder_stands_for_its_files_in_the_order_of_names(folder: Path) -> None:
    inputs = list_files(folder, is_csv, "*.csv")
    assert inputs.files == [folder / "a.csv", folder / "b.csv"]
    assert inputs.ignored == {
        str(folder / ".hidden.csv"): "not a log by its name",
        str(folder / "c.csv"): "not a file",
        str(folder / "notes.txt"): "not a log by its name",
    }
    given = [folder / "notes.txt", str(folder / ".hidden.csv"), folder / "b.csv"]
    assert list_files(given, is_csv, "*.csv") == ([Path(path) for path in given], {})
    with pytest.raises(LogError, match=r"c.csv has no log in it: give a folder with files named \*.csv"):
        list_files([folder, folder / "c.csv"], is_csv, "*.csv")
    with pytest.raises(LogError, match="a file is given twice"):
        list_files([folder, folder / "b.csv"], is_csv, "*.csv")


@pytest.mark.parametrize("size", [1, 5, 1 << 17])
def test_lines_arrive_whole_and_progress_adds_up(tmp_path: Path, size: int) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n\nthree"))
    read: list[int] = []
    blocks = list(read_lines(path, read.append, size))
    assert b"".join(blocks) == b"one\ntwo\n\nthree"
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert sum(read) == path.stat().st_size
    assert read_start(path, 5) == b"one\nt"


def test_damaged_files_are_refused_and_nothing_is_rescued(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    full = gzip.compress(random.integers(97, 110, 5000, np.uint8).tobytes())
    path = tmp_path / "log.gz"
    for at in random.choice(np.arange(10, len(full)), 30, replace=False).tolist():
        for hurt in (full[:at], full[:at] + bytes([full[at] ^ 4]) + full[at + 1 :]):
            path.write_bytes(hurt)
            with pytest.raises(LogError, match=r"log.gz is damaged or cut short \(.*\): copy it again, or unpack"):
                list(read_lines(path))


def test_paths_must_exist(folder: Path) -> None:
    assert given_paths(iter([str(folder), folder / "a.csv"])) == [folder, folder / "a.csv"]
    with pytest.raises(LogError, match="no log is given: give a file or a folder"):
        given_paths([])
    with pytest.raises(LogError, match=r"aa.csv does not exist \(did you mean a.csv\?\): give a file"):
        given_paths([folder, folder / "aa.csv"])
    with pytest.raises(LogError, match="x does not exist: give"):
        list_files(folder / "nowhere" / "x", is_csv, "*.csv")
