"""A user's own log: CSV (also gzipped) or Parquet, and a `Mapping` that says what the columns mean.

Rows are read in blocks and checked column by column; a bad cell costs its row only, and every row lost is counted with
its line (`files` says how lines are numbered). Neither the header nor blank lines count as lines read.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hybandits.foundation.checks import Doubles, nearest, short
from hybandits.logs.columns import tabular as files
from hybandits.logs.columns.cells import Sheet, listed, lists_of
from hybandits.logs.columns.tabular import DamagedError, Fault, TableFile, files_of, open_table, passed_over, require
from hybandits.logs.problems import CUT, DAMAGED, SALVAGED, Problems
from hybandits.logs.store import NO_PLACE, NO_TIME, Batch, LogError, Tables

WIDEST = 200
"""Columns that the one-hots of all categorical columns may have together."""

DISTINCT = 100_000
"""Values of a categorical column after which it is taken not to be categorical."""


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """What the columns of a log mean.

    arm, reward: the arm shown and what came of it.
    time: seconds since 1970, or ISO timestamps (in UTC unless they say otherwise); an empty cell: not known.
    propensity: the probability with which the arm was chosen; `uniform=True` instead: 1 / number of candidates.
    place: where on the page it was shown, 0 to 127; an empty cell: not known.
    candidates: the arms that could have been shown: a list column of Parquet, or text: a JSON list, or names with
        `separator` between them, or else with spaces. Left out: all arms of `arms_file`, or all arms in the log.
    user: columns with the user's features, numbers; those in `categorical` are made one-hot instead.
    arms_file: CSV or Parquet with one row per arm: its name in the column `arm_id` (the first unless given), numbers in
        the columns `arm_features` (all others unless given; columns without a name are left out).
    constant: put a feature that is always 1 before the user's and the arm's features.

    >>> Mapping(arm="item", reward="click", user=["age", "country"], categorical=["country"]).features
    ('age', 'country')
    """

    arm: str
    reward: str
    time: str | None = None
    propensity: str | None = None
    place: str | None = None
    candidates: str | None = None
    separator: str = "|"
    user: Sequence[str] = ()
    categorical: Sequence[str] = ()
    arms_file: Path | str | None = None
    arm_id: str | None = None
    arm_features: Sequence[str] | None = None
    constant: bool = True
    uniform: bool = False

    def __post_init__(self) -> None:
        for key in ("arm", "reward", "time", "propensity", "place", "candidates", "arm_id"):
            value = getattr(self, key)
            if value is None and key not in ("arm", "reward"):
                continue
            if not isinstance(value, str) or not value:
                raise ValueError(f"{key} must be the name of a column, got {short(value)}")
        for key in ("constant", "uniform"):
            if not isinstance(getattr(self, key), bool):
                raise ValueError(f"{key} must be true or false, got {short(getattr(self, key))}")
        if not isinstance(self.arms_file, str | Path | None):
            raise ValueError(f"arms_file must be the name of a file, got {short(self.arms_file)}")
        for key in ("user", "categorical", "arm_features"):
            value = getattr(self, key)
            if value is None and key == "arm_features":
                continue
            if (
                not isinstance(value, Sequence)
                or isinstance(value, str)
                or not all(isinstance(name, str) and name for name in value)
            ):
                raise ValueError(f"{key} must be a list of names of columns, got {short(value)}")
            object.__setattr__(self, key, tuple(value))
            twice = [name for name, n in Counter(value).items() if n > 1]
            if twice:
                raise ValueError(f"{key} names the column {twice[0]!r} twice: once is enough")
        if not isinstance(self.separator, str) or not self.separator:
            raise ValueError(f"separator must be the text between two candidates, got {short(self.separator)}")
        if self.uniform and self.propensity:
            raise ValueError(f"propensity ({self.propensity!r}) and uniform are both given: leave one of them out")
        if self.arms_file is None and (self.arm_id is not None or self.arm_features is not None):
            raise ValueError("arm_id and arm_features are columns of arms_file, which is missing: give it too")
        if self.arm == self.reward:
            raise ValueError(f"arm and reward are both the column {self.arm!r}: they must be two")
        for what, column in (("reward", self.reward), ("arm", self.arm), ("place", self.place)):
            if column in self.features:
                raise ValueError(f"user names the {what} {column!r}: a feature must be known before the arm is shown")
        if self.constant and "constant" in (*self.features, *(self.arm_features or ())):
            raise ValueError("a column is called 'constant': leave it out, or pass constant=False")
        if not self.features and not self.constant:
            raise ValueError("there are no user features: name columns in user, or leave constant at True")

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Self:
        """A mapping from plain settings, such as a TOML table.

        >>> Mapping.of({"arm": "item"})
        Traceback (most recent call last):
        ValueError: the mapping does not say which column is the reward: give reward
        """
        keys = [field.name for field in dataclasses.fields(cls)]
        for key in settings:
            if key not in keys:
                raise ValueError(f"a mapping has no {key!r}{nearest(key, keys)}: it may have {', '.join(keys)}")
        for key in ("arm", "reward"):
            if key not in settings:
                raise ValueError(f"the mapping does not say which column is the {key}: give {key}")
        return cls(**settings)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns the user's features are made of, categorical ones included."""
        return (*self.user, *(name for name in self.categorical if name not in self.user))

    @property
    def columns(self) -> list[str]:
        """All columns of the log that are used, each once."""
        named = (self.arm, self.reward, self.time, self.propensity, self.place, self.candidates)
        return list(dict.fromkeys([*(name for name in named if name is not None), *self.features]))


class OneHot:
    """The columns made of a categorical one: a category each, in the order of their names.

    With a constant beside it the first category is left out: the columns would add up to the constant. `other` stands
    for categories beyond those kept.
    """

    def __init__(
        self, column: str, values: Sequence[str], *, other: bool, drop_first: bool, label: Callable[[str], str] = str
    ) -> None:
        self.column, self._drop = column, int(drop_first)
        self._values = pa.array(values, pa.string())
        labels = [label(value) for value in values]
        if len(set(labels)) < len(labels):
            labels = list(values)
        if other:
            labels.append("other" if "other" not in labels else "(all other)")
        self.names = [f"{column}={text}" for text in labels[self._drop :]]
        self._width = len(labels)

    def matrix(self, text: pa.Array) -> Doubles:
        """One row per cell."""
        if not self._width:
            return np.zeros((len(text), 0))
        codes = pc.index_in(text, value_set=self._values).fill_null(self._width - 1).to_numpy(zero_copy_only=False)
        out = np.zeros((len(codes), self._width))
        out[np.arange(len(codes)), codes] = 1.0
        return out[:, self._drop :]


def one_hots(counts: dict[str, Counter[str]], *, drop_first: bool, label: Callable[[str], str] = str) -> list[OneHot]:
    """One per column. Beyond WIDEST categories in all, the most frequent stay and the rest is counted as other.

    >>> [hot.names for hot in one_hots({"os": Counter("aab"), "tld": Counter("de")}, drop_first=True)]
    [['os=b'], ['tld=e']]
    """
    pairs = [(-n, column, value) for column, counter in counts.items() for value, n in counter.items()]
    kept = {(column, value) for _, column, value in sorted(pairs)[:WIDEST]}
    out = []
    for column, counter in counts.items():
        values = sorted(value for value in counter if (column, value) in kept)
        other = len(values) < len(counter)
        out.append(OneHot(column, values, other=other, drop_first=drop_first, label=label))
    return out


class _Rounds(NamedTuple):
    """The rows that are rounds, with their arms and categories as text."""

    arm: pa.Array
    categories: dict[str, pa.Array]
    batch: Batch


class ColumnsReader:
    """Reads a user's own log: a file, several in order, or a folder of them.

    Where candidates are not listed, or columns are categorical, the files are read twice: first for the arms and
    categories there are, then for the rounds. Arms and categories are those of rows that can be used. Categories become
    one column each (`country=de`), without the first if there is a constant; beyond 200 in all the most frequent are
    kept and the rest counted in `country=other`.
    """

    kind = "columns"
    _stranger = "arm not among the candidates"

    def __init__(self, path: Path | str | Sequence[Path | str], *, mapping: Mapping) -> None:
        self.mapping = mapping
        self.paths = files_of(path)
        self.ignored = {str(file): "not a log by its name" for file in passed_over(path)}
        self._files = [open_table(file) for file in self.paths]
        alike = Counter(file.name for file in self.paths)
        self._sources = [file.name if alike[file.name] == 1 else str(file) for file in self.paths]
        self.size = sum(file.stat().st_size for file in self.paths)
        for file in self._files:
            require(file, mapping.columns, "the mapping")
        self._numeric = [name for name in mapping.user if name not in mapping.categorical]
        for file in self._files:
            _refuse_text(file, self._numeric, "user feature", "list it in categorical too, or leave it out of user")
        arm, self._arms = self._arm_table()
        self._hots: dict[str, OneHot] = {}
        if mapping.categorical or (self._arms is None and mapping.candidates is None):
            self._survey()
        first = ["constant"] if mapping.constant else []
        made = (self._hots[name].names if name in self._hots else [name] for name in mapping.features)
        self.user: Sequence[str] = [*first, *itertools.chain.from_iterable(made)]
        self.arm: Sequence[str] = first + arm
        self.binary_user = not self._numeric
        for names, what in ((self.user, "user"), (self.arm, "arm")):
            twice = [name for name, n in Counter(names).items() if n > 1]
            if twice:
                raise LogError(f"two {what} features are called {twice[0]!r}: call a column otherwise")

    def _arm_table(self) -> tuple[list[str], dict[str, Doubles] | None]:
        """Names of the arms' features, and all arms with their vectors; None if any arm may come."""
        if self.mapping.arms_file is None:
            return [], None
        file = open_table(self.mapping.arms_file)
        named = [name for name in file.columns if name]
        label = self.mapping.arm_id or (named[0] if named else "")
        wanted = self.mapping.arm_features
        features = [name for name in named if name != label] if wanted is None else list(wanted)
        require(file, [label, *features], "the mapping")
        _refuse_text(file, features, "arm feature", "turn it into numbers, or list the columns wanted in arm_features")
        names, vectors = arm_rows(file, label, features)
        table = np.column_stack([np.ones((len(names), int(self.mapping.constant))), vectors])
        return features, dict(zip(names, table, strict=True))

    def _survey(self) -> None:
        """The arms and categories there are."""
        arms: dict[str, None] = {}
        counts: dict[str, Counter[str]] = {name: Counter() for name in self.mapping.categorical}
        tables = Tables()
        for file in self._files:
            try:
                for rows in file.rows(self.mapping.columns):
                    found = self._rounds(Sheet(rows), tables, None)
                    if self._arms is None and self.mapping.candidates is None:
                        arms.update(dict.fromkeys(found.arm.unique().to_pylist()))
                    for name, counter in counts.items():
                        values, numbers = found.categories[name].value_counts().flatten()
                        counter.update(dict(zip(values.to_pylist(), numbers.to_pylist(), strict=True)))
                        if len(counter) > DISTINCT:
                            raise LogError(
                                f"column {name!r} of {file.path} has more than {DISTINCT:,} different values: "
                                "it is not categorical; leave it out"
                            )
            except DamagedError:  # told when the rounds are read
                continue
        if arms:
            self._arms = {name: np.ones(int(self.mapping.constant)) for name in arms}
        hots = one_hots(counts, drop_first=self.mapping.constant, label=self._label)
        self._hots = {hot.column: hot for hot in hots}

    def _label(self, category: str) -> str:
        """A category in the name of a feature."""
        return category

    def _verify(self, sheet: Sheet, reward: Doubles, place: Doubles) -> None:
        """Further checks on a round."""

    def batches(
        self, tables: Tables, problems: Problems, progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Batch]]:
        """The rounds of each file in order; see `Reader`."""
        problems.pass_over(self.ignored)
        everyone = None
        if self._arms is not None and self.mapping.candidates is None:
            everyone = tables.pool([tables.arm(name, vector) for name, vector in self._arms.items()])
        for source, file in zip(self._sources, self._files, strict=True):
            lines = rounds = 0
            try:
                for rows in file.rows(self.mapping.columns):
                    sheet = Sheet(rows)
                    found = self._rounds(sheet, tables, everyone)
                    lines += sheet.n + len(rows.faults)
                    rounds += found.batch.rounds
                    _tell(problems, source, sorted([*rows.faults, *sheet.faults()]))
                    progress(rows.read)
                    if found.batch.rounds:
                        yield source, found.batch
            except DamagedError as problem:
                problems.spoil(DAMAGED, source, f"{problem}; {SALVAGED}")
            problems.read(source, lines=lines, rounds=rounds)

    def _rounds(self, sheet: Sheet, tables: Tables, everyone: int | None) -> _Rounds:
        """The rounds of a sheet; `everyone`: the pool of all arms, None while they are being found out."""
        m = self.mapping
        arm = sheet.text(m.arm)
        reward = sheet.numbers(m.reward)
        time = sheet.seconds(m.time) if m.time else np.full(sheet.n, NO_TIME)
        propensity = np.full(sheet.n, np.nan)
        if m.propensity:
            propensity = sheet.numbers(m.propensity)
            odd = ~((propensity > 0) & (propensity <= 1))
            sheet.fault(odd, "propensity outside (0, 1]", lambda i: f"column {m.propensity!r}: got {propensity[i]}")
        place = sheet.numbers(m.place, optional=True) if m.place else np.full(sheet.n, np.nan)
        odd = ~(np.isnan(place) | (place == np.floor(place)) & (place >= 0) & (place <= 127))
        sheet.fault(odd, "unusable place", lambda i: f"column {m.place!r}: got {place[i]}, give 0 to 127")
        self._verify(sheet, reward, place)
        user = self._user(sheet)
        categories = {name: sheet.text(name) for name in m.categorical}
        if m.candidates:
            pool, chosen, sizes = self._choices(sheet, arm, lists_of(sheet, m.candidates), tables)
        else:
            pool, chosen, sizes = self._among_all(sheet, arm, everyone)
        if m.uniform:
            propensity = 1.0 / sizes
        good = sheet.good
        for name, hot in self._hots.items():
            user[name] = hot.matrix(categories[name])
        parts = [np.ones((sheet.n, int(m.constant))), *(user[name] for name in m.features if name in user)]
        batch = Batch(
            time=time[good],
            pool=pool[good].astype(np.int32),
            chosen=chosen[good].astype(np.int32),
            reward=reward[good],
            propensity=propensity[good],
            place=np.where(np.isnan(place[good]), NO_PLACE, place[good]).astype(np.int8),
            user=np.concatenate(parts, axis=1)[good],
        )
        kept = pa.array(good)
        return _Rounds(arm.filter(kept), {name: text.filter(kept) for name, text in categories.items()}, batch)

    def _user(self, sheet: Sheet) -> dict[str, Doubles]:
        return {name: sheet.numbers(name)[:, None] for name in self._numeric}

    def _among_all(
        self, sheet: Sheet, arm: pa.Array, everyone: int | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pool, place in it and its size for every row, all arms being candidates."""
        if self._arms is None:
            return np.zeros(sheet.n, np.int64), np.zeros(sheet.n, np.int64), np.ones(sheet.n)
        chosen = pc.index_in(arm, value_set=pa.array(list(self._arms), pa.string())).fill_null(-1)
        places = chosen.to_numpy(zero_copy_only=False)
        sheet.fault(places < 0, self._stranger, lambda i: f"got {short(arm[i].as_py())}")
        return np.full(sheet.n, everyone or 0), places, np.full(sheet.n, float(len(self._arms)))

    def _choices(
        self, sheet: Sheet, arm: pa.Array, texts: pa.Array, tables: Tables
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same, each row having candidates of its own."""
        pool, chosen, sizes = np.zeros(sheet.n, np.int64), np.zeros(sheet.n, np.int64), np.ones(sheet.n)
        rows = np.flatnonzero(sheet.good)
        if not len(rows):
            return pool, chosen, sizes
        lists, arms = (column.take(pa.array(rows)).dictionary_encode() for column in (texts, arm))
        list_codes, arm_codes = (coded.indices.to_numpy(zero_copy_only=False) for coded in (lists, arms))
        parsed: list[list[str]] = []
        wrong: dict[str, dict[int, str]] = {"unusable list of candidates": {}, "candidate without features": {}}
        for code, text in enumerate(lists.dictionary.to_pylist()):
            try:
                names = listed(text, self.mapping.separator)
            except ValueError as problem:
                wrong["unusable list of candidates"][code] = f"got {short(text)}: {problem}"
                names = []
            unknown = [] if self._arms is None else [name for name in names if name not in self._arms]
            if unknown:
                wrong["candidate without features"][code] = f"{unknown[0]!r} is not in {self.mapping.arms_file}"
            parsed.append(names)
        of_row = np.zeros(sheet.n, np.int64)
        of_row[rows] = list_codes
        for kind, details in wrong.items():
            mask = np.zeros(sheet.n, bool)
            mask[rows] = np.isin(list_codes, list(details))
            sheet.fault(mask, kind, lambda i, details=details: details[int(of_row[i])])  # type: ignore[misc]
        shown = arms.dictionary.to_pylist()
        keys, back = np.unique(list_codes.astype(np.int64) * len(shown) + arm_codes, return_inverse=True)
        places: dict[int, dict[str, int]] = {}
        found = np.full(len(keys), -1)
        for k, key in enumerate(keys.tolist()):
            code, name = divmod(key, len(shown))
            if code not in places:
                places = {code: {candidate: place for place, candidate in enumerate(parsed[code])}}
            found[k] = places[code].get(shown[name], -1)
        chosen[rows] = found[back]
        sheet.fault(chosen < 0, self._stranger, lambda i: f"got {short(arm[i].as_py())}")
        good = sheet.good[rows]
        # Pools are entered in the order of the rounds, so that where blocks end makes no difference.
        codes, firsts = np.unique(list_codes[good], return_index=True)
        entered = np.zeros(len(parsed), np.int64)
        plain = np.ones(int(self.mapping.constant))
        for code in codes[np.argsort(firsts)].tolist():
            vectors = ((name, plain if self._arms is None else self._arms[name]) for name in parsed[code])
            entered[code] = tables.pool([tables.arm(name, vector) for name, vector in vectors])
        pool[rows] = entered[list_codes]
        sizes[rows] = np.array([max(len(names), 1) for names in parsed])[list_codes]
        return pool, chosen, sizes


def arm_rows(file: TableFile, label: str, features: Sequence[str]) -> tuple[list[str], Doubles]:
    """Names and features of the arms in a file; nothing in it may be wrong, as every round depends on it."""
    names: list[str] = []
    parts: list[Doubles] = [np.empty((0, len(features)))]
    try:
        for rows in file.rows([label, *features]):
            sheet = Sheet(rows)
            names += sheet.text(label).to_pylist()
            parts.append(np.column_stack([np.empty((sheet.n, 0)), *(sheet.numbers(name) for name in features)]))
            wrong = sorted([*rows.faults, *sheet.faults()])
            if wrong:
                line, kind, detail = wrong[0]
                if kind == CUT:
                    raise LogError(f"{file.path} is damaged at line {line:,}: make it again")
                raise LogError(f"{file.path}, line {line:,}: {kind} ({detail}): every arm needs all its features")
    except DamagedError as problem:
        raise LogError(f"{file.path} cannot be read to its end ({problem}): make it again") from None
    if not names:
        raise LogError(f"{file.path} has no arms in it: give one row per arm")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise LogError(f"{file.path} has the arm {twice[0]!r} twice: give one row per arm")
    return names, np.concatenate(parts)


def _refuse_text(file: TableFile, names: Sequence[str], what: str, remedy: str) -> None:
    """An error if a column that should have numbers has none among its first rows, but has text."""
    pending, seen = dict.fromkeys(names, ""), 0
    try:
        for rows in file.rows(names) if names else ():
            for name in list(pending):
                sheet = Sheet(rows)  # one each: a row keeps its first fault only
                try:
                    values = sheet.numbers(name, optional=True)
                except LogError as problem:
                    raise LogError(f"{file.path}: {problem}") from None
                if np.isfinite(values).any():
                    del pending[name]
                elif not pending[name]:
                    pending[name] = next((f.detail for f in sheet.faults() if f.kind == "unparsable number"), "")
            seen += len(rows.lines)
            if not pending or seen >= files.ROWS:
                break
    except DamagedError:  # told when the rounds are read
        pass
    for name, wrong in pending.items():
        if wrong:
            raise LogError(f"{file.path}: {what} {name!r} is not a column of numbers ({wrong}): {remedy}")


def _tell(problems: Problems, source: str, faults: list[Fault]) -> None:
    """The first faults one by one, for the examples; of the others how many there are of each kind."""
    for fault in faults[: problems.shown]:
        problems.skip(fault.kind, source, fault.line, fault.detail)
    others: dict[str, list[Fault]] = {}
    for fault in faults[problems.shown :]:
        others.setdefault(fault.kind, []).append(fault)
    for kind, alike in others.items():
        problems.skip(kind, source, alike[0].line, alike[0].detail, count=len(alike))
