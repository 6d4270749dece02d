"""Kinds of raw columns: what they may hold, what is learned from the first rows, and their columns of numbers."""

import math
import numbers
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import narwhals
import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

AUTO, ERROR, ZERO, COLUMN, OTHER = "auto", "error", "zero", "column", "other"
"""The rules for values that are missing or unknown."""

KNOTS = 5
"""Quantiles at which a curve bends."""
CURVES = 4
"""The most columns of a curve."""
LEAST_ROWS = 20
"""Rows that a curve needs."""
RARE = 500
"""A category or label gets a column of its own if it is seen more than once, and in more than one row in so many."""
FEW_ROWS = 16
"""With fewer rows, once is enough."""
MOST_LEVELS = 500
"""The most categories or labels that are learned from rows."""

Note = Callable[[int, str], None]
"""note(row, value) counts a value that has no column of its own, or refuses it."""


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or what pandas uses for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def place(words: str, row: int, values: Sequence[Any]) -> str:
    """Return the words for a value, with its row if there are several."""
    return f"{words} in row {row}" if len(values) > 1 else words


def shown(value: Any) -> str:
    """Return a value and its type for an error message."""
    return f"{checks.short(value)} ({type(value).__name__})"


def real(words: str, value: Any) -> float:
    """Return a finite number; raise for anything else."""
    if type(value) is float and math.isfinite(value):
        return value
    if not isinstance(value, numbers.Real | np.bool_):
        wrong = f"{words} is {shown(value)}, expected a number"
        raise TypeError(f"{wrong}: convert it, or declare a list of categories")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{words} is {number!r}: pass a finite number")
    return number


def category(words: str, value: Any) -> str | int:
    """Return a category as a plain str or int; whole floats are ints."""
    try:
        plain = checks.plain_id(value)
    except TypeError:
        plain = None
    if not isinstance(plain, str | int):
        wrong = f"{words} is {shown(value)}, expected a category, which is a str or an int"
        raise TypeError(f"{wrong}: convert it with str")
    return plain


def _spread(values: FloatArray) -> tuple[float, float]:
    """The mean of some numbers and a positive scale."""
    if not len(values):
        return 0.0, 1.0
    centre, scale = float(values.mean()), float(values.std())
    if not scale > 1e-9 * abs(centre):
        scale = abs(centre) or 1.0
    return centre, scale


def _bends(values: FloatArray) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Knots and the matrix that turns (1, s, hinges) of standardised numbers s into curves (see `Number`)."""
    none: tuple[tuple[float, ...], tuple[tuple[float, ...], ...]] = (), ()
    if len(values) < LEAST_ROWS:
        return none
    inner = np.unique(np.quantile(values, np.arange(1, KNOTS + 1) / (KNOTS + 1)))
    inner = inner[(inner > values.min()) & (inner < values.max())]
    hinges = np.maximum(values[:, None] - inner, 0.0)
    line = np.column_stack([np.ones(len(values)), values])
    slope = np.linalg.lstsq(line, hinges, rcond=None)[0]
    sizes, directions = np.linalg.eigh((hinges - line @ slope).T @ (hinges - line @ slope) / len(values))
    kept = np.flatnonzero(sizes > 1e-6)[::-1][:CURVES]
    if not len(kept):
        return none
    whitened = directions[:, kept] / np.sqrt(sizes[kept])
    matrix = np.vstack([-slope @ whitened, whitened])
    return tuple(inner.tolist()), tuple(map(tuple, matrix.tolist()))


@dataclass(frozen=True, kw_only=True)
class Number:
    """A column of numbers. They are centred and scaled, and a curve through them gets further columns.

    Parameters
    ----------
    missing : {"auto", "error", "column"} or float
        The treatment of a missing value (None or NaN): an error; the centre, together with a further column that is 1
        where the value is missing; or this number. By default, "column" if values were missing in the first rows; if
        none were, a missing value is counted and stands at the centre.
    centre, scale : float, optional
        The numbers to subtract and to divide by. By default the mean and the standard deviation in the first rows.
    knots, matrix : tuple, optional
        The quantiles at which the curve bends, in standard deviations from the centre, and the matrix by which the
        numbers (1, s, max(0, s - knots)) are multiplied. By default they are learned: 5 hinges at sextiles, less their
        linear part, whitened, the 4 largest. Empty for no curve.
    """

    missing: float | str = AUTO
    centre: float | None = None
    scale: float | None = None
    knots: tuple[float, ...] | None = None
    matrix: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.missing not in (AUTO, ERROR, COLUMN):
            if isinstance(self.missing, str):
                raise ValueError(f"missing must be error, column or a number, got {self.missing!r}")
            object.__setattr__(self, "missing", checks.real("missing", self.missing))
        if self.centre is not None:
            object.__setattr__(self, "centre", checks.real("centre", self.centre))
        if self.scale is not None:
            object.__setattr__(self, "scale", checks.positive("scale", self.scale, "numbers are divided by it"))
        object.__setattr__(self, "matrix", tuple(map(tuple, self.matrix)))
        if self.knots is not None:
            object.__setattr__(self, "knots", tuple(checks.real("knots", knot) for knot in self.knots))
            if self.knots and len(self.matrix) != len(self.knots) + 2:
                wrong = f"{len(self.knots)} knots need a matrix of {len(self.knots) + 2} rows, got {len(self.matrix)}"
                raise ValueError(f"{wrong}: leave both out, or pass knots=() for no curve")

    @property
    def complete(self) -> bool:
        """True if nothing is left to be learned from rows."""
        return self.missing != AUTO and None not in (self.centre, self.scale, self.knots)

    def parse(self, words: str, value: Any) -> float:
        """Return the value as a number."""
        return real(words, value)

    def _read(self, words: str, values: Sequence[Any]) -> FloatArray:
        """The numbers, NaN where they are missing."""
        if len(values) > 8 and set(map(type, values)) <= {float, int}:
            array = np.array(values, dtype=object).astype(float)
            if np.isfinite(array).all():
                return array
        return np.array(
            [
                math.nan if is_missing(value) else self.parse(place(words, row, values), value)
                for row, value in enumerate(values)
            ],
            dtype=float,
        )

    def learn(self, words: str, values: Sequence[Any], curves: bool) -> Self:
        """Return the column with everything that these rows tell about it."""
        read = self._read(words, values)
        known = read[~np.isnan(read)]
        centre, scale = _spread(known)
        centre = centre if self.centre is None else self.centre
        scale = scale if self.scale is None else self.scale
        knots, matrix = self.knots, self.matrix
        if knots is None:
            knots, matrix = _bends((known - centre) / scale) if curves else ((), ())
        missing = self.missing if self.missing != AUTO else COLUMN if len(known) < len(read) else centre
        return replace(self, missing=missing, centre=centre, scale=scale, knots=knots, matrix=matrix)

    def labels(self, name: str) -> list[str]:
        """Return the names of the straight columns."""
        return [name, f"{name}=missing"] if self.missing == COLUMN else [name]

    @property
    def crossed(self) -> int:
        """The number of straight columns, from the first, that are multiplied with those of other features."""
        return 1

    @property
    def curves(self) -> int:
        """The number of columns of the curve, which follow the straight ones."""
        return len(self.matrix[0]) if self.knots else 0

    def fill(self, words: str, values: Sequence[Any], out: FloatArray, note: Note) -> None:
        """Write the columns for these values into the zeros of `out`."""
        read = self._read(words, values)
        missing = np.isnan(read)
        if missing.any():
            if self.missing == ERROR:
                row = int(missing.argmax())
                remedy = 'pass a number, or declare it with missing = "column"'
                raise ValueError(f"{place(words, row, values)} is missing, and there is no rule for that: {remedy}")
            for row in np.flatnonzero(missing).tolist() if self.missing != COLUMN else ():
                note(row, "missing")
            read[missing] = self.centre if self.missing == COLUMN else self.missing
        assert self.centre is not None
        assert self.scale is not None
        standard = (read - self.centre) / self.scale
        out[:, 0] = standard
        if self.missing == COLUMN:
            out[:, 1] = missing
        if self.knots:
            curve = out[:, -self.curves :]  # summed term by term: a product of matrices depends on the number of rows
            hinges = (np.maximum(standard - knot, 0.0) for knot in self.knots)
            for column, weights in zip((np.ones(len(standard)), standard, *hinges), self.matrix, strict=True):
                curve += column[:, None] * np.array(weights)


@dataclass(frozen=True, kw_only=True)
class Boolean(Number):
    """A column of True and False, as 1 and 0, less the share of True. The arguments are those of `Number`."""

    def parse(self, words: str, value: Any) -> float:
        """Return 1 or 0."""
        if not isinstance(value, bool | np.bool_) and value not in (0, 1):
            raise TypeError(f"{words} is {shown(value)}, expected True or False")
        return float(value)

    def learn(self, words: str, values: Sequence[Any], curves: bool) -> Self:
        """Return the column with everything that these rows tell about it; it is not divided by anything."""
        straight = replace(self, scale=self.scale or 1.0, knots=())
        return super(Boolean, straight).learn(words, values, False)


@dataclass(frozen=True, kw_only=True)
class Category:
    """A column that holds one of several values, str or int. Each value becomes a column of 0 and 1.

    Parameters
    ----------
    values : list of str or int, optional
        The values that get a column. By default those in more than one of 500 of the first rows.
    unknown : {"column", "zero", "error"}
        The treatment of other values: a further column of 0 and 1, which all of them share, zeros in all columns, or an
        error. They are counted.
    missing : {"auto", "error", "column", "zero", "other"}
        The same for a missing value (None or NaN); "other" treats it as another value. By default "column" if values
        were missing in the first rows, else "other".
    base : str or int, optional
        A further value, which has no column: it is zeros in all of them, and the columns of the others say how they
        differ from it. Logs are read like that. With unknown="zero", unknown values are taken for it.

    Examples
    --------
    >>> from hybandits import Features
    >>> Features(user={"country": Category(values=["de", "fr"], missing="zero")}).names_z
    ['constant', 'user.country=de', 'user.country=fr', 'user.country=other']
    """

    values: Sequence[str | int] | None = None
    unknown: str = COLUMN
    missing: str = AUTO
    base: str | int | None = None
    _codes: dict[Any, int | None] = field(init=False, repr=False, compare=False)

    curves = 0

    def __post_init__(self) -> None:
        for name, rules in (("unknown", (COLUMN, ZERO, ERROR)), ("missing", (AUTO, COLUMN, ZERO, ERROR, OTHER))):
            if getattr(self, name) not in rules:
                raise ValueError(f"{name} must be column, zero or error, got {getattr(self, name)!r}")
        if self.values is not None:
            if isinstance(self.values, str) or not isinstance(self.values, Iterable):
                raise TypeError(f"values must be a list of categories, got {checks.short(self.values)}")
            object.__setattr__(self, "values", tuple(category("values", value) for value in self.values))
        base = () if self.base is None else (category("base", self.base),)
        twice = [text for text, n in Counter(map(str, (*base, *(self.values or ())))).items() if n > 1]
        if twice:
            raise ValueError(f"values holds {twice[0]!r} twice, perhaps as a str and as an int: name it once")
        values = {value: i for i, value in enumerate(self.values or ())}
        object.__setattr__(self, "_codes", {**dict.fromkeys(base), **values})

    @property
    def complete(self) -> bool:
        """True if nothing needs to be learned from rows."""
        return self.values is not None

    def _members(self, words: str, value: Any) -> list[str | int]:
        """The categories that a value of the column names."""
        return [category(words, value)]

    def learn(self, words: str, values: Sequence[Any], curves: bool) -> Self:
        """Return the column with the values and rules that these rows tell about it."""
        counts: Counter[str | int] = Counter()
        missing = 0
        for row, value in enumerate(values):
            if is_missing(value):
                missing += 1
            else:
                counts.update(self._members(place(words, row, values), value))
        kinds = {type(value) for value in (counts if self.values is None else self.values)}
        if self.values is None and len(kinds) > 1:
            texts, whole = (next(v for v in counts if isinstance(v, kind)) for kind in (str, int))
            raise TypeError(f"{words} is both {texts!r} (str) and {whole!r} (int): pass one type, such as str")
        levels = self.values
        if levels is None:
            rare = max(len(values) / RARE, float(len(values) >= FEW_ROWS))
            often = [(value, n) for value, n in counts.items() if n > rare and value != self.base]
            often.sort(key=lambda each: (-each[1], str(each[0])))
            levels = [value for value, _ in often[:MOST_LEVELS]]
        rule = self.missing if self.missing != AUTO else COLUMN if missing else OTHER
        return replace(self, values=levels, missing=rule)

    def labels(self, name: str) -> list[str]:
        """Return the names of the columns."""
        words = [str(value) for value in self.values or ()]
        for word in ["other"] * (self.unknown == COLUMN) + ["missing"] * (self.missing == COLUMN):
            words.append(word if word not in words else f"({word})")
        return [f"{name}={word}" for word in words]

    @property
    def crossed(self) -> int:
        """The number of columns, from the first, that are multiplied with those of other features."""
        return len(self.values or ())

    @property
    def _shared(self) -> int | None:
        """The column that all other values share."""
        return self.crossed if self.unknown == COLUMN else None

    def fill(self, words: str, values: Sequence[Any], out: FloatArray, note: Note) -> None:
        """Write the columns for these values into the zeros of `out`."""
        codes = self._codes
        direct = {} if isinstance(self, Labels) else codes
        for row, value in enumerate(values):
            if type(value) is str and value in direct:
                filled = [direct[value]]
            elif is_missing(value):
                filled = [self._missing(words, row, values, out, note)]
            else:
                members = self._members(place(words, row, values), value)
                filled = [codes[m] if m in codes else self._other(words, row, m, values, note) for m in members]
            for code in filled:
                if code is not None:
                    out[row, code] = 1.0

    def _missing(self, words: str, row: int, values: Sequence[Any], out: FloatArray, note: Note) -> int | None:
        if self.missing == ERROR:
            remedy = 'pass a category, or declare it with missing = "column"'
            raise ValueError(f"{place(words, row, values)} is missing, and there is no rule for that: {remedy}")
        if self.missing == COLUMN:
            return len(out[row]) - 1
        if self.missing == ZERO:
            return None
        note(row, "missing")
        return self._shared

    def _other(self, words: str, row: int, plain: str | int, values: Sequence[Any], note: Note) -> int | None:
        kinds = {type(value).__name__ for value in self._codes}
        if kinds and type(plain).__name__ not in kinds:
            twin = checks.twin_of(plain)
            remedy = f"pass {twin!r}" if twin in self._codes else "pass the type that was declared or seen first"
            wrong = f"{place(words, row, values)} is {plain!r} ({type(plain).__name__}), but its categories are of type"
            raise TypeError(f"{wrong} {kinds.pop()}: {remedy}")
        if self.unknown == ERROR:
            near = checks.nearest(plain, map(str, self._codes))
            wrong = f"{place(words, row, values)} is {checks.short(plain)}, which is none of its {len(self._codes)}"
            raise ValueError(f'{wrong} categories{near}: add it, or declare Category(unknown="column")')
        note(row, str(plain))
        return self._shared


@dataclass(frozen=True, kw_only=True)
class Labels(Category):
    """A column that holds a list of values, such as tags. Each value becomes a column of 0 and 1.

    The arguments are those of `Category`; an empty list is not missing.
    """

    def _members(self, words: str, value: Any) -> list[str | int]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise TypeError(f"{words} is {shown(value)}, expected a list of labels: pass e.g. ['new', 'sale']")
        return list(dict.fromkeys(category(words, each) for each in value))


@dataclass(frozen=True, kw_only=True)
class Vector:
    """A column that holds vectors of one length, such as embeddings. Each entry is centred and scaled.

    A missing vector is zeros, and is counted.

    Parameters
    ----------
    size : int, optional
        The length; by default that of the first row.
    centre, scale : tuple of float, optional
        The numbers to subtract from the entries and to divide by. By default means and standard deviations.
    """

    size: int | None = None
    centre: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None

    curves = 0

    def __post_init__(self) -> None:
        if self.size is not None:
            checks.count("size", self.size, least=0, why="it is the length of the vectors")
        for name in ("centre", "scale"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(checks.real(name, each) for each in given))
                if len(given) != (self.size or 0):
                    raise ValueError(f"{name} has {len(given)} entries, expected size={self.size}: pass one for each")

    @property
    def complete(self) -> bool:
        """True if nothing is left to be learned from rows."""
        return None not in (self.centre, self.scale)

    def _read(self, words: str, values: Sequence[Any], size: int | None) -> FloatArray:
        """The vectors, rows of NaN where they are missing."""
        rows: list[FloatArray | None] = []
        for row, value in enumerate(values):
            if is_missing(value):
                rows.append(None)
                continue
            at = place(words, row, values)
            if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
                raise TypeError(f"{at} is {shown(value)}, expected a list of numbers")
            vector = np.array([real(at, each) for each in value])
            size = len(vector) if size is None else size
            if len(vector) != size:
                raise ValueError(f"{at} has {len(vector)} entries, expected {size}: pass vectors of one length")
            rows.append(vector)
        nothing = np.full(size or 0, math.nan)
        return np.array([nothing if vector is None else vector for vector in rows]).reshape(len(rows), size or 0)

    def learn(self, words: str, values: Sequence[Any], curves: bool) -> Self:
        """Return the column with the size, centre and scale of these rows."""
        read = self._read(words, values, self.size)
        size = self.size if self.size is not None else read.shape[1] or None
        known = read[~np.isnan(read).any(axis=1)]
        spreads = [_spread(column) for column in known.T]
        centre = self.centre or tuple(each[0] for each in spreads)
        return replace(self, size=size, centre=centre, scale=self.scale or tuple(each[1] for each in spreads))

    def labels(self, name: str) -> list[str]:
        """Return the names of the columns."""
        return [f"{name}[{i}]" for i in range(self.crossed)]

    @property
    def crossed(self) -> int:
        """The number of columns, from the first, that are multiplied with those of other features: all."""
        return self.size or 0

    def fill(self, words: str, values: Sequence[Any], out: FloatArray, note: Note) -> None:
        """Write the columns for these values into the zeros of `out`."""
        read = self._read(words, values, self.size)
        missing = np.isnan(read).any(axis=1)
        for row in np.flatnonzero(missing).tolist():
            note(row, "missing")
        if out.shape[1]:
            out[~missing] = (read[~missing] - np.array(self.centre)) / np.array(self.scale)


Feature = Number | Boolean | Category | Labels | Vector

KINDS: dict[str, type[Feature]] = {
    "number": Number, "boolean": Boolean, "category": Category, "labels": Labels, "vector": Vector,
}  # fmt: skip


def declared(words: str, given: Any) -> Feature:
    """Return a feature from its declaration: a feature, the name of a kind, or a list of categories."""
    if isinstance(given, Feature):
        return given
    if isinstance(given, str) and given in KINDS:
        return KINDS[given]()
    if isinstance(given, Iterable) and not isinstance(given, str):
        values = list(given)
        if not values:
            raise ValueError(f"{words} has no categories: list some, or declare it as 'category' to have them learned")
        return Category(values=values)
    expected = f"one of {', '.join(KINDS)}, a list of categories, or e.g. Number(...)"
    raise TypeError(f"{words} is declared as {checks.short(given)}: expected {expected}")


def inferred(words: str, values: Sequence[Any]) -> Feature:
    """Return the kind of column that some values belong to."""
    known = [value for value in values if not is_missing(value)]
    if not known:
        raise ValueError(f"{words} is missing in all rows, so its kind is unknown: declare it, e.g. as a number")
    if all(isinstance(value, bool | np.bool_) for value in known):
        return Boolean()
    if all(isinstance(value, numbers.Real) for value in known):
        return Number()
    if all(isinstance(value, str) for value in known):
        if all(_reads_as_number(value) for value in known):
            checks.warn(
                f"{words} holds text that reads as numbers, such as {known[0]!r}, and is taken for a category: convert "
                "it to numbers, or declare it as 'category'"
            )
        return Category()
    if all(isinstance(value, list | tuple | set | frozenset | np.ndarray) for value in known):
        members = [each for value in known for each in value]
        numeric = members and all(isinstance(each, numbers.Real) for each in members)
        return Vector() if numeric and len({len(value) for value in known}) == 1 else Labels()
    kinds = ", ".join(sorted({type(value).__name__ for value in known}))
    raise TypeError(f"{words} holds {kinds}: convert it to numbers, text, booleans or lists, or leave it out")


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def plain_features(features: Mapping[str, Feature]) -> list[dict[str, Any]]:
    """Return named features as JSON can hold them, in a list, because order matters."""
    names = {kind: name for name, kind in KINDS.items()}
    return [
        {
            "name": name,
            "kind": names[type(feature)],
            **{each.name: getattr(feature, each.name) for each in fields(feature) if each.init}
        }
        for name, feature in features.items()
    ]  # fmt: skip


def from_plain(plain: Iterable[Any]) -> dict[str, Feature]:
    """Return the features that `plain_features` turned into this."""
    features: dict[str, Feature] = {}
    for each in map(dict, plain):
        name, kind = each.pop("name"), each.pop("kind")
        features[name] = KINDS[kind](**each)
    return features


def is_record(data: Any) -> bool:
    """Return whether something holds values by name and is no table: a dict or a row of pandas."""
    return isinstance(data, Mapping) or (hasattr(data, "keys") and getattr(data, "ndim", 1) == 1)


def table_of(data: Any) -> Any:
    """Return a pandas, polars or pyarrow table in the common form of narwhals; anything else as it is."""
    if isinstance(data, list | Mapping):
        return data
    return narwhals.from_native(data, eager_only=True, pass_through=True)


def is_table(data: Any) -> bool:
    """Return whether something is a pandas, polars or pyarrow table."""
    return isinstance(table_of(data), narwhals.DataFrame)


def _without_ids(data: Any) -> Any:
    """Return the records of a mapping of ids to records; anything else as it is."""
    by_id = isinstance(data, Mapping) and data and all(isinstance(value, Mapping) for value in data.values())
    return list(data.values()) if by_id else data


def names_of(what: str, data: Any) -> list[str]:
    """Return the names of all columns of records or of a table."""
    table = table_of(_without_ids(data))
    if isinstance(table, narwhals.DataFrame):
        return list(table.columns)
    records = [data] if is_record(table) else list(table)
    for record in records:
        if not is_record(record):
            raise TypeError(f"{what} is {shown(record)}: pass a dict or a table")
    return list(dict.fromkeys(str(name) for record in records for name in record.keys()))  # noqa: SIM118 - pandas


MISSING = 'pass it; a value that is missing is None, with the rule missing="column"'


def columns_of(what: str, data: Any, names: Sequence[str], remedy: str = MISSING) -> dict[str, list[Any]]:
    """Return the named columns of records or of a table; `remedy` ends the error if one is not there."""
    data = _without_ids(data)
    table = table_of(data)
    if isinstance(table, narwhals.DataFrame):
        if unknown := [name for name in names if name not in table.columns]:
            raise ValueError(_no_feature(what, unknown[0], table.columns, remedy))
        for name in names:
            if table[name].dtype.is_temporal():
                raise TypeError(f"{what} feature {name!r} holds times: turn them into numbers or text")
        return {name: table[name].to_list() for name in names}
    if isinstance(data, str | Mapping) or not isinstance(data, Iterable) or hasattr(data, "collect"):
        convert = "call collect() first" if hasattr(data, "collect") else "pass a DataFrame or a list of dicts"
        raise TypeError(f"{what} is {shown(data)}: {convert}")
    records = list(data)
    try:
        return {name: [record[name] for record in records] for name in names}
    except (IndexError, KeyError, TypeError, ValueError):
        for i, record in enumerate(records):
            words = f"{what} {i}" if len(records) > 1 else what
            if not is_record(record):
                raise TypeError(f"{words} is {shown(record)}: pass a dict or a row of a DataFrame") from None
            if missing := [name for name in names if name not in record]:
                raise ValueError(_no_feature(words, missing[0], record.keys(), remedy)) from None
        raise


def _no_feature(what: str, name: str, known: Iterable[Any], remedy: str) -> str:
    names = [str(each) for each in known]
    has = checks.short(names) if names else "none"
    near = checks.nearest(name, names)
    return f"{what} has no feature {name!r}{near}: it has {has}; {remedy}"
