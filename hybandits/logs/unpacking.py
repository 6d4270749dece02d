"""The bytes of a file, gzipped or plain; if it is truncated or damaged, as many of them as can be recovered."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

_unpack: Any = gzip
_DAMAGE: tuple[Any, ...] = (EOFError, OSError, zlib.error)
with contextlib.suppress(ImportError):  # without isal, reading takes twice as long
    from isal import igzip as _unpack
    from isal import isal_zlib

    _DAMAGE += (isal_zlib.error,)  # not a subclass of zlib.error


class Stream:
    """The content of a file, unpacked if it is gzip.

    Attributes
    ----------
    file : the file itself; its position says how much of it has been read.
    damage : why the content ended too early; empty as long as nothing is wrong.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = path.open("rb")
        packed = self.file.read(2) == b"\x1f\x8b"
        self.file.seek(0)
        self.content: Any = _unpack.open(self.file, "rb") if packed else self.file
        self.packed, self.unpacked, self.damage = packed, 0, ""
        self.salvaged: Iterator[bytes] | None = None
        self.pending = b""

    def close(self) -> None:
        self.content.close()
        self.file.close()

    def readinto(self, view: memoryview) -> int:
        """Fill `view` as a file would. In a damaged gzip file, everything before the damage is still handed out."""
        if self.salvaged is None:
            try:
                n = int(self.content.readinto(view))
            except _DAMAGE as problem:
                self.damage = "it is cut short" if isinstance(problem, EOFError) else str(problem)
                self.salvaged = _salvage(self.path, self.unpacked) if self.packed else iter(())
            else:
                self.unpacked += n
                return n
        while not self.pending:
            try:
                self.pending = next(self.salvaged)
            except StopIteration:
                return 0
        part = self.pending[: len(view)]
        view[: len(part)] = part
        self.pending = self.pending[len(part) :]
        return len(part)


def _salvage(path: Path, skip: int) -> Iterator[bytes]:
    """What can be unpacked of a damaged gzip file, without its first `skip` bytes.

    Readers of gzip hand out nothing of the piece that the damage is in. Here that piece is unpacked byte by byte.
    Checksums are ignored: a damaged line shows when it is parsed.
    """
    for out in _inflate(path):
        if skip < len(out):
            yield out[skip:]
        skip = max(0, skip - len(out))


def _inflate(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while _skip_header(file):
            engine = zlib.decompressobj(-15)
            while not engine.eof:
                data = engine.unconsumed_tail or file.read(4096)
                if not data:
                    yield engine.flush()
                    return
                before = engine.copy()
                try:
                    out = engine.decompress(data, 1 << 16)
                except zlib.error:
                    yield from _bytewise(before, data)
                    return
                yield out
            file.seek(8 - len(engine.unused_data), 1)


def _bytewise(engine: Any, data: bytes) -> Iterator[bytes]:
    """Everything before the error."""
    try:
        while True:
            out = engine.decompress(data, 1)
            data = engine.unconsumed_tail
            yield out
    except zlib.error:
        return


def _skip_header(file: BinaryIO) -> bool:
    """Move to the data of the next member of a gzip file; False if there is no further member."""
    header = file.read(10)
    if len(header) < 10 or header[:2] != b"\x1f\x8b":
        return False
    flags = header[3]
    if flags & 4:
        file.seek(int.from_bytes(file.read(2), "little"), 1)
    for flag in (8, 16):  # name, comment
        if flags & flag:
            while file.read(1) not in (b"\0", b""):
                pass
    if flags & 2:
        file.seek(2, 1)
    return True
