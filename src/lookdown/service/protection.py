"""Protection against other sites, strangers and overload: what a request must pass before a route sees it.

A page on another site can make a browser send requests here, even if the service listens on this machine alone: under
a name of its own that it points to 127.0.0.1 (the Host header shows it), or across sites (the Origin header does).
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookdown.service.problems import Problem, response_of, too_busy
from lookdown.service.service_settings import ServiceSettings, is_address, is_loopback

__all__ = ["LimitsMiddleware", "RateLimit", "SecurityMiddleware", "security_headers"]

_LOG = logging.getLogger("lookdown.service")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_OWN_HOSTS = ("localhost", "127.0.0.1", "::1")
_FAULT = Problem(500, "fault", "something went wrong in the service; its log says more, and trying again may help")
_MAX_CLIENTS = 4_096  # whose rates are remembered
_FORM_BYTES = 64 << 10  # of a form beside its image


class SecurityMiddleware:
    """ASGI middleware around everything else: it checks requests, adds headers, and logs changes."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app = app
        self._token = None if settings.token is None else settings.token.encode()
        self._hosts = {*_OWN_HOSTS, settings.host.lower(), *map(str.lower, settings.hosts)}
        self._any_address = not is_loopback(settings.host)
        self._headers = security_headers(settings)
        self._rate = RateLimit(settings.requests_a_second, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        # Keep the path percent-encoded: routes must tell a slash within an id from one between segments.
        scope["path"] = scope.get("raw_path", scope["path"].encode()).split(b"?")[0].decode("latin-1")
        client = str((scope.get("client") or ("", 0))[0])
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
            self._check(scope, client)
            changes = scope["method"] not in _SAFE_METHODS and scope["path"] != "/v1/search"
            await self.app(scope, receive, send_with_headers)
        except Problem as problem:
            await response_of(problem)(scope, receive, send_with_headers)
        except Exception:
            _LOG.exception("a request failed: %s %s", scope["method"], _loggable(scope["path"]))
            if status:
                raise
            await response_of(_FAULT)(scope, receive, send_with_headers)
        finally:
            if changes:
                _LOG.info("%s %s from %s: %s", scope["method"], _loggable(scope["path"]), client, status)

    def _check(self, scope: Scope, client: str) -> None:
        """Refuse a request that may not go on; the rate comes first, so that nobody can try many tokens."""
        path, headers = scope["path"], Headers(scope=scope)
        if path != "/healthz" and (wait := self._rate.wait(client)):
            raise too_busy("you send requests faster than this service allows", math.ceil(wait))
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own_host(hosts[0]):
            raise Problem(
                421, "host", "this service does not have that name; start it with --allow-host NAME if it should"
            )
        if _is_foreign(scope, headers, hosts[0]):
            raise Problem(403, "origin", "a page of another site sent this; open the page of this service instead")
        needs_token = path not in ("/", "/healthz") and not path.startswith("/page/")
        if self._token is not None and needs_token and not self._has_token(headers):
            raise Problem(
                401,
                "token",
                "this service needs a token; send it as `Authorization: Bearer TOKEN`",
                headers={"WWW-Authenticate": 'Bearer realm="lookdown"'},
            )

    def _is_own_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._hosts or (self._any_address and is_address(name))  # no site can point an address here

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        assert self._token is not None
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token)


def security_headers(settings: ServiceSettings) -> dict[str, str]:
    """Return the headers of every response: nothing is loaded from elsewhere, framed, sniffed or passed to others."""
    images = " ".join(filter(None, ("'self'", "data:", "blob:", settings.tile_origin)))
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; connect-src 'self'; "
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
    """Whether a page of another site sent this request; following a link from another site is allowed."""
    origin = headers.get("origin", "").lower()
    if "origin" in headers and origin not in (f"http://{host.lower()}", f"https://{host.lower()}"):
        return True
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    return scope["method"] not in _SAFE_METHODS or headers.get("sec-fetch-mode") != "navigate"


def _loggable(path: str) -> str:
    """Shorten a path and escape its line breaks for the log."""
    return path[:200].encode("unicode_escape").decode()


class RateLimit:
    """A token bucket for each client: it holds up to `burst` requests and refills at a steady rate."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and at what time

    def wait(self, client: str) -> float:
        """Take a request from the client's bucket and return 0, or return the seconds until one is available."""
        if self._per_second <= 0:
            return 0.0
        now = self._clock()
        left, then = self._buckets.pop(client, (float(self._burst), now))
        left = min(self._burst, left + (now - then) * self._per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._per_second
        self._buckets[client] = (left if wait else left - 1, now)
        while len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return wait


class LimitsMiddleware:
    """ASGI middleware that refuses requests beyond a limit, with a problem that says when to try again."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.settings = app, settings
        self._requests = 0
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await self.app(scope, receive, send)
            return
        if self._requests >= self.settings.in_flight:
            raise too_busy("too many requests are at work", 1)
        limit, seconds = self._body_limit(scope), self.settings.body_seconds
        received, complete = 0, False
        deadline = asyncio.get_running_loop().time() + seconds

        async def limited_receive() -> Message:
            nonlocal received, complete
            if complete:
                return await receive()  # waits for the client to disconnect, which may take any time
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise Problem(408, "slow", f"the request did not arrive within {seconds:g} s; send it again") from None
            size = len(message.get("body", b""))
            complete = not message.get("more_body", False)
            received, self._bytes = received + size, self._bytes + size
            if received > limit:
                raise _too_large(limit)
            if self._bytes > self.settings.bytes_at_work:
                raise too_busy("too many bytes are at work", 1)
            return message

        self._requests += 1
        try:
            await self.app(scope, limited_receive, send)
        finally:
            self._requests -= 1
            self._bytes -= received

    def _body_limit(self, scope: Scope) -> int:
        headers = Headers(scope=scope)
        form = headers.get("content-type", "").lower().startswith("multipart/")
        limit = self.settings.upload_bytes + _FORM_BYTES if form else self.settings.json_bytes
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limit:
            raise _too_large(limit)
        return limit


def _too_large(limit: int) -> Problem:
    return Problem(413, "too-large", f"a request may have {limit:,} bytes; send a smaller image, cut to the object")
