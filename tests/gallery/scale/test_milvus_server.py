"""Addresses, secrets and patience; a real server where there is one to talk to."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gallery.scale.running_milvus import RunningMilvus, free_ports

from lookdown.errors import EngineError, InputError
from lookdown.gallery.scale import milvus_server
from lookdown.gallery.scale.milvus_server import MilvusServer


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"uri": "host:19530"}, "'host:19530' is no address of a Milvus server; give it as http://host:19530"),
        ({"uri": "gallery.db"}, "no address"),
        ({"uri": "http://host", "authority": Path(__file__)}, "http://host does not use TLS"),
        ({"uri": "https://host", "certificate": Path(__file__)}, "certificate, key and authority go together"),
        (
            {"uri": "https://host", "certificate": Path(__file__), "key": Path(__file__)},
            "certificate, key and authority go together",
        ),
        ({"uri": "https://host", "authority": Path("nowhere.pem")}, "nowhere.pem is not there; give the PEM file"),
    ],
)
def test_what_cannot_be_reached_is_refused_before_it_is_tried(given: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        MilvusServer(**given)


def test_what_is_not_given_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("LOOKDOWN_MILVUS_")]:
        monkeypatch.delenv(name)
    with pytest.raises(InputError, match="pass `uri` or set LOOKDOWN_MILVUS_URI"):
        MilvusServer.from_environment()
    (tmp_path / "ca.pem").touch()
    monkeypatch.setenv("LOOKDOWN_MILVUS_URI", "https://there:1")
    monkeypatch.setenv("LOOKDOWN_MILVUS_TOKEN", "me:secret")
    monkeypatch.setenv("LOOKDOWN_MILVUS_AUTHORITY", str(tmp_path / "ca.pem"))
    found = MilvusServer.from_environment()
    assert found == MilvusServer(uri="https://there:1", token="me:secret", authority=tmp_path / "ca.pem")
    assert MilvusServer.from_environment("https://here:2").uri == "https://here:2"


def test_secrets_are_not_shown() -> None:
    server = MilvusServer(uri="http://me:secret@host:1/archive", token="secret")
    assert server.public_uri == "http://host:1/archive"
    assert "token" not in repr(server)


def test_certificates_reach_the_client(tmp_path: Path) -> None:
    ca, ours, key = (tmp_path / name for name in ("ca.pem", "ours.pem", "ours.key"))
    for file in (ca, ours, key):
        file.touch()
    assert milvus_server._tls_options(MilvusServer(uri="http://host")) == {}
    system = milvus_server._tls_options(MilvusServer(uri="https://host", name="milvus.example"))
    assert system == {"secure": True, "server_name": "milvus.example", "server_pem_path": ""}
    one = milvus_server._tls_options(MilvusServer(uri="https://host", authority=ca))
    assert one == {"secure": True, "server_name": "", "server_pem_path": str(ca)}
    both = milvus_server._tls_options(MilvusServer(uri="https://host", authority=ca, certificate=ours, key=key))
    assert (both["ca_pem_path"], both["client_pem_path"], both["client_key_path"]) == (str(ca), str(ours), str(key))


def test_a_server_that_is_away_is_one_sentence_after_a_while() -> None:
    pytest.importorskip("pymilvus")
    (port,) = free_ports(1)
    server = MilvusServer(uri=f"http://127.0.0.1:{port}", timeout=3)
    begin = time.monotonic()
    with pytest.raises(EngineError) as told:
        server.call("list_collections")
    assert 2 < time.monotonic() - begin < 30
    assert str(told.value).startswith(f"Milvus at http://127.0.0.1:{port} does not answer (")
    assert "start it or check the address, then run the same again" in str(told.value)
    assert "\n" not in str(told.value)


class _Flaky:
    """A client that fails some times before it answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = [*errors]
        self.asked = 0

    def work(self, *, timeout: float, answer: str) -> str:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return answer


def test_what_passes_is_tried_again_and_what_does_not_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from pymilvus.exceptions import MilvusException

    def ask(*errors: Exception) -> tuple[Any, int]:
        client = _Flaky(*errors)
        monkeypatch.setattr(milvus_server, "_client", lambda server: client)
        return MilvusServer(uri="http://host", timeout=5).call("work", answer="done"), client.asked

    monkeypatch.setattr(milvus_server, "_FIRST_PAUSE_SECONDS", 0.001)
    assert ask() == ("done", 1)
    assert ask(MilvusException(503, "channel not available"), MilvusException(101, "not loaded")) == ("done", 3)
    with pytest.raises(EngineError, match=r"refuses: no such collection; check that it is a server of version 2\.3"):
        ask(MilvusException(100, "no such collection\nwith a trace"))
    itself = MilvusException(2, "connection lost")
    itself.__cause__ = itself  # as `raise error from error` does
    assert ask(itself) == ("done", 2)
    with pytest.raises(EngineError, match="refuses our credentials; set LOOKDOWN_MILVUS_TOKEN"):
        ask(MilvusException(1401, "no right"))


@pytest.fixture
def closed_milvus(milvus_binaries: Path, tmp_path: Path) -> Iterator[RunningMilvus]:
    """A server behind TLS that asks for a token; its certificate is its own authority."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", "server.key", "-out", "server.pem"]
    try:
        subprocess.run([*command, *files], cwd=tmp_path, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("openssl is not there to make a certificate")
    (tmp_path / "data").mkdir()
    settings = {
        "tls_mode": 1,
        "server_pem_path": str(tmp_path / "server.pem"),
        "server_key_path": str(tmp_path / "server.key"),
        "ca_pem_path": str(tmp_path / "server.pem"),
        "authorization_enabled": True,
    }
    with RunningMilvus(tmp_path / "data", milvus_binaries, **settings) as running:
        yield running


def test_tokens_and_certificates_open_a_closed_server(closed_milvus: RunningMilvus, tmp_path: Path) -> None:
    known: dict[str, Any] = {"uri": closed_milvus.uri, "authority": tmp_path / "server.pem", "timeout": 20.0}
    assert closed_milvus.uri.startswith("https")
    assert MilvusServer(token="root:Milvus", **known).call("list_collections") == []
    for token in (None, "root:wrong"):
        with pytest.raises(EngineError, match="refuses our credentials; set LOOKDOWN_MILVUS_TOKEN to user:password"):
            MilvusServer(token=token, **known).call("list_collections")
    with pytest.raises(EngineError, match="does not answer"):  # nobody vouches for the certificate
        MilvusServer(uri=closed_milvus.uri, token="root:Milvus", timeout=3).call("list_collections")
