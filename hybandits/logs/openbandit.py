"""The Open Bandit Dataset: a campaign's folder with a CSV of rounds and `item_context.csv`.

All items of `item_context.csv` are candidates in every round. `user_feature_0` and so on are categories, and so are the
items' features but for `item_feature_0`, which is scaled to mean 0 and variance 1 over the items. The columns
`user-item_affinity_0` and so on, one per item, are the pair feature `affinity`.
"""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from hybandits.features import Feature, Number
from hybandits.logs.columns import ARM, ColumnsReader, KnownArms, Mapping, one_hots, read_arms
from hybandits.logs.files import Paths, given_paths, list_files
from hybandits.logs.store import Batch, LogError, Tables
from hybandits.logs.tables import Rows, TableFile, open_table, require

ITEMS = "item_context.csv"
"""The file that marks a campaign's folder."""

_AFFINITY = "user-item_affinity_"


class OpenBanditReader(ColumnsReader):
    """Reads a campaign of the Open Bandit Dataset: its folder, such as `random/all`."""

    kind = "openbandit"

    def __init__(self, path: Paths) -> None:
        rounds, self._items = find_campaign(path)
        file = open_table(rounds)
        user = _numbered(file, "user_feature")
        affinities = any(column.startswith(_AFFINITY) for column in file.columns)
        mapping = Mapping(
            arm="item_id", reward="click", time="timestamp", propensity="propensity_score",
            user=user, categorical=user, pair={"affinity": _AFFINITY + ARM} if affinities else {},
        )  # fmt: skip
        super().__init__(rounds, mapping=mapping)

    @staticmethod
    def recognises(path: Path, start: bytes) -> bool:
        return (path.parent / ITEMS).is_file()

    def _batch(self, rows: Rows, tables: Tables) -> Batch:
        click = rows.numbers("click")
        rows.fault((click != 0) & (click != 1), "click other than 0 and 1", lambda i: f"got {click[i]:g}")
        return super()._batch(rows, tables)

    def _known_arms(self) -> KnownArms:
        file = open_table(self._items)
        number, *others = _numbered(file, "item_feature")
        items, (values,), texts = read_arms(file, "item_id", [number], others)
        features = [number]
        parts = [np.ones((len(values), 1)), ((values - values.mean()) / (values.std() or 1.0))[:, None]]
        named: dict[str, Feature] = {number: Number()}
        hots = one_hots({name: set(column) for name, column in zip(others, texts, strict=True)})
        for hot, column in zip(hots, texts, strict=True):
            features += hot.names
            if (feature := hot.feature(integers=False)) is not None:
                named[hot.column] = feature
            parts.append(hot.matrix(pa.array(column, pa.string())))
        return KnownArms(features, dict(zip(items, np.concatenate(parts, axis=1), strict=True)), named, self._items)


def find_campaign(paths: Paths) -> tuple[Path, Path]:
    """Find the CSV of rounds and that of items in a campaign's folder."""
    folder, *others = given_paths(paths)
    if others:
        raise ValueError(f"a campaign is one folder, got {folder} and {others[0]}: convert them one by one")
    items = folder / ITEMS
    if not items.is_file():
        campaigns = ", ".join(sorted(inside.parent.name for inside in folder.glob(f"*/{ITEMS}")))
        remedy = f"give a folder that holds {ITEMS} and the CSV of rounds"
        raise LogError(f"{folder} is not a campaign: {remedy}{f', such as {campaigns} in it' if campaigns else ''}")
    rounds = list_files(folder, lambda name: name.endswith((".csv", ".csv.gz")) and name != ITEMS, "all.csv").files
    if len(rounds) != 1:
        names = ", ".join(file.name for file in rounds)
        raise LogError(f"{folder} should have one CSV beside {ITEMS}, but has {names}: leave the one with the rounds")
    return rounds[0], items


def _numbered(file: TableFile, stem: str) -> list[str]:
    """The columns stem_0, stem_1, .. in the order of their numbers."""
    columns = {int(match[1]): name for name in file.columns if (match := re.fullmatch(rf"{stem}_(\d+)", name))}
    if not columns:
        require(file, [f"{stem}_0"])
    return [columns[i] for i in sorted(columns)]
