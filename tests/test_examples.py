"""The examples do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import news_page, save_and_restore, warm_start, workers


@pytest.mark.slow
def test_news_page_learns_what_readers_click() -> None:
    rates = news_page.main()
    assert rates["last third"] > rates["at random"] + 0.08
    assert rates["last third"] > rates["first third"]


def test_warm_start_saves_the_exploration() -> None:
    regret = warm_start.main()
    assert regret["from the log"] < regret["from scratch"] / 5


def test_saved_policies_go_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    assert save_and_restore.main(tmp_path)


@pytest.mark.slow
def test_workers_lose_no_reward_and_count_none_twice() -> None:
    outcome = workers.main()
    assert outcome["restarts"] >= 1
    assert outcome["counted"] == outcome["queued"] == workers.WORKERS * workers.VISITS
    assert outcome["difference"] < 1e-9
