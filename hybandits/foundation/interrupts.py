"""Ctrl-C: one line and exit code 130, whenever it comes. Imports next to nothing, to be ready first."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

KEPT = "what was finished is kept, the same command goes on from there"
NOTHING = "nothing was written"
PATIENCE = 10.0
"""Seconds from Ctrl-C within which workers are ended and files closed; after them the process ends as it is."""

interrupted = False
"""Whether Ctrl-C has been given."""

workers_started = False
"""Whether this process has ever started workers: from then on there are processes to end before it ends itself."""

_to_tidy = 0
_word = ""


class Interruption(KeyboardInterrupt):
    """Ctrl-C. A class of its own: Python ends by the signal if a plain KeyboardInterrupt ever left an `exec`."""


@contextlib.contextmanager
def tidying(word: str = NOTHING) -> Iterator[None]:
    """Within it, Ctrl-C comes as an exception, so that files half written are removed; word: what is then left."""
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
    """From now on, Ctrl-C comes as an exception, so that whoever started workers can end them."""
    global workers_started
    workers_started = True


def promise(word: str) -> None:
    """From now on, this is what Ctrl-C says of the files: KEPT for commands that save what is finished as they go."""
    global _word
    _word = word


def interrupt(number: int, frame: object) -> None:
    """On Ctrl-C: end at once, or, where there are processes or files to see to, by an exception.

    Not always by an exception: compilers and imports lose it, or make another one of it.
    """
    global interrupted
    if interrupted:  # it is on its way
        return
    interrupted = True
    if not (_to_tidy or workers_started):
        end()
    import threading

    last_resort = threading.Timer(PATIENCE, end)
    last_resort.daemon = True
    last_resort.start()
    raise Interruption


def end() -> None:
    """End the process as it is."""
    with contextlib.suppress(Exception):  # closed, or the signal came in the middle of a write
        sys.stdout.flush()
    say()
    os._exit(130)


def say() -> None:
    """Not by way of sys.stderr, which may be in the middle of a write."""
    before = "\x1b[?25h\n" if os.isatty(2) else ""  # a bar hides the cursor, and ^C stands in the line
    os.write(2, f"{before}hybandits: interrupted{'; ' if _word else ''}{_word}\n".encode())


def on_interrupt(handler: Any, *, instead_of: Any) -> None:
    """Set what Ctrl-C does, unless it does something else so far: it may be ignored, as in the background."""
    with contextlib.suppress(ValueError):  # not in the main thread
        if signal.getsignal(signal.SIGINT) is instead_of:
            signal.signal(signal.SIGINT, handler)
