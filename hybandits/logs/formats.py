"""Logs of every format: recognise the format and find its reader."""

from typing import Any, cast

from hybandits.foundation.checks import nearest, short
from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.files import Paths, given_paths, read_start
from hybandits.logs.openbandit import OpenBanditReader
from hybandits.logs.store import HEADER, LogError, Reader
from hybandits.logs.yahoo import YahooReader

READERS: dict[str, Any] = {"yahoo": YahooReader, "openbandit": OpenBanditReader, "columns": ColumnsReader}
"""The readers of raw logs by the name of their format, in the order in which they are asked to recognise a file."""


def detect_format(paths: Paths) -> str:
    """Recognise the format of a raw log by its first path; in a folder the first file decides that shows a format."""
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
    remedy = f"convert it with hybandits convert --format FORMAT, one of {', '.join(READERS)}"
    raise LogError(f"the format of {files[0]} is not recognised (it {begins}): {remedy}")


def reader_of(paths: Paths, *, format: str | None = None, mapping: Mapping | None = None) -> Reader:
    """Find the reader of a raw log for `convert`, by default by its content; a mapping means the format "columns"."""
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
    return cast(Reader, READERS[format](listed))
