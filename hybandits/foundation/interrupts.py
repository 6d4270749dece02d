"""Ctrl-C ends a command with one line and exit code 130, whenever it comes.

This module imports next to nothing, so that it is ready before everything else is imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

KEPT = "finished work is kept: run the same command again to continue"
NOTHING = "nothing was written"

PATIENCE = 10.0
"""Seconds that workers and open files are given after Ctrl-C; then the process ends whatever they are doing."""

RETRY = 0.01
"""Seconds after which Ctrl-C is handled again if an exception would have been lost where it came."""

interrupted = False
"""Whether Ctrl-C has been pressed."""

workers_started = False
"""Whether this process has ever started workers, which must be ended before it ends itself."""

_to_tidy = 0
_word = ""
_last_resort: Any = None
"""The timer that ends the process when PATIENCE is over."""


class Interruption(KeyboardInterrupt):
    """Ctrl-C was pressed.

    It has a class of its own because Python ends by the signal, without our exit code, once a plain KeyboardInterrupt
    has left an `exec`.
    """


@contextlib.contextmanager
def tidying(word: str = NOTHING) -> Iterator[None]:
    """Turn Ctrl-C into an exception inside the `with` block, so that half-written files are removed.

    Parameters
    ----------
    word : str
        What the user is then told about the files.
    """
    global _to_tidy, _word
    _to_tidy += 1
    before, _word = _word, word
    try:
        yield
    finally:
        _to_tidy -= 1
        if not interrupted:
            _word = before


def note_workers() -> None:
    """Turn Ctrl-C into an exception from now on, so that the engine that started workers can end them."""
    global workers_started
    workers_started = True


def promise(word: str) -> None:
    """Set what Ctrl-C tells the user about the files from now on: KEPT if finished work is saved along the way."""
    global _word
    _word = word


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C: raise an exception if there are workers or files to take care of, else end at once.

    An exception alone would not do, because compilers and imports lose it or turn it into another one.
    """
    global interrupted, _last_resort
    if interrupted:  # the first one is being handled
        return
    if not (_to_tidy or workers_started):
        interrupted = True
        end()
    if _last_resort is None:
        _last_resort = _later(PATIENCE, end)
    if _would_be_lost(frame):
        _later(RETRY, signal.raise_signal, number)
        return
    interrupted = True
    raise Interruption


def _would_be_lost(frame: FrameType | None) -> bool:
    """Whether LLVM is at work: Python prints an exception that is raised in a call from there, and goes on."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("llvmlite."):
            return True
        frame = frame.f_back
    return False


def _later(seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """Start a timer that does not keep the process from ending."""
    import threading

    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    timer.start()
    return timer


def end() -> None:
    """End the process at once."""
    with contextlib.suppress(Exception):  # it is closed, or the signal came in the middle of a write
        sys.stdout.flush()
    say()
    os._exit(130)


def say() -> None:
    """Tell the user, not through sys.stderr, which may be in the middle of a write."""
    before = "\x1b[?25h\n" if os.isatty(2) else ""  # a progress bar hides the cursor, and ^C is in the line
    os.write(2, f"{before}hybandits: interrupted{'; ' if _word else ''}{_word}\n".encode())


def on_interrupt(handler: Any, *, instead_of: Any) -> None:
    """Replace one handler of Ctrl-C by another; leave any other alone, such as that of a job that ignores it."""
    with contextlib.suppress(ValueError):  # only the main thread may set handlers
        if signal.getsignal(signal.SIGINT) is instead_of:
            signal.signal(signal.SIGINT, handler)
