"""What happened to every line that was read: nothing is dropped silently, and the totals add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

CUT = "line cut off by damage to the file"
"""What is wrong with the last line that could be recovered from a damaged file."""

DAMAGED = "damaged file"
SALVAGED = "what could be unpacked was read, but some wrong bytes may have gone unnoticed: copy the file again"
"""What is said of a damaged file."""


class ReadError(Exception):
    """Raised in strict mode at the first line or file that cannot be used."""


class Example(NamedTuple):
    """A problem and where it was; line 0 stands for the file as a whole."""

    kind: str
    file: str
    line: int
    detail: str

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line:,}" if self.line else self.file
        return f"{where}: {self.kind}{f' ({self.detail})' if self.detail else ''}"


class Problems:
    """The account of a log that was read: how many lines, how many rounds, and what was wrong with the other lines.

    A reader reports to it; afterwards `lines == rounds + skipped`.

    Parameters
    ----------
    strict : bool
        Raise ReadError at the first problem instead of counting it.
    shown : int
        How many problems to keep as examples. The first of every kind is kept beyond that.

    Attributes
    ----------
    lines, rounds, skipped : int
        Lines read, rounds that came of them, and lines that could not be used.
    kinds : Counter
        Lines that could not be used, by what was wrong with them.
    files : Counter
        Problems of whole files, such as damage, by kind.
    examples : list of Example
        Some of the problems with file, line and detail.
    sources : list of dict
        Every file, with its lines and rounds, or with the reason why it was ignored.

    Examples
    --------
    >>> problems = Problems()
    >>> problems.count_file("day1", lines=3, rounds=2)
    >>> problems.skip("unparsable number", "day1", 2, "got 'x1.0'")
    >>> problems.lines, problems.rounds, problems.skipped
    (3, 2, 1)
    >>> print(problems.examples[0])
    day1, line 2: unparsable number (got 'x1.0')
    """

    def __init__(self, *, strict: bool = False, shown: int = 5) -> None:
        self.strict, self.shown = strict, shown
        self.lines = self.rounds = 0
        self.kinds: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.examples: list[Example] = []
        self.sources: list[dict[str, Any]] = []

    @property
    def skipped(self) -> int:
        """Lines that could not be used."""
        return sum(self.kinds.values())

    def count_file(self, file: str, *, lines: int, rounds: int) -> None:
        """Report that a file has been read to its end."""
        self.lines += lines
        self.rounds += rounds
        self.sources.append({"file": file, "lines": lines, "rounds": rounds})

    def ignore_files(self, files: Mapping[str, str]) -> None:
        """Report files that lie beside a log and are not read, with the reasons."""
        self.sources += [
            {"file": Path(name).name, "lines": 0, "rounds": 0, "ignored": reason} for name, reason in files.items()
        ]

    def skip(self, kind: str, file: str, line: int, detail: str = "", *, count: int = 1) -> None:
        """Report that `count` lines are skipped for this reason, the first of them at `line`; ReadError if strict."""
        self._keep_example(Example(kind, file, line, detail))
        self.kinds[kind] += count

    def blame_file(self, kind: str, file: str, detail: str = "") -> None:
        """Report that something is wrong with a file as a whole, not with a line of it; ReadError if strict."""
        self._keep_example(Example(kind, file, 0, detail))
        self.files[kind] += 1

    def _keep_example(self, example: Example) -> None:
        if self.strict:
            raise ReadError(f"{example}: leave out --strict to skip such lines and go on")
        if len(self.examples) < self.shown or all(example.kind != known.kind for known in self.examples):
            self.examples.append(example)

    def in_words(self) -> str:
        """The lines read and the first problem, as a clause for an error message."""
        if not self.examples:
            return ""
        return f" ({self.lines:,} lines read; first problem: {self.examples[0]})"

    def plain(self) -> dict[str, Any]:
        """The account as values that JSON can hold."""
        return {
            "lines": self.lines, "rounds": self.rounds, "skipped": dict(self.kinds), "files": dict(self.files),
            "examples": [example._asdict() for example in self.examples], "sources": self.sources,
        }  # fmt: skip
