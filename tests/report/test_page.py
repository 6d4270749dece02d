"""The page from fabricated results, parsed again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hybandits import paper
from hybandits.experiments.results import Results
from hybandits.paper.claims import Finding, Verdict
from hybandits.paper.judging import judge
from hybandits.report.colours import dark_counterpart
from hybandits.report.figures import Figure
from hybandits.report.numbers import regret_rows
from hybandits.report.page import anchor, page_of
from hybandits.report.symbols import in_symbols
from tests.support.fabricated_results import (
    fabricate,
    fabricate_both,
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


def tiny_figures(folder: Path) -> list[Figure]:
    """Two pictures of nothing: drawing takes seconds and is tested elsewhere."""
    png, svg = folder / "one.png", folder / "one.svg"
    png.write_bytes(b"\x89PNG")
    svg.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'
        '<path id="a" d="M 1 2" style="fill: #123456"/><use xlink:href="#a"/></svg>'
    )
    words = {"title": "A <title>", "caption": "A & caption.", "alt": 'Says "so".', "protocol": "released"}
    return [
        Figure(name="one", files=(png, svg), section="panels", wide=True, **words),
        Figure(name="two", files=(png, svg), section="beyond", wide=False, **words),
    ]


def test_the_page_is_whole_and_needs_nothing_else(tmp_path: Path) -> None:
    results = settings(tmp_path, commands=["hybandits reproduce <out>"], versions={"python": "3.11", "numpy": "2"})
    page = page_about(results, tiny_figures(tmp_path))
    text = page.html
    assert len(set(page.ids)) == len(page.ids), "ids are unique"
    figures = {"../figures/one.png", "../figures/one.svg", "data:,"}
    for reference in set(page.references) - figures:
        assert reference.startswith("#"), f"{reference} is not in the page"
        assert reference[1:] in page.ids, f"{reference} leads nowhere"
    assert page.tags.count("script") == 1, "its own, inside it"
    assert "--c123456: #123456;" in text
    assert f"--c123456: {dark_counterpart('#123456')};" in text, "figures follow the dark page"
    for tag in ("header", "nav", "main", "section", "figure", "figcaption", "table", "caption", "footer"):
        assert tag in page.tags
    assert "@media print" in text
    assert "prefers-color-scheme: dark" in text
    assert "url(http" not in text
    assert "This is the short version." in page.text
    assert "Setting 1: 10,000 of 80,000 rounds, 2 of 5 trials per environment, 3 of 5 environments" in page.text
    assert "hybandits reproduce <out>" in page.text
    assert "hybandits reproduce <out>" not in text, "what comes from the manifest is escaped"
    for verdict in judge(results):
        assert f"claim-{verdict.claim}-{verdict.protocol}" in page.ids
        assert in_symbols(verdict.summary) in page.html


def test_verdicts_on_fresh_environments_stand_beside_those_on_the_published(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1"), fresh_setting("setting-1"))
    page = page_about(results)
    assert {"claim-1-released", "claim-1-released-6-fresh-environments"} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    for basis in ("the 3 published environments", "6 fresh environments"):
        assert page.text.count(f"on {basis}") >= 2, "in the table and at the evidence"
    assert "all policies, HyRan too, play all 10,000 rounds, 1 trial each" in page.text


def test_policies_beyond_the_paper_are_told_from_each_other(tmp_path: Path) -> None:
    results = settings(tmp_path)
    page = page_about(results, tiny_figures(tmp_path))
    sampling = "draws all parameters from their joint posterior and plays the best arm of that draw; "
    for said in (
        f"{paper.HYTHOMPSON_TOLD}{sampling}the noise and the scale of the parameters are told to it",
        f"HyThompson{sampling}the noise, the scales of the parameters and what arms have in common are learned",
        "HyIDSweighs what a choice is expected to cost against what it teaches about the best arm",
        "“HyThompson” and “HyIDS” are told nothing",
        "Regret at T divided by that of the best of the paper's algorithms and baselines",
        "Policies that are not in the paper were run as well.",
        "See Beyond the paper.",
    ):
        assert said in page.text, said


def test_an_older_record_says_that_hythompson_was_told(tmp_path: Path) -> None:
    record = small_setting("setting-1", policies=("HyLinUCB", paper.HYTHOMPSON_TOLD))
    told = replace(record, policies=tuple(replace(entry, name=entry.policy) for entry in record.policies))
    assert [entry.name for entry in told.policies] == ["HyLinUCB", "HyThompson"]
    page = page_about(fabricate(tmp_path, told), tiny_figures(tmp_path))
    assert "the noise and the scale of the parameters are told to it" in page.text
    assert "learned from the rewards" not in page.text
    assert "told nothing" not in page.text


def test_text_is_escaped(tmp_path: Path) -> None:
    nasty = '<b a="1">&amp;'
    verdict = Verdict(
        claim=nasty, protocol="released", title=nasty, statement=nasty, test=nasty, verdict="holds", summary=nasty,
        evidence=(Finding(nasty, nasty, None),),
    )  # fmt: skip
    record = small_setting("setting-1", policies=("Greedy",))
    record = replace(record, policies=tuple(replace(entry, name=nasty) for entry in record.policies))
    results = fabricate(tmp_path, record)
    page = Page(page_of(results, tiny_figures(tmp_path), [verdict], regret_rows(results), []))
    assert "<b " not in page.html
    assert "b" not in page.tags
    assert page.text.count(nasty) >= 7
    assert "A <title>." in page.text
    assert 'aria-label="Says &quot;so&quot;."' in page.html


def test_own_experiments_are_not_called_the_papers(tmp_path: Path) -> None:
    record = replace(small_setting("setting-1", policies=("Greedy", "HyLinUCB")), name="mine", protocol="own")
    page = page_about(fabricate(tmp_path, record))
    assert "Hybrid linear bandits: an experiment" in page.text
    for not_said in ("Das", "published", "short version", "Limits"):
        assert not_said.lower() not in page.text.lower()
    assert "Greedy with ridge = 0.1" in page.text, "what its policies are told"
    assert page.ids[:2] == ["score", "regret"], "there are no verdicts"
    assert "Least regret Greedy 185.0" in page.text
    assert "next HyLinUCB, which lost 20.0 more" in page.text


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    records = [small_setting("setting-3", policies=("HyRan",)), small_setting("setting-2")]
    page = page_about(fabricate(tmp_path, *records, leave_out="setting-2"))
    assert "Not finished: Setting 2, released protocol, K = 25." in page.text
    assert "at the paper's full length" not in page.text
    assert "diversity" not in page.ids


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ([], []),
        (["a --b"], ["The command is", "made by a --b."]),
        (["a --b", "c"], ["The commands are", "made by a --b and c."]),
    ],
)
def test_commands_are_said_where_they_are_known(tmp_path: Path, commands: list[str], said: list[str]) -> None:
    record = small_setting("setting-1", policies=("Greedy",))
    page = page_about(fabricate(tmp_path, record, **({"commands": commands} if commands else {})))
    for words in ("The command is", "The commands are", "made by"):
        assert (words in page.text) == any(words in phrase for phrase in said)
    for phrase in said:
        assert phrase in page.text


def test_tables_head_their_rows_and_mark_numbers(tmp_path: Path) -> None:
    page = page_about(fabricate(tmp_path, small_setting("setting-1", policies=("LinUCB",))))
    assert '<th scope="row">LinUCB</th>' in page.html
    assert '<td class="n">243.0</td>' in page.html
    assert '<td class="yes">yes</td>' in page.html
    assert '<th scope="col" class="n">mean</th>' in page.html


# ------------------------------------------------------------------ a click log


def test_the_page_of_a_synthetic_log(tmp_path: Path) -> None:
    records = [on_a_log(defect=True), on_a_log("written", defect=True)]
    page = page_about(fabricate_log(tmp_path, *records, spread=0.0, scale="quick", seed=paper.RELEASED_SEED))
    assert len(set(page.ids)) == len(page.ids)
    assert "yahoo" in page.ids
    assert "regret" not in page.ids, "the table stands in the experiment's section"
    for said in (
        "The experiment on Yahoo's click log, on a synthetic log",
        "says nothing about the paper's result",
        "their experiment on a click log is run",
        "synthetic: 300,000 rounds from a known model, seed 0",
        "100,000, from the first on",
        "200,000, from round 120,001 on",
        "d₁ = 36 shared, d₂ = 6 of each arm's own",
        "22 articles",
        "20 articles; at least 2 of those played",
        "45 of 162 parameters; many models fit equally well",
        "standard deviation 0.2491",
        "3 of 100,000 rounds",
        "noise 1·10-5; HyLinUCB SelfNormalised, ridge 1,000; LinUCB SelfNormalised, ridge 1,000; DisLinUCB "
        "SelfNormalised, ridge 100",
        "noise 0.01; HyLinUCB AsWritten, the ridge of the theorem",
        "What the defect does",
        "(synthetic log, not Yahoo's data): uniform choice loses 2,500 in 200,000 rounds; of that, HyLinUCB 40 %",
        "HyThompson (told) 2 %",
        "HyLinUCB 1,100 instead of 1,000",
        "interval over trials; synthetic log, not Yahoo's data",
        "200,000 of 10,000,000 rounds, 100,000 of 1,000,000 rounds to fit on",
        "200,000 rounds, 2 trials on one log",
        "There is only one log",
    ):
        assert said in page.text, said
    for not_said in ("Setting", "possible env", "is not reproduced here", "Five", "published beyond", "Positions as"):
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
    assert "What the defect does" not in page.text


def test_the_page_of_both_kinds_of_experiment(tmp_path: Path) -> None:
    results = fabricate_both(
        tmp_path / "out", small_setting("setting-1"), on_a_log(trials=1), scale="quick", seed=paper.RELEASED_SEED
    )  # fmt: skip
    page = page_about(results)
    for said in (
        "their experiments are run",
        "Setting 1: 10,000 of 80,000 rounds",
        "Yahoo: 200,000 of 10,000,000 rounds",
        "On the click log: noise with standard deviation 1·10-5",
        "Yahoo, released protocol: regret after 200,000 rounds; 1 run; synthetic log, not Yahoo's data",
        "Five environments are few",
        "There is only one log",
    ):
        assert said in page.text, said
    assert {"regret", "yahoo", "claim-1-released", "claim-8-released"} <= set(page.ids)
    assert [v.claim for v in judge(results)] == ["1", "7", "8"]


def test_settings_alone_have_nothing_of_a_log(tmp_path: Path) -> None:
    page = page_about(settings(tmp_path))
    assert "click log" not in page.text
    assert "is not reproduced here: the log may not be passed on" in page.text


def test_what_a_verdict_rests_on_stands_beside_it(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1"))
    usual = judge(results)[0]
    other = replace(
        usual, basis="small problem, uniform choice", aside=True, verdict="undecided", summary="Of the other basis."
    )
    page = Page(page_of(results, tiny_figures(tmp_path), [usual, other], regret_rows(results), []))
    assert len(set(page.ids)) == len(page.ids)
    assert {anchor(usual), anchor(other)} <= set(page.ids)
    assert page.text.count("on small problem, uniform choice") >= 2, "in the table and at the evidence"
    assert "Of the other basis." in page.text


def test_anchors_are_plain_ids() -> None:
    words = dict.fromkeys(("title", "statement", "test", "summary"), "")
    verdict = Verdict(claim="8 (positions)", protocol="released", verdict="holds", evidence=(), **words)
    assert anchor(verdict) == "claim-8-positions--released"
    assert anchor(replace(verdict, basis="100 fresh runs", aside=True)) == "claim-8-positions--released-100-fresh-runs"


def test_a_claim_may_have_several_verdicts(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1", policies=("HyLinUCB", "LinUCB")))
    (first, *_) = judge(results)
    fresh = replace(
        first, basis="100 fresh environments", aside=True, verdict="does not hold", summary="Others say no: d1 <= d2."
    )
    page = Page(page_of(results, [], [first, fresh], regret_rows(results), []))
    assert {anchor(first), anchor(fresh)} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    assert "on 100 fresh environments: ✗ 1 does not" in page.text
    assert "Others say no: d1 ≤ d2." in page.text
    assert "d<sub>1</sub> ≤ d<sub>2</sub>" in page.html
