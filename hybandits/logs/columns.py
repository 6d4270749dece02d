"""Reads a user's own log: CSV (also gzipped) or Parquet files, and a `Mapping` that says what the columns mean."""

import collections.abc
import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hybandits.features import COLUMNS, ZERO, Category, Feature, Number, plain_features
from hybandits.foundation.checks import FloatArray, nearest, short
from hybandits.logs.files import Paths, list_files, source_names
from hybandits.logs.report import ReadReport
from hybandits.logs.store import NO_TIME, Batch, Id, LogError, Tables, id_of
from hybandits.logs.tables import Rows, TableFile, is_text, listed, open_table, require

ARM = "{arm}"
"""Stands for the id of an arm in the names of columns."""

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
"""The endings of the names of files that are read from a folder."""

WIDEST = 200
"""The most categories of all categorical columns of a log together."""

MISSING_ARM, NO_CANDIDATE = "arm missing from the arms' file", "arm not among the candidates"
"""Reasons for unusable rows."""

_ROLES = ("arm", "reward", "time", "propensity", "candidates")


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """The meaning of the columns of a log; docs/logs.md explains each setting.

    `candidates` are by default all arms of `arms_file`, or else of the log. `pair` has a name and a pattern of columns,
    such as "affinity_{arm}", for every feature of a user and a candidate together. `arms_file` has one row per arm: its
    name in the first column that has a name, and numbers in the others. With `uniform`, the propensity is 1 / number of
    candidates.
    """

    arm: str
    reward: str
    time: str | None = None
    propensity: str | None = None
    candidates: str | None = None
    user: Sequence[str] = ()
    categorical: Sequence[str] = ()
    pair: collections.abc.Mapping[str, str] = field(default_factory=dict)
    arms_file: Path | str | None = None
    uniform: bool = False

    def __post_init__(self) -> None:
        for key in (*_ROLES, "arms_file"):
            value = getattr(self, key)
            left_out = value is None and key not in ("arm", "reward")
            if not (left_out or (isinstance(value, str | Path) and value != "")):
                raise ValueError(f"{key} must be a text, got {short(value)}")
        if not isinstance(self.uniform, bool):
            raise ValueError(f"uniform must be true or false, got {short(self.uniform)}")
        for key in ("user", "categorical"):
            value = getattr(self, key)
            if not isinstance(value, list | tuple) or not all(isinstance(name, str) and name for name in value):
                raise ValueError(f"{key} must be a list of column names, got {short(value)}")
            if len(set(value)) < len(value):
                raise ValueError(f"{key} names a column twice, got {short(value)}: name it once")
            object.__setattr__(self, key, tuple(value))
        if not isinstance(self.pair, collections.abc.Mapping) or not all(
            isinstance(column, str) and column.count(ARM) == 1 for column in self.pair.values()
        ):
            raise ValueError(f"pair must name features and columns, as near = 'near_{ARM}', got {short(self.pair)}")
        if self.uniform and self.propensity:
            raise ValueError(f"propensity ({self.propensity!r}) and uniform are both given: leave out one of them")
        if self.arm == self.reward:
            raise ValueError(f"arm and reward are both the column {self.arm!r}: name two different columns")
        for key in ("arm", "reward"):
            if (column := getattr(self, key)) in self.features:
                raise ValueError(f"the feature {column!r} is the {key}: name what is known before the arm is shown")
        if "constant" in self.features:
            raise ValueError("a column is called 'constant', as the feature that is always 1: rename it")

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Self:
        """Build a mapping from plain settings, such as a TOML table."""
        keys = [field.name for field in dataclasses.fields(cls)]
        if unknown := [key for key in settings if key not in keys]:
            near = nearest(unknown[0], keys)
            raise ValueError(f"a mapping has no setting {unknown[0]!r}{near}: it may have {', '.join(keys)}")
        if missing := [key for key in ("arm", "reward") if key not in settings]:
            raise ValueError(f"the mapping does not say which column is the {missing[0]}: give {missing[0]}")
        return cls(**settings)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that the user's features come from, categorical ones included."""
        return tuple(dict.fromkeys((*self.user, *self.categorical)))

    @property
    def columns(self) -> list[str]:
        """All columns of the log that are used, each once, but for those of pair features."""
        named = [column for role in _ROLES if (column := getattr(self, role)) is not None]
        return list(dict.fromkeys([*named, *self.features]))


class OneHot:
    """The columns of 0 and 1 of a categorical column: one per category, by name, except the first."""

    def __init__(self, column: str, values: Iterable[str]) -> None:
        self.column = column
        self._values = sorted(values)
        self.names = [f"{column}={text}" for text in self._values[1:]]

    def matrix(self, text: pa.Array) -> FloatArray:
        """The columns for these cells, one row per cell."""
        known = pa.array(self._values, pa.string())
        codes = pc.index_in(text, value_set=known).fill_null(0).to_numpy(zero_copy_only=False)
        return np.asarray(np.eye(max(len(known), 1))[codes][:, 1:])

    def feature(self, *, integers: bool) -> Category | None:
        """The same columns as a named feature, with `integers` of integers if all are; None if there is no category."""
        ids = [id_of(value) for value in self._values]
        values: list[Id] = ids if integers and all(isinstance(value, int) for value in ids) else list(self._values)
        return Category(values=values[1:], base=values[0], unknown=ZERO) if values else None


def one_hots(categories: dict[str, set[str]]) -> list[OneHot]:
    """A `OneHot` for every column, from its categories; LogError if they are more than WIDEST in all."""
    if sum(map(len, categories.values())) > WIDEST:
        column = max(categories, key=lambda name: len(categories[name]))
        wrong = f"the categorical columns have more than {WIDEST} categories, most of them {column!r}"
        raise LogError(f"{wrong}: merge its rare categories into one, or leave it out")
    return [OneHot(column, values) for column, values in categories.items()]


class KnownArms(NamedTuple):
    """The arms of a file: the names of their features, and these before encoding."""

    features: list[str]
    vectors: dict[str, FloatArray] | None  # by the text of the id; None if any arm may come
    named: dict[str, Feature]
    file: Path | str | None


class ColumnsReader:
    """Reads a user's own log: CSV or Parquet files in their order, or folders of such files, by name.

    The ids of arms are integers if all of them are whole numbers (a whole float counts as one), otherwise strings. A
    text column of a Parquet file stays text. Unless an arms' file lists the arms, and if columns are categorical, the
    files are read twice: first for the arms and categories, then for the rounds.
    """

    kind = "columns"

    def __init__(self, paths: Paths, *, mapping: Mapping | None = None) -> None:
        endings = ", ".join(f"*{end}" for end in SUFFIXES)
        self.files, self.ignored = list_files(paths, lambda name: name.lower().endswith(SUFFIXES), endings)
        self._tables = [open_table(file) for file in self.files]
        if mapping is None:
            needed = f"{self.files[0]} needs a mapping of its columns, which are {listed(self._tables[0])}"
            raise ValueError(f"{needed}: convert it with hybandits convert --mapping FILE.toml")
        self.mapping = mapping
        self._sources = source_names(self.files)
        self.size = sum(file.stat().st_size for file in self.files)
        for file in self._tables:
            require(file, mapping.columns)
        self._by_arm = {name: self._columns_by_arm(pattern) for name, pattern in mapping.pair.items()}
        self._integers = not self._holds_text(mapping.arm)
        arm_features, self._arms, named_arm, self._arms_file = self._known_arms()
        self._hots: dict[str, OneHot] = {}
        if mapping.categorical or (self._arms is None and mapping.candidates is None):
            self._collect_categories()
        if self._arms is not None and mapping.candidates is None:  # columns of other arms are left alone
            for name, by_arm in self._by_arm.items():
                self._by_arm[name] = {arm: column for arm, column in by_arm.items() if arm in self._arms}
        named = (self._hots[name].names if name in self._hots else [name] for name in mapping.features)
        self.user = ["constant", *itertools.chain.from_iterable(named)]
        self.arm = ["constant", *arm_features]
        self.pair = list(mapping.pair)
        self.binary_user = set(mapping.user) <= set(mapping.categorical)
        for names, what in ((self.user, "user"), (self.arm, "arm")):
            twice = [name for name, n in Counter(names).items() if n > 1]
            if twice:
                raise LogError(f"two {what} features are called {twice[0]!r}: rename a column")
        named_user: dict[str, Feature] = {}
        for name in mapping.features:
            hot = self._hots.get(name)
            feature = Number() if hot is None else hot.feature(integers=not self._holds_text(name))
            if feature is not None:
                named_user[name] = feature
        columns: dict[str, Any] = {
            "constant": True,
            "user": plain_features(named_user),
            "arm": plain_features(named_arm),
        }
        if self.pair:
            columns["pair"] = plain_features(dict.fromkeys(self.pair, Number()))
        self.about: dict[str, Any] = {COLUMNS: columns}

    @staticmethod
    def recognises(path: Path, start: bytes) -> bool:
        return start.startswith(b"PAR1") or path.name.lower().endswith(SUFFIXES)

    def _columns_by_arm(self, pattern: str) -> dict[str, str]:
        """The columns of a pair feature by the text of the arm's id."""
        before, _, after = pattern.partition(ARM)
        first = self._tables[0]
        columns = {
            column[len(before) : len(column) - len(after)]: column
            for column in first.columns
            if column.startswith(before) and column.endswith(after) and len(column) > len(before) + len(after)
            if column not in self.mapping.columns
        }
        if not columns:
            raise LogError(f"{first.path} has no column {pattern!r} for any arm: its columns are {listed(first)}")
        for file in self._tables:
            require(file, columns.values())
        return columns

    @property
    def _columns(self) -> list[str]:
        per_arm = itertools.chain.from_iterable(columns.values() for columns in self._by_arm.values())
        return list(dict.fromkeys([*self.mapping.columns, *per_arm]))

    def _holds_text(self, name: str) -> bool:
        """Return whether a file declares a column as text; CSV files do not."""
        return any(is_text(kind) for file in self._tables if (kind := file.type_of(name)))

    def _known_arms(self) -> KnownArms:
        if self.mapping.arms_file is None:
            return KnownArms([], None, {}, None)
        file = open_table(self.mapping.arms_file)
        label, *features = [name for name in file.columns if name] or [""]
        arms, numbers, _ = read_arms(file, label, features, ())
        known = dict(zip(arms, np.column_stack([np.ones(len(arms)), *numbers]), strict=True))
        return KnownArms(features, known, dict.fromkeys(features, Number()), self.mapping.arms_file)

    def _collect_categories(self) -> None:
        """Collect the categories of all files, and the arms if they are not known."""
        arms: dict[str, None] = {}
        categories: dict[str, set[str]] = {name: set() for name in self.mapping.categorical}
        hots: list[OneHot] = []
        for rows in itertools.chain.from_iterable(file.blocks(self._columns) for file in self._tables):
            self._batch(rows, Tables())
            good = pa.array(rows.good)
            ids = rows.ids(self.mapping.arm, integers=self._integers)
            arms.update(dict.fromkeys(ids.filter(good).unique().to_pylist()))
            for name, values in categories.items():
                values.update(rows.text(name).filter(good).unique().to_pylist())
            hots = one_hots(categories)
        self._hots = {hot.column: hot for hot in hots}
        if self._arms is None and self.mapping.candidates is None and arms:
            self._arms = {name: np.ones(1) for name in arms}

    def batches(
        self, tables: Tables, report: ReadReport, progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Batch]]:
        """The rounds of each file in order; see `hybandits.logs.store.Reader`."""
        report.ignore_files(self.ignored)
        for source, file in zip(self._sources, self._tables, strict=True):
            report.begin(source)
            for rows in file.blocks(self._columns, progress):
                batch = self._batch(rows, tables)
                report.count(batch.rounds, rows.faults())
                if batch.rounds:
                    yield source, batch

    def _enter(self, names: list[str], tables: Tables) -> int:
        known, bare = self._arms or {}, np.ones(1)
        ids = [id_of(name) if self._integers else name for name in names]
        return tables.pool([tables.arm(id, known.get(name, bare)) for id, name in zip(ids, names, strict=True)])

    def _batch(self, rows: Rows, tables: Tables) -> Batch:
        m = self.mapping
        arm = rows.ids(m.arm, integers=self._integers)
        reward = rows.numbers(m.reward)
        time = rows.seconds(m.time) if m.time else np.full(rows.n, NO_TIME)
        propensity = np.full(rows.n, np.nan)
        if m.propensity:
            propensity = rows.numbers(m.propensity)
            odd = ~((propensity > 0) & (propensity <= 1))
            rows.fault(odd, "propensity outside (0, 1]", lambda i: f"column {m.propensity!r}: got {propensity[i]}")
        user = [np.ones((rows.n, 1))]
        for name in m.features:
            if name not in m.categorical:
                user.append(rows.numbers(name)[:, None])
            else:
                text = rows.text(name)
                user.append(self._hots[name].matrix(text) if name in self._hots else np.empty((rows.n, 0)))
        pool, chosen, sizes, pair = self._candidates(rows, arm, tables)
        if m.uniform:
            propensity = 1.0 / sizes
        good = rows.good
        return Batch(
            time=time[good],
            pool=pool[good].astype(np.int32),
            chosen=chosen[good].astype(np.int32),
            reward=reward[good],
            propensity=propensity[good],
            user=np.concatenate(user, axis=1)[good],
            pair=pair[good],
        )

    def _candidates(
        self, rows: Rows, arm: pa.Array, tables: Tables
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, FloatArray]:
        """By row: the pool, the place in it of the arm shown, the number of candidates, and their pair features."""
        m, distinct = self.mapping, dict[tuple[str, ...], int]()
        if m.candidates is None and self._arms is None:  # the arms are still to be collected
            nothing = np.zeros(rows.n, np.int64)
            return nothing, nothing, np.ones(rows.n), np.empty((rows.n, 0, 0))
        if m.candidates is None:
            distinct[tuple(self._arms or ())] = 0
            codes = np.zeros(rows.n, np.int64)
        else:
            lists = rows.lists(m.candidates, integers=self._integers)
            codes = np.array([distinct.setdefault(tuple(names), len(distinct)) for names in lists], int)
        parsed = [list(names) for names in distinct]
        wrong: dict[int, str] = {}
        missing: dict[int, str] = {}
        for code, names in enumerate(parsed):
            unknown = [] if self._arms is None else [name for name in names if name not in self._arms]
            if len(set(names)) < len(names):
                wrong[code] = f"column {m.candidates!r}: got {short(names)}, expected different arms"
            elif unknown:
                missing[code] = f"candidate {unknown[0]!r} is not in {self._arms_file}"
        rows.fault(np.isin(codes, list(wrong)), "unusable list of candidates", lambda i: wrong[int(codes[i])])
        rows.fault(np.isin(codes, list(missing)), MISSING_ARM, lambda i: missing[int(codes[i])])
        places = [{name: place for place, name in enumerate(names)} for names in parsed]
        shown = zip(codes.tolist(), arm.to_pylist(), strict=True)
        chosen = np.array([places[code].get(name, -1) for code, name in shown], np.int64)
        from_file = m.candidates is None and self._arms_file
        where = f", which is not in {self._arms_file}" if from_file else ""
        reason = MISSING_ARM if from_file else NO_CANDIDATE
        rows.fault(chosen < 0, reason, lambda i: f"got {short(arm[i].as_py())}{where}")
        pairs = [self._pairs(rows, name, parsed, codes) for name in m.pair]
        pair = np.stack(pairs, axis=2) if pairs else np.empty((rows.n, 0, 0))
        entered = np.zeros(len(parsed), np.int64)
        for code in dict.fromkeys(codes[rows.good].tolist()):
            entered[code] = self._enter(parsed[code], tables)
        sizes = np.array([max(len(names), 1) for names in parsed], float)
        return entered[codes], chosen, sizes[codes], pair

    def _pairs(self, rows: Rows, name: str, lists: list[list[str]], codes: np.ndarray) -> FloatArray:
        """A pair feature of every row's candidates, which are lists[codes[row]]; 0 beyond the last.

        Cells of arms that are no candidates may be empty.
        """
        columns = self._by_arm[name]
        numbers = [rows.numbers(column, optional=True) for column in columns.values()]
        wide = np.column_stack(
            [*numbers, np.full(rows.n, np.nan), np.zeros(rows.n)]
        )  # at -2: no column, at -1: no candidate
        column_of = {arm: i for i, arm in enumerate(columns)}
        places = np.full((len(lists), max(map(len, lists), default=0)), -1)
        for code, names in enumerate(lists):
            places[code, : len(names)] = [column_of.get(arm, -2) for arm in names]
        out: FloatArray = np.take_along_axis(wide, places[codes], axis=1)
        missing = np.isnan(out)

        def detail(i: int) -> str:
            arm = lists[codes[i]][int(missing[i].argmax())]
            return f"column {self.mapping.pair[name].replace(ARM, arm)!r} is missing, empty or NaN"

        rows.fault(np.asarray(missing.any(axis=1)), "missing value", detail)
        return out


def read_arms(
    file: TableFile, label: str, numbers: Sequence[str], texts: Sequence[str]
) -> tuple[list[str], list[FloatArray], list[list[str]]]:
    """Ids, numbers and texts, by column, from a file with one row per arm; LogError if anything in it is wrong."""
    require(file, [label, *numbers, *texts])
    arms: list[str] = []
    values: list[FloatArray] = [np.empty(0) for _ in numbers]
    words: list[list[str]] = [[] for _ in texts]
    for rows in file.blocks([label, *numbers, *texts]):
        arms += rows.ids(label, integers=not is_text(file.type_of(label) or pa.null())).to_pylist()
        values = [np.append(column, rows.numbers(name)) for name, column in zip(numbers, values, strict=True)]
        words = [column + rows.text(name).to_pylist() for name, column in zip(texts, words, strict=True)]
        for line, reason, detail in rows.faults():
            raise LogError(f"{file.path}, line {line:,}: {reason} ({detail}): give every arm numbers in all columns")
    twice = [name for name, n in Counter(arms).items() if n > 1]
    if twice or not arms:
        wrong = f"the arm {twice[0]!r} twice" if twice else "no arms"
        raise LogError(f"{file.path} has {wrong}: give it one row per arm")
    return arms, values, words
