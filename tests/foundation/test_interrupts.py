"""What Ctrl-C does: an exception where something must be tidied up, the end of the process otherwise."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from hybandits.foundation import interrupts


class Ended(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def _fresh_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test starts as a new process would, and gives back what was there."""
    fresh = {"interrupted": False, "workers_started": False, "_to_tidy": 0, "_word": "", "_last_resort": None}
    for name, value in fresh.items():
        monkeypatch.setattr(interrupts, name, value)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the process would have been ended; in the main thread, `Ended` is raised too."""
    event = threading.Event()

    def end() -> None:
        event.set()
        if threading.current_thread() is threading.main_thread():
            raise Ended

    monkeypatch.setattr(interrupts, "end", end)
    return event


def press() -> None:
    interrupts.interrupt(signal.SIGINT, sys._getframe())


def test_with_nothing_to_tidy_up_the_process_ends_at_once(ended: threading.Event) -> None:
    with pytest.raises(Ended):
        press()
    assert interrupts.interrupted


def test_with_files_to_tidy_up_it_is_an_exception_and_a_last_resort(
    ended: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE", 0.01)
    with pytest.raises(KeyboardInterrupt) as raised, interrupts.tidying():
        press()
    assert raised.type is interrupts.Interruption
    assert ended.wait(10)


def test_with_workers_it_is_an_exception(ended: threading.Event) -> None:
    interrupts.note_workers()
    with pytest.raises(interrupts.Interruption):
        press()
    assert not ended.is_set()


def test_the_second_time_it_does_nothing(ended: threading.Event) -> None:
    with pytest.raises(interrupts.Interruption), interrupts.tidying():
        press()
    press()
    assert not ended.is_set()


def test_where_an_exception_would_be_lost_it_comes_a_little_later(ended: threading.Event, handler: Any) -> None:
    """An exception in a function that LLVM calls is printed by Python and goes no further."""
    signal.signal(signal.SIGINT, interrupts.interrupt)
    outside = threading.Event()
    within: dict[str, Any] = {"__name__": "llvmlite.binding.executionengine", "press": press}
    exec("def called(go_on):\n    press()\n    while go_on(): pass", within)
    deadline = time.monotonic() + 10

    def called_until(moment: float) -> None:
        within["called"](lambda: time.monotonic() < moment)
        outside.set()
        while time.monotonic() < deadline:
            pass

    with interrupts.tidying(), pytest.raises(interrupts.Interruption):
        called_until(time.monotonic() + 5 * interrupts.RETRY)
    assert outside.is_set()
    assert not ended.is_set()


def said(capfd: pytest.CaptureFixture[str]) -> str:
    interrupts.say()
    return capfd.readouterr().err


def test_what_the_user_is_told_about_the_files(capfd: pytest.CaptureFixture[str]) -> None:
    assert said(capfd) == "hybandits: interrupted\n"
    with interrupts.tidying():
        assert said(capfd) == "hybandits: interrupted; nothing was written\n"
        with interrupts.tidying("some were"):
            assert said(capfd) == "hybandits: interrupted; some were\n"
        assert said(capfd) == "hybandits: interrupted; nothing was written\n"
    assert said(capfd) == "hybandits: interrupted\n"
    interrupts.promise(interrupts.KEPT)
    assert said(capfd) == f"hybandits: interrupted; {interrupts.KEPT}\n"


def test_what_held_at_the_interruption_is_told_afterwards(
    ended: threading.Event, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(interrupts.Interruption), interrupts.tidying("half a table"):
        press()
    assert said(capfd) == "hybandits: interrupted; half a table\n"


def test_on_a_terminal_the_cursor_comes_back_and_the_line_is_its_own(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "isatty", lambda descriptor: True)
    assert said(capfd) == "\x1b[?25h\nhybandits: interrupted\n"


def test_the_end_is_exit_code_130_even_with_a_closed_output(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []

    def leave(code: int) -> NoReturn:
        codes.append(code)
        raise Ended

    class Closed:
        def flush(self) -> None:
            raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(os, "_exit", leave)
    for stream in (sys.stdout, Closed()):
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(Ended):
            interrupts.end()
    monkeypatch.undo()
    assert codes == [130, 130]
    assert capfd.readouterr().err == 2 * "hybandits: interrupted\n"


@pytest.fixture
def handler() -> Iterator[Any]:
    """The handler of SIGINT that was there, put back afterwards."""
    before = signal.getsignal(signal.SIGINT)
    yield before
    signal.signal(signal.SIGINT, before)


def test_a_handler_replaces_only_the_one_it_is_for(handler: Any) -> None:
    interrupts.on_interrupt(interrupts.interrupt, instead_of=signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is handler
    interrupts.on_interrupt(interrupts.interrupt, instead_of=handler)
    assert signal.getsignal(signal.SIGINT) is interrupts.interrupt
    interrupts.on_interrupt(handler, instead_of=interrupts.interrupt)
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_leave_handlers_alone(handler: Any) -> None:
    problems: list[BaseException] = []

    def attempt() -> None:
        try:
            interrupts.on_interrupt(interrupts.interrupt, instead_of=handler)
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    assert not problems
    assert signal.getsignal(signal.SIGINT) is handler
