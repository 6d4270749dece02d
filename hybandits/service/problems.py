"""What is answered when a request cannot be served: problem documents (RFC 9457)."""

from __future__ import annotations

from typing import Any

import msgspec

TITLES = {
    400: "The request is not valid JSON of the expected form",
    401: "A token is needed",
    403: "This is not allowed",
    404: "Not found",
    405: "This method is not allowed here",
    408: "The request took too long to arrive",
    409: "This contradicts what is in the log",
    413: "The request is too large",
    422: "The request cannot be used as it is",
    431: "The head of the request is too large",
    503: "The service cannot answer now",
}


class Refused(Exception):  # noqa: N818 (an answer rather than an error)
    """A request that is not served.

    Parameters
    ----------
    status : int
        The status of the answer.
    detail : str
        What was wrong, and what to do.
    field, value : optional
        The field of the request, and what it held.
    title : str, optional
        What all refusals of this kind have in common, if it is not what all of this status have.
    """

    def __init__(
        self, status: int, detail: str, *, field: str | None = None, value: Any = None, title: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field, self.value = status, detail, field, value
        self.title = TITLES[status] if title is None else title

    def document(self) -> bytes:
        """The problem document."""
        body: dict[str, Any] = {"title": self.title, "status": self.status, "detail": self.detail}
        if self.field is not None:
            body |= {"field": self.field, "value": _shown(self.value)}
        return msgspec.json.encode(body)


def _shown(value: Any) -> Any:
    """The value as it is if it is short, otherwise its beginning."""
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**53):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 200 else text[:199] + "…"
