"""Tables in the terminal: drawn where somebody watches, plain lines of ASCII in files and pipes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

STYLES = {"holds": "green", "does not hold": "red", "undecided": "yellow", "yes": "green", "no": "red"}
"""How words in cells are shown."""


class Listing(NamedTuple):
    """A table before it is drawn.

    Columns whose positions are in `right` are aligned to the right; those whose heads are in `whole` are never wrapped.
    """

    title: str
    head: Sequence[str]
    body: Sequence[Sequence[str]]
    right: Collection[int] = ()
    whole: Collection[str] = ()


def drawn(
    notes: Sequence[str], listings: Sequence[Listing], after: Sequence[str] = (), styles: Mapping[str, str] = STYLES
) -> Group:
    """Notes, tables, and notes after them, for a terminal that somebody watches."""
    tables: list[Any] = [Text(note, style="yellow") for note in notes]
    for listing in listings:
        table = Table(title=Text(listing.title), box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
        for i, head in enumerate(listing.head):
            table.add_column(head, justify="right" if i in listing.right else "left", no_wrap=head in listing.whole)
        for row in listing.body:
            table.add_row(*(Text(cell, style=styles.get(cell, "")) for cell in row))
        tables.append(table)
    return Group(*tables, *(Text(note, style="yellow") for note in after))


def plain(notes: Sequence[str], listings: Sequence[Listing], after: Sequence[str] = ()) -> list[str]:
    """The same as lines of ASCII, for files and pipes."""
    lines = list(notes)
    for listing in listings:
        lines += ["", listing.title] if lines else [listing.title]
        widths = [max(len(row[i]) for row in (listing.head, *listing.body)) for i in range(len(listing.head))]
        for row in (listing.head, *listing.body):
            cells = [
                cell.rjust(width) if i in listing.right else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
    lines += [line for note in after for line in ("", note)]
    return [line.encode("ascii", "replace").decode() for line in lines]


def show(
    notes: Sequence[str], listings: Sequence[Listing], console: Console | None = None, after: Sequence[str] = ()
) -> None:
    """Print notes, tables, and notes after them: drawn in a terminal, as plain lines elsewhere."""
    console = console or Console()
    if console.is_terminal:
        console.print(drawn(notes, listings, after))
    else:
        console.file.write("\n".join(plain(notes, listings, after)) + "\n")
