"""Logs of every format: recognise the format, find its reader, and open raw logs as if they had been converted."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hybandits.foundation.checks import nearest, short
from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.files import Paths, given_paths, read_start
from hybandits.logs.openbandit import OpenBanditReader
from hybandits.logs.report import ReadReport
from hybandits.logs.store import HEADER, Log, LogError, Reader, convert
from hybandits.logs.yahoo import YahooReader

READERS: dict[str, Any] = {"yahoo": YahooReader, "openbandit": OpenBanditReader, "columns": ColumnsReader}
"""The readers of raw logs by the name of their format, in the order in which they are asked to recognise a file."""


def detect_format(paths: Paths) -> str:
    """Recognise the format of a raw log by the content of its first path.

    In a folder the first file decides that shows a format, because notes may lie beside a log.
    """
    path = given_paths(paths)[0]
    if (path / HEADER).is_file():
        raise LogError(f"{path} is a converted log already: use it as it is")
    files = [path]
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
        if not files:
            raise LogError(f"{path} has no file to read: give a file, or a folder of files")
    starts = [(file, start) for file in files if (start := read_start(file, 1 << 16))]
    for file, start in starts:
        for format, reader in READERS.items():
            if reader.recognises(file, start):
                return format
    begins = f"begins with {short(starts[0][1][:40])}" if starts else "is empty"
    raise LogError(
        f"the format of {files[0]} is not recognised (it {begins}): convert it with hybandits convert --format FORMAT, "
        f"one of {', '.join(READERS)}"
    )


def reader_of(paths: Paths, *, format: str | None = None, mapping: Mapping | None = None) -> Reader:
    """Find the reader of a raw log, to be passed to `convert`.

    Parameters
    ----------
    paths : path or several paths
        Files, or folders of files.
    format : str, optional
        "yahoo" (R6A and R6B), "openbandit" or "columns" (CSV and Parquet of your own). By default the content decides,
        or a mapping means "columns".
    mapping : Mapping, optional
        The meaning of the columns. The format "columns" needs it; no other takes it.
    """
    listed = given_paths(paths)
    if format is None:
        format = detect_format(listed) if mapping is None else "columns"
    if format not in READERS:
        near = nearest(str(format), READERS)
        raise ValueError(f"format must be one of {', '.join(READERS)}, got {short(format)}{near}")
    if format == "columns":
        return ColumnsReader(listed, mapping=mapping)
    if mapping is not None:
        raise ValueError(f"only the format columns takes a mapping, got format {format!r}: leave one of them out")
    reader: Reader = READERS[format](listed)
    return reader


@contextlib.contextmanager
def opened(
    paths: Paths, *, strict: bool = False, progress: Callable[[int], None] = lambda read: None
) -> Iterator[tuple[Log, ReadReport | None]]:
    """Open any log: a converted one as it is (with None), a raw one converted for as long as the context lasts."""
    listed = given_paths(paths)
    if any((path / HEADER).is_file() for path in listed):
        if len(listed) > 1:
            raise ValueError(f"a converted log is given with others, got {len(listed)} paths: give it alone")
        yield Log(listed[0]), None
        return
    reader = reader_of(listed)
    report = ReadReport(strict=strict)
    with tempfile.TemporaryDirectory(prefix="hybandits-", ignore_cleanup_errors=True) as folder:
        yield convert(reader, Path(folder) / "log", report, progress), report
