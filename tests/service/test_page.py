"""The page: what it says, that strangers' text stays text, and how it looks and moves in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from hybandits.service.access import Tokens
from hybandits.service.commands import Decide, GiveReward
from hybandits.service.page import content, duration, headers, number, page
from hybandits.service.view import Estimate, make_view
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, USER, Clock, putting, served, writer
from tests.support.browser import BELOW_CONTRAST, Watched, a_browser

NASTY = [
    '<script>document.title="caught"</script>', '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}",
    "\u0646\u0635 \u202e mixed", "e" * 200,
]  # fmt: skip
"""Ids of arms that would do harm if they were taken for anything but text."""

TOKEN = "a-token-for-everything"

expect.set_options(timeout=30_000)  # milliseconds: a machine may be busy


def played(path: Path, arms: list[str], decisions: int) -> Writer:
    """A service on which something has happened: every arm has a click rate of its own."""
    clock = Clock()
    bold = {"name": "<b>bold</b>", "policy": "HyThompson:scale=1,noise=0.5"}
    service = writer(path, CLICKS, clock=clock, name="A page & <i>more</i>", challengers=[bold])
    random = np.random.default_rng(5)
    rates = dict(zip(arms, random.uniform(0.05, 0.5, len(arms)), strict=True))
    service.serve([putting(arm, {"price": round(float(random.random()), 2)}) for arm in arms])
    for start in range(0, decisions, 50):
        asked = [Decide(USER, event_id=f"event {i}") for i in range(start, min(start + 50, decisions))]
        answers = service.serve(asked)
        clicked = [a.body.event_id for a in answers if random.random() < rates[a.body.arm]]  # type: ignore[union-attr]
        clock.advance(3)
        service.serve([GiveReward(event, 1.0) for event in clicked])
    clock.advance(20)
    service.serve([])
    return service


# ------------------------------------------------------------------ without a browser


def test_text_of_strangers_stays_text(tmp_path: Path) -> None:
    html = page(make_view(played(tmp_path, NASTY, 60)))
    assert html.count("<script>") == 1
    assert "<img" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;document.title" in html
    assert "{{ 7 * 7 }}" in html
    assert "49" not in re.findall(r"<bdi[^>]*>([^<]*)</bdi>", html)


def test_its_own_script_and_style_are_all_that_may_run(tmp_path: Path) -> None:
    policy = headers()["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    html = page(make_view(writer(tmp_path, CLICKS)))
    assert " style=" not in html
    assert " onclick" not in html
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in html


def test_characters_that_cannot_be_seen_are_escaped(tmp_path: Path) -> None:
    view = make_view(played(tmp_path, ["a\u202eevil", "b\u200b", "c\x00\n", "caf\u00e9 \u65e5\u672c"], 60))
    assert "a\u202eevil" in {arm.arm for arm in view.arms}  # programs get the id as it is
    html = page(msgspec.structs.replace(view, name="x\u2066y", trouble="cannot\u2028write"))
    assert not re.search("[\u202e\u200b\x00\u2066\u2028]", html)
    for text in (
        r"a\u202eevil",
        r"b\u200b",
        r"c\x00\n",
        "caf\u00e9 \u65e5\u672c",
        r"<bdi>x\u2066y</bdi>",
        r"cannot\u2028write",
    ):
        assert text in html
    assert r"<title>x\u2066y</title>" in html


def test_numbers_in_words() -> None:
    assert [number(0.12345), number(-0.5, 1), number(0.5, 1, sign=True), number(None)] == [
        "0.123",
        "\N{MINUS SIGN}0.5",
        "+0.5",
        "\N{EN DASH}",
    ]
    assert [number(-0.0, sign=True), number(-0.0004)] == ["+0.000", "0.000"]
    assert [duration(each) for each in (0.5, 1, 90, 60, 1800, 7200, 604800)] == [
        "0.5 seconds",
        "1 second",
        "90 seconds",
        "1 minute",
        "30 minutes",
        "2 hours",
        "7 days",
    ]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_clear_gain_has_the_colour_of_what_it_says(tmp_path: Path, sign: int) -> None:
    view = make_view(played(tmp_path, ["a", "b"], 60))
    low, high = sorted([sign * -0.3, sign * -0.1])  # of uniform choice, less that of the bandit
    difference = Estimate(60, sign * -0.2, low, high)
    shown = content(msgspec.structs.replace(view, uniform=msgspec.structs.replace(view.uniform, difference=difference)))
    word, colour = ("The bandit is better.", "more") if sign > 0 else ("Uniform choice is better.", "less")
    assert f'<span class="{colour}">{word}</span>' in shown
    assert ("between +0.1" in shown) is (sign > 0)


@pytest.mark.slow
@pytest.mark.parametrize("arms", [3, 1_000])
def test_the_page_stays_small(tmp_path: Path, arms: int) -> None:
    html = content(make_view(played(tmp_path, [f"arm {i}" for i in range(arms)], 300)))
    assert len(html) < 60_000
    assert ("The table shows the 25 with the most decisions" in html) is (arms > 25)


def test_curves_begin_at_the_left_and_end_at_the_right(tmp_path: Path) -> None:
    view = make_view(played(tmp_path, ["a", "b"], 400))
    html = content(view)
    for name in ("live", "uniform"):
        (line,) = re.findall(rf'class="line {name}" d="M([^"]*)"', html)
        corners = [tuple(map(float, corner.split())) for corner in line.split("L")]
        assert len(corners) == 1 + len(view.curves.ends)
        assert (corners[0][0], corners[-1][0]) == (0, 1000)
        assert all(0 <= y <= 300 for _, y in corners)


# ------------------------------------------------------------------ in a browser

slow = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
DESK, PHONE = {"width": 1366, "height": 768}, {"width": 360, "height": 740}
STATES = {"beginning": ([], 0), "few": (NASTY, 400), "many": ([f"arm {i}" for i in range(300)], 600)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture(scope="module", params=STATES)
def web(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service at its beginning, and with few and many arms."""
    with served(played(tmp_path_factory.mktemp("page"), *STATES[request.param])) as client:
        yield client


@contextmanager
def opened(browser: Browser, client: httpx.Client, **options: Any) -> Iterator[tuple[Page, Watched]]:
    context = browser.new_context(**{"viewport": DESK, **options})
    page = context.new_page()
    watched = Watched(page)
    page.goto(str(client.base_url))
    try:
        yield page, watched
    finally:
        context.close()


class TestInChromium:
    pytestmark = slow

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
    def test_everything_can_be_seen_and_nothing_else_is_asked_for(
        self, browser: Browser, web: httpx.Client, scheme: Any, size: Any
    ) -> None:
        with opened(browser, web, viewport=size, color_scheme=scheme) as (page, watched):
            expect(page.locator(".state time")).to_contain_text(re.compile("ago|:"))  # the script has run
            width, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert width <= window, "the page scrolls sideways"
            seen, matches = page.evaluate(BELOW_CONTRAST, 4.5)
            assert seen > 20
            assert matches == []
            assert page.title() != "caught"
            assert page.evaluate("document.querySelectorAll('img, iframe, object').length") == 0
            assert watched.complaints == []
            own = str(web.base_url).rstrip("/")
            assert {url for url in watched.requests if not url.startswith("data:")} == {f"{own}/"}

    def test_it_can_be_read_without_scripts(self, browser: Browser, web: httpx.Client) -> None:
        view = web.get("/v1/view").json()
        with opened(browser, web, java_script_enabled=False) as (page, watched):
            assert f"{view['decisions']:,}" in page.inner_text("main")
            assert page.locator("main svg[role=img]").count() == (1 if view["decisions"] else 0)
            assert page.locator("table").first.is_visible() == bool(view["decisions"])
            assert watched.complaints == []

    def test_changes_arrive_and_leave_the_rest_alone(self, browser: Browser, tmp_path: Path) -> None:
        service = played(tmp_path, ["a", "b"], 200)
        with served(service) as web, opened(browser, web) as (page, watched):
            page.locator(".scroll").first.focus()
            page.evaluate("window.kept = document.querySelector('.scroll')")
            web.post("/v1/decisions", json={"user": USER})
            expect(page.locator("main")).to_contain_text("201")
            assert page.evaluate("document.activeElement === window.kept")
            web.put("/v1/arms/%3Cscript%3Ealert(1)%3C%2Fscript%3E", json={"features": {"price": 1}})
            expect(page.locator("table").first).to_contain_text("<script>alert(1)</script>")
            assert watched.complaints == []

    def test_a_lost_connection_is_said(self, browser: Browser, tmp_path: Path) -> None:
        with served(played(tmp_path, ["a"], 10)) as web, opened(browser, web) as (page, _):
            expect(page.locator(".state time")).to_contain_text(re.compile("ago|:"))
            page.route("**/", lambda route: route.abort())
            expect(page.locator("#connection")).to_contain_text("The connection is lost")
            page.unroute("**/")
            expect(page.locator("#connection")).to_be_empty()

    def test_by_keyboard(self, browser: Browser, tmp_path: Path) -> None:
        service = played(tmp_path, ["a", "b"], 100)
        with served(service) as web, opened(browser, web) as (page, _):
            expect(page.locator(".state time")).to_contain_text(re.compile("ago|:"))
            reached = []
            for _ in range(4):
                page.keyboard.press("Tab")
                reached.append(page.evaluate("document.activeElement.tagName + document.activeElement.className"))
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid" or reached[-1] == "BODY"
            assert "DIVscroll" in reached

    def test_with_a_token(self, browser: Browser, tmp_path: Path) -> None:
        service = played(tmp_path, ["a"], 10)
        with served(service, tokens=Tokens(TOKEN)) as web, opened(browser, web) as (page, _):
            assert "A token is needed" in page.inner_text("main")
            page.fill("#token", "another")
            page.keyboard.press("Enter")
            expect(page.locator("#connection")).to_have_text("This token was not accepted.")
            for wrong in ("\u0142\u00f3d\u017a", "another"):  # no header can hold the first one
                page.evaluate("document.getElementById('connection').textContent = ''")
                page.fill("#token", wrong)
                page.keyboard.press("Enter")
                expect(page.locator("#connection")).to_have_text("This token was not accepted.")
            page.fill("#token", f" {TOKEN} ")
            page.keyboard.press("Enter")
            expect(page.locator("h1")).to_have_text("A page & <i>more</i>")
            assert TOKEN not in page.url
            page.reload()
            expect(page.locator("h1")).to_have_text("A page & <i>more</i>")  # this tab still has it
