"""The Open Bandit Dataset: a campaign's folder with a CSV of rounds and `item_context.csv`.

All items of `item_context.csv` are candidates in every round. A user's vector is a constant and one column of 0 and 1
per category of `user_feature_0` to `_3`; an item's is a constant, `item_feature_0` (scaled to mean 0 and variance 1
over the items) and the categories of its other features. The first category of each feature, in the order of the
hashes, has no column: the constant and the other columns imply it. Beyond 200 columns the most frequent categories are
kept and the others share a column `=other`. The affinity of a user and an item (`user-item_affinity_0` and so on, one
column per item) is the pair feature `affinity` of every candidate.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hybandits.features import Feature, Number
from hybandits.foundation.checks import FloatArray
from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.columns.categories import one_hots
from hybandits.logs.columns.cells import Sheet
from hybandits.logs.columns.mapping import ARM
from hybandits.logs.columns.reader import KnownArms, read_arms
from hybandits.logs.columns.tabular import DamagedError, TableFile, open_table, require
from hybandits.logs.input_files import given_paths, list_files
from hybandits.logs.store import LogError

ITEMS = "item_context.csv"
"""The file that marks a campaign's folder."""

_CHARACTERS = 8  # of a hash, in the name of a feature
_AFFINITY = "user-item_affinity_"


class OpenBanditReader(ColumnsReader):
    """Reads a campaign of the Open Bandit Dataset.

    Parameters
    ----------
    path : path
        The campaign's folder, such as `random/all`, or the CSV in it that has the rounds.

    Notes
    -----
    The CSV is read twice, first for the categories of the users. The header does not count as a line, so lines are
    rounds and skipped lines.
    """

    kind = "openbandit"
    _named_by = "the format openbandit"
    _unknown_arm = f"item not in {ITEMS}", ""

    def __init__(self, path: Path | str) -> None:
        campaign = find_campaign(path)
        self._items = campaign.items
        file = open_table(campaign.rounds)
        user = _numbered(file, "user_feature")
        affinities = any(column.startswith(_AFFINITY) for column in file.columns)
        mapping = Mapping(
            arm="item_id", reward="click", time="timestamp", propensity="propensity_score", place="position",
            user=user, categorical=user, pair={"affinity": _AFFINITY + ARM} if affinities else {},
        )  # fmt: skip
        require(file, mapping.columns, "the format openbandit")
        super().__init__(campaign.rounds, mapping=mapping)

    def _known_arms(self) -> KnownArms:
        file = open_table(self._items)
        require(file, ["item_id"], "the format openbandit")
        number, *others = _numbered(file, "item_feature")
        names, values = read_arms(file, "item_id", [number], integers=self._integers)
        scale = values.std()
        features, parts = [number], [np.ones((len(names), 1)), (values - values.mean()) / (scale or 1.0)]
        texts: dict[str, list[str]] = {name: [] for name in others}
        try:
            for block in file.blocks(others):  # read_arms has seen that every line is a row
                sheet = Sheet(block)
                for name in others:
                    texts[name] += sheet.text(name).to_pylist()
                if faults := sheet.faults():
                    raise LogError(f"{file.path}, line {faults[0].line:,}: {faults[0].kind} ({faults[0].detail})")
        except DamagedError as problem:
            raise LogError(f"{file.path} cannot be read to its end ({problem}): copy it again") from None
        counts = {name: Counter(texts[name]) for name in others}
        named: dict[str, Feature] = {number: Number()}
        for hot in one_hots(counts, drop_first=True, label=self._label):
            features += hot.names
            if (feature := hot.feature(integers=False)) is not None:
                named[hot.column] = feature
            parts.append(hot.matrix(pa.array(texts[hot.column], pa.string())))
        return KnownArms(features, dict(zip(names, np.concatenate(parts, axis=1), strict=True)), named)

    def _label(self, category: str) -> str:
        return category[:_CHARACTERS]

    def _verify(self, sheet: Sheet, reward: FloatArray, place: FloatArray) -> None:
        clicks = (reward == 0) | (reward == 1)
        sheet.fault(~clicks, "click not 0 or 1", lambda i: f"got {reward[i]:g}")
        sheet.fault(~np.isin(place, (1, 2, 3)), "position not 1, 2 or 3", lambda i: f"got {place[i]:g}")


class Campaign(NamedTuple):
    """The two files of a campaign: the CSV of rounds and that of items."""

    rounds: Path
    items: Path


def find_campaign(path: Path | str) -> Campaign:
    """The files of a campaign, by its folder or its CSV of rounds."""
    (path,) = given_paths(path)
    folder = path if path.is_dir() else path.parent
    items = folder / ITEMS
    if path.name == ITEMS:
        raise LogError(f"{path} holds the items: give the folder it is in, or the CSV of rounds")
    if not items.is_file():
        campaigns = sorted(inside.parent.name for inside in folder.glob(f"*/{ITEMS}"))
        remedy = "give a campaign's folder, which holds this file and the CSV of rounds"
        if campaigns:
            remedy = f"give one of its folders {', '.join(campaigns)}"
        raise LogError(f"there is no {ITEMS} in {folder}: {remedy}")
    if path is not folder:
        return Campaign(path, items)
    rounds = list_files(folder, lambda name: name.endswith((".csv", ".csv.gz")) and name != ITEMS).files
    if len(rounds) != 1:
        names = ", ".join(file.name for file in rounds) or "none"
        raise LogError(f"{folder} should have one CSV beside {ITEMS}, but it has {names}: give the one with the rounds")
    return Campaign(rounds[0], items)


def _numbered(file: TableFile, stem: str) -> list[str]:
    """The columns stem_0, stem_1, .. in the order of their numbers."""
    columns = {int(match[1]): name for name in file.columns if (match := re.fullmatch(rf"{stem}_(\d+)", name))}
    if not columns:
        require(file, [f"{stem}_0"], "the format openbandit")
    return [columns[i] for i in sorted(columns)]
