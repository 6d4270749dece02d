"""The view as it changes: server-sent events, one computation for all who watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from hybandits.service.dashboard.page import content
from hybandits.service.dashboard.view import OFTEN, View, Views
from hybandits.service.problems import Refused

HEARTBEAT = 15.0
"""Seconds after which those who watch are told that the service is still there."""

MOST_WATCHERS = 200
"""Connections that watch at the same time."""

log = logging.getLogger("hybandits.service")


class Live:
    """Tells those who watch when something has changed, at most once in `OFTEN` seconds.

    Only the newest event is kept, so a slow reader misses some and holds up nobody.
    """

    def __init__(self, views: Views) -> None:
        self._views = views
        self._watchers = 0
        self._events: dict[str, bytes] = {}
        self._number = 0
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def watch(self, form: str) -> AsyncIterator[bytes]:
        """Events in one of two forms: "view" is JSON of the view, "page" is JSON of the page's HTML."""
        if self._watchers >= MOST_WATCHERS:
            raise Refused(503, f"{MOST_WATCHERS} connections watch already. Try again later.")
        return self._watch(form)

    async def _watch(self, form: str) -> AsyncIterator[bytes]:
        if self._watchers >= MOST_WATCHERS:  # others have begun since it was asked, so this one ends at once
            return
        self._watchers += 1
        if self._task is None or self._task.done():
            self._events = {}
            self._task = asyncio.create_task(self._look())
        try:
            seen = -1
            while not self._stopping.is_set():
                if self._events and seen != self._number:
                    seen = self._number
                    yield self._events[form]
                    continue
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await self._changed.wait()
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._watchers -= 1

    async def _look(self) -> None:
        """Look as long as somebody watches."""
        shown: View | None = None
        while self._watchers and not self._stopping.is_set():
            try:
                view = await asyncio.to_thread(self._views.newest)
                if view is not shown:
                    self._events = await asyncio.to_thread(_events, view)
                    shown = view
                    self._number += 1
                    self._tell()
            except Exception:
                log.exception("the view could not be made")
            try:
                async with asyncio.timeout(OFTEN):
                    await self._stopping.wait()
            except TimeoutError:
                pass

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # -------------------------------------------------------------- ending

    def stop(self) -> None:
        """End all connections, so that a server which waits for them can stop. Call it in the event loop."""
        self._stopping.set()
        self._tell()


def _events(view: View) -> dict[str, bytes]:
    return {"view": _event(view), "page": _event(content(view))}


def _event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
