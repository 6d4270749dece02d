"""The routes for those who look: the page, the view and its changes, measurements, and the description of the API."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hybandits.service import openapi
from hybandits.service.access import Access
from hybandits.service.dashboard.live import Live
from hybandits.service.dashboard.metrics import Metrics
from hybandits.service.dashboard.page import headers, page
from hybandits.service.dashboard.view import Views
from hybandits.service.problems import Refused
from hybandits.service.request_batching import Gathering
from hybandits.service.writer import Writer


class Looking:
    """Routes that change nothing."""

    def __init__(self, writer: Writer, gathering: Gathering, access: Access) -> None:
        self._access = access
        self._views = Views(writer)
        self.live_views = Live(self._views)
        self.metrics = Metrics(self._views, gathering)

    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/", self.page, methods=["GET"]),
            Route("/live", self.live, methods=["GET"]),
            Route("/v1/view", self.view, methods=["GET"]),
            Route("/v1/live", self.live_view, methods=["GET"]),
            Route("/metrics", self.measurements, methods=["GET"]),
            Route("/openapi.json", self.description, methods=["GET"]),
        ]

    async def page(self, request: Request) -> Response:
        """GET /: the page, or the question for the token."""
        try:
            self._access.check(request.scope)
        except Refused as refused:
            if refused.status != 401:
                raise
            answer = {**headers(), "www-authenticate": "Bearer"}
            wrong_token = "authorization" in request.headers
            return Response(page(None, refused=wrong_token), refused.status, answer, "text/html")
        return Response(await asyncio.to_thread(self._page), 200, headers(), "text/html")

    def _page(self) -> str:
        return page(self._views.newest())

    async def live(self, request: Request) -> Response:
        """GET /live: the page's changing part, as server-sent events."""
        return self._stream(request, "page")

    async def live_view(self, request: Request) -> Response:
        """GET /v1/live: the view, as server-sent events."""
        return self._stream(request, "view")

    def _stream(self, request: Request, form: str) -> Response:
        self._access.check(request.scope)
        told = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.live_views.watch(form), 200, told, "text/event-stream")

    async def view(self, request: Request) -> Response:
        """GET /v1/view: the view, once."""
        self._access.check(request.scope)
        view = await asyncio.to_thread(self._views.newest)
        return Response(msgspec.json.encode(view), media_type="application/json")

    async def measurements(self, request: Request) -> Response:
        """GET /metrics."""
        self._access.check(request.scope)
        text = await asyncio.to_thread(self.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def description(self, request: Request) -> Response:
        """GET /openapi.json."""
        self._access.check_sender(request.scope)
        return Response(openapi.document(), media_type="application/json")
