"""The account of a log that was read: every line is counted, as a round or with the reason why it was skipped."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class ReadError(Exception):
    """Raised in strict mode at the first line that cannot be used."""


class ReadReport:
    """Counts of the lines read, the rounds that came of them, and the lines skipped by reason.

    `lines == rounds + skipped`. `examples` has the first line of every reason in words, and `sources` every file with
    its lines and rounds, or with the reason why it was ignored. If `strict`, the first raises ReadError instead.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.lines = self.rounds = 0
        self.reasons: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.sources: list[dict[str, Any]] = []

    @property
    def skipped(self) -> int:
        """Lines that could not be used."""
        return self.reasons.total()

    def count_file(self, file: str, *, lines: int, rounds: int) -> None:
        """Count a file that has been read to its end."""
        self.lines += lines
        self.rounds += rounds
        self.sources.append({"file": file, "lines": lines, "rounds": rounds})

    def ignore_files(self, files: Mapping[str, str]) -> None:
        """List files that lie beside a log and are not read, with the reasons."""
        for name, reason in files.items():
            self.sources.append({"file": Path(name).name, "lines": 0, "rounds": 0, "ignored": reason})

    def skip(self, reason: str, file: str, line: int, detail: str = "") -> None:
        """Count a line skipped for this reason; ReadError if strict."""
        example = f"{file}, line {line:,}: {reason}{f' ({detail})' if detail else ''}"
        if self.strict:
            raise ReadError(f"{example}: leave out --strict to skip such lines and go on")
        self.examples.setdefault(reason, example)
        self.reasons[reason] += 1

    def plain(self) -> dict[str, Any]:
        """Return the account as values that JSON can hold."""
        skipped = dict(self.reasons)
        return {
            "lines": self.lines, "rounds": self.rounds, "skipped": skipped, "examples": self.examples,
            "sources": self.sources,
        }  # fmt: skip
