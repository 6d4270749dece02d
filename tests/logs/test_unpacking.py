"""Unpacking: gzipped or plain, and as much of a damaged file as can be recovered."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from pathlib import Path

import pytest
from hybandits.logs.unpacking import Stream

from hybandits.logs import unpacking

TEXT = b"".join(b"line %d of a log\n" % i for i in range(5000))


def unpack(path: Path, room: int = 1000) -> tuple[bytes, str]:
    """The content of a file as it can be had, and what is said of the damage."""
    view, content = memoryview(bytearray(room)), b""
    with contextlib.closing(Stream(path)) as stream:
        while n := stream.readinto(view):
            content += view[:n]
        return content, stream.damage


@pytest.fixture(params=["isal.igzip", "gzip"])
def unpacker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_unpack", pytest.importorskip(request.param))


@pytest.mark.usefixtures("unpacker")
@pytest.mark.parametrize("content", [TEXT, gzip.compress(TEXT), gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:])])
def test_plain_packed_and_packed_in_pieces(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    assert unpack(tmp_path / "log") == (TEXT, "")


@pytest.mark.usefixtures("unpacker")
@pytest.mark.parametrize("room", [7, 1000, 1 << 20])
def test_a_file_cut_short_gives_all_that_is_left(tmp_path: Path, room: int) -> None:
    packed = gzip.compress(TEXT)
    (tmp_path / "log").write_bytes(packed[: len(packed) // 2])
    content, damage = unpack(tmp_path / "log", room)
    assert content == zlib.decompressobj(31).decompress(packed[: len(packed) // 2])
    assert len(content) > 1000
    assert damage == "it is cut short"


@pytest.mark.usefixtures("unpacker")
def test_a_wrong_checksum_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1
    (tmp_path / "log").write_bytes(packed)
    content, damage = unpack(tmp_path / "log")
    assert content == TEXT
    assert damage


def test_header_fields_of_gzip_are_skipped_by_the_salvage(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT)
    extra = b"\x03\x00abc" + b"name\x00" + b"comment\x00" + b"\x12\x34"
    whole = packed[:3] + bytes([2 | 4 | 8 | 16]) + packed[4:10] + extra + packed[10:]
    (tmp_path / "log.gz").write_bytes(whole)
    assert b"".join(unpacking._salvage(tmp_path / "log.gz", 5)) == TEXT[5:]
