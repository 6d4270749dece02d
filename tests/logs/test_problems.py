"""The account of what was read: totals add up, examples are few, strict stops."""

from __future__ import annotations

import json

import pytest

from hybandits.logs.report import ReadError, ReadReport


def test_totals_add_up_and_strict_stops() -> None:
    problems = ReadReport(shown=2)
    for line in (3, 9, 11):
        problems.skip("unparsable number", "f", line)
    problems.blame_file("truncated gzip", "f")
    problems.count_file("f", lines=10, rounds=7)
    assert problems.lines == problems.rounds + problems.skipped
    assert [example.line for example in problems.examples] == [3, 9, 0], "the first two, and one of every other kind"
    assert problems.plain()["files"] == {"truncated gzip": 1}
    with pytest.raises(ReadError, match="f, line 3: unparsable"):
        ReadReport(strict=True).skip("unparsable number", "f", 3)


def test_the_account_in_words_and_as_plain_values() -> None:
    problems = ReadReport()
    assert problems.in_words() == ""
    problems.ignore_files({"/somewhere/notes.txt": "not a log by its name"})
    problems.skip("blank line", "day1", 1200, count=3)
    problems.count_file("day1", lines=5000, rounds=4997)
    assert problems.in_words() == " (5,000 lines read; first problem: day1, line 1,200: blank line)"
    assert json.loads(json.dumps(problems.plain())) == {
        "lines": 5000,
        "rounds": 4997,
        "skipped": {"blank line": 3},
        "files": {},
        "examples": [{"kind": "blank line", "file": "day1", "line": 1200, "detail": ""}],
        "sources": [
            {"file": "notes.txt", "lines": 0, "rounds": 0, "ignored": "not a log by its name"},
            {"file": "day1", "lines": 5000, "rounds": 4997},
        ],
    }
    with pytest.raises(ReadError, match=r"^day1: damaged file: leave out --strict"):
        ReadReport(strict=True).blame_file("damaged file", "day1")
