"""Tables in the terminal, drawn or plain."""

from __future__ import annotations

import io

from rich.console import Console

from hybandits.report.listings import Listing, plain, show

TABLE = Listing("Title", ("name", "value"), [("a", "1"), ("long name", "1,000"), ("θ", "no")], right=(1,))


def test_plain_lines_are_aligned_ascii() -> None:
    assert plain(["A note."], [TABLE], ["After."]) == [
        "A note.",
        "",
        "Title",
        "name       value",
        "a              1",
        "long name  1,000",
        "?             no",
        "",
        "After.",
    ]
    assert plain([], [TABLE])[0] == "Title", "no empty line at the top"


def test_drawn_where_somebody_watches_and_plain_elsewhere() -> None:
    file = io.StringIO()
    show(["A note."], [TABLE], Console(file=file))
    assert file.getvalue() == "\n".join(plain(["A note."], [TABLE])) + "\n"
    watched = Console(file=io.StringIO(), force_terminal=True, width=60, no_color=True)
    with watched.capture() as captured:
        show(["A note."], [TABLE], watched, ["After."])
    text = captured.get()
    assert "θ" in text
    assert "─" in text
    assert text.index("A note.") < text.index("Title") < text.index("After.")
