"""Worlds by name and settings, as a record keeps them, and data sets from files."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from hybandits.foundation import files
from hybandits.foundation.checks import FloatArray, nearest, parameters_of
from hybandits.policies.by_name import FORM, check_settings, construct, import_class, is_import_path
from hybandits.simulation.benchmark_worlds import TERRAIN, Churn, Classification, Clicks, Products, terrain
from hybandits.simulation.worlds import Relayed, Synthetic, World

RELAY = ("factor", "offset", "delay")
"""Settings that every kind has (`Relayed`)."""

FROM_THE_EXPERIMENT = ("d1", "d2", "arms", "noise", "seed")
"""Arguments of constructors that come from the experiment; all others are settings."""

PROMISED = ("d1", "d2", "noise", "fresh_contexts", "rounds", "noise_stream")
"""Attributes of every world (`hybandits.simulation.World`)."""


def classification(*, data: str = TERRAIN, label: str = "", sha256: str = "", seed: int = 0) -> Classification:
    """Make the world of a data set: `terrain`, or a file whose class is in the column `label`, by default the last."""
    labels: Any
    if data == TERRAIN:
        features, labels = terrain()
    else:
        digest = files.sha256(Path(data))
        if sha256 not in ("", digest):
            raise ValueError(
                f"{data} has SHA-256 {digest[:12]}.., not {sha256[:12]}.. as recorded: bring the file that was used"
            )
        features, labels = read_table(data, label or None, digest)
    return Classification(features=features, labels=labels, seed=seed)


KINDS = {
    "linear": (Synthetic, "the paper's world"),
    "clicks": (Clicks, "rewards of 0 and 1"),
    "products": (Products, "clicks on products with features of their own"),
    "churn": (Churn, "arms that come and go"),
    "classification": (classification, "a data set: the arms are the classes"),
}
"""Kinds of worlds: the constructor and a description. Settings are its arguments and those of `RELAY`."""


def split_settings(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Split the settings of a world into its kind, the kind's own settings, and those of `RELAY`."""
    own = dict(settings)
    kind = own.pop("kind", "linear")
    return kind, own, {name: own.pop(name) for name in RELAY if name in own}


def world_class(name: str) -> Any:
    """Return the constructor of a kind of world, or a class of one's own, which is imported."""
    if is_import_path(name):
        return import_class(name)
    if name not in KINDS:
        raise ValueError(
            f"world must be one of {', '.join(KINDS)}, or a class of your own as {FORM}, got {name!r}"
            f"{nearest(name, KINDS)}"
        )
    return KINDS[name][0]


def make_world(settings: Mapping[str, Any], *, d1: int, d2: int, arms: int, noise: float, seed: int) -> World:
    """Make the world of some settings.

    Parameters
    ----------
    settings : mapping
        The `kind`, one of `KINDS` (by default "linear") or ``package.module:Class``, and its settings.
    d1, d2, arms, noise, seed
        Arguments from the experiment, for worlds that take them.

    Examples
    --------
    >>> make_world({"kind": "churn", "every": 100}, d1=2, d2=2, arms=3, noise=0.1, seed=0)
    Churn(d1=2, d2=2, arms=3, noise=0.1, every=100, seed=0)
    """
    name, own, relayed = split_settings(settings)
    kind = world_class(name)
    check_settings(name, kind, own, FROM_THE_EXPERIMENT)
    offered: dict[str, Any] = {"d1": d1, "d2": d2, "arms": arms, "noise": noise, "seed": seed}
    given = {key: offered[key] for key in parameters_of(kind) if key in offered}
    world: World = construct(name, kind, given | own)
    if missing := [each for each in PROMISED if not hasattr(world, each)]:
        raise ValueError(f"{name} is not a world, it has no {', '.join(missing)}: see docs/adding-a-world.md")
    return Relayed(world=world, **relayed) if relayed else world


def number_of_arms(world: World) -> int:
    """Return how many arms a world has: its attribute `arms`, or the candidates of its first block."""
    inner: Any = getattr(world, "world", world)
    arms = getattr(inner, "arms", None)
    if arms is None:
        arms = next(iter(inner.rounds(1))).rounds.arms
    return len(arms) if hasattr(arms, "__len__") else operator.index(arms)


# ------------------------------------------------------------------ data sets


@lru_cache(maxsize=1)
def read_table(path: Path | str, label: str | None = None, digest: str = "") -> tuple[FloatArray, list[str]]:
    """Read features and labels, as text, from a CSV file with a header or a Parquet file.

    The labels are in the column `label`, by default the last one; all other columns must be finite numbers. A file is
    read once for each `digest`, its SHA-256.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("length,width,kind\\n1.5,2,lily\\n3,1,rose\\n")
    ...     read_table(path)
    (array([[1.5, 2. ], [3. , 1. ]]), ['lily', 'rose'])
    """
    path = Path(path)
    try:
        table = pq.read_table(path) if path.suffix.lower() in (".parquet", ".pq") else pa_csv.read_csv(path)
    except pa.ArrowException as problem:
        raise ValueError(f"{path} cannot be read ({problem}): give a CSV file with a header, or Parquet") from None
    names = table.column_names
    if len(names) < 2 or not table.num_rows:
        raise ValueError(f"{path} must have a header, rows, and a column of features beside that of the class")
    if label is not None and label not in names:
        raise ValueError(f"{path} has no column {label!r}{nearest(label, names)}: it has {', '.join(names)}")
    label = names[-1] if label is None else label
    features = np.stack([_numbers(path, name, table[name]) for name in names if name != label], axis=1)
    if table[label].null_count:
        raise ValueError(f"{path} has rows without a class in {label}: leave them out")
    labels = [str(value) for value in table[label].to_pylist()]
    if len(set(labels)) == 1:
        raise ValueError(f"{path} has only the class {labels[0]!r} in {label}: give two or more, or another label")
    return features, labels


def _numbers(path: Path, name: str, column: pa.ChunkedArray) -> FloatArray:
    try:
        numbers: FloatArray = column.cast(pa.float64()).to_numpy()
    except pa.ArrowException as problem:
        raise ValueError(
            f"{path} has no numbers in {name} ({problem}): all columns but that of the class must be numbers; if the "
            "class is another column than the last, name it with label"
        ) from None
    if not np.isfinite(numbers).all():
        row = int(np.isfinite(numbers).argmin())
        raise ValueError(f"{path} has no finite number in {name}, row {row + 1}: fill it in, or leave the row out")
    return numbers
