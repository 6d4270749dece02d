"""Access control: by tokens, or without them for programs on this machine but no pages from other origins."""

import hmac
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.types import Scope

from hybandits.service.commands import Refused

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of this machine that only itself can reach."""


class Tokens(msgspec.Struct, frozen=True):
    """Tokens of requests: one for everything but arms and promote, and optionally one for everything."""

    use: str | None = None
    manage: str | None = None

    def check(self, scope: Scope, *, token: bool = True, manage: bool = False) -> None:
        """Refuse a request without the token it needs; `manage`: the second one, if there is one."""
        if self.use is None:
            _check_origin(scope)
            return
        if not token:
            return
        authorization = Headers(scope=scope).get("authorization", "")
        scheme, _, given = authorization.partition(" ")
        may_use = hmac.compare_digest(given.encode(), self.use.encode())
        may_manage = self.manage is not None and hmac.compare_digest(given.encode(), self.manage.encode())
        if scheme.lower() != "bearer" or not (may_use or may_manage):
            wrong = "no token" if not authorization else "no token of this service"
            detail = f"The request carries {wrong}. Send one in the header Authorization: Bearer TOKEN."
            raise Refused(401, detail, field="Authorization")
        if manage and self.manage is not None and not may_manage:
            detail = "Arms and promote need the second token of the token file, and this is the first. Send the second."
            raise Refused(403, detail, field="Authorization")


def read_tokens(path: str | None) -> Tokens:
    """Read tokens from a file: the first line is needed for all requests, a second one for arms and promote."""
    if path is None:
        return Tokens()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        raise ValueError(f"{path} cannot be read ({problem.strerror}): give a file with a token") from None
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path} is not UTF-8 ({problem.reason}): write the token as plain text") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= 2:
        raise ValueError(f"{path} has {len(lines)} lines, expected one token, or a second one for arms and promote")
    for line in lines:
        if len(line) < 16 or not line.isascii() or not line.isprintable():
            raise ValueError(f"{path} has a token of {len(line)} characters: use at least 16 printable ASCII ones")
    return Tokens(*lines)


def _check_origin(scope: Scope) -> None:
    """Refuse requests of a browser for a page of another origin, or for a name that resolves here (DNS rebinding)."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    host, origin, site = headers.get(b"host"), headers.get(b"origin"), headers.get(b"sec-fetch-site")
    if host is not None and not _is_loopback(host):
        detail = f"Without a token only {', '.join(LOOPBACK)} are served, got the host {host!r}. Use --token-file."
        raise Refused(403, detail, field="Host", value=host)
    is_link = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == "navigate"
    for name, value, refused in (
        ("Origin", origin, origin is not None and origin.partition("://")[2] != host),
        ("Sec-Fetch-Site", site, site == "cross-site" and not is_link),
    ):
        if refused:
            detail = f"Without a token pages of other origins are not served, got {name}: {value}. Use --token-file."
            raise Refused(403, detail, field=name, value=value)


def _is_loopback(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in LOOPBACK
    except ValueError:
        return False
