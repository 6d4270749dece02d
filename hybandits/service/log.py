"""The log: its rows, in one order, and the database that keeps them, in SQL that SQLite and PostgreSQL share."""

import contextlib
import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self, TypeVar, get_args

import msgspec
from msgspec.structs import replace

SCHEMA = 2
"""The version of the rows and tables. A log of another version is refused."""

Value = str | int | float | bool | None
"""The value of a feature in a row. In requests texts have a limit (`commands.Given`), but every row can be read."""

Candidates = msgspec.Raw
"""The candidates that a request names, as the JSON that came: a list of ids, or `ALL`."""

ALL: Candidates = msgspec.Raw(b"null")
"""No candidates are named: all active arms are meant."""


class Opened(msgspec.Struct, tag="bandit", tag_field="is", frozen=True):
    """The first row: the bandit, with everything that decisions depend on."""

    schema: int
    bandit: dict[str, Any]


class Changed(msgspec.Struct, tag="change", tag_field="is", frozen=True):
    """Other values from here on of settings that may change."""

    values: dict[str, Any]


class Promoted(msgspec.Struct, tag="promote", tag_field="is", frozen=True):
    """From here on the policy of this name decides."""

    policy: str


class Arm(msgspec.Struct, tag="arm", tag_field="is", frozen=True, omit_defaults=True):
    """An active arm and its features. The row's number is the version of the arm.

    It is a candidate from `start` on and before `end`, in microseconds since 1970, where they are given.
    """

    arm: str
    features: dict[str, Value]
    start: int | None = None
    end: int | None = None


class Retired(msgspec.Struct, tag="retire", tag_field="is", frozen=True):
    """An arm is no longer a candidate. Rewards of decisions that were made for it are still learned."""

    arm: str


class Controlled(msgspec.Struct, tag="control", tag_field="is", frozen=True):
    """From here on these guard rails hold, and no others."""

    controls: dict[str, Any]


class Place(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A further place of a ranking: a decision among the candidates that are left."""

    n: int
    arm: str
    arm_version: int
    chance: float
    floor: float
    distribution: list[tuple[int, float]]
    shadows: dict[str, float] = {}
    features: dict[str, Value] | None = None
    pair: dict[str, Value] | None = None


class Decision(msgspec.Struct, tag="decision", tag_field="is", frozen=True, omit_defaults=True, gc=False):
    """A decision among `candidates`; `ALL` are the arms active at row `version`, the last that the model had learned.

    `arm_version` is the row that described the arm, 0 if the request did, `chance` its probability, and `distribution`
    the policy's own probabilities by the positions of the `n` candidates that the guard rails left. `shadows` has every
    challenger's probability of the arm, `key` is the user's, and `features` and `pair` are what the request said about
    the arm. A ranking asks for `places`; `more` has those after the first, whose probabilities are given those before.
    """

    event: str
    user: dict[str, Value]
    candidates: Candidates
    version: int
    n: int
    arm: str
    arm_version: int
    chance: float
    floor: float
    distribution: list[tuple[int, float]]
    policy: str
    fingerprint: str
    shadows: dict[str, float] = {}
    key: str | None = None
    features: dict[str, Value] | None = None
    pair: dict[str, Value] | None = None
    places: int = 1
    more: list[Place] = []

    def at(self, place: int) -> Self:
        """Return the decision of one place of a ranking."""
        if place == 1:
            return self
        return replace(self, **msgspec.structs.asdict(self.more[place - 2]))


class Reward(msgspec.Struct, tag="reward", tag_field="is", frozen=True, omit_defaults=True, gc=False):
    """A reward for a place of a decision. It is learned here, or when the decision closes, or never if it came late."""

    event: str
    decision: int
    reward: float
    late: bool = False
    place: int = 1


class Closed(msgspec.Struct, tag="close", tag_field="is", frozen=True):
    """All decisions up to this row are closed: those that were open are learned now, in the order of their rows."""

    last: int


class Ended(msgspec.Struct, tag="end", tag_field="is", frozen=True):
    """The last row of a log that was rotated: the log that continues it, and the snapshot of the model before."""

    next: str
    fingerprint: str
    digest: str


class Continued(msgspec.Struct, tag="continue", tag_field="is", frozen=True):
    """The row with which a log continues another one: its snapshot. Rows before it were copied from there."""

    previous: str
    fingerprint: str
    digest: str
    model: bytes


class Corrected(msgspec.Struct, tag="correct", tag_field="is", frozen=True, omit_defaults=True):
    """Another reward for a place of the decision `of`, or none. `event` is the id of the correction.

    Before a decision closes it counts at once; what has been learned changes at the next row `Relearned`.
    """

    event: str
    of: str
    decision: int
    reward: float | None
    place: int = 1


class Erasing(msgspec.Struct, tag="erasing", tag_field="is", frozen=True):
    """These rows, `decisions` among them, are erased with the next row `Relearned`.

    The model has learned nothing of them before the row `since`.
    """

    rows: list[int]
    decisions: list[int]
    since: int


class Erased(msgspec.Struct, tag="erased", tag_field="is", frozen=True):
    """A row whose content was erased."""


class Relearned(msgspec.Struct, tag="relearn", tag_field="is", frozen=True):
    """From here on the model is what it would have been with all corrections, and erasures, up to the row `upto`."""

    upto: int


Content = (
    Opened
    | Changed
    | Promoted
    | Arm
    | Retired
    | Decision
    | Reward
    | Closed
    | Ended
    | Continued
    | Controlled
    | Corrected
    | Erasing
    | Erased
    | Relearned
)

KINDS: dict[type, int] = {kind: i for i, kind in enumerate(get_args(Content))}
"""The numbers that tables have for the kinds of rows."""

DECISION, REWARD, CONTINUED = KINDS[Decision], KINDS[Reward], KINDS[Continued]
CORRECTED, ERASING, RELEARNED = KINDS[Corrected], KINDS[Erasing], KINDS[Relearned]

EVENTLESS = tuple(number for kind, number in KINDS.items() if kind not in (Decision, Reward, Corrected))
"""Kinds of rows that belong to no event."""

FEW = tuple(KINDS[kind] for kind in (Opened, Changed, Promoted, Arm, Retired, Controlled))
"""Kinds of rows of settings, arms and guard rails. A log has few of them."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of the log."""

    number: int
    time: int
    content: Content

    @property
    def event(self) -> str | None:
        """The event that the row belongs to, if any."""
        return getattr(self.content, "event", None)

    @property
    def key(self) -> str | None:
        """The event, and the place of a reward after the first: no two rows of a kind have the same."""
        return place_key(self.content.event, self.content.place) if isinstance(self.content, Reward) else self.event

    @property
    def decision(self) -> Decision:
        """The content of a row that is a decision."""
        assert isinstance(self.content, Decision)
        return self.content


def place_key(event: str, place: int) -> str:
    """Return the key of a reward. As bytes it holds 0xFF, which no id does, because ids are UTF-8."""
    return event if place == 1 else f"{event}\udcff{place}"


def keys_of(decision: Decision) -> list[str]:
    """Return the keys of all rewards that a decision may get."""
    return [place_key(decision.event, place) for place in range(1, len(decision.more) + 2)]


def _bytes_of(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


def encode_ids(ids: Sequence[Any] | None) -> Candidates:
    """Return candidates in the form that rows have; `ALL` for None."""
    return msgspec.Raw(msgspec.json.encode(ids))


SNAPSHOTS = 3
"""Fingerprints of which a snapshot is stored: while servers are upgraded one by one, there are two."""

PAGE = 1_000
"""Rows that are read at a time. A WAL of SQLite cannot be reset while somebody reads."""

_ROWS = msgspec.json.Decoder(list[Row])
_OUTCOMES = msgspec.json.Decoder(list[tuple[Row, Row | None]])

Values = Sequence[Any]
Result = list[tuple[Any, ...]]
T = TypeVar("T")


TABLES = """
CREATE TABLE IF NOT EXISTS version (schema {integer} NOT NULL, probes {integer} NOT NULL){table};
INSERT INTO version SELECT {schema}, 0 WHERE NOT EXISTS (SELECT 1 FROM version);
CREATE TABLE IF NOT EXISTS log (
  row {integer} PRIMARY KEY, kind {integer} NOT NULL, time {integer} NOT NULL, event {blob}, content TEXT NOT NULL
){table};
CREATE UNIQUE INDEX IF NOT EXISTS of_event ON log (event, kind) WHERE event IS NOT NULL;
CREATE INDEX IF NOT EXISTS of_kind ON log (kind, row) WHERE event IS NULL;
CREATE TABLE IF NOT EXISTS snapshot (
  row {integer} PRIMARY KEY, fingerprint TEXT NOT NULL, content {blob} NOT NULL
){table};
"""
"""Events are bytes (UTF-8), because a text of PostgreSQL cannot hold every character. Contents are JSON, which can."""

# Many rows are fetched as one text of JSON, because other threads may run after each row that is fetched.
_ROW = "'[' || {0}.row || ',' || {0}.time || ',' || {0}.content || ']'"


class StoreError(ValueError):
    """The store cannot be used now; the message says why."""


class EventRows(NamedTuple):
    """The rows of an event."""

    decision: Row | None = None
    reward: Row | None = None
    correction: Row | None = None


_NAMES: dict[type, str] = {Decision: "decision", Reward: "reward", Corrected: "correction"}


class Snapshot(NamedTuple):
    """The model after a row, as bytes. It is a cache: it can be computed again from the log."""

    row: int
    fingerprint: str
    content: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()


START = "start it with hybandits serve bandit.toml, or give another --store."
"""The remedy where there is no log."""


class _Local(threading.local):
    connection: Any = None
    writing: Any = None  # the same while its transaction writes


class Store(ABC):
    """A log on disk, with a connection for every thread. Where the disk or database fails, `StoreError` is raised."""

    name: str  # in messages, without user and password
    piece: int  # rows that one statement writes, or looks up

    def __init__(self) -> None:
        self._local = _Local()
        self._connections: list[Any] = []
        self._connecting = threading.Lock()

    @abstractmethod
    def _connect(self) -> Any:
        """Return a new connection."""

    @abstractmethod
    def _is_lost(self, connection: Any) -> bool:
        """Return whether a connection has ended."""

    @abstractmethod
    def _ask(self, connection: Any, query: str, values: Values = ()) -> Result:
        """Return the result of a statement, in which values are written as question marks."""

    @abstractmethod
    def _among(self, values: Values) -> tuple[str, Values]:
        """Return the condition that a column has one of these values, and its values."""

    @abstractmethod
    def _source(self, rows: Sequence[Values]) -> tuple[str, Values]:
        """Return the source of an INSERT of these rows, and its values."""

    @abstractmethod
    def _begin(self, connection: Any) -> None:
        """Begin a transaction that is the only one to write."""

    @abstractmethod
    def _abandon(self, connection: Any) -> None:
        """End a transaction without its rows, whatever has happened."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""

    def free(self) -> int | None:
        """Return the bytes that are free where the log lies; None where that is not known."""
        return None

    def _turn(self) -> contextlib.AbstractContextManager[None]:
        """Wait for other processes that write, where the database itself would not wake this one at once."""
        return contextlib.nullcontext()

    def _commit(self, connection: Any) -> None:
        """Commit; when it returns, the rows are on disk."""
        self._ask(connection, "COMMIT")

    def _on_connection(self, action: Callable[[Any], T]) -> T:
        """Call an action with the connection of this thread, and again with another one if that was lost."""
        if self._local.writing is not None:
            return action(self._local.writing)
        connection = self._local.connection
        if connection is not None and not self._is_lost(connection):
            try:
                return action(connection)
            except StoreError:
                if not self._is_lost(connection):
                    raise
        self._local.connection = connection = self._connect()
        with self._connecting:
            self._connections = [*(each for each in self._connections if not self._is_lost(each)), connection]
        return action(connection)

    def _fetch(self, query: str, values: Values = ()) -> Result:
        return self._on_connection(lambda connection: self._ask(connection, query, values))

    @contextlib.contextmanager
    def writing(self) -> Iterator[Self]:
        """Begin a transaction on this thread, the only one to write; when it ends without an error, it is on disk."""
        with self._turn():
            self._on_connection(self._begin)
            connection = self._local.writing = self._local.connection
            try:
                yield self
                self._commit(connection)
            except BaseException:
                self._abandon(connection)
                raise
            finally:
                self._local.writing = None

    def append(self, rows: Sequence[Row], last: int | None = None) -> None:
        """Add rows in a transaction, where the log ends with the row `last`: the one before the first of them."""
        for piece in self._pieces(rows):
            last = piece[0].number - 1 if last is None else last
            source, values = self._source([_columns(row) for row in piece])
            query = (
                f"INSERT INTO log (row, kind, time, event, content) SELECT * FROM {source} "
                "WHERE (SELECT coalesce(max(row), 0) FROM log) = ? RETURNING 1"
            )
            if not self._fetch(query, [*values, last]):
                wrong = f"{self.name} ends with row {self.last()[0]}, so that row {piece[0].number} cannot come next"
                raise StoreError(f"{wrong}: if the log was replaced by an earlier copy, restart all servers.")
            last = piece[-1].number

    def erase(self, rows: Sequence[int]) -> None:
        """Overwrite the content of rows, and remove snapshots, in a transaction."""
        content = msgspec.json.encode(Erased()).decode()
        for piece in self._pieces(rows):
            condition, values = self._among(piece)
            query = f"UPDATE log SET kind = ?, event = NULL, content = ? WHERE row {condition}"
            self._fetch(query, [KINDS[Erased], content, *values])
        if rows:
            self._fetch("DELETE FROM snapshot")

    def touch(self) -> None:
        """Write something that changes nothing, so that the commit shows whether the disk takes it."""
        self._fetch("UPDATE version SET probes = probes + 1")

    def rows(self, after: int, upto: int | None = None, kinds: Sequence[int] | None = None) -> Iterator[Row]:
        """Yield the rows after..upto, in order; only of these kinds if they are given."""
        where, values = "row > ? AND row <= ?", [2**62 if upto is None else upto]
        if kinds is not None:
            where += f" AND kind IN ({', '.join('?' * len(kinds))})"
            where += " AND event IS NULL" if set(kinds) <= set(EVENTLESS) else ""  # so that the index on kinds is used
            values += kinds
        query = f"SELECT row, time, content FROM log WHERE {where} ORDER BY row LIMIT {PAGE}"
        while page := self._rows(query, [after, *values]):
            yield from page
            after = page[-1].number

    def _rows(self, query: str, values: Values) -> list[Row]:
        ((text,),) = self._fetch(f"SELECT string_agg({_ROW.format('r')}, ',') FROM ({query}) AS r", values)
        return sorted(_ROWS.decode(f"[{text or ''}]"), key=attrgetter("number"))

    def _rows_with(self, column: str, values: Values) -> list[Row]:
        condition, values = self._among(values)
        return self._rows(f"SELECT row, time, content FROM log WHERE {column} {condition}", values)

    def _pieces(self, values: Sequence[T]) -> Iterator[Sequence[T]]:
        return (values[i : i + self.piece] for i in range(0, len(values), self.piece))

    def find(self, events: Sequence[str]) -> dict[str, EventRows]:
        """Return decisions, rewards and corrections by their keys; those that have none are left out."""
        known: dict[str, EventRows] = {}
        for piece in self._pieces([_bytes_of(event) for event in events]):
            for row in self._rows_with("event", piece):
                event = row.key or ""
                known[event] = known.get(event, EventRows())._replace(**{_NAMES[type(row.content)]: row})
        return known

    def by_number(self, numbers: Sequence[int]) -> list[Row]:
        """Return the rows with these numbers, in this order."""
        known = {row.number: row for piece in self._pieces(numbers) for row in self._rows_with("row", piece)}
        if missing := [number for number in numbers if number not in known]:
            raise StoreError(f"{self.name} has no row {missing[0]}.")
        return [known[number] for number in numbers]

    def outcomes(self, after: int, upto: int) -> Iterator[tuple[Row, Row | None]]:
        """Yield the decisions among the rows after..upto, each with its reward, or None."""
        query = (
            f"SELECT string_agg('[' || {_ROW.format('d')} || ',' || coalesce({_ROW.format('r')}, 'null') || ']', ',') "
            "FROM (SELECT row, time, content, event FROM log WHERE row > ? AND row <= ? AND kind = ? "
            f"ORDER BY row LIMIT {PAGE}) AS d LEFT JOIN log AS r ON r.event = d.event AND r.kind = ?"
        )
        while text := self._fetch(query, [after, upto, DECISION, REWARD])[0][0]:
            page = sorted(_OUTCOMES.decode(f"[{text}]"), key=lambda pair: pair[0].number)
            yield from page
            after = page[-1][0].number

    def first_decisions(self, after: int, most: int) -> list[tuple[int, int]]:
        """Return number and time of the first decisions after a row, at most so many."""
        query = "SELECT row, time FROM log WHERE row > ? AND kind = ? ORDER BY row LIMIT ?"
        return self._fetch(query, [after, DECISION, most])  # type: ignore[return-value]

    def last(self) -> tuple[int, int]:
        """Return number and time of the last row; (0, 0) if there is none."""
        rows = self._fetch("SELECT row, time FROM log ORDER BY row DESC LIMIT 1")
        return rows[0] if rows else (0, 0)  # type: ignore[return-value]

    def snapshot(self, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        """Return the newest snapshot of a fingerprint, or the newest up to a row."""
        query = "SELECT * FROM snapshot WHERE fingerprint = ? AND row <= ? ORDER BY row DESC LIMIT 1"
        rows = self._fetch(query, [fingerprint, 2**62 if upto is None else upto])
        return Snapshot(*rows[0]) if rows else None

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot; only the newest of each fingerprint stays, and of these the newest `SNAPSHOTS`."""
        with self.writing():
            self._fetch(
                "INSERT INTO snapshot VALUES (?, ?, ?) ON CONFLICT (row) DO UPDATE "
                "SET fingerprint = excluded.fingerprint, content = excluded.content",
                snapshot,
            )
            self._fetch(
                "DELETE FROM snapshot WHERE row NOT IN "
                "(SELECT max(row) FROM snapshot GROUP BY fingerprint ORDER BY max(row) DESC LIMIT ?)",
                [SNAPSHOTS],
            )

    def _check_version(self, create: bool) -> None:
        """Raise if the log has another schema, or if it is empty and should not be."""
        for (schema,) in self._fetch("SELECT schema FROM version"):
            if schema != SCHEMA:
                raise StoreError(f"{self.name} has schema {schema}, this version of hybandits reads {SCHEMA}")
        if not create and self.last()[0] == 0:
            raise StoreError(f"The log {self.name} is empty: {START}")


def _columns(row: Row) -> Values:
    event = None if row.key is None else _bytes_of(row.key)
    return row.number, KINDS[type(row.content)], row.time, event, msgspec.json.encode(row.content).decode()


def open_store(address: str, *, create: bool = True) -> Store:
    """Open the store with this address: a path for SQLite, or postgresql://.. for PostgreSQL."""
    scheme, separator, _ = address.partition("://")
    if not separator:
        from hybandits.service.sqlite import SqliteStore

        return SqliteStore(address, create=create)
    if scheme in ("postgresql", "postgres"):
        from hybandits.service.postgres import PostgresStore

        return PostgresStore(address, create=create)
    # The rest may hold a password, so it is not repeated.
    raise ValueError(f"the store begins with {scheme}://: give a SQLite file, or postgresql://HOST/DATABASE")
