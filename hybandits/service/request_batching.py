"""Between the event loop and the writer: requests that come together are handed in together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from hybandits.service.commands import Command
from hybandits.service.writer import Asked, Delivery, Outcome, Writer, refusals

PATIENCE = 1e-4
"""Seconds for which nothing happens, after which what has come is handed in."""

LONG = 1e-4
"""Seconds between two looks that show that something has happened."""

MOST_PATIENCE = 2e-3
"""Seconds after which what has come is handed in, whatever happens."""

HANGING = 12.0
"""Seconds without an answer from the writer, after which requests are refused: a lock, a disk or a database hangs."""


class Gathering:
    """Gathers what requests ask for while the writer is busy, and until no more come.

    One transaction then takes them all, with those that come while it waits for its turn, and they share what it costs.
    Clients that were answered just now and ask again at once are in it too, and the two threads need not compete.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._open: dict[asyncio.Future[list[Outcome]], Sequence[Command]] = {}
        self._since = 0.0  # when the writer gave its last answer, or was asked while it had nothing to do
        self._expected = 0
        self._writer_is_free = True

    @property
    def waiting(self) -> int:
        """Requests that wait for their transaction."""
        return self._writer.waiting

    def start(self) -> None:
        """Let the writer begin, and answer in this event loop."""
        loop = asyncio.get_running_loop()
        self._writer.start(deliver=lambda answers: loop.call_soon_threadsafe(self._deliver, loop, answers))
        self._watch(loop)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Refuse those who wait for a writer that hangs, again and again as long as it does."""
        if self._open and loop.time() - self._since > HANGING:
            why = f"The log has not answered for {HANGING:g} seconds."
            self._writer.note_trouble(why)
            self._writer.drop()
            for future, commands in self._open.items():
                if not future.done():
                    future.set_result(refusals(why, commands))
        loop.call_later(HANGING / 12, self._watch, loop)

    async def ask(self, commands: Sequence[Command]) -> list[Outcome]:
        """Hand in commands, and wait until they are answered."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Outcome]] = loop.create_future()

        def answer(outcomes: list[Outcome]) -> None:
            if not future.done():
                future.set_result(outcomes)

        if not self._open:
            self._since = loop.time()
        self._open[future] = commands
        self._writer.ask(Asked(commands, answer), wake=False)
        if self._writer_is_free:
            self._gather(loop)
        try:
            return await future
        finally:
            del self._open[future]

    def _gather(self, loop: asyncio.AbstractEventLoop) -> None:
        self._writer_is_free = False
        now = time.perf_counter()
        loop.call_soon(self._hand_in, loop, now, 0, now, now)

    def _hand_in(self, loop: asyncio.AbstractEventLoop, began: float, before: int, looked: float, busy: float) -> None:
        """Let what has come be served; but wait a moment for clients that were answered just now and may ask again.

        Parameters
        ----------
        began : float
            When gathering began.
        before, looked : int, float
            How many had come at the last look, and when that was.
        busy : float
            When a request came, or the loop did something else, for the last time.
        """
        count, now = self._writer.waiting, time.perf_counter()
        if count > before or now - looked > LONG:
            busy = now
        alone = not self._writer.shared  # otherwise more can come while the transaction waits for its turn
        if alone and count < self._expected and now - busy < PATIENCE and now - began < MOST_PATIENCE:
            loop.call_soon(self._hand_in, loop, began, count, now, busy)
            return
        self._writer.wake()

    def _deliver(self, loop: asyncio.AbstractEventLoop, answers: Sequence[Delivery]) -> None:
        """Answer the requests of one transaction. Those that came meanwhile are next, with those that come now."""
        for reply, outcomes in answers:
            reply(outcomes)
        waiting = self._writer.waiting
        if answers:
            self._expected = len(answers) + waiting
        self._writer_is_free, self._since = True, loop.time()
        if waiting:
            self._gather(loop)
