"""Reward models read from a file, for the experiment on a click log; nothing in a file is executed.

A file is JSON in the form of `RewardModel.plain`, or the archive `lin_reg_model_36_6_20.pt` of the paper's repository,
of which only the entry with the weights is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits.evaluation.log_world import RewardModel
from hybandits.evaluation.view import PLACES, View
from hybandits.features import FeatureMap
from hybandits.foundation.checks import short
from hybandits.foundation.files import naming
from hybandits.kernels.arrow import LIMIT
from hybandits.logs.store import LogError

FEATURES = 6
"""Features of users and of articles in the released weights: theta is 6 x 6, and every place has 6 of its own."""
RELEASED_WEIGHTS = FEATURES**2 + PLACES * FEATURES
LARGEST_ARCHIVE = 1 << 20
KEYS = {"features", "user", "arm", "theta", "beta", "names"}


class ModelFile(NamedTuple):
    """A reward model, and the file that it was read from."""

    model: RewardModel
    name: str
    sha256: str


def read_model(path: Path, view: View) -> ModelFile:
    """Read a reward model for the features and the arms of a view; LogError if it is damaged or of others."""
    with naming(path):
        content = path.read_bytes()
    model = released_weights(content, path) if content.startswith(b"PK") else _from_json(content, path)
    if model.map != view.map:
        raise LogError(f"{path} is a model for {model.map}, but the log has {view.map}: give a model of these features")
    if not set(model.names) & set(view.names):
        of, other = ("positions", "articles") if view.arms_are == "articles" else ("articles", "positions")
        raise LogError(
            f"{path} has weights of the arms {short(list(model.names))}, of which the log has none: its arms are "
            f"{other}; if those of the model are {of}, pass --arms {of}"
        )
    return ModelFile(model, path.name, hashlib.sha256(content).hexdigest())


def released_weights(content: bytes, path: Path) -> RewardModel:
    """The weights of the released code: 156 numbers in the archive's entry data/0, without running its pickle.

    Its x is vec(v u'), ours vec(u v'): its theta is a matrix stored row by row, with a row per user feature. Arms are
    the places of a list.
    """

    def refused(problem: str) -> LogError:
        return LogError(f"{path} {problem}: give lin_reg_model_36_6_20.pt as the paper's repository has it, or JSON")

    if len(content) > LARGEST_ARCHIVE:
        raise refused(f"has {len(content):,} bytes, too many for {RELEASED_WEIGHTS} weights")
    sizes = {"byteorder": len(b"little"), "data/0": 4 * RELEASED_WEIGHTS}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = {entry: entry.filename.partition("/")[2] for entry in archive.infolist()}
            used = {entry: name for entry, name in names.items() if name in sizes or name.startswith("data/")}
            if sorted(used.values()) != sorted(sizes):
                raise refused(f"must have one entry byteorder and of data/ only data/0, got {sorted(names.values())}")
            parts = {}
            for entry, name in used.items():
                if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                    raise refused(f"has a compressed or encrypted entry {name}")
                if entry.file_size != sizes[name]:
                    raise refused(f"has {entry.file_size:,} bytes in its entry {name} instead of {sizes[name]}")
                parts[name] = archive.read(entry)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as problem:
        raise refused(f"is a damaged archive ({problem})") from None
    order, data = parts["byteorder"], parts["data/0"]
    if order != b"little":
        raise refused(f"has the byte order {short(order)} instead of b'little'")
    weights = np.frombuffer(data, "<f4").astype(float)
    if not (np.abs(weights) <= LIMIT).all():
        raise refused("has weights that are not finite")
    shared = FEATURES**2
    return RewardModel(
        map=FeatureMap("das", FEATURES, FEATURES), names=range(PLACES),
        theta=weights[:shared].reshape(FEATURES, FEATURES).ravel(order="F"),
        beta=weights[shared:].reshape(PLACES, FEATURES),
    )  # fmt: skip


def _from_json(content: bytes, path: Path) -> RewardModel:
    """A model in the form of `RewardModel.plain`, checked."""

    def refused(problem: str) -> LogError:
        return LogError(f"{path} {problem}: fix it, see docs/logs.md for the form of a reward model")

    try:
        plain = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise refused(f"is neither an archive of weights nor JSON ({problem})") from None
    if not isinstance(plain, dict) or set(plain) - {"pair"} != KEYS:
        given = sorted(plain) if isinstance(plain, dict) else plain
        raise refused(f"must have the keys {', '.join(sorted(KEYS))}, got {short(given)}")
    try:
        feature_map = FeatureMap(plain["features"], plain["user"], plain["arm"], plain.get("pair", 0))
    except (ValueError, TypeError) as problem:
        raise refused(f"has a wrong feature map ({problem})") from None
    names = plain["names"]
    if not isinstance(names, list) or not all(type(name) in (str, int) for name in names) or not names:
        raise refused(f"must list arms as text or whole numbers under names, got {short(names)}")
    if len(set(names)) != len(names):
        raise refused("lists an arm twice under names")
    _check_numbers("theta", plain["theta"], feature_map.d1, refused)
    if not isinstance(plain["beta"], list) or len(plain["beta"]) != len(names):
        raise refused(f"must have one row of beta for each of the {len(names)} names, got {short(plain['beta'])}")
    for name, row in zip(names, plain["beta"], strict=True):
        _check_numbers(f"beta of {name!r}", row, feature_map.d2, refused)
    return RewardModel.from_plain(plain)


def _check_numbers(name: str, values: Any, count: int, refused: Any) -> None:
    right = isinstance(values, list) and len(values) == count
    if not right or not all(type(v) in (int, float) and abs(v) <= LIMIT for v in values):
        raise refused(f"must have {count} finite numbers as {name}, got {short(values)}")
