"""The bytes of a file, gzipped or plain, and as many of them as can be had if it is truncated or damaged."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

_unpack: Any = gzip
_DAMAGE: tuple[Any, ...] = (EOFError, OSError, zlib.error)
with contextlib.suppress(ImportError):  # without it reading takes twice as long
    from isal import igzip as _unpack
    from isal import isal_zlib

    _DAMAGE += (isal_zlib.error,)  # not one of zlib's


class Stream:
    """The text of a file, unpacked if it is gzip; `damage` says why it ended before its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = path.open("rb")
        packed = self.file.read(2) == b"\x1f\x8b"
        self.file.seek(0)
        self.text: Any = _unpack.open(self.file, "rb") if packed else self.file
        self.packed, self.read, self.damage = packed, 0, ""
        self.rest: Iterator[bytes] | None = None
        self.left = b""

    def close(self) -> None:
        self.text.close()
        self.file.close()

    def readinto(self, view: memoryview) -> int:
        """As of a file; after damage to what is packed, all that comes before the damage."""
        if self.rest is None:
            try:
                n = int(self.text.readinto(view))
            except _DAMAGE as problem:
                self.damage = "it ends in the middle" if isinstance(problem, EOFError) else str(problem)
                self.rest = _salvage(self.path, self.read) if self.packed else iter(())
            else:
                self.read += n
                return n
        while not self.left:
            try:
                self.left = next(self.rest)
            except StopIteration:
                return 0
        part = self.left[: len(view)]
        view[: len(part)] = part
        self.left = self.left[len(part) :]
        return len(part)


def _salvage(path: Path, skip: int) -> Iterator[bytes]:
    """What can be unpacked of a damaged gzip file, without its first `skip` bytes.

    Readers of gzip give nothing of the piece that the damage is in. Here the piece is unpacked byte by byte, and check
    sums are not looked at: a damaged line is found to be malformed.
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
    """All that comes before the error."""
    try:
        while True:
            out = engine.decompress(data, 1)
            data = engine.unconsumed_tail
            yield out
    except zlib.error:
        return


def _skip_header(file: BinaryIO) -> bool:
    """Go to the data of the next member of a gzip file; False if there is none."""
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
