"""The settings of a service: its address, who may do what, and its limits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit

from lookdown.errors import InputError

__all__ = ["Access", "ServiceSettings", "is_address", "is_loopback"]

Access = Literal["read", "learn", "write"]  # search; also label and adapt; also add and remove chips

_ACCESS_ORDER = get_args(Access)
_MIN_TOKEN_CHARACTERS = 16  # too many to guess over a network
_TOKEN = re.compile(r"[!-~]([ -~]*[!-~])?")
_HOST = re.compile(r"[\w.-]+")
_TILE_URL = re.compile(r"https?://[\w.:-]+/[^\s;,'\"<>]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How a gallery is served; the defaults suit one person on their own machine."""

    host: str = "127.0.0.1"
    port: int = 8000
    hosts: tuple[str, ...] = ()  # further names of this service, which clients may put into the Host header
    token: str | None = None
    access: Access = "learn"
    tile_url: str | None = None  # of a map below the footprints: https://tiles.example/{z}/{x}/{y}.png

    upload_bytes: int = 16 << 20
    json_bytes: int = 2 << 20
    pixels: int = 25_000_000  # of an uploaded image
    hits: int = 1_000  # in one answer
    exported_hits: int = 10_000  # in a file

    batch: int = 64  # images that go through the network together
    batch_seconds: float = 0.003  # how long the first of them waits for others
    decoders: int = 2  # threads that read images
    searchers: int = 2  # threads that search
    waiting: int = 128  # requests that may wait for each kind of thread
    jobs_waiting: int = 4
    jobs_kept: int = 100  # jobs whose results are remembered
    in_flight: int = 256  # concurrent requests
    bytes_at_work: int = 256 << 20  # in the bodies of these requests
    connections: int = 1_024
    requests_a_second: float = 200.0  # of one client; 0 for no limit
    burst: int = 2_000  # requests of one client at once: a page of results shows a thousand thumbnails

    header_seconds: float = 10.0  # for the header of a request to arrive
    body_seconds: float = 30.0  # for its body to arrive
    answer_seconds: float = 60.0  # for each step of its work, waiting included
    refresh_seconds: float = 2.0  # between two checks for changes by other processes
    shutdown_seconds: int = 15  # for running requests and jobs to finish

    def __post_init__(self) -> None:
        if self.access not in _ACCESS_ORDER:
            raise InputError(f"`access` is read, learn or write; got {self.access!r}")
        if not 0 <= self.port <= 65_535:
            raise InputError(f"`port` is a number from 0 to 65535, got {self.port}")
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise InputError("`token` must be printable ASCII without spaces at its ends, such as letters and digits")
        if wrong := [name for name in self.hosts if not (_HOST.fullmatch(name) or is_address(name))]:
            raise InputError(f"{wrong[0]!r} is not a host name; write it like archive.example, without a port")
        if not is_loopback(self.host):
            if self.token is None:
                raise InputError(
                    f"other machines can reach {self.host}, so a token is needed; set LOOKDOWN_TOKEN or pass `token`, "
                    "or omit `host` to serve this machine alone"
                )
            if len(self.token) < _MIN_TOKEN_CHARACTERS:
                raise InputError(
                    f"a token for {self.host} has at least {_MIN_TOKEN_CHARACTERS} characters; `openssl rand -hex 16` "
                    "makes one"
                )
        if self.tile_url is not None and not _TILE_URL.fullmatch(self.tile_url):
            raise InputError("`tile_url` looks like https://tiles.example/{z}/{x}/{y}.png")

    def allows(self, needed: Access) -> bool:
        """Whether clients may do what needs this access."""
        return _ACCESS_ORDER.index(self.access) >= _ACCESS_ORDER.index(needed)

    @property
    def tile_origin(self) -> str | None:
        """The only other origin from which the page may load images."""
        if self.tile_url is None:
            return None
        parts = urlsplit(self.tile_url)
        return f"{parts.scheme}://{parts.netloc}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Whether a host is an IP address and not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
