"""Which files are meant by some paths: one way for all formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from hybandits.logs.input_files import given_paths, list_files, source_names

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
    inputs = list_files(folder, is_csv)
    assert inputs.files == [folder / "a.csv", folder / "b.csv"]
    assert inputs.ignored == {
        str(folder / ".hidden.csv"): "hidden",
        str(folder / "c.csv"): "not a file",
        str(folder / "notes.txt"): "not a log by its name",
    }
    assert inputs.empty_folders == []
    assert [file.name for file in list_files(str(folder)).files] == ["a.csv", "b.csv", "notes.txt"]


def test_files_are_taken_as_given(folder: Path) -> None:
    given = [folder / "notes.txt", str(folder / ".hidden.csv"), folder / "b.csv", folder / "b.csv"]
    assert list_files(given, is_csv) == ([Path(path) for path in given], {}, [])


def test_folders_without_a_file_to_read(folder: Path) -> None:
    inputs = list_files([folder / "c.csv", folder], is_csv)
    assert inputs.empty_folders == [folder / "c.csv"]
    assert len(inputs.files) == 2


def test_paths_must_exist(folder: Path) -> None:
    assert given_paths(iter([str(folder), folder / "a.csv"])) == [folder, folder / "a.csv"]
    with pytest.raises(LogError, match="no log is given: give a file or a folder"):
        given_paths([])
    with pytest.raises(LogError, match=r"aa.csv does not exist \(did you mean a.csv\?\): give a file"):
        given_paths([folder, folder / "aa.csv"])
    with pytest.raises(LogError, match="x does not exist: give"):
        list_files(folder / "nowhere" / "x")


def test_names_of_sources_tell_them_apart(folder: Path) -> None:
    files = [folder / "a.csv", folder / "b.csv", folder / "more" / "b.csv"]
    assert source_names(files) == ["a.csv", str(files[1]), str(files[2])]
