"""The files of a log: paths that were given, files in the folders among them, and their lines, gzipped or not."""

import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from isal import igzip, isal_zlib

from hybandits.foundation.checks import nearest
from hybandits.logs.store import LogError

Paths = Path | str | Iterable[Path | str]
"""One path, or several: files, and folders of files."""

BLOCK = 1 << 17
"""Bytes of text that are read at a time: few enough to stay in the processor's cache."""

_DAMAGE: Any = EOFError, gzip.BadGzipFile, isal_zlib.error

LONGEST = 1 << 26
"""A file with a longer line than this, in bytes, is not taken for a log."""


class InputFiles(NamedTuple):
    """The files to read, in the order given and within a folder by name; and what is not read, path to reason."""

    files: list[Path]
    ignored: dict[str, str]


def given_paths(paths: Paths) -> list[Path]:
    """Return the paths as a list; LogError if there is none, or if one does not exist."""
    listed = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not listed:
        raise LogError("no log is given: give a file or a folder")
    for path in listed:
        if not path.exists():
            near = nearest(path.name, [other.name for other in path.parent.glob("*")]) if path.parent.is_dir() else ""
            raise LogError(f"{path} does not exist{near}: give a file or a folder that does")
    return listed


def list_files(paths: Paths, wanted: Callable[[str], bool], names: str) -> InputFiles:
    """List the files that are meant by some paths; LogError if a folder has none.

    A folder stands for those of its files, hidden ones aside, that `wanted` accepts by their names, such as `names`.
    """
    inputs = InputFiles([], {})
    for path in given_paths(paths):
        if not path.is_dir():
            inputs.files.append(path)
            continue
        inside = sorted(path.iterdir())
        read = [each for each in inside if each.is_file() and not each.name.startswith(".") and wanted(each.name)]
        if not read:
            raise LogError(f"{path} has no log in it: give a folder with files named {names}")
        inputs.files.extend(read)
        for each in inside:
            if each not in read:
                inputs.ignored[str(each)] = "not a log by its name" if each.is_file() else "not a file"
    if len({file.resolve() for file in inputs.files}) < len(inputs.files):
        raise LogError("a file is given twice: give every file once")
    return inputs


def source_names(files: Sequence[Path]) -> list[str]:
    """Name the files in a log: by their names, or by their paths where two have the same name."""
    alike = Counter(file.name for file in files)
    return [file.name if alike[file.name] == 1 else str(file) for file in files]


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, BinaryIO]]:
    """Open a file: its content, unpacked if it is gzip, and the file itself, whose position says how much was read."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            yield igzip.open(file, "rb") if packed else file, file
    except _DAMAGE as problem:
        remedy = "copy it again, or unpack its intact part with gzip -dc"
        raise LogError(f"{path} is damaged or cut short ({problem}): {remedy}") from None
    except OSError as problem:
        raise LogError(f"{path} cannot be read ({problem.strerror}): check the name and its permissions") from None


def read_start(path: Path, size: int = 1 << 18) -> bytes:
    """Read the beginning of a file, unpacked."""
    with _opened(path) as (content, _):
        start: bytes = content.read(size)
    return start.removeprefix(b"\xef\xbb\xbf")


def read_lines(
    path: Path, progress: Callable[[int], None] = lambda read: None, size: int | None = None
) -> Iterator[bytes]:
    """Yield whole lines, about `size` bytes at a time; the last one may lack its newline.

    `progress` is called with the bytes of the file read since the last call. LogError if the file is damaged.
    """
    rest, done = b"", 0
    with _opened(path) as (content, file):
        while text := content.read(size or BLOCK):
            lines, newline, text = text.rpartition(b"\n")
            if newline:
                yield rest + lines + newline
                rest = b""
            rest += text
            if len(rest) > LONGEST:
                raise LogError(f"{path} is not a log: it has no line end within {LONGEST:,} bytes")
            progress(file.tell() - done)
            done = file.tell()
        if rest:
            yield rest
        progress(path.stat().st_size - done)
