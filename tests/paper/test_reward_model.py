"""Reward models from files: JSON, and the archive of the released code, whose pickle is never run."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.evaluation.view import View
from hybandits.experiments import runner
from hybandits.logs.formats import reader_of
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Log, LogError, convert
from hybandits.logs.synthetic import SyntheticLog
from hybandits.paper import yahoo
from hybandits.paper.reward_model import read_model, released_weights

WEIGHTS = np.linspace(-0.5, 0.5, 156).astype(np.float32)
Entries = dict[str, bytes]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp("log")
    SyntheticLog(rounds=300, seed=1).write(folder / "raw")
    return convert(reader_of(folder / "raw"), folder / "log", ReadReport())


def archive(change: Callable[[Entries], Any] = lambda entries: None, *, compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive as PyTorch writes it, with a pickle that would end the tests if it were run."""
    entries = {
        "data.pkl": b"cos\n_exit\n(I1\ntR.", "byteorder": b"little", "data/0": WEIGHTS.tobytes(), "version": b"3\n",
        ".data/serialization_id": b"0" * 40,
    }  # fmt: skip
    change(entries)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as file:
        for name, value in entries.items():
            file.writestr(f"model/{name}", value)
    return content.getvalue()


def test_the_released_weights_give_the_rewards_of_the_released_features(log: Log, tmp_path: Path) -> None:
    """Their long vector of place i holds the outer product of user and article row by row, and the article at i."""
    file = tmp_path / "model.pt"
    file.write_bytes(archive())
    view = View(log, features="das", arms="positions")
    model, name, digest = read_model(file, view)
    assert (name, len(digest)) == ("model.pt", 64)
    batch = next(log.batches(0, 50))
    means = model.means(view, batch, *model.per_group(view))
    pools = log.pools
    for t in range(batch.rounds):
        first, size = pools.offsets[batch.pool[t]], pools.sizes[batch.pool[t]]
        for i in range(20):
            article = log.vectors[pools.rows[first + i]] if i < size else np.zeros(6)
            long = np.zeros(156)
            long[:36] = np.outer(batch.user[t], article).reshape(-1)
            long[36 + 6 * i : 42 + 6 * i] = article
            assert_allclose(means[t, i], long @ WEIGHTS.astype(float), atol=1e-12)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(lambda e: e.update(byteorder=b"big   ")), "has the byte order b'big   '"),
        (archive(lambda e: e.update(byteorder=b"big")), "has 3 bytes in its entry byteorder instead of 6"),
        (archive(lambda e: e.pop("byteorder")), "must have one entry byteorder"),
        (archive(lambda e: e.pop("data/0")), "must have one entry byteorder and of data/ only data/0"),
        (archive(lambda e: e.update({"data/1": b""})), "must have one entry byteorder and of data/ only data/0"),
        (archive(lambda e: e.update({"data/0": bytes(625)})), "has 625 bytes in its entry data/0 instead of 624"),
        (
            archive(lambda e: e.update({"data/0": np.full(156, np.nan, "<f4").tobytes()})),
            "has weights that are not finite",
        ),
        (archive(compression=zipfile.ZIP_DEFLATED), "has a compressed or encrypted entry"),
        (archive(lambda e: e.update(more=bytes(1 << 20))), "has 1,049,... bytes, too many for 156 weights"),
        (archive()[:-30], "is a damaged archive"),
        (archive().replace(WEIGHTS.tobytes()[:8], b"\0" * 8), "is a damaged archive .*CRC"),
    ],
)
def test_an_archive_that_is_not_of_the_released_weights_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(LogError, match=f"^model.pt {message}.*: give lin_reg_model_36_6_20.pt"):
        released_weights(content, Path("model.pt"))


def test_a_model_file_holds_what_a_record_holds(log: Log, tmp_path: Path) -> None:
    split = yahoo.split_log(log, train=200, rounds=100)
    (fitted,) = yahoo.experiments(log, split, ["written"], policies=("HyLinUCB",))
    assert fitted.log is not None
    file = tmp_path / "model.json"
    file.write_text(json.dumps(fitted.log["model"]))
    (given,) = yahoo.experiments(log, split, ["written"], policies=("HyLinUCB",), model=file)
    assert given.log is not None
    assert given.log["model_file"][0] == "model.json"
    assert given.log["uniform_choice_regret"] == fitted.log["uniform_choice_regret"]
    first, second = (
        runner.run_unit(runner.Job(next(iter(record.units())), str(log.path)))[0].regret for record in (fitted, given)
    )
    assert first.tolist() == second.tolist()


PLAIN: dict[str, Any] = {
    "features": "das", "user": 6, "arm": 6, "theta": [0.1] * 36, "beta": [[0.2] * 6, [0] * 6],
    "names": [109453, 109456],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": [0.1] * 35}, "must have 36 finite numbers as theta"),
        ({"theta": [float("nan")] * 36}, "must have 36 finite numbers as theta"),
        ({"theta": [True] * 36}, "must have 36 finite numbers as theta"),
        ({"theta": [10**400] * 36}, "must have 36 finite numbers as theta"),
        ({"beta": [[0.2] * 6]}, "must have one row of beta for each of the 2 names"),
        ({"beta": [[0.2] * 6, 0.0]}, "must have 6 finite numbers as beta of 109456, got 0.0"),
        ({"names": ["a", "a"]}, "lists an arm twice"),
        ({"names": [0.5, "a"]}, "must list arms as text or whole numbers"),
        ({"user": -1}, "has a wrong feature map"),
        ({"features": "das+pair"}, "has a wrong feature map"),
        ({"more": 1}, "must have the keys arm, beta, features, names, theta, user, got"),
        ({"features": "li"}, "but the log has FeatureMap"),
        ({"names": [0, 1]}, "of which the log has none: its arms are articles; if those of the model are positions"),
    ],
)
def test_a_wrong_model_file_is_refused(change: dict[str, Any], message: str, log: Log, tmp_path: Path) -> None:
    file, view = tmp_path / "model.json", View(log, features="das")
    file.write_text(json.dumps(PLAIN))
    assert read_model(file, view).model.beta.tolist() == PLAIN["beta"]
    file.write_text(json.dumps(PLAIN | change))
    with pytest.raises(LogError, match=message):
        read_model(file, view)


def test_a_file_of_something_else_is_refused(log: Log, tmp_path: Path) -> None:
    view = View(log, features="das")
    for content in (b"theta", b"\xff\xfe", b"[1]"):
        (tmp_path / "model.json").write_bytes(content)
        with pytest.raises(LogError, match=r"model.json (is neither an archive|must have the keys)"):
            read_model(tmp_path / "model.json", view)
    with pytest.raises(OSError, match="nowhere"):
        read_model(tmp_path / "nowhere", view)
