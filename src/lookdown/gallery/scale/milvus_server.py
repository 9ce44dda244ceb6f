"""Where a Milvus server is and how to speak to it: retries while it is away, and one sentence when it stays away."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lookdown.errors import EngineError, InputError

__all__ = ["MilvusServer"]

_CONNECT = 10.0  # seconds until an address that nobody answers at is given up
_ONE_TRY = 20.0  # seconds for one call: work that takes longer is sent in parts
_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between tries
_FORMS = "give it as http://host:19530, or https:// for TLS"
_URI = re.compile(r"https?://[^\s/]+(/\w*)?")
# What no second try mends: numbers of the server (no such collection, a bad parameter, no right to it), and gRPC's.
_FINAL = {100, 1100, 1101, 1400, 1401}
_FINAL_STATUS = {"INVALID_ARGUMENT", "UNIMPLEMENTED"}
_REFUSED = {"UNAUTHENTICATED", "PERMISSION_DENIED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MilvusServer:
    """A server, and what it takes to be let in. Nothing of this is written into a gallery."""

    uri: str  # http://host:19530, https:// for TLS; a path names a database
    token: str | None = field(default=None, repr=False)  # user:password, or what the server calls a token
    authority: Path | None = None  # PEM that vouches for the server; None takes those of the system
    certificate: Path | None = None  # PEM of ours, where the server asks who we are
    key: Path | None = field(default=None, repr=False)  # of that certificate
    name: str | None = None  # in the server's certificate, where it is not the host's
    timeout: float = 60.0  # seconds that a call may take, tries while the server is away included

    def __post_init__(self) -> None:
        if not _URI.fullmatch(self.uri):
            raise InputError(f"{self.shown!r} is no address of a Milvus server; {_FORMS}")
        if (self.certificate is None) != (self.key is None) or (self.certificate and self.authority is None):
            raise InputError("a certificate of ours goes with its key and with the authority of the server; give all")
        if (self.authority or self.name) and not self.uri.startswith("https"):
            raise InputError(f"{self.shown} is not reached by TLS; give it as https://, or leave the certificates out")
        for file in (self.authority, self.certificate, self.key):
            if file is not None and not file.is_file():
                raise InputError(f"{file} is not there; give the PEM file of the certificate")

    @classmethod
    def from_environment(cls, uri: str | None = None) -> MilvusServer:
        """Read what is not given from LOOKDOWN_MILVUS_URI, _TOKEN, _AUTHORITY, _CERTIFICATE, _KEY and _NAME."""
        told = {name: os.environ.get(f"LOOKDOWN_MILVUS_{name.upper()}") or None for name in _TOLD}
        address = uri or told.pop("uri")
        if address is None:
            raise InputError(f"say where the Milvus server is, by --uri or LOOKDOWN_MILVUS_URI; {_FORMS}")
        authority, certificate, key = (
            Path(text) if (text := told[name]) else None for name in ("authority", "certificate", "key")
        )
        return cls(
            uri=address,
            token=told["token"],
            authority=authority,
            certificate=certificate,
            key=key,
            name=told["name"],
        )

    @property
    def shown(self) -> str:
        """The address without what opens the door."""
        return re.sub(r"//[^@/]*@", "//", self.uri)

    def ask(self, what: str, **arguments: Any) -> Any:
        """Call a method of pymilvus' client; while the server is away, wait and try again until the time is up."""
        client = self._tried(lambda left: _client(self), min(self.timeout, _CONNECT))
        return self._tried(lambda left: getattr(client, what)(timeout=min(left, _ONE_TRY), **arguments), self.timeout)

    def _tried(self, work: Callable[[float], Any], seconds: float) -> Any:
        from grpc import RpcError
        from pymilvus.exceptions import MilvusException

        deadline, pause = time.monotonic() + seconds, _PAUSE
        while True:
            try:
                return work(max(0.1, deadline - time.monotonic()))
            except (MilvusException, RpcError) as error:
                if _is_final(error) or time.monotonic() >= deadline:
                    raise self._told(error) from error
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _told(self, error: Exception) -> EngineError:
        if _status(error) in _REFUSED or _code(error) in (1400, 1401) or "auth check fail" in str(error):
            return EngineError(
                f"Milvus at {self.shown} does not let us in; set LOOKDOWN_MILVUS_TOKEN to user:password or to a token "
                "that it knows"
            )
        reason = (getattr(error, "message", "") or str(error)).strip().splitlines()[0][:200]
        if _is_final(error):
            return EngineError(
                f"Milvus at {self.shown} refuses: {reason}; check that it is a server of version 2.3 or later, and "
                "open the gallery again"
            )
        return EngineError(
            f"Milvus at {self.shown} does not answer ({reason}); start it or check the address, then run the same "
            "again: the chips are in the gallery, and what the server has is kept"
        )


_TOLD = ("uri", "token", "authority", "certificate", "key", "name")


@cache
def _client(server: MilvusServer) -> Any:
    """Connect, once a process."""
    from pymilvus import MilvusClient

    logging.getLogger("pymilvus").addHandler(logging.NullHandler())  # it prints what we tell in a sentence
    return MilvusClient(
        server.uri,
        token=server.token or "",
        timeout=min(server.timeout, _CONNECT),
        dedicated=True,  # it would share a connection by address and token, and forget the certificates
        **_security(server),
    )


def _security(server: MilvusServer) -> Mapping[str, Any]:
    """Return what pymilvus calls it; it reads one authority for a server that asks for nothing, and another else."""
    if not server.uri.startswith("https"):
        return {}
    known = {"secure": True, "server_name": server.name or ""}
    if server.certificate is None:
        return known | {"server_pem_path": str(server.authority or "")}
    return known | {
        "ca_pem_path": str(server.authority),
        "client_pem_path": str(server.certificate),
        "client_key_path": str(server.key),
    }


def _is_final(error: Exception) -> bool:
    return _code(error) in _FINAL or _status(error) in _FINAL_STATUS | _REFUSED or "auth check fail" in str(error)


def _code(error: Exception) -> int | None:
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None


def _status(error: Exception) -> str:
    """Return the name of gRPC's status: a method of its errors, the code of some of pymilvus', or of their cause."""
    for one in (error, error.__cause__):  # which pymilvus sometimes sets to the error itself
        code = getattr(one, "code", None)
        if name := getattr(code() if callable(code) else code, "name", ""):
            return str(name)
    return ""
