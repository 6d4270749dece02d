"""Which files a log consists of: the paths that were given, and the files in the folders among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hybandits.foundation.checks import nearest
from hybandits.logs.store import LogError

Paths = Path | str | Iterable[Path | str]
"""One path, or several: files, and folders of files."""

BY_NAME = "not a log by its name"
"""Why a file in a folder is ignored if its format does not look for such names."""


class InputFiles(NamedTuple):
    """The files to read, and what is not read.

    Attributes
    ----------
    files
        In the order given; those of a folder in the order of their names.
    ignored
        What lies in the given folders and is not read: path to reason.
    empty_folders
        The given folders that have no file to read.
    """

    files: list[Path]
    ignored: dict[str, str]
    empty_folders: list[Path]


def given_paths(paths: Paths) -> list[Path]:
    """The paths as a list; LogError if there is none, or if one does not exist."""
    listed = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not listed:
        raise LogError("no log is given: give a file or a folder")
    for path in listed:
        if not path.exists():
            near = nearest(path.name, [other.name for other in path.parent.glob("*")]) if path.parent.is_dir() else ""
            raise LogError(f"{path} does not exist{near}: give a file or a folder that does")
    return listed


def list_files(paths: Paths, wanted: Callable[[str], bool] = lambda name: True) -> InputFiles:
    """The files that are meant by some paths.

    Files are taken as given. A folder stands for those of its files that `wanted` accepts by their name; hidden files
    and folders within it are never read.
    """
    inputs = InputFiles([], {}, [])
    for path in given_paths(paths):
        if not path.is_dir():
            inputs.files.append(path)
            continue
        before = len(inputs.files)
        for inside in sorted(path.iterdir()):
            if inside.name.startswith("."):
                inputs.ignored[str(inside)] = "hidden"
            elif not inside.is_file():
                inputs.ignored[str(inside)] = "not a file"
            elif not wanted(inside.name):
                inputs.ignored[str(inside)] = BY_NAME
            else:
                inputs.files.append(inside)
        if len(inputs.files) == before:
            inputs.empty_folders.append(path)
    return inputs


def source_names(files: Sequence[Path]) -> list[str]:
    """What the files are called in a log: by their names, or by their paths where two have the same name.

    >>> source_names([Path("may/1.csv"), Path("may/2.csv"), Path("june/2.csv")])
    ['1.csv', 'may/2.csv', 'june/2.csv']
    """
    alike = Counter(file.name for file in files)
    return [file.name if alike[file.name] == 1 else str(file) for file in files]
