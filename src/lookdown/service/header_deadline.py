"""A server that does not wait for ever for the header of a request: uvicorn itself knows no such time."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["with_header_deadline"]


def with_header_deadline(seconds: float) -> type[H11Protocol]:
    """Return a protocol that closes a connection whose header takes longer than this to arrive."""

    class Deadline(_HeaderDeadline):
        header_seconds = seconds

    return Deadline


class _HeaderDeadline(H11Protocol):
    """The time runs from the connection on and, where that is kept, from the first byte of the next request."""

    header_seconds: float
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._end()  # the header is there; how long the rest may take is counted elsewhere
        elif self.conn.trailing_data[0]:
            self._begin()

    def _begin(self) -> None:
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(self.header_seconds, self.transport.close)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
