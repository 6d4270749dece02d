"""HTTP below the application: limits on what arrives, and answers that are written in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from hybandits.service.problems import Refused

REQUEST_SECONDS = 10.0
"""How long a request may take to arrive, head and body."""

LAST_SECONDS = 0.5
"""For how long connections stay open when the server stops, for requests that are on their way."""

LARGEST_HEAD = 65_536
"""Bytes of a request's first line and headers. One piece from the network, up to 256 KB, may go beyond it."""

AnswerAtOnce = Callable[[int, bytes], bool]
"""Answers a request with a status and JSON, and returns whether it could."""

_EXTENSION = "hybandits.answer"


def answer_at_once(scope: Scope) -> AnswerAtOnce | None:
    """How to answer a request in one piece, where the server can do that."""
    extensions: dict[str, AnswerAtOnce] = scope.get("extensions", {})
    return extensions.get(_EXTENSION)


class Protocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with limits on the size of a request's head and the time that a request takes.

    Applications may answer with head and body in one piece, an extension of ASGI (`answer_at_once`): the second system
    call that uvicorn makes costs as much as a decision.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._most, self.limit_concurrency = self.config.limit_concurrency, None  # uvicorn would refuse in plain text
        self._stopping = False
        self._waiting_since: float | None = self.loop.time()
        self._head: int | None = 0
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._look_at_the_time)

    def data_received(self, data: bytes) -> None:
        self._ended = False
        super().data_received(data)
        if self._head is not None and not self._ended:  # the head is not complete
            self._head += len(data)
            if self._waiting_since is None:  # there are bytes, even if they are no request yet
                self._waiting_since = self.loop.time()
            if self._head > LARGEST_HEAD and not self.transport.is_closing():
                self._refuse(431, f"The request's head has more than {LARGEST_HEAD:,} bytes. Send less in its headers.")

    def on_message_begin(self) -> None:
        self._waiting_since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = None
        refused = self._refusal()
        self.app = self.config.loaded_app if refused is None else partial(_answer_refused, refused)
        super().on_headers_complete()
        cycle = self.cycle
        if self._stopping and cycle is not None:
            cycle.keep_alive = False  # the answer says that the connection is closed
        if cycle is not None and cycle.scope is self.scope:
            self.scope["extensions"] = {_EXTENSION: partial(_answer, cycle)}  # type: ignore[dict-item]

    def on_message_complete(self) -> None:
        self._waiting_since, self._head, self._ended = None, 0, True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server is about to wait for its connections: those that only watch must end.

        Those on which nothing happens are closed in a moment: a request may be on its way, and would be lost.
        """
        self.app_state["live"].stop()
        self._stopping = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LAST_SECONDS, super().shutdown)
        else:
            super().shutdown()

    def _unsupported_upgrade_warning(self) -> None:
        """Do without: a request that asks for WebSocket is served as if it did not."""

    def _refusal(self) -> Refused | None:
        """Why the request is not even handed on."""
        most = self._most
        if most is not None and (len(self.connections) >= most or len(self.tasks) >= most):
            return Refused(503, f"This process has {most:,} connections or requests already. Ask again in a moment.")
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) == 1 or (not hosts and self.parser.get_http_version() == "1.0"):
            return None
        return Refused(
            400,
            f"The request has {len(hosts)} Host headers. Send one.",
            field="Host",
            value=b", ".join(hosts).decode("latin-1"),
            title="The request needs one Host header",
        )

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        detail = "What has arrived is not a valid HTTP request. Send HTTP/1.1, and let a proxy in front do TLS."
        self._refuse(400, detail, "This is not HTTP")

    def _refuse(self, status: int, detail: str, title: str | None = None) -> None:
        """Answer with a problem document, unless another answer is under way, and close the connection."""
        if self.cycle is None or self.cycle.response_complete:
            document = Refused(status, detail, title=title).document()
            headers = [*self.server_state.default_headers, (b"connection", b"close")]
            self.transport.write(_message(status, headers, b"application/problem+json", document))
        self.app_state["refused"](status)
        self.transport.close()

    def _look_at_the_time(self) -> None:
        """Close the connection if a request has taken too long; otherwise look again when that could be so."""
        left = REQUEST_SECONDS
        if self._waiting_since is not None:
            left -= self.loop.time() - self._waiting_since
        if left <= 0:
            self.transport.close()
        else:
            self._timer = self.loop.call_later(left, self._look_at_the_time)


def _answer(cycle: RequestResponseCycle, status: int, body: bytes) -> bool:
    """Write head and body, as `RequestResponseCycle.send` would in two pieces.

    Returns False, and writes nothing, where it is not as simple as that.
    """
    if cycle.flow.write_paused or cycle.disconnected or not cycle.keep_alive or cycle.response_started:
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.transport.write(_message(status, cycle.default_headers, b"application/json", body))
    cycle.message_event.set()
    cycle.on_response()
    return True


async def _answer_refused(refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    """An application that refuses a request, and has the connection closed."""
    document = refused.document()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", b"%d" % len(document))]
    if refused.status == 503:
        headers.append((b"retry-after", b"1"))
    scope["state"]["refused"](refused.status)
    await send(
        {"type": "http.response.start", "status": refused.status, "headers": [*headers, (b"connection", b"close")]}
    )
    await send({"type": "http.response.body", "body": document})


def _message(status: int, headers: Iterable[tuple[bytes, bytes]], kind: bytes, body: bytes) -> bytes:
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"%b%bcontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (STATUS_LINE[status], lines, kind, len(body), body)
