"""The connection to a Milvus server: retries while it does not answer, and one sentence when it never does."""

from __future__ import annotations

import hashlib
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

__all__ = ["MilvusGallery", "MilvusServer"]

_CONNECT_SECONDS = 10.0  # until we give up an address that nobody answers at
_CALL_SECONDS = 20.0  # for one call; longer work is sent in parts
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 5.0  # between tries
_FORMS = "give it as http://host:19530, or https:// for TLS"
_URI = re.compile(r"https?://[^\s/]+(/\w*)?")
_PATHS = ("authority", "certificate", "key")
# Errors that no retry can mend: Milvus's codes (no such collection, a bad parameter, no permission), and gRPC's.
_FINAL_CODES = {100, 1100, 1101, 1400, 1401}
_FINAL_STATUS = {"INVALID_ARGUMENT", "UNIMPLEMENTED"}
_REFUSED_CODES = {1400, 1401}
_REFUSED_STATUS = {"UNAUTHENTICATED", "PERMISSION_DENIED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MilvusServer:
    """A Milvus server and the credentials for it. None of this is written into a gallery."""

    uri: str  # http://host:19530, https:// for TLS; a path names a database
    token: str | None = field(default=None, repr=False)  # user:password, or a token of the server
    authority: Path | None = None  # PEM of the authority that signed the server's certificate; None: the system's
    certificate: Path | None = None  # PEM of the client, where the server asks for one
    key: Path | None = field(default=None, repr=False)  # of the client's certificate
    name: str | None = None  # in the server's certificate, where it differs from the host
    timeout: float = 60.0  # seconds that a call may take, retries included

    def __post_init__(self) -> None:
        if not _URI.fullmatch(self.uri):
            raise InputError(f"{self.public_uri!r} is no address of a Milvus server; {_FORMS}")
        if (self.certificate is None) != (self.key is None) or (self.certificate and self.authority is None):
            raise InputError("certificate, key and authority go together; give all three")
        if (self.authority or self.name) and not self.uri.startswith("https"):
            raise InputError(f"{self.public_uri} does not use TLS; give it as https://, or omit the certificates")
        for file in (self.authority, self.certificate, self.key):
            if file is not None and not file.is_file():
                raise InputError(f"{file} is not there; give the PEM file of the certificate")

    @classmethod
    def from_environment(cls, uri: str | None = None) -> MilvusServer:
        """Read what is not given from LOOKDOWN_MILVUS_URI, _TOKEN, _AUTHORITY, _CERTIFICATE, _KEY and _NAME."""
        names = ("uri", "token", "name", *_PATHS)
        values: dict[str, Any] = {name: os.environ.get(f"LOOKDOWN_MILVUS_{name.upper()}") for name in names}
        values = {name: Path(value) if name in _PATHS else value for name, value in values.items() if value}
        if uri:
            values["uri"] = uri
        if "uri" not in values:
            raise InputError(f"say where the Milvus server is: pass `uri` or set LOOKDOWN_MILVUS_URI; {_FORMS}")
        return cls(**values)

    @property
    def public_uri(self) -> str:
        """The address without user and password."""
        return re.sub(r"//[^@/]*@", "//", self.uri)

    def call(self, method: str, **arguments: Any) -> Any:
        """Call a method of pymilvus's client; while the server does not answer, wait and retry until the timeout."""
        client = self._retry(lambda left: _client(self), min(self.timeout, _CONNECT_SECONDS))
        return self._retry(
            lambda left: getattr(client, method)(timeout=min(left, _CALL_SECONDS), **arguments), self.timeout
        )

    def has_collection(self, name: str) -> bool:
        """Whether there is a collection of this name."""
        return bool(self.call("has_collection", collection_name=name))

    def _retry(self, work: Callable[[float], Any], seconds: float) -> Any:
        from grpc import RpcError
        from pymilvus.exceptions import MilvusException

        deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return work(max(0.1, deadline - time.monotonic()))
            except (MilvusException, RpcError) as error:
                if _is_final(error) or time.monotonic() >= deadline:
                    raise self._explain(error) from error
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _explain(self, error: Exception) -> EngineError:
        if _is_refused(error):
            return EngineError(
                f"Milvus at {self.public_uri} refuses our credentials; set LOOKDOWN_MILVUS_TOKEN to user:password or "
                "to a token that it knows"
            )
        reason = (getattr(error, "message", "") or str(error)).strip().splitlines()[0][:200]
        if _is_final(error):
            return EngineError(
                f"Milvus at {self.public_uri} refuses: {reason}; check that it is a server of version 2.3 or later, "
                "and open the gallery again"
            )
        return EngineError(
            f"Milvus at {self.public_uri} does not answer ({reason}); start it or check the address, then run the same "
            "again: the chips are in the gallery, and what the server has is kept"
        )


@dataclass(frozen=True, slots=True)
class MilvusGallery:
    """A gallery on a server: one collection per metric, and an alias for the collection of the metric in use."""

    server: MilvusServer
    alias: str

    @classmethod
    def of(cls, server: MilvusServer, folder: Path, lineage: str) -> MilvusGallery:
        """Derive the alias from the folder and from `lineage`, which differs for a new gallery at the same path."""
        word = re.sub(r"\W", "_", folder.resolve().name, flags=re.ASCII)[:40]
        digest = hashlib.blake2b(f"{folder.resolve()}\n{lineage}".encode("utf-8", "surrogatepass"), digest_size=6)
        return cls(server, f"lookdown_{word}_{digest.hexdigest()}")

    def collection(self, metric: str) -> str:
        """Return the name of the collection of a metric."""
        return f"{self.alias}_{metric.replace('-', '_')}"

    def use(self, metric: str) -> None:
        """Point the alias to the collection of a metric."""
        method = "alter_alias" if self.alias in self._aliases("") else "create_alias"
        self.server.call(method, collection_name=self.collection(metric), alias=self.alias)

    def drop(self, metric: str) -> None:
        """Remove the collection of a metric, if there is one."""
        name = self.collection(metric)
        if self.server.has_collection(name):
            for alias in self._aliases(name):  # left where the metric in use was changed without this server
                self.server.call("drop_alias", alias=alias)
            self.server.call("drop_collection", collection_name=name)

    def _aliases(self, collection: str) -> list[str]:
        return list(self.server.call("list_aliases", collection_name=collection)["aliases"])


@cache
def _client(server: MilvusServer) -> Any:
    """Connect, once per process."""
    from pymilvus import MilvusClient

    logging.getLogger("pymilvus").addHandler(logging.NullHandler())  # our own sentence says it
    return MilvusClient(
        server.uri,
        token=server.token or "",
        timeout=min(server.timeout, _CONNECT_SECONDS),
        dedicated=True,  # a shared connection would ignore the certificates
        **_tls_options(server),
    )


def _tls_options(server: MilvusServer) -> Mapping[str, Any]:
    """Return the options of pymilvus, which names the authority differently where the client has a certificate."""
    if not server.uri.startswith("https"):
        return {}
    options = {"secure": True, "server_name": server.name or ""}
    if server.certificate is None:
        return options | {"server_pem_path": str(server.authority or "")}
    files = {"ca_pem_path": server.authority, "client_pem_path": server.certificate, "client_key_path": server.key}
    return options | {name: str(file) for name, file in files.items()}


def _is_final(error: Exception) -> bool:
    return _is_refused(error) or _code(error) in _FINAL_CODES or _status(error) in _FINAL_STATUS


def _is_refused(error: Exception) -> bool:
    return _status(error) in _REFUSED_STATUS or _code(error) in _REFUSED_CODES or "auth check fail" in str(error)


def _code(error: Exception) -> int | None:
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None


def _status(error: Exception) -> str:
    """Return the name of gRPC's status: from a method of gRPC's errors, or from the code of pymilvus's or its cause."""
    for candidate in (error, error.__cause__):
        code = getattr(candidate, "code", None)
        if name := getattr(code() if callable(code) else code, "name", ""):
            return str(name)
    return ""
