"""The page in a real browser: light, dark and printed, on a desk and on a phone, by mouse, finger and keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from hybandits.report.write import write_report
from tests.support.browser import BELOW_CONTRAST, Watched, a_browser
from tests.support.fabricated_results import fabricate, small_setting

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]  # one browser, and pages that are drawn once

DESK, PHONE = {"width": 1366, "height": 768}, {"width": 360, "height": 740}
PAGES = ("paper", "own")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page about some of the paper's experiments, and one about an experiment of one's own."""
    folders = {name: tmp_path_factory.mktemp(name) for name in PAGES}
    policies = ("HyLinUCB", "LinUCB", "DisLinUCB", "HyRan (released)")
    fabricate(
        folders["paper"],
        small_setting("setting-1", policies=policies),
        small_setting("setting-3", policies=policies),
        small_setting("diversity", policies=("HyLinUCB",)),
        small_setting("setting-1", "written", policies=("HyLinUCB", "LinUCB")),
        scale="quick",
        commands=["hybandits reproduce --scale quick"],
        versions={"python": "3.11"},
    )
    own = small_setting("setting-3", policies=("HyLinUCB", "LinUCB", "Greedy"))
    fabricate(folders["own"], replace(own, name="mine", protocol="own", probes=()), versions={"python": "3.11"})
    return {name: write_report(folder) for name, folder in folders.items()}


@contextmanager
def opened(browser: Browser, path: Path, **options: Any) -> Iterator[tuple[Page, Watched]]:
    """The page opened with these options of a context."""
    context = browser.new_context(**{"viewport": DESK, **options})
    page = context.new_page()
    watched = Watched(page)
    page.goto(path.as_uri())
    try:
        yield page, watched
    finally:
        context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_everything_can_be_seen_and_nothing_is_asked_for(
    browser: Browser, pages: dict[str, Path], name: str, scheme: Any, size: Any
) -> None:
    with opened(browser, pages[name], viewport=size, color_scheme=scheme) as (page, watched):
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1], "the page scrolls sideways"
        cut = page.evaluate(
            "[...document.querySelectorAll('.plot svg, .plot img')].filter((e) => "
            "{ const b = e.getBoundingClientRect(); return b.left < 0 || b.right > innerWidth + 1 || b.width < 200; })"
            ".length"
        )
        assert cut == 0, "figures are cut off, or too small"
        looked, found = page.evaluate(BELOW_CONTRAST, 4.5)
        assert looked > 100
        assert found == [], "texts without contrast"
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(253, 253, 252)") == (scheme == "light")
        assert watched.complaints == []
        assert watched.outside(pages[name].as_uri()) == []


@pytest.mark.parametrize("name", PAGES)
def test_letters_in_figures_can_be_read_on_a_phone(browser: Browser, pages: dict[str, Path], name: str) -> None:
    with opened(browser, pages[name], viewport=PHONE) as (page, _):
        heights = page.evaluate(
            "[...document.querySelectorAll('.plot .panel text')].filter((t) => !t.querySelector('tspan')).map((t) => "
            "parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a || 99).filter((h) => h > 0)"
        )
        assert len(heights) > 20
        assert min(heights) >= 8.5


def test_the_first_screen_answers(browser: Browser, pages: dict[str, Path]) -> None:
    for name in PAGES:
        with opened(browser, pages[name]) as (page, _):
            assert page.evaluate("window.scrollY") == 0
            for what in ("h1", ".lead", "#score", "header figure .keys", "header figure .plot"):
                box = page.locator(what).first.bounding_box()
                assert box is not None
                assert box["y"] + box["height"] <= DESK["height"], f"{what} of {name} is below the fold"
            score = page.locator("#score").inner_text()
            words = {
                "paper": ("Claims, released protocol", "Claims, written protocol", "matched", "Largest deviation"),
                "own": ("Least regret, mine, K = 10", "LinUCB 170.0 (95 % interval 127.8 to 212.2)", "next Greedy"),
            }
            for said in words[name]:
                assert said in score


def test_a_curve_tells_its_numbers(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["paper"]) as (page, _):
        panel = page.locator("header .holder").first
        words = panel.locator(".readout")
        assert not words.is_visible()
        box = panel.locator("svg").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"])
        assert words.is_visible()
        said = words.inner_text()
        for part in ("rounds played, t: ", "mean: ", "lowest to highest run: "):
            assert part in said
        page.mouse.move(2, 2)
        assert not words.is_visible()
        # By keyboard: the last point of the first curve, which was made up to be the published number.
        panel.focus()
        page.keyboard.press("ArrowRight")
        assert words.inner_text().splitlines() == [
            "HyLinUCB", "rounds played, t: 10,000", "mean: 104", "lowest to highest run: 93.08 to 114.92",
        ]  # fmt: skip
        page.keyboard.press("ArrowLeft")
        assert "rounds played, t: 5,000" in words.inner_text()
        page.keyboard.press("ArrowDown")
        assert words.inner_text().startswith("LinUCB\n")
        page.keyboard.press("Escape")
        assert not words.is_visible()


def test_a_tap_tells_the_numbers(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["own"], viewport=PHONE, has_touch=True, is_mobile=True) as (page, _):
        panel = page.locator("header .holder").first
        panel.scroll_into_view_if_needed()
        box = panel.locator("svg").bounding_box()
        assert box is not None
        page.touchscreen.tap(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"])
        words = panel.locator(".readout")
        assert words.is_visible()
        assert "number of arms, K: " in words.inner_text()
        told = words.bounding_box()
        assert told is not None
        assert told["x"] >= 0
        assert told["x"] + told["width"] <= PHONE["width"]


def test_curves_are_switched_by_mouse_and_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["paper"]) as (page, _):
        figure = page.locator("header figure")
        switch = figure.get_by_role("button", name="LinUCB", exact=True)
        parts = figure.locator(f'.curve[data-curve="{1}"]')
        drawn = parts.count()
        assert drawn >= 3, "line, band and published markers"
        visible = "(parts) => parts.filter((part) => getComputedStyle(part).display !== 'none').length"
        assert parts.evaluate_all(visible) == drawn
        switch.click()
        assert switch.get_attribute("aria-pressed") == "false"
        assert parts.evaluate_all(visible) == 0
        switch.focus()
        page.keyboard.press("Space")
        assert switch.get_attribute("aria-pressed") == "true"
        assert parts.evaluate_all(visible) == drawn
        others = [figure.get_by_role("button", name=name, exact=True) for name in ("HyLinUCB", "DisLinUCB")]
        for other in others:
            other.click()
        panel = figure.locator(".holder").first
        panel.focus()
        page.keyboard.press("ArrowRight")
        assert panel.locator(".readout").inner_text().startswith("LinUCB"), "what is switched off is passed over"


@pytest.mark.parametrize("name", PAGES)
def test_it_can_be_read_without_scripts(browser: Browser, pages: dict[str, Path], name: str) -> None:
    with opened(browser, pages[name], java_script_enabled=False) as (page, watched):
        assert page.locator("button").count() == 0
        assert page.locator("header figure .panel").first.is_visible()
        assert page.locator("header figure .keys").inner_text().count("LinUCB") >= 2
        page.locator("#about summary").first.click()
        assert page.locator("#about details[open] dd").first.is_visible()
        assert watched.complaints == []


def test_print_is_light_and_whole(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["paper"], viewport={"width": 720, "height": 1000}, color_scheme="dark") as (page, _):
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        _, found = page.evaluate(BELOW_CONTRAST, 4.5)
        assert found == []
        for folded in page.locator("details > :not(summary)").all():
            assert (folded.bounding_box() or {"height": 0})["height"] > 0, "everything is unfolded"
        assert not page.locator("nav").is_visible()
        borders = page.locator("button").evaluate_all("(all) => all.map((b) => getComputedStyle(b).borderTopWidth)")
        assert set(borders) == {"0px"}
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        assert len(page.pdf(format="A4")) > 10_000


def test_links_lead_to_the_evidence_that_is_folded(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["paper"]) as (page, _):
        assert not page.locator("#claim-1-released").is_visible()
        page.locator('#verdicts a[href="#claim-1-released"]').click()
        page.locator("#claim-1-released").wait_for(state="visible", timeout=2000)
