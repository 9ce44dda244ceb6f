"""Limits on what clients may ask for: requests per second, concurrent requests, and the size and time of a body."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lookdown.service.problems import Problem, too_busy
from lookdown.service.service_settings import ServiceSettings

__all__ = ["LimitsMiddleware", "RateLimit"]

_MAX_CLIENTS = 4_096  # whose rates are remembered
_FORM_BYTES = 64 << 10  # of a form beside its image


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
        limit = self._body_limit(scope)
        received = 0

        def count(more: int) -> None:
            nonlocal received
            received += more
            self._bytes += more
            if received > limit:
                raise _too_large(limit)
            if self._bytes > self.settings.bytes_at_work:
                raise too_busy("too many bytes are at work", 1)

        self._requests += 1
        try:
            await self.app(scope, _limited(receive, count, self.settings.body_seconds), send)
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


def _limited(receive: Receive, count: Callable[[int], None], seconds: float) -> Receive:
    """Return `receive` with a deadline for the whole body; `count` is called with the bytes of each part."""
    complete = False
    deadline = asyncio.get_running_loop().time() + seconds

    async def receive_and_count() -> Message:
        nonlocal complete
        if complete:
            return await receive()  # waits for the client to disconnect, which may take any time
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise Problem(408, "slow", f"the request did not arrive within {seconds:g} s; send it again") from None
        if message["type"] == "http.request":
            complete = not message.get("more_body", False)
            count(len(message.get("body", b"")))
        return message

    return receive_and_count
