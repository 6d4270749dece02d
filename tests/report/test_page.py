"""The page from fabricated results, parsed again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybandits import paper
from hybandits.experiments.results import Results
from hybandits.paper import beyond
from hybandits.paper.beyond import Topic
from hybandits.paper.claims import Finding, Verdict
from hybandits.paper.judging import judge
from hybandits.report.figures import Drawn, Figure
from hybandits.report.page import in_symbols, page_of
from hybandits.report.tables import regret_rows
from tests.support.fabricated_results import (
    fabricate,
    fabricate_log,
    fresh_setting,
    on_a_log,
    small_setting,
)
from tests.support.html_page import Page, page_about


def settings(folder: Path, **about: object) -> Results:
    names = [("setting-1", "released"), ("setting-3", "released"), ("diversity", "released"), ("setting-1", "written")]
    records = [small_setting(name, protocol) for name, protocol in names]
    return fabricate(folder, *records, scale="quick", seed=paper.RELEASED_SEED, **about)


def tiny_figures() -> list[Drawn]:
    """Two pictures of nothing: drawing takes seconds and is tested elsewhere."""
    words = {"title": "A <title>", "caption": "A & caption.", "alt": 'Says "so".', "protocol": "released"}
    first = Figure(name="one", section="panels", columns=2, draw=lambda plot: None, **words)
    second = Figure(name="two", section="beyond", draw=lambda plot: None, **words)
    files = Path("one.png"), Path("one.csv")
    return [Drawn(figure, files, {"light": b"light", "dark": b"dark"}) for figure in (first, second)]


def verdict_on(claim: str, answer: Any, protocol: str = "released", **more: Any) -> Verdict:
    return Verdict(**{"claim": claim, "protocol": protocol, "test": "", "verdict": answer, "summary": "", **more})


@pytest.mark.slow
def test_the_page_is_whole_and_needs_nothing_else(tmp_path: Path) -> None:
    results = settings(tmp_path, commands=["hybandits reproduce <out>"], versions={"python": "3.11", "numpy": "2"})
    page = page_about(results, tiny_figures())
    assert len(set(page.ids)) == len(page.ids), "ids are unique"
    pictures = {"data:image/webp;base64,bGlnaHQ=", "data:image/webp;base64,ZGFyaw=="}
    for reference in set(page.references) - {"../figures/one.png", "../figures/one.csv", "data:,"} - pictures:
        assert reference.startswith("#"), f"{reference} is not in the page"
        assert reference[1:] in page.ids, f"{reference} leads nowhere"
    assert pictures < set(page.references)
    assert "script" not in page.tags
    for tag in ("header", "nav", "main", "section", "picture", "figcaption", "table", "caption", "footer"):
        assert tag in page.tags
    assert "url(http" not in page.html
    assert "This is the short version." in page.text
    assert "Setting 1: 10,000 of 80,000 rounds, 2 of 5 trials per environment, 3 of 5 environments" in page.text
    assert "hybandits reproduce <out>" in page.text
    assert "hybandits reproduce <out>" not in page.html, "text from the manifest is escaped"
    for verdict in judge(results):
        assert f"claim-{verdict.claim}-{verdict.protocol}" in page.ids
        assert in_symbols(verdict.summary) in page.text
    assert "A <title>." in page.text
    assert 'alt="Says &#34;so&#34;."' in page.html
    assert "click log" not in page.text
    assert "is not reproduced here: the log may not be passed on" in page.text


def test_verdicts_on_fresh_environments_stand_beside_those_on_the_published(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1"), fresh_setting("setting-1"))
    page = page_about(results)
    assert {"claim-1-released", "claim-1-released-6-fresh-environments"} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    for basis in ("the 3 published environments", "6 fresh environments"):
        assert f"on {basis}" in page.text
    assert "3 environments✓ holds" in page.text
    assert "6 fresh environments✗ does not hold" in page.text


def test_text_is_escaped(tmp_path: Path) -> None:
    nasty = '<b a="1">&amp;'
    verdict = verdict_on("1", "holds", test=nasty, summary=nasty, evidence=(Finding(nasty, nasty, None),))
    record = small_setting("setting-1", policies=("Greedy",))
    record = replace(record, policies=tuple(replace(entry, name=nasty) for entry in record.policies))
    results = fabricate(tmp_path, record)
    page = Page(page_of(results, [], [verdict], regret_rows(results), []))
    assert "<b " not in page.html
    assert "b" not in page.tags
    assert page.text.count(nasty) >= 5


def test_own_experiments_are_not_called_the_papers(tmp_path: Path) -> None:
    record = replace(small_setting("setting-1", policies=("Greedy", "HyLinUCB")), name="mine", protocol="own")
    page = page_about(fabricate(tmp_path, record))
    assert "Hybrid linear bandits: an experiment" in page.text
    for not_said in ("Das", "published", "short version", "Limits"):
        assert not_said.lower() not in page.text.lower()
    assert "Greedy with ridge = 0.1" in page.text, "what its policies are told"
    assert page.ids[:1] == ["regret"], "there are no verdicts"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    records = [small_setting("setting-3", policies=("HyRan",)), small_setting("setting-2")]
    page = page_about(fabricate(tmp_path, *records, leave_out="setting-2"))
    assert "Not finished: Setting 2, released protocol, K = 25." in page.text
    assert "at the paper's full length" not in page.text
    assert "diversity" not in page.ids


def test_the_page_of_a_synthetic_log(tmp_path: Path) -> None:
    records = [on_a_log(), on_a_log("written")]
    page = page_about(fabricate_log(tmp_path, *records, spread=0.0, scale="quick", seed=paper.RELEASED_SEED))
    assert len(set(page.ids)) == len(page.ids)
    assert "yahoo" in page.ids
    assert "regret" not in page.ids, "the table stands in the experiment's section"
    for said in (
        "The experiment on Yahoo's click log, on a synthetic log",
        "says nothing about the paper's result",
        "their experiment on a click log is run",
        "synthetic: 300,000 rounds from a known model, seed 0",
        "fitted to the first 100,000 rounds",
        "200,000, from round 120,001 on",
        "d₁ = 36 shared, d₂ = 6 of each arm's own",
        "22 articles",
        "20 articles; at least 2 of those played",
        "45 of 162 parameters; many models fit equally well",
        "standard deviation 0.2491",
        "3 of 100,000 rounds",
        "interval over trials; synthetic log, not Yahoo's data",
        "200,000 of 10,000,000 rounds, 100,000 of 1,000,000 rounds to fit on",
        "There is only one log",
    ):
        assert said in page.text, said
    for not_said in ("Setting", "possible env", "is not reproduced here", "Five", "Positions as"):
        assert not_said not in page.text, not_said


def test_the_page_of_real_data(tmp_path: Path) -> None:
    full = on_a_log(synthetic=False, rounds=10_000_000, train=1_000_000, unfitted_arms=7)
    positions = on_a_log(synthetic=False, rounds=10_000_000, train=1_000_000, arms="positions", trials=1)
    page = page_about(fabricate_log(tmp_path, full, positions, scale="paper", seed=paper.RELEASED_SEED))
    assert "synthetic log" not in page.text.lower()
    assert "not Yahoo's data" not in page.text
    assert "at the paper's full length" in page.text
    assert "R6A, the user's copy of Yahoo's data" in page.text
    assert "7 of those played are not among them" in page.text
    assert "Positions as arms. An arm is a position" in page.text
    assert "published beyond it" in page.text
    assert "97,200" in page.text


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("sqrt(T), sqrt(T log T)", "√(T), √(T log T)"),
        ("lambda_min(V_t) and W_i,t", "λ_min(V_t) and W_i,t"),
        ("1 - 4 delta, theta, beta_i", "1 - 4 δ, θ, β_i"),
        ("rho_x >= 0.1 +- 0.02", "ρ_x ≥ 0.1 ± 0.02"),  # noqa: RUF001
        ("<b> & alphabet", "<b> & alphabet"),
    ],
)
def test_names_become_symbols(text: str, symbols: str) -> None:
    assert in_symbols(text) == symbols


def test_topics_beyond_the_paper_have_sentences_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic("two", "The question", ("setting-1",), lambda results: f"rho < {len(results.outcomes)}.", "two")
    monkeypatch.setattr(beyond, "TOPICS", [topic])
    page = page_about(settings(tmp_path), tiny_figures())
    assert "The question ρ < 4. A <title>. A & caption." in page.text  # noqa: RUF001
    assert page.ids.count("figure-released-two") == 1
