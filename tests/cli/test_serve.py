"""lookdown serve, as it is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.gallery.galleries import vector_gallery
from typer.testing import CliRunner

from lookdown.cli import app
from lookdown.errors import GalleryError, InputError
from lookdown.service import server
from lookdown.service.service_settings import ServiceSettings


def served(monkeypatch: pytest.MonkeyPatch, *typed: object) -> tuple[ServiceSettings, str]:
    """Return the settings that a command line leads to, and what it prints."""
    seen: list[ServiceSettings] = []

    def serve(gallery: object, settings: ServiceSettings, announce: Any) -> None:
        seen.append(settings)
        announce("http://127.0.0.1:1")

    monkeypatch.setattr(server, "serve", serve)
    found = CliRunner().invoke(app, ["serve", *map(str, typed)], catch_exceptions=False)
    assert found.exit_code == 0
    return seen[0], found.stdout


def test_this_machine_alone_is_served_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vector_gallery(tmp_path / "g")
    monkeypatch.delenv("LOOKDOWN_TOKEN", raising=False)
    settings, told = served(monkeypatch, tmp_path / "g")
    assert (settings.host, settings.port, settings.token, settings.access) == ("127.0.0.1", 8000, None, "learn")
    assert f"{tmp_path / 'g'} with 300 chips is at http://127.0.0.1:1" in told


def test_everything_can_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vector_gallery(tmp_path / "g")
    monkeypatch.setenv("LOOKDOWN_TOKEN", "0123456789abcdef")
    settings, _ = served(
        monkeypatch, tmp_path / "g", "--host", "0.0.0.0", "--port", 9, "--access", "write", "--allow-host", "a.example",
        "--tile-url", "https://t.example/{z}/{x}/{y}.png", "--upload-megabytes", 2, "--megapixels", 3, "--rate", 0,
    )  # fmt: skip
    assert settings == ServiceSettings(
        host="0.0.0.0", port=9, token="0123456789abcdef", access="write", hosts=("a.example",),
        tile_url="https://t.example/{z}/{x}/{y}.png", upload_bytes=2 << 20, pixels=3_000_000, requests_a_second=0,
    )  # fmt: skip


def test_another_address_without_a_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOOKDOWN_TOKEN", raising=False)
    refused = CliRunner().invoke(app, ["serve", str(tmp_path), "--host", "0.0.0.0"])
    assert isinstance(refused.exception, InputError)
    assert "a token is needed" in str(refused.exception)
    missing = CliRunner().invoke(app, ["serve", str(tmp_path / "none")])
    assert isinstance(missing.exception, GalleryError)
