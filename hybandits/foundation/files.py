"""Files: written whole or not at all, digests, and who is still writing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def alive(process: int) -> bool:
    """Whether there is a process of this number: one that is writing a file, say."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def write_atomically(path: Path, write: Any) -> None:
    """Have `write(file name)` fill a temporary file, and put that in the place of `path` once it is on disk whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(str(temporary))
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def clear_parts(paths: Iterable[Path]) -> None:
    """Remove temporary files that runs left which were killed while they wrote one of these files."""
    names = {(path.parent, path.name) for path in paths}
    for folder in {parent for parent, _ in names}:
        for part in folder.glob(".*.part"):
            name, _, process = part.name[1 : -len(".part")].rpartition(".")
            if (folder, name) in names and process.isdigit() and not alive(int(process)):
                part.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
