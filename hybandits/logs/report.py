"""The account of a log that was read: every line is counted, as a round or with the reason why it was skipped."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class ReadError(Exception):
    """Raised in strict mode at the first line that cannot be used."""


class Fault(NamedTuple):
    """A line that cannot be used, and why."""

    line: int
    reason: str
    detail: str


class ReadReport:
    """Counts of the lines read, the rounds that came of them, and the lines skipped by reason.

    `lines == rounds + skipped`. `examples` has the first line of every reason in words, and `sources` every file with
    its lines and rounds, or with the reason why it was ignored. If `strict`, the first raises ReadError instead.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.rounds = 0
        self.reasons: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.sources: list[dict[str, Any]] = []

    @property
    def skipped(self) -> int:
        """Lines that could not be used."""
        return self.reasons.total()

    @property
    def lines(self) -> int:
        """All lines."""
        return self.rounds + self.skipped

    def begin(self, file: str) -> None:
        """Begin with the lines of a file."""
        self.sources.append({"file": file, "lines": 0, "rounds": 0})

    def ignore_files(self, files: Mapping[str, str]) -> None:
        """List files that lie beside a log and are not read, with the reasons."""
        for name, reason in files.items():
            self.begin(Path(name).name)
            self.sources[-1]["ignored"] = reason

    def count(self, rounds: int, faults: Sequence[Fault] = ()) -> None:
        """Count lines of the present file: rounds, and lines that cannot be used; ReadError if strict."""
        source = self.sources[-1]
        self.rounds += rounds
        source["lines"] += rounds + len(faults)
        source["rounds"] += rounds
        for line, reason, detail in faults:
            example = f"{source['file']}, line {line:,}: {reason}{f' ({detail})' if detail else ''}"
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
