"""Alerts: a message to a webhook when a warning of the page appears, and when it is gone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import httpx

from hybandits.service.view import View

EVERY = 60.0
"""Seconds between two looks at the warnings."""

PATIENCE = 10.0
"""Seconds that a webhook may take to answer."""

logger = logging.getLogger("hybandits.service")

Look = Callable[[], Awaitable[View]]


class Alerts:
    """The warnings of bandits that their webhooks know of."""

    def __init__(self) -> None:
        self._sent: dict[str, set[str]] = {}

    async def watch(self, looks: Callable[[], Mapping[str, Look]]) -> None:
        """Send changes, again and again."""
        async with httpx.AsyncClient(timeout=PATIENCE) as web:
            while True:
                try:
                    await self.send([await look() for look in looks().values()], web)
                except Exception:  # the next look may succeed
                    logger.exception("cannot look for alerts")
                await asyncio.sleep(EVERY)

    async def send(self, views: Iterable[View], web: httpx.AsyncClient) -> None:
        """Tell each webhook what has changed; what it does not accept is sent again the next time."""
        for view in views:
            message = self._message(view)
            if view.webhook is not None and message is not None:
                try:
                    (await web.post(view.webhook, json=message)).raise_for_status()
                except httpx.HTTPError as problem:
                    logger.warning("the webhook of %s was not reached: %r", view.name, problem)
                else:
                    self._sent[view.name] = {each.code for each in view.warnings}

    def _message(self, view: View) -> dict[str, Any] | None:
        now, before = {each.code: each.text for each in view.warnings}, self._sent.get(view.name, set())
        if now.keys() == before:
            return None
        raised = [{"code": code, "text": text} for code, text in now.items() if code not in before]
        return {"bandit": view.name, "raised": raised, "cleared": sorted(before - now.keys())}
