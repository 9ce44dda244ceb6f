"""What a service allows, and how much of everything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from lookdown.errors import InputError

__all__ = ["Access", "ServiceSettings", "is_loopback"]

Access = Literal["read", "learn", "write"]  # search; also label and adapt; also add and remove chips

_ORDER = ("read", "learn", "write")
_SHORTEST_TOKEN = 16  # characters: what cannot be guessed over a network
_NAME = re.compile(r"[\w.-]+")
_TILES = re.compile(r"https?://[\w.:-]+/[^\s;,'\"<>]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How a gallery is served; the defaults are for one person and their machine."""

    host: str = "127.0.0.1"
    port: int = 8000
    hosts: tuple[str, ...] = ()  # further names that the service may be called by
    token: str | None = None
    access: Access = "learn"
    tile_url: str | None = None  # of a map below the footprints: https://tiles.example/{z}/{x}/{y}.png

    upload_bytes: int = 16 << 20
    json_bytes: int = 2 << 20
    pixels: int = 25_000_000  # of an uploaded image
    hits: int = 1_000  # in one answer
    exported_hits: int = 10_000  # in a file

    batch: int = 64  # images that go through the network together
    batch_seconds: float = 0.003  # that the first of them waits for others
    decoders: int = 2  # threads that read images
    searchers: int = 2  # threads that search
    waiting: int = 128  # pieces of work that may wait for each of these
    jobs_waiting: int = 4
    jobs_kept: int = 100  # of which the outcome can still be asked for
    in_flight: int = 256  # requests at work
    bytes_at_work: int = 256 << 20  # that these have sent
    connections: int = 1_024
    requests_a_second: float = 200.0  # of one client; 0 for no limit
    burst: int = 2_000  # that may come at once: a page of results is a thousand thumbnails

    header_seconds: float = 10.0  # for the header of a request to arrive, from its first byte or the connection on
    body_seconds: float = 30.0  # for the rest of it
    answer_seconds: float = 60.0  # for each step of the work on it, the wait in its line included
    refresh_seconds: float = 2.0  # between two looks at what others have changed
    shutdown_seconds: int = 15  # that a running request or job gets

    def __post_init__(self) -> None:
        if self.access not in _ORDER:
            raise InputError(f"access is read, learn or write; got {self.access!r}")
        if not 0 <= self.port <= 65_535:
            raise InputError(f"a port is a number from 0 to 65535, got {self.port}")
        if self.token is not None and not _is_plain(self.token):
            raise InputError("a token is plain text without spaces around it; letters and digits do")
        if wrong := [name for name in self.hosts if not (_NAME.fullmatch(name) or _is_address(name))]:
            raise InputError(f"{wrong[0]!r} is no name of a host; give it as in archive.example, without a port")
        if not is_loopback(self.host):
            if self.token is None:
                raise InputError(
                    f"{self.host} can be reached from other machines, so a token is needed; set LOOKDOWN_TOKEN or pass "
                    "--token, or leave --host out to serve this machine alone"
                )
            if len(self.token) < _SHORTEST_TOKEN:
                raise InputError(
                    f"a token for {self.host} has at least {_SHORTEST_TOKEN} characters; `openssl rand -hex 16` "
                    "makes one"
                )
        if self.tile_url is not None and not _TILES.fullmatch(self.tile_url):
            raise InputError("a tile URL looks like https://tiles.example/{z}/{x}/{y}.png")

    def allows(self, needed: Access) -> bool:
        """Whether clients may do what needs this access."""
        return _ORDER.index(self.access) >= _ORDER.index(needed)

    @property
    def tile_origin(self) -> str | None:
        """The one origin beside our own that a page may load pictures from."""
        if self.tile_url is None:
            return None
        parts = urlsplit(self.tile_url)
        return f"{parts.scheme}://{parts.netloc}"


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    return _is_address(host) and ip_address(host).is_loopback


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_plain(token: str) -> bool:
    return token.isascii() and token.isprintable() and token == token.strip() != ""
