"""The one form of a log: what goes in comes out, in any batches; damage is noticed; failure leaves nothing."""

from __future__ import annotations

import errno
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybandits.logs import store
from hybandits.logs.report import Fault, ReadReport
from hybandits.logs.store import NO_PAIRS, Batch, Log, LogError, LogWriter, Tables, convert
from tests.support.loglike import LittleLog, little_log


def joined(batches):
    return Batch(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))


def test_what_goes_in_comes_out(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "rows_per_group", lambda user, pair: 128)
    log = little_log(tmp_path)
    given = joined([batch for _, batch in LittleLog().batches(store.Tables(), ReadReport(), lambda n: None)])
    stored = joined(list(log.batches()))
    for name, a, b in zip(Batch._fields, given, stored, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert log.rounds == 600
    assert [s.rounds for s in log.shards] == [128, 128, 44] * 2  # a source ends its file
    assert log.source_starts == [0, 300]
    middle = joined(list(log.batches(100, 431)))
    np.testing.assert_array_equal(middle.user, given.user[100:431])


def test_other_tools_read_it(tmp_path):
    log = little_log(tmp_path)
    first = pq.read_table(log.path / "rounds" / log.shards[0].file)
    assert first.column_names[:6] == ["time", "arm", "pool", "chosen", "reward", "propensity"]
    batch = next(log.batches())
    rows = log.pools.rows[log.pools.offsets[batch.pool] + batch.chosen]
    assert first["arm"].to_pylist() == rows.tolist()


def test_content_tells_logs_apart_and_not_how_they_came_in_batches(tmp_path):
    content = little_log(tmp_path).about["content"]
    assert convert(Recut(7), tmp_path / "again", ReadReport()).about["content"] == content
    assert little_log(tmp_path, "other", seed=1).about["content"] != content


def test_a_log_that_is_there_is_not_overwritten(tmp_path):
    little_log(tmp_path)
    with pytest.raises(LogError, match="exists already"):
        little_log(tmp_path)


def test_failure_leaves_nothing(tmp_path):
    class Failing(LittleLog):
        def batches(self, tables, report, progress):
            yield from list(super().batches(tables, report, progress))[:3]
            raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="fire"):
        convert(Failing(), tmp_path / "log", ReadReport())
    assert list(tmp_path.iterdir()) == []


def test_no_round_at_all_is_an_error(tmp_path):
    report = ReadReport()
    report.begin("f")
    report.count(0, [Fault(1, "blank line", "")])
    with (
        pytest.raises(LogError, match=r"no round could be read.*f, line 1: blank line"),
        LogWriter(tmp_path / "log", kind="test", user=["1"], arm=["1"]) as writer,
    ):
        writer.finish(report)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["header", "rounds", "format", "count", "arms", "shard"])
def test_damage_is_noticed(tmp_path, damage):
    log = little_log(tmp_path)
    header = log.path / "log.json"
    about = json.loads(header.read_text())
    if damage == "header":
        header.write_text("{")
    elif damage == "rounds":
        for file in (log.path / "rounds").iterdir():
            file.unlink()
    elif damage == "format":
        header.write_text(json.dumps(about | {"format": 99}))
    elif damage == "count":
        header.write_text(json.dumps(about | {"rounds": 7}))
    elif damage == "arms":
        (log.path / "arms.parquet").write_bytes(b"PAR1 no")
    else:
        file = log.path / "rounds" / log.shards[0].file
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 255
        file.write_bytes(content)
    with pytest.raises(LogError):
        list(Log(log.path).batches())


@pytest.mark.parametrize(("column", "value", "words"), [("pool", 99, "below"), ("chosen", 50, "place in the pool")])
def test_tables_edited_by_hand_are_checked(tmp_path, column, value, words):
    log = little_log(tmp_path)
    file = log.path / "rounds" / log.shards[0].file
    rounds = pq.read_table(file)
    place = rounds.column_names.index(column)
    edited = pa.array([value] * len(rounds), rounds.schema.field(column).type)
    pq.write_table(rounds.set_column(place, column, edited), file)
    with pytest.raises(LogError, match=words):
        list(Log(log.path).batches())


def test_not_a_log(tmp_path):
    with pytest.raises(LogError, match="hybandits convert"):
        Log(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(LogError, match="file is not a converted log: convert your log with"):
        Log(tmp_path / "file")


def test_features_beyond_reason_are_refused(tmp_path):
    log = little_log(tmp_path, user=lambda random, n: np.full((n, 2), 1e160))
    with pytest.raises(LogError, match="at most 1e"):
        list(log.batches())


def ids_log(path, sources):
    """A log with one round per id and source, in groups of one round."""
    with LogWriter(path, kind="mine", user=["constant"], arm=["constant"]) as writer:
        for ids in sources:
            writer.source()
            for name in ids:
                pool = writer.tables.pool([writer.tables.arm(name, np.ones(1))])
                one, first = np.ones(1), np.array([0])
                writer.write(Batch(first, np.array([pool]), first, one, one, np.ones((1, 1))))
        return writer.finish(ReadReport())


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([[5, 7], [np.int64(-2)]], [5, 7, -2]),
        ([["5"], ["7"]], ["5", "7"]),
        ([[5, 7], [8, "hat", 9]], ["5", "7", "8", "hat", "9"]),
        ([["hat", 5], [7]], ["hat", "5", "7"]),
    ],
)
def test_ids_keep_their_type_and_are_strings_if_one_is(tmp_path, monkeypatch, sources, expected):
    monkeypatch.setattr(store, "rows_per_group", lambda user, pair: 1)
    log = ids_log(tmp_path / "log", sources)
    assert [(type(name), name) for name in log.names] == [(type(name), name) for name in expected]
    files = sorted((log.path / "rounds").iterdir())
    assert [file.name for file in files] == ["00001.parquet", "00002.parquet"]
    assert [log.names[i] for file in files for i in pq.read_table(file)["arm"].to_pylist()] == expected
    assert log.about["content"] == ids_log(tmp_path / "as-text", [expected]).about["content"]


def test_ids_that_differ_only_in_their_type_are_refused(tmp_path):
    with pytest.raises(LogError, match="the arms 5 and '5' differ only in their type"):
        ids_log(tmp_path / "log", [[5, "5", "hat"]])
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_names_the_log_and_leaves_nothing(tmp_path, monkeypatch):
    def fail(*args, **options):
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(OSError, match="the disk is full") as problem:
        ids_log(tmp_path / "log", [[5]])
    assert problem.value.filename == str(tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ pair features


def pairs_of(log: Log) -> list[list[list[float]]]:
    """The pair features of every round, without padding."""
    sizes = log.pools.sizes
    return [
        rows[: sizes[p]].tolist() for batch in log.batches() for p, rows in zip(batch.pool, batch.pair, strict=True)
    ]


class Recut(LittleLog):
    """The same rounds in batches of another size."""

    def __init__(self, size: int, **settings: object) -> None:
        super().__init__(**settings)
        self._size = size

    def batches(self, tables, report, progress):
        for source, batch in super().batches(tables, report, progress):
            for start in range(0, batch.rounds, self._size):
                yield source, batch.part(start, start + self._size)


def test_pair_features_come_back_as_they_were(tmp_path):
    """Whatever the batches are."""
    tables = Tables()
    expected = []
    for _, batch in LittleLog(pair=3).batches(tables, ReadReport(), lambda read: None):
        expected += [rows[:n].tolist() for rows, n in zip(batch.pair, tables.pools.sizes[batch.pool], strict=True)]
    log = little_log(tmp_path, pair=3)
    assert log.pair == ["p1", "p2", "p3"]
    assert pairs_of(log) == expected
    again = convert(Recut(7, pair=3), tmp_path / "again", ReadReport())
    assert again.about["content"] == log.about["content"]
    assert pairs_of(again) == expected
    assert little_log(tmp_path, "fewer", pair=2).about["content"] != log.about["content"]


def test_a_log_without_pair_features(tmp_path):
    log = little_log(tmp_path)
    assert log.pair == []
    assert next(log.batches()).pair.shape[1:] == (0, 0)
    names = pq.read_schema(tmp_path / "log" / "rounds" / log.shards[0].file).names
    assert not [name for name in names if name.startswith("pair")]
    assert log.about["content"] == KNOWN_CONTENT


KNOWN_CONTENT = "51b4c058a4185061227f4e2f117f61d3"
"""The digest of this log, which must not change with the layout on disk."""


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lists: [lists[0][:-1], *lists[1:]], "pair_p1 must have one number for every candidate"),
        (lambda lists: [None, *lists[1:]], "pair_p1 must have one number for every candidate"),
        (lambda lists: [[float("nan")] * len(lists[0]), *lists[1:]], "pair_p1 must be finite and at most 1e.20"),
        (lambda lists: [[1e21] * len(lists[0]), *lists[1:]], "pair_p1 must be finite and at most 1e.20"),
    ],
)
def test_pair_features_that_somebody_has_changed_are_refused(tmp_path, damage, message):
    log = little_log(tmp_path, pair=1)
    path = log.path / "rounds" / log.shards[0].file
    table = pq.read_table(path)
    at = table.schema.get_field_index("pair_p1")
    lists = pa.array(damage(table.column(at).to_pylist()), pa.list_(pa.float64()))
    pq.write_table(table.set_column(at, table.schema.field(at), lists), path)
    with pytest.raises(LogError, match=rf"is damaged \({message}\): convert the log again"):
        Log(log.path).read(log.shards[0])


def test_a_batch_with_other_pair_features_is_refused(tmp_path):
    with LogWriter(tmp_path / "log", kind="test", user=["1"], arm=["1"], pair=["near"]) as writer:
        pool = writer.tables.pool([writer.tables.arm(name, np.ones(1)) for name in "ab"])
        one, first = np.ones(1), np.zeros(1, int)
        writer.source()
        for pair in (np.zeros((1, 2, 2)), np.zeros((1, 1, 1)), NO_PAIRS):
            batch = Batch(first, np.array([pool]), first, one, one, np.ones((1, 1)), pair)
            with pytest.raises(
                LogError, match=r"a batch has pair features of shape .* there are 1 of them and up to 2"
            ):
                writer.write(batch)
        writer.write(batch._replace(pair=np.zeros((1, 2, 1))))
        assert writer.finish(ReadReport()).rounds == 1
