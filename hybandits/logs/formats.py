"""Logs of any kind by name: tell the format, find the reader, and let every command take raw logs too."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hybandits.foundation.checks import nearest, short
from hybandits.logs.columns.reader import ColumnsReader, Mapping
from hybandits.logs.columns.tabular import SUFFIXES, files_of, open_table
from hybandits.logs.openbandit import ITEMS, OpenBanditReader
from hybandits.logs.problems import Problems
from hybandits.logs.store import HEADER, Log, LogError, Reader, convert
from hybandits.logs.unpacking import Stream

FORMATS = ("yahoo", "openbandit", "columns")
"""Raw logs that can be read."""

_YAHOO = re.compile(rb"\s*\d+\s+\S+\s+\S+\s*\|user\b")
_PEEK = 1 << 16

Paths = Path | str | Sequence[Path | str]


def sniff(paths: Paths) -> str:
    """The format of a raw log, by the content of its first file that shows one; notes may lie beside a log."""
    path = _listed(paths)[0]
    if path.is_dir():
        if (path / HEADER).is_file():
            raise LogError(f"{path} is a converted log already: there is nothing to convert")
        if (path / ITEMS).is_file():
            return "openbandit"
        inside = _inside(path)
        if not inside:
            folders = sorted(one.name for one in path.glob("*") if one.is_dir())
            has = f"only the folders {', '.join(folders[:10])}" if folders else "nothing in it"
            raise LogError(f"{path} has no file to read ({has}): give a file, or a folder of files")
        found = next(filter(None, map(_format_of, inside)), None)
        path = inside[0]
    else:
        found = _format_of(path)
    if found is None:
        start = _start(path)
        if not start:
            raise LogError(f"{path} is empty: give a log in one of the formats {', '.join(FORMATS)}")
        raise LogError(
            f"cannot tell the format of {path}, which begins {short(start[:40])}: say which it is with --format, "
            f"one of {', '.join(FORMATS)}"
        )
    return found


def _format_of(path: Path) -> str | None:
    start = _start(path)
    if _YAHOO.match(start):
        return "yahoo"
    if start.startswith(b"PAR1"):
        return "columns"
    if start and path.name.endswith(SUFFIXES):
        return "openbandit" if (path.parent / ITEMS).is_file() else "columns"
    return None


def reader_of(paths: Paths, *, format: str | None = None, mapping: Mapping | None = None) -> Reader:
    """The reader of a raw log. A mapping means the format columns, if none is given."""
    listed = _listed(paths)
    if format is None:
        format = sniff(listed) if mapping is None else "columns"
    if format not in FORMATS:
        near = nearest(str(format), FORMATS)
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {short(format)}{near}")
    if format == "columns":
        if mapping is None:
            columns = ", ".join(open_table(files_of(listed)[0]).columns[:40])
            raise ValueError(
                f"{listed[0]} needs a mapping that says which column is the arm and which the reward (convert it with "
                f"--mapping FILE.toml): its columns are {columns}"
            )
        return ColumnsReader(listed, mapping=mapping)
    if mapping is not None:
        raise ValueError(f"a mapping goes with the format columns only, got format {format!r}: leave one of them out")
    if format == "openbandit":
        if len(listed) > 1:
            raise ValueError(f"the format openbandit is one folder or CSV, got {len(listed)}: convert them one by one")
        return OpenBanditReader(listed[0])
    from hybandits.logs.yahoo.reader import YahooReader

    return YahooReader(listed)


def open_log(path: Path | str) -> Log:
    """A converted log."""
    return Log(path)


@contextlib.contextmanager
def opened(
    paths: Paths,
    *,
    format: str | None = None,
    mapping: Mapping | None = None,
    strict: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Iterator[tuple[Log, Problems | None]]:
    """A converted log as it is (and None), or a raw one converted into a folder that is gone afterwards."""
    listed = _listed(paths)
    converted = [path for path in listed if (path / HEADER).is_file()]
    if converted:
        if len(listed) > 1:
            raise ValueError(f"{converted[0]} is a converted log: give it alone, got {len(listed)} paths")
        if format is not None or mapping is not None:
            raise ValueError(f"{converted[0]} is a converted log: format and mapping are for raw ones, leave them out")
        yield open_log(converted[0]), None
        return
    reader = reader_of(listed, format=format, mapping=mapping)
    problems = Problems(strict=strict)
    with tempfile.TemporaryDirectory(prefix="hybandits-", ignore_cleanup_errors=True) as folder:
        yield convert(reader, Path(folder) / "log", problems, progress or (lambda read: None)), problems


def _listed(paths: Paths) -> list[Path]:
    listed = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not listed:
        raise LogError("no log is given: give a file or a folder")
    for path in listed:
        if not path.exists():
            near = nearest(path.name, [one.name for one in path.parent.glob("*")]) if path.parent.is_dir() else ""
            raise LogError(f"there is no {path}{near}: give a file or a folder that is there")
    return listed


def _inside(folder: Path) -> list[Path]:
    """The files of a folder in the order of their names; hidden ones are not meant."""
    return sorted(one for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))


def _start(path: Path) -> bytes:
    """How a file begins, unpacked."""
    room = bytearray(_PEEK)
    try:
        with contextlib.closing(Stream(path)) as stream:
            n = stream.readinto(memoryview(room))
    except OSError as problem:
        raise LogError(f"{path} cannot be read ({problem}): is it whole?") from None
    if n == 0 and stream.damage:
        raise LogError(f"{path} cannot be read ({stream.damage}): is it whole?")
    return bytes(room[:n]).removeprefix(b"\xef\xbb\xbf")
