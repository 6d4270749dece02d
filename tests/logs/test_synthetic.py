"""Synthetic click logs: well-formed, from the model they say, and a function of the seed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from hybandits.logs.store import LogError
from hybandits.logs.synthetic import BLOCK, FIRST_SECOND, RATE, TRUTH, SyntheticLog
from hybandits.logs.yahoo import Line, YahooReader, parse_line, parse_pool


def lines_of(log: SyntheticLog, folder: Path, files: int = 1) -> list[bytes]:
    return [line for path in log.write(folder, files=files) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["R6A", "R6B"])
@pytest.mark.parametrize("features", ["das", "li"])
def test_clicks_and_displays_are_as_the_model_says(kind: str, features: str, tmp_path: Path) -> None:
    """z-scores of clicks and displays per article, of clicks over halves of users, and of displays per place.

    At most 40 articles, 22 places and 2 halves: about 110 z-scores a log, 4 logs. Beyond 6 lies at most 1e-6, the tail
    of a Poisson variable of mean 10 (scores of a smaller variance are left out), so the false-alarm rate is below 5e-4;
    and the seed is fixed.
    """
    log = SyntheticLog(rounds=6_000, seed=11, kind=kind, features=features)
    scores: dict[str, list[float]] = {}

    def score(what: str, value: float, mean: float) -> None:
        total = scores.setdefault(what, [0.0, 0.0])
        total[0] += value - mean
        total[1] += mean * (1 - mean)

    for text in lines_of(log, tmp_path):
        line: Line = parse_line(text, kind)
        pool = parse_pool(line.pool, kind)
        shown = [name for name, _ in pool].index(line.article)
        article, vector = pool[shown]
        assert vector == log.articles[article].tolist()
        mean = log.mean(np.array(line.user), np.array(vector), article)
        score(f"clicks of {article}", line.click, mean)
        score(f"clicks where the mean is above the rate: {mean > RATE}", line.click, mean)
        for place, (name, _) in enumerate(pool):
            score(f"displays of {name}", place == shown, 1 / len(pool))
            score(f"displays at {place}", place == shown, 1 / len(pool))
    judged = {what: each for what, each in scores.items() if each[1] >= 10}
    assert len(judged) > 50
    for what, (surplus, variance) in judged.items():
        assert abs(surplus) < 6 * np.sqrt(variance), what
    truth = json.loads((tmp_path / TRUTH).read_text())
    theta, beta = log.parameters
    assert truth["theta"] == theta.tolist()
    assert truth["beta"] == {name: each.tolist() for name, each in beta.items()}
    assert SyntheticLog(**truth["synthetic"]) == log
    assert len(theta) == log.map.d1
    assert all(len(each) == log.map.d2 for each in beta.values())


@pytest.mark.parametrize("rounds", [10_000, 200_000])
def test_the_pool_changes(rounds: int) -> None:
    log = SyntheticLog(rounds=rounds, seed=1)
    starts = [start for start, _ in log.schedule]
    assert len(starts) >= 5
    assert starts[0] == 0
    sizes = [len(listed) for _, listed in log.schedule]
    assert min(sizes) >= 18
    assert max(sizes) <= 22
    for (_, before), (_, after) in zip(log.schedule, log.schedule[1:], strict=False):
        assert before != after
        assert len(set(before) ^ set(after)) <= 2
        assert len(set(after)) == len(after)
    lifes = np.diff(starts)
    assert lifes.min() > 0.5 * min(35_000, rounds // 8)
    assert lifes.max() < 1.5 * min(35_000, rounds // 8)


def test_memberships_are_as_in_the_real_log(tmp_path: Path) -> None:
    log = SyntheticLog(rounds=500, seed=1)
    bare = [vector for vector in log.articles.values() if vector[1:].sum() == 0]
    assert 0 < len(bare) < len(log.articles) / 4
    for text in lines_of(log, tmp_path):
        line = parse_line(text, "R6A")
        assert line.user[0] == 1
        assert sum(line.user[1:]) == pytest.approx(1, abs=1e-12)
        for _, vector in parse_pool(line.pool, "R6A"):
            assert vector[0] == 1
            assert sum(vector[1:]) in (0, pytest.approx(1, abs=1e-12))
        user = text.split(b" |")[1]
        assert [feature.split(b":")[0] for feature in user.split()[1:]] == [b"2", b"3", b"4", b"5", b"6", b"1"]
        assert all(len(feature) == 10 for feature in user.split()[1:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["R6A", "R6B"])
def test_a_function_of_the_seed(kind: str, tmp_path: Path) -> None:
    rounds = BLOCK + 500
    one = SyntheticLog(rounds=rounds, seed=5, kind=kind).write(tmp_path / "one", files=3)
    two = SyntheticLog(rounds=rounds, seed=5, kind=kind).write(tmp_path / "two", files=3)
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert (tmp_path / "one" / TRUTH).read_bytes() == (tmp_path / "two" / TRUTH).read_bytes()
    other = lines_of(SyntheticLog(rounds=rounds, seed=6, kind=kind), tmp_path / "three")
    entire = lines_of(SyntheticLog(rounds=rounds, seed=5, kind=kind), tmp_path / "four")
    split = [line for path in one for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [line[10:] for line in entire] == [line[10:] for line in split]  # all but the times
    assert entire != other


def test_days(tmp_path: Path) -> None:
    reported = []
    paths = SyntheticLog(rounds=1000).write(tmp_path, files=32, progress=reported.append)
    assert sum(reported) == 1000
    assert paths[0].name == "ydata-fp-td-clicks-v1_0.20090501.gz"
    assert paths[-1].name == "ydata-fp-td-clicks-v1_0.20090601.gz"
    reader = YahooReader(tmp_path)
    assert reader.files == paths
    assert list(reader.ignored) == [str(tmp_path / TRUTH)]
    last = 0
    for day, path in enumerate(paths):
        for text in gzip.decompress(path.read_bytes()).splitlines():
            time = int(text[:10])
            assert time >= last
            assert (time - FIRST_SECOND) // 86_400 == day
            last = time


def test_refusals(tmp_path: Path) -> None:
    for settings, message in (
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"pool": 2}, "pool must be"), ({"kind": "R6C"}, "kind must be one of R6A, R6B, got 'R6C'"),
        ({"features": "shared"}, "features must be das or li"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            SyntheticLog(**{"rounds": 10, **settings})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="files must be between 1 and the 10 rounds, got 11"):
        SyntheticLog(rounds=10).write(tmp_path, files=11)
    SyntheticLog(rounds=10).write(tmp_path)
    with pytest.raises(LogError, match="exists already and is not empty"):
        SyntheticLog(rounds=10).write(tmp_path)
    with pytest.raises(LogError, match="exists already"):
        SyntheticLog(rounds=10).write(tmp_path / TRUTH)


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_no_half_log_is_left_behind(tmp_path: Path, problem: BaseException) -> None:
    def fail(rounds: int) -> None:
        raise problem

    with pytest.raises(type(problem)) as raised:
        SyntheticLog(rounds=2000).write(tmp_path / "log", files=2, progress=fail)
    assert list(tmp_path.iterdir()) == []
    if isinstance(raised.value, OSError):
        assert raised.value.filename == str(tmp_path / "log")
