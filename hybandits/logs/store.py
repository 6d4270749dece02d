"""Converted logs: a folder of Parquet tables, which docs/logs.md describes, written whole and read in batches."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hybandits.foundation import __version__
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.files import clear_parts, discard, naming, part_of
from hybandits.logs.report import ReadReport

FORMAT = 4
"""The version of this layout."""

NO_TIME = np.iinfo(np.int64).min
"""Stands for a missing time in arrays."""

NO_PAIRS = np.empty((0, 0, 0))
"""The pair features of a batch that has none."""

LARGEST = 1e20
"""Larger features and rewards are taken for mistakes: products of them must stay finite."""

HEADER = "log.json"
"""The file that marks a converted log."""

Id = str | int


class LogError(Exception):
    """A log that cannot be read or used."""


def id_of(text: str) -> Id:
    """The id that a text stands for: an integer if it is written as Python writes one of 64 bits, else the text itself.

    >>> id_of("100"), id_of("007"), id_of("id-7"), id_of("9223372036854775808")
    (100, '007', 'id-7', '9223372036854775808')
    """
    if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    return text


class Batch(NamedTuple):
    """Consecutive rounds of a log, column by column.

    The columns are as on disk, with `NO_TIME` and NaN for missing times and propensities. `user` is (rounds, features),
    `pair` (rounds, at least the most candidates, pair features), 0 beyond a round's last candidate.
    """

    time: np.ndarray
    pool: np.ndarray
    chosen: np.ndarray
    reward: FloatArray
    propensity: FloatArray
    user: FloatArray
    pair: FloatArray = NO_PAIRS

    @property
    def rounds(self) -> int:
        return len(self.pool)

    def part(self, start: int, stop: int) -> Batch:
        """The rounds start..stop-1."""
        return Batch(*(column[start:stop] for column in self))

    @staticmethod
    def joined(batches: Sequence[Batch]) -> Batch:
        """Several batches in one; pair features are padded to the same number of candidates."""
        *columns, pairs = zip(*batches, strict=True)
        widest = max(pair.shape[1] for pair in pairs)
        padded = [np.pad(pair, ((0, 0), (0, widest - pair.shape[1]), (0, 0))) for pair in pairs]
        return Batch(*map(np.concatenate, (*columns, padded)))


class Pools(NamedTuple):
    """All lists of candidates in a row: pool i is rows[offsets[i]:offsets[i + 1]], which are rows of the arms."""

    offsets: np.ndarray
    rows: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)


class Tables:
    """The arms and pools that a reader has met so far, each vector and each list of candidates once."""

    def __init__(self) -> None:
        self._arms: dict[tuple[Id, bytes], int] = {}
        self._pools: dict[bytes, int] = {}
        self._listed = array("i")
        self._ends = array("q", [0])
        self.names: list[Id] = []
        self.vectors: list[FloatArray] = []

    def arm(self, name: Id, vector: FloatArray) -> int:
        """The row of an arm with this feature vector; it is entered if it is new."""
        name = name if isinstance(name, str) else int(name)  # one of NumPy's perhaps
        key = name, np.ascontiguousarray(vector, np.float64).tobytes()
        row = self._arms.setdefault(key, len(self.names))
        if row == len(self.names):
            self.names.append(name)
            self.vectors.append(np.array(vector, np.float64))
        return row

    @property
    def ids(self) -> list[Id]:
        """The names as the log stores them: integers if all of them are, otherwise strings."""
        if all(isinstance(name, int) for name in self.names):
            return list(self.names)
        texts = {name for name in self.names if isinstance(name, str)}
        twice = next((name for name in self.names if isinstance(name, int) and str(name) in texts), None)
        if twice is not None:
            raise LogError(f"the arms {twice} and {str(twice)!r} differ only in their type: use one of them for both")
        return list(map(str, self.names))

    def pool(self, rows: Sequence[int] | np.ndarray) -> int:
        """The row of a list of candidates, given as rows of arms; it is entered if it is new."""
        listed = np.ascontiguousarray(rows, np.int32).tobytes()
        # Digests are the keys to save memory: there may be as many lists as rounds.
        row = self._pools.setdefault(hashlib.blake2b(listed, digest_size=16).digest(), len(self._pools))
        if row == len(self._ends) - 1:
            self._listed.frombytes(listed)
            self._ends.append(len(self._listed))
        return row

    @property
    def pools(self) -> Pools:
        return Pools(np.array(self._ends, np.int64), np.array(self._listed, np.int32))


class Reader(Protocol):
    """A reader of a log format: its name, the names of the features of users, of arms and of both together, and more.

    `binary_user` says that all user features are 0 or 1, `size` how many bytes there are to read; `about` has further
    entries of the log's header.
    """

    kind: str
    user: list[str]
    arm: list[str]
    pair: list[str]
    binary_user: bool
    size: int
    about: dict[str, Any]

    def batches(
        self, tables: Tables, report: ReadReport, progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Batch]]:
        """The rounds in order, each batch with the name of the source file it is from.

        A reader enters arms and pools into `tables`, counts every line in `report`, and calls `progress` with the bytes
        read since the last call.
        """


def convert(
    reader: Reader, out: Path | str, report: ReadReport, progress: Callable[[int], None] = lambda read: None
) -> Log:
    """Read a raw log and write it to the folder `out`, which must not exist yet; a failure leaves nothing behind.

    `report` counts what became of every line, and raises ReadError if it is strict. `progress` is called with the bytes
    read since the last call, `reader.size` in all.
    """
    names: dict[str, Any] = {"user": reader.user, "arm": reader.arm, "pair": reader.pair}
    with LogWriter(out, kind=reader.kind, **names, binary_user=reader.binary_user) as writer:
        last = None
        for source, batch in reader.batches(writer.tables, report, progress):
            if source != last:
                writer.source()
                last = source
            writer.write(batch)
        return writer.finish(report, reader.about)


def rows_per_group(user: int, pair: int = 0) -> int:
    """The rounds of a row group: those of about a million numbers, for some 32 candidates with pair features."""
    return max(4096, 1 << (20 - (user + 1 + 32 * pair).bit_length()))


class LogWriter:
    """Writes a log as a context manager. Unless `finish` is reached, nothing is left behind.

    Enter arms and pools into `tables` before the batches that refer to them are written.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        kind: str,
        user: Sequence[str],
        arm: Sequence[str],
        pair: Sequence[str] = (),
        binary_user: bool = False,
    ) -> None:
        self.path = Path(path)
        if self.path.exists():
            raise LogError(f"{self.path} exists already: give another name, or remove it")
        self.tables = Tables()
        self.kind, self.user, self.arm, self.pair = kind, list(user), list(arm), list(pair)
        self.rounds = 0
        repeated: list[tuple[str, pa.DataType]] = [
            ("time", pa.int64()), ("arm", pa.int32()), ("pool", pa.int32()), ("chosen", pa.int32()),
            ("reward", pa.float64()), ("propensity", pa.float64()),
        ]  # fmt: skip
        number = pa.bool_() if binary_user else pa.float64()
        users = [(f"user_{name}", number) for name in self.user]
        pairs = [(f"pair_{name}", pa.list_(pa.float64())) for name in self.pair]
        self._schema = pa.schema([*repeated, *users, *pairs])
        split = [f"{name}.list.element" for name, _ in pairs] + [name for name, _ in users if not binary_user]
        self._options = {
            "compression": "zstd", "compression_level": 1, "use_dictionary": [name for name, _ in repeated],
            "use_byte_stream_split": split, "write_page_checksum": True,
        }  # fmt: skip
        self._waiting: list[Batch] = []
        self._unwritten = 0
        # One digest per column, so that it does not depend on how the rounds are cut into batches.
        self._digests = [hashlib.blake2b(digest_size=16) for _ in range(6 + len(self.pair))]
        self._file: pq.ParquetWriter | None = None
        self._sources = 0
        self.folder = part_of(self.path)

    def __enter__(self) -> Self:
        clear_parts([self.path])
        discard(self.folder)
        with naming(self.path):
            (self.folder / "rounds").mkdir(parents=True)
        return self

    def __exit__(self, *problem: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError, pa.ArrowException):  # its content is discarded
                self._file.close()
            self._file = None
        discard(self.folder)

    def source(self) -> None:
        """Begin with the rounds of a source file."""
        self._end_source()
        self._sources += 1

    def write(self, batch: Batch) -> None:
        """Write the next rounds of the current source file."""
        kinds = (np.int64, np.int32, np.int32, np.float64, np.float64, np.float64)
        columns = [np.ascontiguousarray(column, kind) for column, kind in zip(batch[:-1], kinds, strict=True)]
        for digest, column in zip(self._digests, columns + self._pairs_in_a_row(batch), strict=True):
            digest.update(column.data)
        self._waiting.append(batch)
        self._unwritten += batch.rounds
        size = rows_per_group(len(self.user), len(self.pair))
        if self._unwritten >= size:
            joined = Batch.joined(self._waiting)
            ends = range(size, joined.rounds + 1, size)
            for end in ends:
                self._write_group(joined.part(end - size, end))
            self._waiting = [joined.part(ends[-1], joined.rounds)]

    def _pairs_in_a_row(self, batch: Batch) -> list[FloatArray]:
        """The pair features without padding, one after the other."""
        if not self.pair:
            return []
        sizes = self.tables.pools.sizes[batch.pool]
        inside = np.arange(batch.pair.shape[1]) < sizes[:, None]
        if batch.pair.shape[2] != len(self.pair) or int(inside.sum()) != int(sizes.sum()):
            expected = f"there are {len(self.pair)} of them and up to {sizes.max(initial=0)} candidates"
            raise LogError(f"a batch has pair features of shape {batch.pair.shape}, but {expected}: give one for each")
        return [batch.pair[:, :, i][inside] for i in range(len(self.pair))]

    def _write_group(self, batch: Batch) -> None:
        pools = self.tables.pools
        columns = [
            pa.array(batch.time, mask=batch.time == NO_TIME),
            pools.rows[pools.offsets[batch.pool] + batch.chosen],
            batch.pool,
            batch.chosen,
            batch.reward,
            pa.array(batch.propensity, mask=np.isnan(batch.propensity)),
            *batch.user.T,
        ]
        columns = [pa.array(column).cast(kind) for column, kind in zip(columns, self._schema.types, strict=False)]
        if self.pair:
            ends = pa.array(np.append(0, np.cumsum(pools.sizes[batch.pool])).astype(np.int32))
            columns += [pa.ListArray.from_arrays(ends, pa.array(numbers)) for numbers in self._pairs_in_a_row(batch)]
        with naming(self.path):
            if self._file is None:
                path = self.folder / "rounds" / f"{self._sources:05d}.parquet"
                self._file = pq.ParquetWriter(path, self._schema, **self._options)
            self._file.write_table(pa.Table.from_arrays(columns, schema=self._schema), row_group_size=batch.rounds)
        self.rounds += batch.rounds
        self._unwritten -= batch.rounds

    def _end_source(self) -> None:
        if self._unwritten:
            self._write_group(Batch.joined(self._waiting))
        self._waiting = []
        if self._file is not None:
            file, self._file = self._file, None
            with naming(self.path):
                file.close()

    def finish(self, report: ReadReport, about: Mapping[str, Any] | None = None) -> Log:
        """Move the log into place and open it; LogError if it has no rounds. `about` is added to its header."""
        self._end_source()
        if not self.rounds:
            first = f"; first problem: {next(iter(report.examples.values()))}" if report.examples else ""
            read = f"{report.lines:,} lines read{first}"
            raise LogError(f"no round could be read ({read}): check that the log is in the format {self.kind}")
        ids, pools, vectors = self.tables.ids, self.tables.pools, self.tables.vectors
        arms = pa.table({"arm": ids, "features": pa.array([v.tolist() for v in vectors], pa.list_(pa.float64()))})
        listed = pa.ListArray.from_arrays(pa.array(pools.offsets.astype(np.int32)), pa.array(pools.rows))
        pair = [self.pair] if self.pair else []
        names = json.dumps([list(map(str, ids)), self.user, self.arm, *pair])
        content = hashlib.blake2b(names.encode(), digest_size=16)
        for row in (*vectors, pools.offsets, pools.rows):
            content.update(np.ascontiguousarray(row).data)
        for digest in self._digests:
            content.update(digest.digest())
        header = {
            "format": FORMAT, "version": __version__, "kind": self.kind, "content": content.hexdigest(),
            "rounds": self.rounds, "user": self.user, "arm": self.arm, "pair": self.pair, "reading": report.plain(),
            **(about or {}),
        }  # fmt: skip
        with naming(self.path):
            pq.write_table(arms, self.folder / "arms.parquet", compression="zstd", write_page_checksum=True)
            pools_path = self.folder / "pools.parquet"
            pq.write_table(pa.table({"arms": listed}), pools_path, compression="zstd", write_page_checksum=True)
            (self.folder / HEADER).write_text(json.dumps(header, indent=1) + "\n")
        try:
            os.replace(self.folder, self.path)
        except OSError as problem:
            raise LogError(f"{self.path} cannot be written ({problem.strerror}): give another name") from None
        return Log(self.path)


class Shard(NamedTuple):
    """Rounds that can be read on their own: a row group of a file."""

    file: str
    group: int
    start: int
    rounds: int


class Log:
    """The converted log in a folder. Its arms and pools are in memory; its rounds are read in batches.

    `names` has the arm of every row of `vectors`: an arm whose vector has changed has several rows. `shards` are the
    parts in which the log is read and work on it is shared out, `about` is the content of `log.json`.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not (self.path / HEADER).is_file():
            raise LogError(f"{self.path} is not a converted log: convert your log with hybandits convert")
        try:
            self.about: dict[str, Any] = json.loads((self.path / HEADER).read_text())
            if self.about["format"] != FORMAT:
                wrong = f"{self.path} has log format {self.about['format']}, but this version reads {FORMAT}"
                raise LogError(f"{wrong}: convert the log again")
            self.user: list[str] = list(self.about["user"])
            self.arm: list[str] = list(self.about["arm"])
            self.pair: list[str] = list(self.about["pair"])
            arms = pq.read_table(self.path / "arms.parquet")
            pools = pq.read_table(self.path / "pools.parquet")["arms"].combine_chunks()
            self.names: list[Id] = arms["arm"].to_pylist()
            vectors = arms["features"].combine_chunks()
            self.vectors: FloatArray = vectors.flatten().to_numpy().reshape(len(self.names), len(self.arm))
            self.pools = Pools(pools.offsets.to_numpy().astype(np.int64), pools.flatten().to_numpy())
            self.shards: list[Shard] = []
            self.rounds = 0
            for file in sorted((self.path / "rounds").glob("*.parquet")):
                metadata = pq.read_metadata(file)
                for group in range(metadata.num_row_groups):
                    self.shards.append(Shard(file.name, group, self.rounds, metadata.row_group(group).num_rows))
                    self.rounds += self.shards[-1].rounds
            rows = self.pools.rows
            if len(rows) == 0 or rows.min() < 0 or rows.max() >= len(self.names) or self.pools.sizes.min() < 1:
                raise ValueError("a pool is empty or refers to rows that arms.parquet does not have")
            if not np.abs(self.vectors).max(initial=0.0) <= LARGEST:
                raise ValueError(f"arms.parquet holds features that are not finite or larger than {LARGEST:g}")
            if self.rounds != self.about["rounds"]:
                raise ValueError(f"it has {self.rounds} rounds, but {HEADER} says {self.about['rounds']}")
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as problem:
            raise LogError(f"{self.path} is damaged ({first_line(problem)}): convert the log again") from None

    def __repr__(self) -> str:
        counts = {"round": self.rounds, "arm": len(set(self.names)), "pool": len(self.pools.sizes)}
        words = ", ".join(f"{count:,} {word}{'s' * (count != 1)}" for word, count in counts.items())
        return f"Log({str(self.path)!r}): {words}"

    @property
    def source_starts(self) -> list[int]:
        """The first round of every source file that has any."""
        return [shard.start for shard in self.shards if shard.group == 0]

    def read(self, shard: Shard) -> Batch:
        names = ["time", "pool", "chosen", "reward", "propensity"]
        names += [*(f"user_{name}" for name in self.user), *(f"pair_{name}" for name in self.pair)]
        path = self.path / "rounds" / shard.file
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                table = file.read_row_group(shard.group, columns=names, use_threads=False)
            time, pool, chosen, reward, propensity, *others = (column.combine_chunks() for column in table.columns)
            user = np.empty((len(table), len(self.user)))
            for i in range(len(self.user)):
                user[:, i] = others[i].to_numpy(zero_copy_only=False)
            batch = Batch(
                time=time.fill_null(NO_TIME).to_numpy(),
                pool=pool.to_numpy(),
                chosen=chosen.to_numpy(),
                reward=reward.to_numpy(),
                propensity=propensity.fill_null(np.nan).to_numpy(),
                user=user,
                pair=np.empty((len(table), 0, 0)),
            )
            self._check(batch)
            if self.pair:
                batch = batch._replace(pair=self._padded(others[len(self.user) :], self.pools.sizes[batch.pool]))
        except (OSError, pa.ArrowException, ValueError) as problem:
            raise LogError(f"{path} is damaged ({first_line(problem)}): convert the log again") from None
        return batch

    def _padded(self, lists: list[pa.ListArray], sizes: np.ndarray) -> FloatArray:
        """Lists of pair features as an array (rounds, most candidates, features), 0 beyond a list's last."""
        most = int(sizes.max())
        inside = np.arange(most) < sizes[:, None]
        pair = np.zeros((len(sizes), most, len(lists)))
        for i, column in enumerate(lists):
            numbers = column.flatten().to_numpy(zero_copy_only=False)
            if column.null_count or (np.diff(column.offsets.to_numpy()) != sizes).any():
                raise ValueError(f"pair_{self.pair[i]} must have one number for every candidate")
            if not np.abs(numbers).max(initial=0.0) <= LARGEST:
                raise ValueError(f"pair_{self.pair[i]} must be finite and at most {LARGEST:g}")
            pair[:, :, i][inside] = numbers
        return pair

    def _check(self, batch: Batch) -> None:
        """Check what kernels do not, since somebody may have edited the tables."""
        pools = len(self.pools.sizes)
        if batch.pool.min() < 0 or batch.pool.max() >= pools:
            raise ValueError(f"pool must be at least 0 and below {pools}")
        if batch.chosen.min() < 0 or (batch.chosen >= self.pools.sizes[batch.pool]).any():
            raise ValueError("chosen must be a place in the pool's list")
        if not (np.abs(batch.reward).max() <= LARGEST and np.abs(batch.user).max(initial=0.0) <= LARGEST):
            raise ValueError(f"rewards and user features must be finite and at most {LARGEST:g}")

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Read the rounds start..stop-1 in order, one row group at a time."""
        stop = self.rounds if stop is None else min(stop, self.rounds)
        for shard in self.shards:
            first, last = max(start - shard.start, 0), min(stop - shard.start, shard.rounds)
            if first < last:
                yield self.read(shard).part(first, last)


def first_line(problem: Exception) -> str:
    """The first line of an error's message, or its type where it has none."""
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__
