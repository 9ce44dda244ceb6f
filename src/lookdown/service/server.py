"""The service as a process: it listens on a socket, runs uvicorn, and shuts down in an orderly way."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lookdown.errors import InputError
from lookdown.gallery import Gallery
from lookdown.service.app import create_app
from lookdown.service.service_settings import ServiceSettings

__all__ = ["address", "listen", "serve"]


def serve(gallery: Gallery, settings: ServiceSettings, announce: Callable[[str], None]) -> None:
    """Serve until a signal arrives, then let running requests finish.

    announce: is called with the address once the service answers.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("lookdown.service").setLevel(logging.INFO)  # changes to the gallery are logged at this level
    listening = listen(settings)
    server = _Server(_config(gallery, settings), lambda: announce(address(settings, listening)))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))  # uvicorn raises the signal again after its shutdown
    server.run(sockets=[listening])
    if not server.started:
        raise SystemExit(1)  # uvicorn has logged the reason


def listen(settings: ServiceSettings) -> socket.socket:
    """Return a socket that listens at the address of the settings."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=512)
    except OSError as error:
        raise InputError(
            f"cannot listen at {settings.host} port {settings.port}: {error.strerror or error}; choose another `port` "
            "or `host`, or stop the program that uses it"
        ) from error


def address(settings: ServiceSettings, listening: socket.socket) -> str:
    """Return the URL of the page."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listening.getsockname()[1]}"


class _Server(uvicorn.Server):
    """A server that calls a function once it answers."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()


def _config(gallery: Gallery, settings: ServiceSettings) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(gallery, settings),
        lifespan="on",
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # a client could name any address in such a header
        http=type("Protocol", (_HeaderDeadline,), {"header_seconds": settings.header_seconds}),
        limit_concurrency=min(settings.connections, max(1, _max_open_files() // 2)),
        timeout_keep_alive=15,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


class _HeaderDeadline(H11Protocol):
    """A protocol that closes a connection if a request header takes too long; uvicorn has no such timeout.

    The time starts with the connection and, on a connection that is kept, with the first byte of the next request.
    """

    header_seconds: float
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._check_header()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._check_header()

    def _check_header(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()  # the header is complete; LimitsMiddleware times the body
        elif self.conn.trailing_data[0]:
            self._start_timer()

    def _start_timer(self) -> None:
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(self.header_seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _max_open_files() -> int:
    """Return how many files and connections the system lets this process keep open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
