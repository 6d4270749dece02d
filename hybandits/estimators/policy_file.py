"""Policy files: one .npz per policy, with a JSON header beside plain arrays and without pickle."""

import io
import json
import os
import zipfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

from hybandits.foundation.files import write_atomically

Packed = tuple[dict[str, Any], dict[str, np.ndarray]]
"""A policy or a part of one, as saved: a header that JSON can hold, and plain arrays."""

FORMAT = "hybandits-policy"
VERSION = 7


class FileError(ValueError):
    """The error that `load` raises for a file that is truncated, corrupt, foreign, or holds a class not imported.

    The message says which of these it is and what to do. A file that does not exist raises FileNotFoundError instead.
    """


def arm_id(plain: Any) -> Hashable:
    """Return the id that `plain_id` turned into this."""
    if isinstance(plain, list):
        return tuple(arm_id(part) for part in plain)
    if isinstance(plain, str | int) and not isinstance(plain, bool):
        return plain
    raise FileError(f"the file names an arm {plain!r}, which is not a str, an int or a tuple: the file is corrupt")


def arm_ids(plain: Any) -> list[Hashable]:
    """Return the ids that `plain_id` turned into these."""
    if not isinstance(plain, list):
        raise FileError(f"the file's arms are a {type(plain).__name__}, expected a list: the file is corrupt")
    return [arm_id(part) for part in plain]


def counter(name: str, value: Any, limit: int = 2**53 + 1) -> int:
    """Return a whole number read from a file if it is at least 0 and below the limit."""
    if type(value) is not int or not 0 <= value < limit:
        raise FileError(f"{name} is {value!r}, expected a whole number from 0 to {limit - 1}: the file is corrupt")
    return value


def check_slots(arms: list[Hashable], slots: np.ndarray, pulls: np.ndarray) -> None:
    """Raise FileError unless the slots are 0..n-1 in some order for arms that have learned and -1 for the others."""
    integer = np.dtype(np.int64)
    if (
        slots.dtype != integer
        or pulls.dtype != integer
        or slots.shape != (len(arms),)
        or pulls.ndim != 1
        or len(set(arms)) != len(arms)
        or sorted(slots[slots >= 0].tolist()) != list(range(len(pulls)))
        or (slots < -1).any()
        or (pulls < 0).any()
    ):
        raise FileError("the arms and their blocks do not match: the file is corrupt")


def put_back(name: str, array: np.ndarray, saved: np.ndarray) -> None:
    """Copy an array from a file to its place; raise FileError if it has another type or size, or is not finite."""
    if saved.dtype != array.dtype or saved.shape != array.shape:
        raise FileError(
            f"{name} has {saved.dtype} {saved.shape}, expected {array.dtype} {array.shape}: the file is corrupt"
        )
    parts = [saved[field] for field in saved.dtype.names] if saved.dtype.names else [saved]
    if not all(np.isfinite(part).all() for part in parts):
        raise FileError(f"{name} holds a number that is not finite: the file is corrupt")
    array[...] = saved


def packed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return a policy's header and arrays as the content of a file."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **header})
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write the content of a file, which is replaced in one step."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the name of a file, e.g. {target / 'policy.npz'}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: create it first")
    write_atomically(target, lambda name: Path(name).write_bytes(content))


def read(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file: pass the path given to save()")
    return Path(path).read_bytes()


def unpacked(content: bytes, source: str) -> Packed:
    """Return the header and arrays of what `packed` returned; raise FileError for anything else."""
    foreign = FileError(f"{source} is not a file written by hybandits: pass the path given to save()")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as container:
            if any(member.compress_type != zipfile.ZIP_STORED for member in container.infolist()):
                raise foreign  # save() compresses nothing, so that a small file cannot unpack to a huge one
        with np.load(io.BytesIO(content), allow_pickle=False) as members:
            if "header" not in members.files:
                raise foreign
            arrays = {name: members[name] for name in members.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
    except FileError:
        raise
    except Exception as problem:  # zip, npy and JSON raise many kinds of errors
        raise FileError(
            f"{source} is truncated, corrupt or not a file written by hybandits ({problem}): "
            "pass the path given to save(), save the policy again, or restore the file from a backup"
        ) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise foreign
    if header.get("version") != VERSION:
        raise FileError(
            f"{source} has format version {header.get('version')!r}, this hybandits reads version {VERSION}: load it "
            "with the release that wrote it"
        )
    return header, arrays
