"""Reads a user's own log: CSV (also gzipped) or Parquet files, and a `Mapping` that says what the columns mean.

Rows are read in blocks and checked column by column. A bad cell costs only its own row, and every row that is lost is
counted with its line (`tabular` says how lines are numbered). Neither the header nor blank lines count as lines read.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hybandits.features import COLUMNS, Feature, Number, plain_features
from hybandits.foundation.checks import FloatArray, short
from hybandits.logs.columns import tabular
from hybandits.logs.columns.categories import OneHot, one_hots
from hybandits.logs.columns.cells import Sheet, candidate_texts, is_text, split_candidates
from hybandits.logs.columns.mapping import ARM, Mapping
from hybandits.logs.columns.tabular import DamagedError, Fault, TableFile, open_table, require, table_files
from hybandits.logs.ids import Id, id_of
from hybandits.logs.input_files import Paths, source_names
from hybandits.logs.problems import CUT, DAMAGED, SALVAGED, Problems
from hybandits.logs.store import NO_PLACE, NO_TIME, Batch, LogError, Tables

DISTINCT = 100_000
"""A column with more distinct values than this is not taken for categorical."""


WITHOUT_PAIR = "candidate without pair feature"
"""The fault of a row that has a candidate for which there is no column of a pair feature."""

_NOT_LISTED = "arm not among the candidates"
_NOT_IN_FILE = "arm missing from the arms' file"


class KnownArms(NamedTuple):
    """What is known of the arms beforehand: the names of their features, and their vectors by the text of their ids.

    `vectors` is None if nothing is known and any arm may come. `named` has the features before categories became
    columns.
    """

    features: list[str]
    vectors: dict[str, FloatArray] | None
    named: dict[str, Feature]


class _UsableRows(NamedTuple):
    """The rows that are rounds, with their arms and categories as text."""

    arm: pa.Array
    categories: dict[str, pa.Array]
    batch: Batch


class _Candidates(NamedTuple):
    """For every row: its pool, the place in it of the arm shown, how many candidates it has, their pair features."""

    pool: np.ndarray
    chosen: np.ndarray
    sizes: np.ndarray
    pair: FloatArray


class ColumnsReader:
    """Reads a user's own log.

    Parameters
    ----------
    paths : path or several paths
        CSV or Parquet files in their order, or folders of such files, which are read in the order of their names.
    mapping : Mapping
        What the columns mean.

    Attributes
    ----------
    user, arm, pair : list of str
        The names of the users' and of the arms' features, and of those of a user and a candidate together.
    files : list of Path
        The files to read.
    ignored : dict
        What is not read in the given folders: path to reason.
    about : dict
        `ids_were_floats` if ids that are integers are written as floats, such as 1.0, and `columns`: the named features
        of users and arms that the columns were made from, as `hybandits.Features.to_dict` has them.

    Notes
    -----
    The ids of arms are integers if all of them are whole numbers (see `hybandits.logs.ids`; a whole float counts as
    one), otherwise strings. A text column of a Parquet file is taken at its word: its ids are strings.

    Unless an arms' file or the types of Parquet files say what the arms are, and if columns are categorical, the files
    are read twice: first to collect the arms and categories of all usable rows, then for the rounds. Every category
    becomes a column (`country=de`), but for the first if there is a constant; beyond 200 categories in all, the most
    frequent are kept and the rest share `country=other`.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("shop.csv").write_text("item,clicked,age,country\\nshoe,1,0.3,de\\nhat,0,0.5,fr\\n")
    >>> mapping = Mapping(arm="item", reward="clicked", user=["age", "country"], categorical=["country"])
    >>> ColumnsReader("shop.csv", mapping=mapping).user
    ['constant', 'age', 'country=fr']
    """

    kind = "columns"
    _named_by = "the mapping"

    @property
    def _unknown_arm(self) -> tuple[str, str]:
        """What is wrong with a row whose arm is not known, and where it should have been."""
        if self.mapping.arms_file is None:
            return _NOT_LISTED, ""
        return _NOT_IN_FILE, f", which is not in {self.mapping.arms_file}"

    def __init__(self, paths: Paths, *, mapping: Mapping) -> None:
        self.mapping = mapping
        self.files, self.ignored, _ = table_files(paths)
        self._tables = [open_table(file) for file in self.files]
        self._sources = source_names(self.files)
        self.size = sum(file.stat().st_size for file in self.files)
        for file in self._tables:
            require(file, mapping.columns, self._named_by)
        self._by_arm = {name: self._columns_by_arm(name) for name in mapping.pair_patterns}
        self._numeric = [name for name in mapping.user if name not in mapping.categorical]
        for file in self._tables:
            _refuse_text(file, self._numeric, "user feature", "list it in categorical too, or leave it out of user")
        self.about: dict[str, Any] = {}
        self._hots: dict[str, OneHot]
        self._integers = not self._holds_text(mapping.arm)
        arm_features = self._find_arms()
        if self._integers and not self._all_whole:  # start again, and take every id as it is written
            self._integers = False
            self.about.clear()
            arm_features = self._find_arms()
        first = ["constant"] if mapping.constant else []
        named = (self._hots[name].names if name in self._hots else [name] for name in mapping.features)
        self.user: Sequence[str] = [*first, *itertools.chain.from_iterable(named)]
        self.arm: Sequence[str] = first + arm_features
        self.pair: Sequence[str] = list(mapping.pair)
        self.binary_user = not self._numeric
        for names, what in ((self.user, "user"), (self.arm, "arm")):
            twice = [name for name, n in Counter(names).items() if n > 1]
            if twice:
                raise LogError(f"two {what} features are called {twice[0]!r}: rename a column")
        named_user = {name: feature for name in mapping.features if (feature := self._named(name)) is not None}
        self.about[COLUMNS] = {
            "constant": mapping.constant,
            "user": plain_features(named_user),
            "arm": plain_features(self._named_arm),
        }
        if self.pair:
            self.about[COLUMNS]["pair"] = plain_features(dict.fromkeys(self.pair, Number()))

    def _columns_by_arm(self, name: str) -> dict[str, str]:
        """The columns of a pair feature that has a column per arm, by the text of the arm's id."""
        pattern = self.mapping.pair[name]
        before, _, after = pattern.partition(ARM)
        first = self._tables[0]
        columns = {
            column[len(before) : len(column) - len(after)]: column
            for column in first.columns
            if column.startswith(before) and column.endswith(after) and len(column) > len(before) + len(after)
            if column not in self.mapping.columns
        }
        if not columns:
            named = ", ".join(map(repr, first.columns[:40]))
            raise LogError(
                f"{self._named_by} gives the pair feature {name!r} as {pattern!r}, but {first.path} has no such column "
                f"for any arm: its columns are {named}"
            )
        for file in self._tables:
            require(file, columns.values(), self._named_by)
        return columns

    def _require_pair_columns(self) -> None:
        """Raise LogError if an arm that is a candidate in every row has no column of a pair feature."""
        if self._arms is None or self.mapping.candidates is not None:
            return
        for name, columns in self._by_arm.items():
            missing = next((arm for arm in self._arms if arm not in columns), None)
            if missing is not None:
                column = self.mapping.pair[name].replace(ARM, missing)
                raise LogError(
                    f"{self._named_by} gives the pair feature {name!r} as {self.mapping.pair[name]!r}, but "
                    f"{self._tables[0].path} has no column {column!r} for the arm {missing!r}: add it, or leave the "
                    "feature out"
                )
            self._by_arm[name] = {arm: columns[arm] for arm in self._arms}

    @property
    def _columns(self) -> list[str]:
        """All columns to read."""
        per_arm = itertools.chain.from_iterable(columns.values() for columns in self._by_arm.values())
        return list(dict.fromkeys([*self.mapping.columns, *per_arm]))

    def _find_arms(self) -> list[str]:
        """Find out which arms and categories there are; the names of the arms' features."""
        features, self._arms, self._named_arm = self._known_arms()
        self._hots = {}
        mapping = self.mapping
        listed = self._arms is None and mapping.candidates is not None
        self._all_whole = self._arms is None or _all_whole(self._arms)
        if self._arms is not None and self._integers and not self._all_whole:
            return features
        self._require_pair_columns()
        columns = [mapping.arm, mapping.candidates or mapping.arm]
        typed = all(
            kind is not None and pa.types.is_integer(kind)
            for file in self._tables
            for kind in map(file.type_of, columns)
        )
        if mapping.categorical or (self._arms is None and not listed) or (listed and self._integers and not typed):
            self._collect_categories()
            self._require_pair_columns()
        return features

    def _named(self, name: str) -> Feature | None:
        """What a column is as a named feature; None if it became no columns."""
        if name not in self._hots:
            return Number()
        return self._hots[name].feature(integers=not self._holds_text(name))

    def _holds_text(self, name: str) -> bool:
        """Whether a file says that a column holds text; CSV files do not say."""
        return any(is_text(kind) for file in self._tables if (kind := file.type_of(name)))

    def _known_arms(self) -> KnownArms:
        if self.mapping.arms_file is None:
            return KnownArms([], None, {})
        file = open_table(self.mapping.arms_file)
        named = [name for name in file.columns if name]
        label = self.mapping.arm_id or (named[0] if named else "")
        wanted = self.mapping.arm_features
        features = [name for name in named if name != label] if wanted is None else list(wanted)
        require(file, [label, *features], "the mapping")
        _refuse_text(file, features, "arm feature", "turn it into numbers, or list the wanted columns in arm_features")
        names, numbers = read_arms(file, label, features, integers=self._integers)
        vectors = np.column_stack([np.ones((len(names), int(self.mapping.constant))), numbers])
        return KnownArms(features, dict(zip(names, vectors, strict=True)), dict.fromkeys(features, Number()))

    def _collect_categories(self) -> None:
        """Collect the arms and categories of all files."""
        arms: dict[str, None] = {}
        known = self._arms is not None
        counts: dict[str, Counter[str]] = {name: Counter() for name in self.mapping.categorical}
        tables = Tables()
        for file in self._tables:
            try:
                for block in file.blocks(self._columns):
                    rows = self._usable_rows(Sheet(block), tables, None)
                    if not known and self.mapping.candidates is None:
                        arms.update(dict.fromkeys(rows.arm.unique().to_pylist()))
                    for name, counter in counts.items():
                        values, numbers = rows.categories[name].value_counts().flatten()
                        counter.update(dict(zip(values.to_pylist(), numbers.to_pylist(), strict=True)))
                        if len(counter) > DISTINCT:
                            raise LogError(
                                f"column {name!r} of {file.path} has more than {DISTINCT:,} distinct values, too many "
                                "for a categorical column: leave it out"
                            )
            except DamagedError:  # reported when the rounds are read
                continue
        if arms:
            self._arms = {name: np.ones(int(self.mapping.constant)) for name in arms}
        if not known:
            self._all_whole = _all_whole(arms) and tables.integers
        hots = one_hots(counts, drop_first=self.mapping.constant, label=self._label)
        self._hots = {hot.column: hot for hot in hots}

    def _id(self, text: str) -> Id:
        """The id that a text stands for."""
        return id_of(text) if self._integers else text

    def _ids(self, sheet: Sheet, name: str) -> pa.Array:
        """A column of ids as text, alike for alike ids."""
        ids = sheet.ids(name, integers=self._integers)
        if self._integers and "ids_were_floats" not in self.about:
            kind = sheet.columns[name].type
            if pa.types.is_floating(kind) or (is_text(kind) and not ids.equals(sheet.text(name))):
                self.about["ids_were_floats"] = True
        return ids

    def _label(self, category: str) -> str:
        """How a category appears in the name of a feature."""
        return category

    def _verify(self, sheet: Sheet, reward: FloatArray, place: FloatArray) -> None:
        """Check what else a format demands of its rows."""

    def batches(
        self, tables: Tables, problems: Problems, progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Batch]]:
        """The rounds of each file in order; see `hybandits.logs.store.Reader`."""
        problems.ignore_files(self.ignored)
        all_arms = None
        if self._arms is not None and self.mapping.candidates is None:
            all_arms = tables.pool([tables.arm(self._id(name), vector) for name, vector in self._arms.items()])
        for source, file in zip(self._sources, self._tables, strict=True):
            lines = rounds = 0
            try:
                for block in file.blocks(self._columns):
                    sheet = Sheet(block)
                    batch = self._usable_rows(sheet, tables, all_arms).batch
                    lines += sheet.n + len(block.faults)
                    rounds += batch.rounds
                    _report(problems, source, sorted([*block.faults, *sheet.faults()]))
                    progress(block.read)
                    if batch.rounds:
                        yield source, batch
            except DamagedError as problem:
                problems.blame_file(DAMAGED, source, f"{problem}; {SALVAGED}")
            problems.count_file(source, lines=lines, rounds=rounds)

    def _usable_rows(self, sheet: Sheet, tables: Tables, all_arms: int | None) -> _UsableRows:
        """The rows of a sheet that are rounds; `all_arms` is the pool of all arms, None while these are collected."""
        m = self.mapping
        arm = self._ids(sheet, m.arm)
        reward = sheet.numbers(m.reward)
        time = sheet.seconds(m.time) if m.time else np.full(sheet.n, NO_TIME)
        propensity = np.full(sheet.n, np.nan)
        if m.propensity:
            propensity = sheet.numbers(m.propensity)
            odd = ~((propensity > 0) & (propensity <= 1))
            sheet.fault(odd, "propensity outside (0, 1]", lambda i: f"column {m.propensity!r}: got {propensity[i]}")
        place = sheet.numbers(m.place, optional=True) if m.place else np.full(sheet.n, np.nan)
        odd = ~(np.isnan(place) | (place == np.floor(place)) & (place >= 0) & (place <= 127))
        sheet.fault(odd, "unusable place", lambda i: f"column {m.place!r}: got {place[i]}, expected 0 to 127")
        self._verify(sheet, reward, place)
        user = self._user(sheet)
        categories = {name: sheet.text(name) for name in m.categorical}
        if m.candidates:
            texts = candidate_texts(sheet, m.candidates, integers=self._integers)
            pool, chosen, sizes, pair = self._among_listed(sheet, arm, texts, tables)
        else:
            pool, chosen, sizes, pair = self._among_all(sheet, arm, all_arms)
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
            pair=pair[good],
        )
        kept = pa.array(good)
        return _UsableRows(arm.filter(kept), {name: text.filter(kept) for name, text in categories.items()}, batch)

    def _user(self, sheet: Sheet) -> dict[str, FloatArray]:
        return {name: sheet.numbers(name)[:, None] for name in self._numeric}

    def _among_all(self, sheet: Sheet, arm: pa.Array, all_arms: int | None) -> _Candidates:
        """The candidates of every row if all arms are."""
        if self._arms is None:
            nothing = np.zeros(sheet.n, np.int64)
            return _Candidates(nothing, nothing, np.ones(sheet.n), np.empty((sheet.n, 0, 0)))
        chosen = pc.index_in(arm, value_set=pa.array(list(self._arms), pa.string())).fill_null(-1)
        places = chosen.to_numpy(zero_copy_only=False)
        unknown, where = self._unknown_arm
        sheet.fault(places < 0, unknown, lambda i: f"got {short(arm[i].as_py())}{where}")
        pair = self._pairs(sheet, [list(self._arms)], np.zeros(sheet.n, np.int64))
        return _Candidates(np.full(sheet.n, all_arms or 0), places, np.full(sheet.n, float(len(self._arms))), pair)

    def _pairs(self, sheet: Sheet, lists: list[list[str]], codes: np.ndarray) -> FloatArray:
        """The pair features of every row's candidates, which are lists[codes[row]]; 0 beyond the last."""
        sizes = np.array([len(names) for names in lists])[codes]
        most = max(map(len, lists), default=0) if self.mapping.pair else 0
        inside = np.arange(most) < sizes[:, None]
        pair = np.zeros((sheet.n, most, len(self.mapping.pair)))
        for i, name in enumerate(self.mapping.pair):
            columns = self._by_arm.get(name)
            if columns is None:
                pair[:, :, i] = self._listed_pairs(sheet, self.mapping.pair[name], sizes, inside)
            else:
                pair[:, :, i] = self._pairs_by_arm(sheet, name, columns, lists, codes, inside)
        return pair

    def _listed_pairs(self, sheet: Sheet, column: str, sizes: np.ndarray, inside: np.ndarray) -> FloatArray:
        """A pair feature from a column of lists."""
        numbers, lengths = sheet.number_lists(column, self.mapping.separator)
        sheet.fault(
            lengths != sizes,
            "wrong number of values",
            lambda i: f"column {column!r} has {lengths[i]} for {sizes[i]} candidates",
        )
        fits = lengths == sizes
        out = np.zeros(inside.shape)
        out[inside & fits[:, None]] = numbers[np.repeat(fits, lengths)]
        return out

    def _pairs_by_arm(
        self,
        sheet: Sheet,
        name: str,
        columns: dict[str, str],
        lists: list[list[str]],
        codes: np.ndarray,
        inside: np.ndarray,
    ) -> FloatArray:
        """A pair feature from a column per arm; cells of arms that are no candidates may be empty."""
        wide = np.column_stack([sheet.numbers(column, optional=True) for column in columns.values()])
        place = {arm: i for i, arm in enumerate(columns)}
        places = np.full((len(lists), inside.shape[1]), -1)
        for code, names in enumerate(lists):
            places[code, : len(names)] = [place.get(arm, -1) for arm in names]
        of_row = places[codes]
        unknown = (of_row < 0) & inside
        out: FloatArray = np.where(inside & ~unknown, np.take_along_axis(wide, np.maximum(of_row, 0), axis=1), 0.0)

        def without(i: int) -> str:
            arm = lists[codes[i]][int(unknown[i].argmax())]
            return f"there is no column {self.mapping.pair[name].replace(ARM, arm)!r}"

        def empty(i: int) -> str:
            arm = lists[codes[i]][int(np.isnan(out[i]).argmax())]
            return f"column {columns[arm]!r} is empty or NaN"

        sheet.fault(unknown.any(axis=1), WITHOUT_PAIR, without)
        sheet.fault(np.asarray(np.isnan(out).any(axis=1)), "missing value", empty)
        return out

    def _among_listed(self, sheet: Sheet, arm: pa.Array, texts: pa.Array, tables: Tables) -> _Candidates:
        """The candidates of every row if each row lists its own."""
        pool, chosen, sizes = np.zeros(sheet.n, np.int64), np.zeros(sheet.n, np.int64), np.ones(sheet.n)
        rows = np.flatnonzero(sheet.good)
        if not len(rows):
            return _Candidates(pool, chosen, sizes, np.empty((sheet.n, 0, len(self.mapping.pair))))
        lists, arms = (column.take(pa.array(rows)).dictionary_encode() for column in (texts, arm))
        list_codes, arm_codes = (coded.indices.to_numpy(zero_copy_only=False) for coded in (lists, arms))
        parsed: list[list[str]] = []
        wrong: dict[str, dict[int, str]] = {"unusable list of candidates": {}, _NOT_IN_FILE: {}}
        for code, text in enumerate(lists.dictionary.to_pylist()):
            try:
                names = split_candidates(text, self.mapping.separator, integers=self._integers)
            except ValueError as problem:
                wrong["unusable list of candidates"][code] = f"got {short(text)}: {problem}"
                names = []
            unknown = [] if self._arms is None else [name for name in names if name not in self._arms]
            if unknown:
                wrong[_NOT_IN_FILE][code] = f"candidate {unknown[0]!r} is not in {self.mapping.arms_file}"
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
        place_of_key = np.full(len(keys), -1)
        for k, key in enumerate(keys.tolist()):
            code, name = divmod(key, len(shown))
            if code not in places:
                places = {code: {candidate: place for place, candidate in enumerate(parsed[code])}}
            place_of_key[k] = places[code].get(shown[name], -1)
        chosen[rows] = place_of_key[back]
        sheet.fault(chosen < 0, _NOT_LISTED, lambda i: f"got {short(arm[i].as_py())}")
        pair = self._pairs(sheet, parsed, of_row)
        good = sheet.good[rows]
        # Pools are entered in the order of the rounds, so that where blocks end makes no difference.
        codes, firsts = np.unique(list_codes[good], return_index=True)
        entered = np.zeros(len(parsed), np.int64)
        without_features = np.ones(int(self.mapping.constant))
        for code in codes[np.argsort(firsts)].tolist():
            vectors = (without_features if self._arms is None else self._arms[name] for name in parsed[code])
            entered[code] = tables.pool(list(map(tables.arm, map(self._id, parsed[code]), vectors)))
        pool[rows] = entered[list_codes]
        sizes[rows] = np.array([max(len(names), 1) for names in parsed])[list_codes]
        return _Candidates(pool, chosen, sizes, pair)


def _all_whole(names: Iterable[str]) -> bool:
    return all(isinstance(id_of(name), int) for name in names)


def read_arms(
    file: TableFile, label: str, features: Sequence[str], *, integers: bool = False
) -> tuple[list[str], FloatArray]:
    """Names and features of the arms in a file; LogError if anything is wrong, because every round depends on it."""
    names: list[str] = []
    parts: list[FloatArray] = [np.empty((0, len(features)))]
    try:
        for block in file.blocks([label, *features]):
            sheet = Sheet(block)
            names += sheet.ids(label, integers=integers).to_pylist()
            parts.append(np.column_stack([np.empty((sheet.n, 0)), *(sheet.numbers(name) for name in features)]))
            faults = sorted([*block.faults, *sheet.faults()])
            if faults:
                line, kind, detail = faults[0]
                if kind == CUT:
                    raise LogError(f"{file.path} is damaged at line {line:,}: write or copy it again")
                raise LogError(f"{file.path}, line {line:,}: {kind} ({detail}): every arm needs all its features")
    except DamagedError as problem:
        raise LogError(f"{file.path} cannot be read to its end ({problem}): write or copy it again") from None
    if not names:
        raise LogError(f"{file.path} has no arms: give it one row per arm")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise LogError(f"{file.path} has the arm {twice[0]!r} twice: give it one row per arm")
    return names, np.concatenate(parts)


def _refuse_text(file: TableFile, names: Sequence[str], what: str, remedy: str) -> None:
    """LogError if a column that should hold numbers has only text in its first rows."""
    pending, seen = dict.fromkeys(names, ""), 0
    try:
        for block in file.blocks(names) if names else ():
            for name in list(pending):
                sheet = Sheet(block)  # one each: a row keeps its first fault only
                try:
                    values = sheet.numbers(name, optional=True)
                except LogError as problem:
                    raise LogError(f"{file.path}: {problem}") from None
                if np.isfinite(values).any():
                    del pending[name]
                elif not pending[name]:
                    pending[name] = next((f.detail for f in sheet.faults() if f.kind == "unparsable number"), "")
            seen += len(block.lines)
            if not pending or seen >= tabular.ROWS:
                break
    except DamagedError:  # reported when the rounds are read
        pass
    for name, wrong in pending.items():
        if wrong:
            raise LogError(f"{file.path}: {what} {name!r} is not a column of numbers ({wrong}): {remedy}")


def _report(problems: Problems, source: str, faults: list[Fault]) -> None:
    """Report the first faults one by one, as examples, and the others by kind."""
    for fault in faults[: problems.shown]:
        problems.skip(fault.kind, source, fault.line, fault.detail)
    others: dict[str, list[Fault]] = {}
    for fault in faults[problems.shown :]:
        others.setdefault(fault.kind, []).append(fault)
    for kind, alike in others.items():
        problems.skip(kind, source, alike[0].line, alike[0].detail, count=len(alike))
