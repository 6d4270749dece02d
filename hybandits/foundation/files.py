"""Atomic writes, digests, writable folders, and TOML files."""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_PART_NAME = re.compile(r"\.(?P<name>.+)\.(?P<process>\d+)(-\d+)?\.part")


def part_of(path: Path) -> Path:
    """Return the temporary name under which this thread writes the file or folder `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.part")


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Raise an OSError of the block with `path` in place of a temporary name, and with a remedy for a full disk."""
    try:
        yield
    except OSError as problem:
        if problem.errno is None:
            raise
        words = os.strerror(problem.errno)
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            words = f"the disk is full ({words}); free some space, or write elsewhere"
        raise OSError(problem.errno, words, str(path)) from None


def write_atomically(path: Path, write: Callable[..., object]) -> None:
    """Write a file so that readers see either the old content or the new one, never a part of it.

    `write` is called with the name of a temporary file, which it fills. If it fails, the old file stays. A replaced
    file keeps its permissions, and a symbolic link keeps pointing to it.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = part_of(path)
    with naming(path):
        try:
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
            discard(temporary)
            # A replaced file may be private, so its part is.
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else 0o600))
            write(str(temporary))
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, path)
        finally:
            discard(temporary)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8 and with the same ends of lines on every system."""
    write_atomically(path, lambda name: Path(name).write_text(text, encoding="utf-8", newline="\n"))


def discard(path: Path) -> None:
    """Remove a file or a whole folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def clear_parts(paths: Iterable[Path]) -> None:
    """Remove temporary files of these paths that killed processes left."""
    names = {(path.parent, path.name) for path in paths}
    for folder in {parent for parent, _ in names}:
        for part in folder.glob(".*.part"):
            fields = _PART_NAME.fullmatch(part.name)
            if fields and (folder, fields["name"]) in names and not alive(int(fields["process"])):
                discard(part)


def alive(process: int) -> bool:
    """Return True if a process with this number is running on this machine."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file as 64 hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_writable_folder(folder: Path) -> None:
    """Create the folder if it is missing; ValueError if it is a file or cannot be written to."""
    probe = folder / ".hybandits-probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{folder} is a file: give a folder") from None
    except OSError as problem:
        raise ValueError(f"{folder} cannot be written ({problem.strerror}): give another folder") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; ValueError if it is missing or not valid."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as problem:
        raise ValueError(f"{path} cannot be read ({problem.strerror}): give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ValueError(f"{path} is not valid TOML ({problem}): correct the file") from None
