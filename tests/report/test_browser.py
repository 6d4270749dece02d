"""The page in a real browser: light, dark and printed, at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from hybandits.paper.judging import judge
from hybandits.report.page import write_report
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
    policies = ("HyLinUCB", "LinUCB", "DisLinUCB", "HyRan (released)")
    settings = [small_setting("setting-1", policies=policies), small_setting("diversity", policies=("HyLinUCB",))]
    own = replace(small_setting("setting-3", policies=policies[:2]), name="mine", protocol="own", probes=())
    about: dict[str, Any] = {"commands": ["hybandits reproduce"], "versions": {"python": "3.11"}}
    results = [
        fabricate(tmp_path_factory.mktemp("paper"), *settings, **about),
        fabricate(tmp_path_factory.mktemp("own"), own, **about),
    ]
    return {name: write_report(each, judge(each)) for name, each in zip(PAGES, results, strict=True)}


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
@pytest.mark.parametrize(("scheme", "size"), [("light", PHONE), ("dark", DESK), ("dark", PHONE)])
def test_everything_can_be_read_and_nothing_is_asked_for(
    browser: Browser, pages: dict[str, Path], name: str, scheme: Any, size: Any
) -> None:
    with opened(browser, pages[name], viewport=size, color_scheme=scheme) as (page, watched):
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1], "the page scrolls sideways"
        checked, faint = page.evaluate(BELOW_CONTRAST, 4.5)
        assert checked > 50
        assert faint == [], "texts without contrast"
        shown = page.evaluate("[...document.images].map((i) => [i.currentSrc === i.src, i.naturalWidth > 500])")
        assert shown
        assert all(loaded and light == (scheme == "light") for light, loaded in shown), "dark pictures on a dark page"
        assert watched.complaints == []
        assert watched.outside(pages[name].as_uri()) == []


def test_print_is_light_and_whole(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["paper"], viewport={"width": 720, "height": 1000}, color_scheme="dark") as (page, _):
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        _, faint = page.evaluate(BELOW_CONTRAST, 4.5)
        assert faint == []
        for folded in page.locator("details > :not(summary)").all():
            assert (folded.bounding_box() or {"height": 0})["height"] > 0, "everything is unfolded"
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        page.wait_for_function("[...document.images].every((image) => image.currentSrc === image.src)")
