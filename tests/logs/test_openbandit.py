"""The Open Bandit Dataset, in small files of its format."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hybandits.logs.openbandit import OpenBanditReader
from hybandits.logs.report import ReadError, ReadReport
from hybandits.logs.store import LogError, convert
from tests.support.campaigns import HEADER, ITEMS, ROUNDS, campaign
from tests.support.own_logs import read


def test_a_campaign(tmp_path: Path) -> None:
    log, batch, report = read(OpenBanditReader(campaign(tmp_path)), tmp_path)
    assert (report.lines, report.skipped) == (3, 0)
    assert log.about["kind"] == "openbandit"
    assert log.user == [
        "constant", "user_feature_0=u11111111", "user_feature_0=u22222222", "user_feature_1=v11111111",
        "user_feature_3=x11111111",
    ]  # fmt: skip
    assert log.arm == ["constant", "item_feature_0", "item_feature_1=bbbbbbbb11", "item_feature_2=dddddddd11"]
    assert batch.time.tolist() == [1574553634, 1574553653, 1574553660]
    assert (batch.pool.tolist(), batch.chosen.tolist()) == ([0, 0, 0], [2, 0, 1])
    assert batch.reward.tolist() == [0, 1, 0]
    assert batch.propensity.tolist() == [0.25, 0.5, 0.25]
    assert batch.user.tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 1, 1]]
    assert log.names == [0, 1, 2]
    assert log.pair == ["affinity"]
    assert batch.pair[:, :, 0].tolist() == [[0, 0, 0.5], [0, 1, 0], [0, 0, 2]]
    root = np.sqrt(1.5)
    np.testing.assert_allclose(log.vectors, [[1, -root, 0, 0], [1, 0, 1, 0], [1, root, 0, 1]], atol=1e-15)


def test_the_csv_of_rounds_may_be_packed(tmp_path: Path) -> None:
    folder = campaign(tmp_path)
    reader = OpenBanditReader(str(folder))
    assert reader.binary_user
    (folder / "men.csv.gz").write_bytes(gzip.compress((folder / "men.csv").read_bytes()))
    (folder / "men.csv").unlink()
    assert OpenBanditReader(folder).user == reader.user


def test_affinities_are_found_by_the_id_of_the_item(tmp_path: Path) -> None:
    items = "\n".join([ITEMS.splitlines()[0], *reversed(ITEMS.splitlines()[1:])]) + "\n"
    log, batch, _ = read(OpenBanditReader(campaign(tmp_path, items=items)), tmp_path)
    assert log.names == [2, 1, 0]
    assert batch.pair[:, :, 0].tolist() == [[0.5, 0, 0], [0, 1, 0], [2, 0, 0]]


def test_a_campaign_without_affinities_has_no_pair_features(tmp_path: Path) -> None:
    lines = [line.rsplit(",", 3)[0] for line in (HEADER + ROUNDS).splitlines()]
    log, batch, _ = read(OpenBanditReader(campaign(tmp_path, "\n".join(lines) + "\n")), tmp_path)
    assert log.pair == []
    assert batch.pair.shape == (3, 0, 0)


def test_an_item_without_affinities_is_refused(tmp_path: Path) -> None:
    lines = [line.rsplit(",", 1)[0] for line in (HEADER + ROUNDS).splitlines()]
    with pytest.raises(LogError, match=r"no round .*column 'user-item_affinity_2' is missing"):
        read(OpenBanditReader(campaign(tmp_path, "\n".join(lines) + "\n")), tmp_path)


TAIL = "u00000000,v00000000,w00000000,x00000000,0.0,0.0,0.0"


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (f"3,2019-11-24 00:00:53+00:00,3,1,0,0.5,{TAIL}", "arm missing from the arms' file"),
        (f"3,2019-11-24 00:00:53+00:00,0,1,2,0.5,{TAIL}", "click other than 0 and 1"),
    ],
)
def test_bad_lines_are_skipped_and_counted(tmp_path: Path, row: str, kind: str) -> None:
    folder = campaign(tmp_path, HEADER + ROUNDS + row + "\n" + ROUNDS)
    log, _, report = read(OpenBanditReader(folder), tmp_path)
    assert (log.rounds, report.lines) == (6, 7)
    assert report.reasons == {kind: 1}
    assert report.examples[kind].startswith("men.csv, line 5: ")
    with pytest.raises(ReadError, match=r"men\.csv, line 5"):
        convert(OpenBanditReader(folder), tmp_path / "strict", ReadReport(strict=True))


def test_a_header_that_is_another(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"has no column 'propensity_score' \(did you mean propensity_scores\?\)"):
        OpenBanditReader(campaign(tmp_path, HEADER.replace("propensity_score", "propensity_scores") + ROUNDS))
    with pytest.raises(LogError, match="has no column 'item_id'"):
        OpenBanditReader(campaign(tmp_path / "items", items=ITEMS.replace("item_id", "id")))


def test_one_item_and_equal_features(tmp_path: Path) -> None:
    log, _, _ = read(OpenBanditReader(campaign(tmp_path, items="".join(ITEMS.splitlines(keepends=True)[:2]))), tmp_path)
    assert log.vectors.tolist() == [[1, 0]]


def test_what_is_meant_must_be_clear(tmp_path: Path) -> None:
    folder = campaign(tmp_path)
    with pytest.raises(LogError, match=r"is not a campaign: .*such as men in it"):
        OpenBanditReader(folder.parent)
    with pytest.raises(LogError, match="does not exist"):
        OpenBanditReader(folder / "women.csv")
    (folder / "women.csv").write_text(HEADER)
    with pytest.raises(LogError, match=r"but has men.csv, women.csv: leave the one"):
        OpenBanditReader(folder)
    (folder / "item_context.csv").unlink()
    with pytest.raises(LogError, match=r"is not a campaign: give a folder that holds item_context.csv"):
        OpenBanditReader(folder)
