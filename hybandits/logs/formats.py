"""Logs of every format: recognise the format, find its reader, and open raw logs as if they had been converted."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hybandits.foundation.checks import nearest, short
from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.columns.tabular import SUFFIXES, open_table, table_files
from hybandits.logs.input_files import Paths, given_paths, list_files
from hybandits.logs.openbandit import ITEMS, OpenBanditReader
from hybandits.logs.problems import Problems
from hybandits.logs.store import HEADER, Log, LogError, Reader, convert
from hybandits.logs.unpacking import Stream

FORMATS = ("yahoo", "openbandit", "columns")
"""The formats of raw logs."""

_YAHOO = re.compile(rb"\s*\d+\s+\S+\s+\S+\s*\|user\b")
_PEEK = 1 << 16


def detect_format(paths: Paths) -> str:
    """The format of a raw log, by the content of its first path.

    In a folder the first file decides that shows a format, because notes may lie beside a log.
    """
    path = given_paths(paths)[0]
    if path.is_dir():
        if (path / HEADER).is_file():
            raise LogError(f"{path} is a converted log already: use it as it is")
        if (path / ITEMS).is_file():
            return "openbandit"
        files = list_files(path).files
        if not files:
            folders = sorted(inside.name for inside in path.glob("*") if inside.is_dir())
            content = f"only the folders {', '.join(folders[:10])}" if folders else "it is empty"
            raise LogError(f"{path} has no file to read ({content}): give a file, or a folder of files")
        format = next(filter(None, map(_format_of, files)), None)
        path = files[0]
    else:
        format = _format_of(path)
    if format is None:
        start = _start(path)
        if not start:
            raise LogError(f"{path} is empty: give a log in one of the formats {', '.join(FORMATS)}")
        raise LogError(
            f"the format of {path} is not recognised (it begins with {short(start[:40])}): convert it with "
            f"hybandits convert --format FORMAT, one of {', '.join(FORMATS)}"
        )
    return format


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
    """Find the reader of a raw log, to be passed to `convert`.

    Parameters
    ----------
    paths : path or several paths
        Files, or folders of files.
    format : str, optional
        One of `FORMATS`: "yahoo" (R6A and R6B), "openbandit" or "columns" (CSV and Parquet of your own). If it is left
        out, the content decides, or a mapping means "columns".
    mapping : Mapping, optional
        What the columns mean. The format "columns" needs it; no other takes it.

    Returns
    -------
    Reader

    Raises
    ------
    LogError
        If a path does not exist or the format is not recognised.
    ValueError
        If format and mapping do not go together.

    Examples
    --------
    >>> from hybandits.logs.columns import Mapping
    >>> from hybandits.logs.problems import Problems
    >>> from hybandits.logs.store import convert
    >>> path = Path("visits.csv")
    >>> _ = path.write_text("item,clicked,age\\nshoe,1,0.3\\nhat,0,0.5\\n")
    >>> reader = reader_of(path, mapping=Mapping(arm="item", reward="clicked", user=["age"], uniform=True))
    >>> convert(reader, "visits", Problems())
    Log('visits'): 2 rounds, 2 arms, 1 pool
    """
    listed = given_paths(paths)
    if format is None:
        format = detect_format(listed) if mapping is None else "columns"
    if format not in FORMATS:
        near = nearest(str(format), FORMATS)
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {short(format)}{near}")
    if format == "columns":
        if mapping is None:
            columns = ", ".join(open_table(table_files(listed).files[0]).columns[:40])
            raise ValueError(
                f"{listed[0]} is a table of your own, so a mapping must say which column is the arm and which is the "
                f"reward: convert it with hybandits convert --mapping FILE.toml (its columns are {columns})"
            )
        return ColumnsReader(listed, mapping=mapping)
    if mapping is not None:
        raise ValueError(f"only the format columns takes a mapping, got format {format!r}: leave one of them out")
    if format == "openbandit":
        if len(listed) > 1:
            raise ValueError(
                f"an openbandit log is one folder or one CSV file, got {len(listed)} paths: convert them one by one"
            )
        return OpenBanditReader(listed[0])
    from hybandits.logs.yahoo import YahooReader

    return YahooReader(listed)


def open_log(path: Path | str) -> Log:
    """Open a converted log.

    Parameters
    ----------
    path : path
        The folder that `convert` or `hybandits convert` wrote.

    Returns
    -------
    Log

    Raises
    ------
    LogError
        If there is no converted log, or if it is damaged.

    Examples
    --------
    >>> from hybandits.logs.problems import Problems
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> files = SyntheticLog(rounds=500, seed=1).write("clicks")
    >>> _ = convert(reader_of("clicks"), "log", Problems())
    >>> open_log("log")
    Log('log'): 500 rounds, 27 arms, 9 pools
    """
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
    """Open any log: a converted one as it is (with None), a raw one converted for as long as the context lasts."""
    listed = given_paths(paths)
    converted = [path for path in listed if (path / HEADER).is_file()]
    if converted:
        if len(listed) > 1:
            raise ValueError(f"{converted[0]} is a converted log: give it alone, got {len(listed)} paths")
        if format is not None or mapping is not None:
            raise ValueError(f"{converted[0]} is a converted log: leave out format and mapping, they are for raw logs")
        yield open_log(converted[0]), None
        return
    reader = reader_of(listed, format=format, mapping=mapping)
    problems = Problems(strict=strict)
    with tempfile.TemporaryDirectory(prefix="hybandits-", ignore_cleanup_errors=True) as folder:
        yield convert(reader, Path(folder) / "log", problems, progress or (lambda read: None)), problems


def _start(path: Path) -> bytes:
    """The beginning of a file, unpacked."""
    room = bytearray(_PEEK)
    try:
        with contextlib.closing(Stream(path)) as stream:
            n = stream.readinto(memoryview(room))
    except OSError as problem:
        raise LogError(f"{path} cannot be read ({problem}): check the file") from None
    if n == 0 and stream.damage:
        raise LogError(f"{path} cannot be read ({stream.damage}): copy it again")
    return bytes(room[:n]).removeprefix(b"\xef\xbb\xbf")
