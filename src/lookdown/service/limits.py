"""How much one client, and all together, may ask for: requests a second, requests at work, bytes and time of a body."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookdown.service.problems import Problem
from lookdown.service.service_settings import ServiceSettings

__all__ = ["LimitsMiddleware", "RateLimit", "too_busy"]

_CLIENTS = 4_096  # that are remembered
_ENVELOPE = 64 << 10  # bytes of a form beside its image


class RateLimit:
    """A bucket of `burst` requests for each client, filled again at a steady rate."""

    def __init__(self, a_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.a_second, self.burst, self._clock = a_second, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when that was

    def wait(self, client: str) -> float:
        """Take one from the bucket, and return 0; where it is empty, the seconds until there is one."""
        if self.a_second <= 0:
            return 0.0
        now = self._clock()
        left, then = self._buckets.pop(client, (float(self.burst), now))
        left = min(self.burst, left + (now - then) * self.a_second)
        wait = 0.0 if left >= 1 else (1 - left) / self.a_second
        self._buckets[client] = (left if wait else left - 1, now)
        while len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return wait


class LimitsMiddleware:
    """ASGI middleware; a request beyond a limit is refused with a problem that says when to come again."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.settings = app, settings
        self._at_work = 0
        self._bytes_at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await self.app(scope, receive, send)
            return
        if self._at_work >= self.settings.in_flight:
            raise too_busy("too many requests are at work", 1)
        limit = self._bytes(scope)
        arrived = 0

        def take(more: int) -> None:
            nonlocal arrived
            arrived += more
            self._bytes_at_work += more
            if arrived > limit:
                raise _too_large(limit)
            if self._bytes_at_work > self.settings.bytes_at_work:
                raise too_busy("too many bytes are at work", 1)

        self._at_work += 1
        try:
            await self.app(scope, _bounded(receive, take, self.settings.body_seconds), send)
        finally:
            self._at_work -= 1
            self._bytes_at_work -= arrived

    def _bytes(self, scope: Scope) -> int:
        headers = Headers(scope=scope)
        form = headers.get("content-type", "").lower().startswith("multipart/")
        limit = self.settings.upload_bytes + _ENVELOPE if form else self.settings.json_bytes
        told = headers.get("content-length", "0")
        if told.isdecimal() and int(told) > limit:
            raise _too_large(limit)
        return limit


def too_busy(why: str, seconds: int) -> Problem:
    """Return the problem of a service that has enough to do."""
    return Problem(429, "limit", f"{why}; try again in {seconds} s", headers={"Retry-After": str(seconds)})


def _too_large(limit: int) -> Problem:
    return Problem(413, "too-large", f"a request may have {limit:,} bytes; send a smaller image, cut it to the object")


def _bounded(receive: Receive, take: Callable[[int], None], seconds: float) -> Receive:
    """Count what arrives while it arrives: `take` refuses it as soon as it is too much, and so does the clock."""
    whole = False
    deadline = asyncio.get_running_loop().time() + seconds

    async def counted() -> Message:
        nonlocal whole
        if whole:
            return await receive()  # for the client to go away: that may take any time
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise Problem(408, "slow", f"the request did not arrive within {seconds:g} s; send it again") from None
        if message["type"] == "http.request":
            whole = not message.get("more_body", False)
            take(len(message.get("body", b"")))
        return message

    return counted
