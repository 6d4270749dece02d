"""A real browser for tests: Chromium, as the system has it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")

BELOW_CONTRAST = """(least) => {
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint = [];
  let checked = 0;
  for (const element of document.querySelectorAll("body *")) {
    if (["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const words = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent).join(" ").trim();
    if (!words || !element.checkVisibility({ visibilityProperty: true })) continue;
    checked += 1;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement;
    const under = ground(element);
    const text = luminance(over(parse(drawn ? style.fill : style.color), under));
    const behind = luminance(under);
    const contrast = (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
    if (contrast < least) faint.push(`${contrast.toFixed(2)} ${element.tagName} ${words.slice(0, 40)}`);
  }
  return [checked, faint];
}"""
"""Number of visible texts, and those with too little contrast to their background."""


def chromium() -> str:
    """Path of Chromium. Without it the test is skipped, or fails where everything must be tested (CI=true)."""
    executable = next((path for name in NAMES if (path := shutil.which(name))), None)
    if executable is None:
        reason = "there is no Chromium: install it, on Debian and Ubuntu by .ci/chromium.sh (apt-get install chromium)"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return executable


@contextmanager
def a_browser() -> Iterator[Browser]:
    """Chromium, started and ended."""
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """Messages and requests of a page."""

    def __init__(self, page: Page) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def outside(self, own: str) -> list[str]:
        """Requests for anything but the page itself and what is written in it."""
        return [url for url in self.requests if url.split("#")[0] != own and not url.startswith("data:")]
