"""Who may ask: requests that carry a token; without tokens, programs of this machine, but not pages from elsewhere."""

from __future__ import annotations

import hmac
from functools import lru_cache

import msgspec
from starlette.types import Scope

from hybandits.service.problems import Refused

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""The names of this machine that only itself can reach."""


class Tokens(msgspec.Struct, frozen=True):
    """What requests must carry: a token for everything but arms and promote, and one for everything, if it is given."""

    use: str | None = None
    manage: str | None = None


class Access:
    """Refuses requests that may not be served."""

    def __init__(self, tokens: Tokens) -> None:
        self._use = None if tokens.use is None else tokens.use.encode()
        self._manage = None if tokens.manage is None else tokens.manage.encode()

    def check(self, scope: Scope, *, manage: bool = False) -> None:
        """Refuse a request that does not carry the token it needs; `manage`: the second one, if there is one."""
        if self._use is None:
            _check_sender(scope)
            return
        given = header(scope, b"authorization") or b""
        scheme, _, token = given.partition(b" ")
        may_use = hmac.compare_digest(token, self._use)
        may_manage = self._manage is not None and hmac.compare_digest(token, self._manage)
        if scheme.lower() != b"bearer" or not (may_use or may_manage):
            wrong = (
                "The request carries no token" if not given else "The request does not carry a token of this service"
            )
            raise Refused(401, f"{wrong}. Send one in the header Authorization: Bearer TOKEN.", field="Authorization")
        if manage and self._manage is not None and not may_manage:
            raise Refused(
                403,
                "Arms and promote need the second token of the token file, and this is the first. Send the second.",
                field="Authorization",
            )

    def check_sender(self, scope: Scope) -> None:
        """The check of requests that need no token."""
        if self._use is None:
            _check_sender(scope)

    def permits(self, scope: Scope) -> bool:
        """Whether a request carries a token, or none is needed."""
        try:
            self.check(scope)
        except Refused:
            return False
        return True


def header(scope: Scope, name: bytes) -> bytes | None:
    """The value of a header, None if it is not there."""
    value: bytes
    for its, value in scope["headers"]:
        if its == name:
            return value
    return None


def _check_sender(scope: Scope) -> None:
    """Refuse what a browser sends for a page from elsewhere.

    Without tokens everybody on this machine may ask, and so could every page that its browsers show: by a request to
    another origin, or under a name of its own that it lets point to 127.0.0.1 (DNS rebinding).
    """
    host = origin = site = mode = None
    for name, value in scope["headers"]:
        if name == b"host":
            host = value
        elif name == b"origin":
            origin = value
        elif name == b"sec-fetch-site":
            site = value
        elif name == b"sec-fetch-mode":
            mode = value
    if host is not None and not _is_loopback(host):
        raise Refused(
            403,
            f"The request is for the host {host.decode('latin-1')!r}, and a service without a token answers for "
            f"{', '.join(LOOPBACK)} only. Use one of these names, or start it with --token-file.",
            field="Host",
            value=host.decode("latin-1"),
        )
    if origin is not None and origin.partition(b"://")[2] != host:
        raise _elsewhere("Origin", origin)
    if site == b"cross-site" and (scope["method"] != "GET" or mode != b"navigate"):  # links may lead here
        raise _elsewhere("Sec-Fetch-Site", site)


def _elsewhere(name: str, value: bytes) -> Refused:
    return Refused(
        403,
        f"The request comes from a page elsewhere ({name}: {value.decode('latin-1')}), and a service without a token "
        "does not serve those. Start it with --token-file, and send the token.",
        field=name,
        value=value.decode("latin-1"),
    )


@lru_cache(maxsize=64)
def _is_loopback(host: bytes) -> bool:
    name, colon, port = host.lower().decode("latin-1").rpartition(":")
    if not colon or not port.isdigit():
        name = host.lower().decode("latin-1")
    return name.removeprefix("[").removesuffix("]") in LOOPBACK
