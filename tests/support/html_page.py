"""A page parsed again, to be asked what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

from hybandits.experiments.results import Results
from hybandits.paper.judging import judge
from hybandits.report.figures import Drawn
from hybandits.report.page import page_of
from hybandits.report.tables import read_out_rows, regret_rows

VOID = {"meta", "br", "img", "link", "hr", "input", "source"}


class Page(HTMLParser):
    """The tags, which must balance, the ids, what is referred to, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: list[str] = []
        self.html, self.text = text, ""
        self.feed(text)
        self.close()
        self.text = " ".join(self.text.split())
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "srcset", "data", "action"):
                self.references.append(value or "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


def page_about(results: Results, drawn: Sequence[Drawn] = ()) -> Page:
    """The page about results, with these figures."""
    verdicts = judge(results)
    return Page(page_of(results, drawn, verdicts, regret_rows(results), read_out_rows(results)))
