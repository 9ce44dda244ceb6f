"""Who may ask what: Host, Origin and token are checked before anything else, and every answer carries strict headers.

A page on some other site can make a browser send requests here, even where the service listens on this machine alone:
by a name that it lets point to 127.0.0.1 (the Host is then its own), or across sites (the Origin is).
"""

from __future__ import annotations

import hmac
import logging
import math
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookdown.service.limits import RateLimit, too_busy
from lookdown.service.problems import Problem, response_of
from lookdown.service.service_settings import ServiceSettings, is_loopback

__all__ = ["SecurityMiddleware", "security_headers"]

_LOG = logging.getLogger("lookdown.service")
_SAFE = ("GET", "HEAD", "OPTIONS")
_OURS = ("localhost", "127.0.0.1", "::1")


class SecurityMiddleware:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app = app
        self._token = None if settings.token is None else settings.token.encode()
        self._names = {*_OURS, settings.host.lower(), *map(str.lower, settings.hosts)}
        self._any_address = not is_loopback(settings.host)
        self._headers = security_headers(settings)
        self._rate = RateLimit(settings.requests_a_second, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        # Routes see the path as it was sent, so that a slash within an id is told from one between parts.
        scope["path"] = scope.get("raw_path", scope["path"].encode()).split(b"?")[0].decode("latin-1")
        status, changes = 0, False

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._hold_back(scope)
            self._check(scope)
            changes = scope["method"] not in _SAFE and scope["path"] != "/v1/search"
            await self.app(scope, receive, send_with_headers)
        except Problem as problem:
            await response_of(problem)(scope, receive, send_with_headers)
        except Exception:
            _LOG.exception("a request failed: %s %s", scope["method"], _shown(scope["path"]))
            if status:
                raise
            await response_of(_OWN_FAULT)(scope, receive, send_with_headers)
        finally:
            if changes:
                _LOG.info("%s %s from %s: %s", scope["method"], _shown(scope["path"]), _client(scope), status)

    def _hold_back(self, scope: Scope) -> None:
        """Refuse who asks too fast, before the token is looked at, so that nobody can try many."""
        if scope["path"] != "/healthz" and (wait := self._rate.wait(_client(scope))):
            raise too_busy("you ask faster than this service answers", math.ceil(wait))

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_called(hosts[0]):
            raise Problem(
                421, "host", "this service does not go by that name; start it with --allow-host NAME if it should"
            )
        if _is_foreign(scope, headers, hosts[0]):
            raise Problem(403, "origin", "a page of another site asked for this; open the page of this service instead")
        if self._token is not None and not _is_free(scope["path"]) and not self._is_told(headers):
            raise Problem(
                401,
                "token",
                "this service wants its token; send it as `Authorization: Bearer TOKEN`",
                headers={"WWW-Authenticate": 'Bearer realm="lookdown"'},
            )

    def _is_called(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or (self._any_address and _is_address(name))

    def _is_told(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        assert self._token is not None
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token)


_OWN_FAULT = Problem(500, "fault", "something went wrong in the service; its log says more, and trying again may help")


def security_headers(settings: ServiceSettings) -> dict[str, str]:
    """Return what every answer carries: nothing is loaded from elsewhere, framed, guessed at, or told to others."""
    pictures = " ".join(filter(None, ("'self'", "data:", "blob:", settings.tile_origin)))
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {pictures}; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def _is_foreign(scope: Scope, headers: Headers, host: str) -> bool:
    """Whether a page of another site has sent this; a link that somebody follows is theirs to follow."""
    origin = headers.get("origin")
    if origin is not None and not _same_place(origin, host):
        return True
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    return scope["method"] not in _SAFE or headers.get("sec-fetch-mode") != "navigate"


def _same_place(origin: str, host: str) -> bool:
    scheme, _, place = origin.partition("://")
    return scheme in ("http", "https") and place.lower() == host.lower()


def _is_address(name: str) -> bool:
    """Whether a name is an address, which no one else can make point here."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _client(scope: Scope) -> str:
    return str((scope.get("client") or ("", 0))[0])


def _shown(path: str) -> str:
    """Return a path as a log can hold it: short, and on one line."""
    return path[:200].encode("unicode_escape").decode()


def _is_free(path: str) -> bool:
    return path in ("/", "/healthz") or path.startswith("/page/")
