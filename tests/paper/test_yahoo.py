"""The experiment on a click log up to its records: preparing the log, splitting it, fitting, writing records."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hybandits import paper
from hybandits.experiments.record import Experiment
from hybandits.experiments.runner import Job, run_unit
from hybandits.logs.store import Log, LogError
from hybandits.logs.synthetic import SyntheticLog
from hybandits.paper import yahoo

TRAIN, ROUNDS = 400, 200


class Stages(list[tuple[str, int, int]]):
    """A progress that keeps its calls."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.append((stage, done, total))

    def names(self) -> list[str]:
        return list(dict.fromkeys(stage for stage, _, _ in self))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a synthetic log in it: 600 rounds, the last 200 of which are on the second day."""
    out = tmp_path_factory.mktemp("out")
    yahoo.prepare_log(out, None, train=TRAIN, rounds=ROUNDS)
    return out


@pytest.fixture(scope="module")
def log(folder: Path) -> Log:
    return Log(folder / "log")


# ------------------------------------------------------------------ preparing


def test_without_data_a_synthetic_log_is_written_and_converted(tmp_path: Path) -> None:
    stages = Stages()
    log, report = yahoo.prepare_log(tmp_path, None, train=TRAIN, rounds=ROUNDS, seed=3, progress=stages)
    assert log.rounds == TRAIN + ROUNDS
    assert log.about["synthetic"]["seed"] == 3
    assert report is not None
    assert stages.names() == ["writing a synthetic log", "reading the log"]
    assert sum(done for stage, done, _ in stages if stage == "writing a synthetic log") == TRAIN + ROUNDS


def test_a_log_is_prepared_once(folder: Path) -> None:
    stages = Stages()
    log, report = yahoo.prepare_log(folder, None, train=TRAIN, rounds=ROUNDS, progress=stages)
    assert report is None, "nothing was read"
    assert log.path == folder / "log"
    assert stages == []


def test_a_converted_log_is_used_where_it_lies(folder: Path, tmp_path: Path) -> None:
    log, report = yahoo.prepare_log(tmp_path, folder / "log", train=TRAIN, rounds=ROUNDS)
    assert (log.path, report) == (folder / "log", None)
    assert list(tmp_path.iterdir()) == []


def test_a_synthetic_log_with_other_settings_is_not_replaced(folder: Path) -> None:
    with pytest.raises(LogError, match="is not this synthetic log: give another --out, or remove it"):
        yahoo.prepare_log(folder, None, train=TRAIN, rounds=ROUNDS, seed=1)


def test_a_synthetic_log_that_was_left_half_written_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "synthetic").mkdir()
    (tmp_path / "synthetic" / "rubbish").touch()
    log, _ = yahoo.prepare_log(tmp_path, None, train=50, rounds=20)
    assert log.rounds == 70
    assert not (tmp_path / "synthetic" / "rubbish").exists()


def test_a_log_of_other_files_is_refused(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("two", 2)):
        SyntheticLog(rounds=50, seed=seed).write(tmp_path / name, files=1)
    log, _ = yahoo.prepare_log(tmp_path / "out", tmp_path / "one", train=30, rounds=20)
    assert log.rounds == 50
    with pytest.raises(LogError, match=r"was converted from other files than .*two holds now: give another --out"):
        yahoo.prepare_log(tmp_path / "out", tmp_path / "two", train=30, rounds=20)
    with pytest.raises(LogError, match="nowhere does not exist: give the folder"):
        yahoo.prepare_log(tmp_path / "out", tmp_path / "nowhere", train=30, rounds=20)


# ------------------------------------------------------------------ splitting


def three_days(kind: str = "R6A") -> Any:
    """The parts of a log that splitting it takes: three files of 100 rounds."""
    return SimpleNamespace(about={"kind": kind}, path=Path("log"), rounds=300, source_starts=(0, 100, 200))


@pytest.mark.parametrize(
    ("train", "rounds", "start"),
    [
        (80, 50, 100),  # the next day
        (100, 200, 100),  # which begins at once
        (120, 100, 200),
        (120, 150, 120),  # too few from the next day on: from the next round on
        (299, 1, 299),
    ],
)
def test_play_starts_with_the_next_file(train: int, rounds: int, start: int) -> None:
    assert yahoo.split_log(three_days(), train=train, rounds=rounds) == (train, start, rounds)


@pytest.mark.parametrize(
    ("train", "rounds", "message"),
    [
        (300, 1, "the log has 300 rounds, too few to fit 300 and play 1: lower --train"),
        (250, 60, "the log has 300 rounds, too few to fit 250 and play 60: lower --rounds to 50 or less"),
    ],
)
def test_a_log_that_is_too_short(train: int, rounds: int, message: str) -> None:
    with pytest.raises(LogError, match=message):
        yahoo.split_log(three_days(), train=train, rounds=rounds)


def test_a_log_of_another_kind() -> None:
    with pytest.raises(LogError, match="on R6A click logs, log is of the kind R6B: give --data"):
        yahoo.split_log(three_days("R6B"), train=10, rounds=10)


# ------------------------------------------------------------------ records


def test_records_of_both_protocols(log: Log) -> None:
    split = yahoo.split_log(log, train=TRAIN, rounds=ROUNDS)
    stages = Stages()
    released, written = yahoo.experiments(log, split, ["released", "written"], trials=2, seed=5, progress=stages)
    assert stages.names() == ["fitting", "measuring the rounds to play"]
    assert [record.key for record in (released, written)] == ["yahoo/released", "yahoo/written"]
    assert [record.noise for record in (released, written)] == [1e-5, 1e-2]
    assert [entry.name for entry in released.policies] == list(paper.YAHOO_POLICIES)
    assert (released.d1, released.d2, released.horizon, released.seeds, released.trials) == (36, 6, ROUNDS, (5,), 2)
    assert released.points[-1] == ROUNDS
    assert released.log is not None
    assert released.log == written.log
    about = released.log
    assert (about["train"], about["start"], about["rounds"]) == split
    assert (about["kind"], about["arms"], about["synthetic"]["seed"]) == ("R6A", "articles", 0)
    assert released.arms[0] >= about["unfitted_arms"] >= 0
    assert len(about["model"]["names"]) == len(about["model"]["beta"]) == about["trained_arms"]
    assert all(any(row) for row in about["model"]["beta"])
    assert 0 < about["uniform_choice_regret"] < ROUNDS
    for record in (released, written):
        assert Experiment.from_plain(json.loads(json.dumps(record.plain()))) == record


def test_positions_as_arms_have_a_name_of_their_own(log: Log) -> None:
    split = yahoo.split_log(log, train=TRAIN, rounds=ROUNDS)
    (record,) = yahoo.experiments(log, split, ["released"], arms="positions", policies=("HyLinUCB",))
    assert record.key == "yahoo-positions/released"
    assert [entry.name for entry in record.policies] == ["HyLinUCB"]


def test_a_slow_policy_plays_the_first_rounds_of_a_synthetic_log(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    split, names = yahoo.split_log(log, train=TRAIN, rounds=ROUNDS), ("HyLinUCB", "HyRan")
    (whole,) = yahoo.experiments(log, split, ["released"], policies=names)
    monkeypatch.setattr(yahoo, "YAHOO_HYRAN_ROUNDS", 51)
    (record,) = yahoo.experiments(log, split, ["released"], policies=names)
    assert [record.rounds_of(name) for name in names] == [ROUNDS, 50]
    assert [unit.rounds for unit in record.units()] == [ROUNDS, 50]
    assert Experiment.from_plain(json.loads(json.dumps(record.plain()))) == record
    for full, unit in zip(whole.units(), record.units(), strict=True):
        (all_rounds,), (played,) = (run_unit(Job(each, str(log.path))) for each in (full, unit))
        count = np.searchsorted(record.points, record.rounds_of(unit.policy), side="right")
        np.testing.assert_array_equal(played.regret[:count], all_rounds.regret[:count])
        assert np.isnan(played.regret[count:]).all()
