"""The Open Bandit Dataset: a campaign's folder with a CSV of rounds and `item_context.csv`.

All items of `item_context.csv` are candidates in every round. The user's vector is a constant and the one-hots of
`user_feature_0` to `_3`; an item's is a constant, `item_feature_0` (mean 0 and variance 1 over the items) and the
one-hots of the others. Of each feature the first category, in the order of the hashes, is left out: with the constant
the rest says it all. Beyond 200 columns the most frequent categories are kept and the others counted together as
`=other`. The affinities of users and items are not used.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from hybandits.foundation.checks import Doubles
from hybandits.logs.columns.cells import Sheet
from hybandits.logs.columns.reader import ColumnsReader, Mapping, arm_rows, one_hots
from hybandits.logs.columns.tabular import DamagedError, TableFile, open_table, require
from hybandits.logs.store import LogError

ITEMS = "item_context.csv"
"""The file that tells a campaign's folder from others."""

_CHARACTERS = 8  # of a hash, in the name of a feature


class OpenBanditReader(ColumnsReader):
    """Reads a campaign: its folder, or its CSV with `item_context.csv` beside it.

    The CSV is read twice, first for the categories of users. Lines are counted without the header, so that lines are
    rounds and skipped lines.
    """

    kind = "openbandit"
    _stranger = f"item not in {ITEMS}"

    def __init__(self, path: Path | str) -> None:
        rounds, self._items = find(path)
        file = open_table(rounds)
        user = _numbered(file, "user_feature")
        mapping = Mapping(
            arm="item_id", reward="click", time="timestamp", propensity="propensity_score", place="position",
            user=user, categorical=user,
        )  # fmt: skip
        require(file, mapping.columns, "the format openbandit")
        super().__init__(rounds, mapping=mapping)

    def _arm_table(self) -> tuple[list[str], dict[str, Doubles] | None]:
        file = open_table(self._items)
        require(file, ["item_id"], "the format openbandit")
        number, *others = _numbered(file, "item_feature")
        names, values = arm_rows(file, "item_id", [number])
        scale = values.std()
        names_of, parts = [number], [np.ones((len(names), 1)), (values - values.mean()) / (scale or 1.0)]
        columns: dict[str, list[str]] = {name: [] for name in others}
        try:
            for rows in file.rows(others):  # arm_rows has seen that every line is a row
                sheet = Sheet(rows)
                for name in others:
                    columns[name] += sheet.text(name).to_pylist()
                if wrong := sheet.faults():
                    raise LogError(f"{file.path}, line {wrong[0].line:,}: {wrong[0].kind} ({wrong[0].detail})")
        except DamagedError as problem:
            raise LogError(f"{file.path} cannot be read to its end ({problem}): get it again") from None
        counts = {name: Counter(columns[name]) for name in others}
        for hot in one_hots(counts, drop_first=True, label=self._label):
            names_of += hot.names
            parts.append(hot.matrix(pa.array(columns[hot.column], pa.string())))
        return names_of, dict(zip(names, np.concatenate(parts, axis=1), strict=True))

    def _label(self, category: str) -> str:
        return category[:_CHARACTERS]

    def _verify(self, sheet: Sheet, reward: Doubles, place: Doubles) -> None:
        clicks = (reward == 0) | (reward == 1)
        sheet.fault(~clicks, "click not 0 or 1", lambda i: f"got {reward[i]:g}")
        sheet.fault(~np.isin(place, (1, 2, 3)), "position not 1, 2 or 3", lambda i: f"got {place[i]:g}")


def find(path: Path | str) -> tuple[Path, Path]:
    """The CSV of rounds and that of items, from a folder or the former."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    items = folder / ITEMS
    if path.name == ITEMS:
        raise LogError(f"{path} is the file of the items: give the folder it is in, or the CSV of rounds")
    if not path.exists():
        raise LogError(f"there is no {path}: give a campaign's folder, such as random/all")
    if not items.is_file():
        inside = sorted(one.parent.name for one in folder.glob(f"*/{ITEMS}"))
        remedy = f"give one of the folders in it, {', '.join(inside)}" if inside else "it tells the items' features"
        raise LogError(f"there is no {ITEMS} in {folder}: {remedy}")
    if path is not folder:
        return path, items
    logs = sorted(one for one in folder.iterdir() if one.name.endswith((".csv", ".csv.gz")) and one.name != ITEMS)
    if len(logs) != 1:
        names = ", ".join(one.name for one in logs) or "none"
        raise LogError(f"{folder} should have one CSV beside {ITEMS}, it has {names}: give the file that is meant")
    return logs[0], items


def _numbered(file: TableFile, stem: str) -> list[str]:
    """The columns stem_0, stem_1, .. in this order."""
    found = {int(match[1]): name for name in file.columns if (match := re.fullmatch(rf"{stem}_(\d+)", name))}
    if not found:
        require(file, [f"{stem}_0"], "the format openbandit")
    return [found[i] for i in sorted(found)]
