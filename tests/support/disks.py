"""Disks for SQLite: one that loses what was not synced when the power goes, and one that is full."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512
"""Bytes that are written whole or not at all."""

VARIANTS = ("nothing", "everything", "some", "first ones", "torn")
"""Remains of the writes since the last sync."""

_numbers = itertools.count()


class _Image:
    """A file as it is on disk, and the writes that are not synced yet."""

    def __init__(self, path: str) -> None:
        known = Path(path)
        self.durable: bytes | None = known.read_bytes() if known.exists() else None
        self.pending: list[tuple[int, bytes | None]] = []
        """Offset and bytes; None cuts the file off there."""

    def left(self, variant: str, chance: random.Random) -> bytes | None:
        pending = self.pending
        if variant == "nothing":
            pending = []
        elif variant == "some":
            pending = [each for each in pending if chance.random() < 0.5]
            chance.shuffle(pending)
        elif variant == "first ones":
            pending = pending[: chance.randint(0, len(pending))]
        elif variant == "torn":
            pending = [each for write in pending for each in _sectors(*write) if chance.random() < 0.7]
            chance.shuffle(pending)
        if self.durable is None and (not pending or variant == "nothing"):
            return None
        return _applied(self.durable or b"", pending)


def _sectors(offset: int, data: bytes | None) -> list[tuple[int, bytes | None]]:
    if data is None:
        return [(offset, None)]
    return [(offset + i, data[i : i + SECTOR]) for i in range(0, len(data), SECTOR)]


def _applied(content: bytes, writes: list[tuple[int, bytes | None]]) -> bytes:
    image = bytearray(content)
    for offset, data in writes:
        if data is None:
            del image[offset:]
            continue
        image.extend(b"\0" * (offset - len(image)))
        image[offset : offset + len(data)] = data
    return bytes(image)


class Disk(apsw.VFS):
    """A disk whose power goes after so many writes and syncs, and which may be full or read-only for a while.

    Parameters
    ----------
    power : int, optional
        Writes and syncs until the power goes.
    lies : bool
        Whether it says that it has synced, and has not.
    """

    def __init__(self, power: int | None = None, *, lies: bool = False) -> None:
        self.name = f"disk {next(_numbers)}"
        self.power, self.lies = power, lies
        self.images: dict[str, _Image] = {}
        self.fault: type[apsw.Error] | None = None
        """Error that writes raise."""
        self.over = False
        super().__init__(self.name, "unix")

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        self.use()
        super().xDelete(name, sync)
        self.images.pop(name, None)

    def excepthook(self, *_: object) -> None:
        """SQLite passes over errors where it writes its WAL back after a commit; so do we."""

    def use(self) -> None:
        """Count a write or a sync; raises if it does not succeed."""
        if self.over:
            return
        if self.fault is not None:
            raise self.fault("as the test wants it")
        if self.power is not None:
            self.power -= 1
            if self.power < 0:
                raise apsw.IOError("the power is gone")

    @property
    def is_off(self) -> bool:
        """True if the power is gone."""
        return self.power is not None and self.power < 0

    def left(self, variant: str, chance: random.Random) -> dict[str, bytes]:
        """The files by their names, as they are found when the power is back."""
        left = {Path(path).name: image.left(variant, chance) for path, image in self.images.items()}
        return {name: content for name, content in left.items() if content is not None}

    @contextmanager
    def raising(self, fault: type[apsw.Error]) -> Iterator[None]:
        """Let all writes fail for a while."""
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._image = disk.images.setdefault(path, _Image(path))
        super().__init__("unix", name, flags)

    def excepthook(self, *_: object) -> None:
        """See `Disk.excepthook`."""

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.use()
        self._image.pending.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.use()
        self._image.pending.append((size, None))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.use()
        if not self._disk.lies:
            self._image.durable = _applied(self._image.durable or b"", self._image.pending)
            self._image.pending = []
