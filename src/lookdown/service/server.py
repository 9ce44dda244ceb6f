"""The service as a process: a socket, a server, and an end in good order."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from lookdown.errors import InputError
from lookdown.gallery import Gallery
from lookdown.service.app import create_app
from lookdown.service.header_deadline import with_header_deadline
from lookdown.service.service_settings import ServiceSettings

__all__ = ["address", "listen", "serve"]


def serve(gallery: Gallery, settings: ServiceSettings, announce: Callable[[str], None]) -> None:
    """Serve until a signal comes, which lets running requests end; `announce` is told the address once it answers."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("lookdown.service").setLevel(logging.INFO)  # who has changed what
    listening = listen(settings)
    server = _Server(_config(gallery, settings), lambda: announce(address(settings, listening)))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)  # uvicorn raises the signal again once it has ended: that is how we were to end
    server.run(sockets=[listening])
    if not server.started:
        raise SystemExit(1)  # what went wrong was logged


def listen(settings: ServiceSettings) -> socket.socket:
    """Return a socket at the address, or say who may be in the way."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=512)
    except OSError as error:
        raise InputError(
            f"{settings.host} port {settings.port} cannot be listened at: {error.strerror or error}; choose another "
            "--port or --host, or end what runs there"
        ) from error


def address(settings: ServiceSettings, listening: socket.socket) -> str:
    """Return where the page is."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listening.getsockname()[1]}"


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def _config(gallery: Gallery, settings: ServiceSettings) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(gallery, settings),
        lifespan="on",
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # who asks is who is connected: a header could name anybody
        http=with_header_deadline(settings.header_seconds),
        limit_concurrency=min(settings.connections, max(1, _open_files() // 2)),
        timeout_keep_alive=15,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


def _open_files() -> int:
    """Return how many files and connections the system lets this process have open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return sys.maxsize
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _end(number: int, frame: FrameType | None) -> Any:
    sys.exit(0)
