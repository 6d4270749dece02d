"""Files: one .npz per policy, a JSON header beside plain arrays, no pickle, written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "hybandits-policy"
VERSION = 1


class FileError(ValueError):
    """A file that cannot be loaded: truncated, corrupt, foreign, or of another version."""


def plain_id(arm: Hashable) -> Any:
    """An arm id as JSON: str, int and tuples of them; anything else is refused."""
    if isinstance(arm, str):
        return str(arm)
    if isinstance(arm, int | np.integer) and not isinstance(arm, bool):
        return int(arm)
    if isinstance(arm, tuple):
        return [plain_id(part) for part in arm]
    raise TypeError(
        f"arm id {arm!r} of type {type(arm).__name__} cannot be saved: use str, int or tuples of them as ids"
    )


def arm_id(plain: Any) -> Hashable:
    """The inverse of `plain_id`."""
    if isinstance(plain, list):
        return tuple(arm_id(part) for part in plain)
    if isinstance(plain, str | int) and not isinstance(plain, bool):
        return plain
    raise FileError(f"the file names an arm {plain!r}, which is no str, int or tuple: it is corrupt")


def plain_ids(arms: Iterable[Hashable]) -> list[Any]:
    """Every id, or an error naming the first that cannot be saved."""
    return [plain_id(arm) for arm in arms]


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write header and arrays to a new file and put it in place in one step."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the name of a file, e.g. {target / 'policy.npz'}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: create it first")
    text = json.dumps({"format": FORMAT, "version": VERSION, **header})
    content = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name + ".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **content)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file written by `write`; FileError for anything else."""
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"{source} does not exist or is no file: pass the path given to save()")
    foreign = FileError(f"{source} is not a file written by hybandits: pass the path given to save()")
    try:
        with open(source, "rb") as file, np.load(file, allow_pickle=False) as content:
            if "header" not in content.files:
                raise foreign
            arrays = {name: content[name] for name in content.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
    except (FileError, PermissionError):
        raise
    except Exception as problem:  # whatever zip, npy or JSON make of a damaged file
        raise FileError(
            f"{source} is truncated, corrupt or no file of hybandits ({problem}): "
            "save the policy again, or restore the file from a backup"
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise foreign
    if header.get("version") != VERSION:
        raise FileError(
            f"{source} has format version {header.get('version')!r}, this hybandits reads version {VERSION}: "
            "load it with the release that wrote it"
        )
    return header, arrays
