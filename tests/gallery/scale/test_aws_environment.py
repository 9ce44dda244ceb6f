"""One reading of the environment, so that all who ask the store agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gallery.galleries import vector_gallery
from tests.gallery.scale.running_store import RunningStore

from lookdown.gallery.scale.aws_environment import aws_options

ELSEWHERE = "http://127.0.0.1:9"  # where nobody listens


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_an_empty_environment_says_nothing() -> None:
    assert aws_options() == {}


def test_keys_region_and_endpoint_go_by_one_name_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
        "AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT": "https://a/", "AWS_ENDPOINT_URL": "https://b",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    known = {"aws_access_key_id": "id", "aws_secret_access_key": "secret", "aws_session_token": "token"}
    assert aws_options() == known | {"aws_region": "eu-west-1", "aws_endpoint": "https://b"}
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://c")
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    assert aws_options() == known | {"aws_region": "eu-west-2", "aws_endpoint": "https://c"}


def test_plain_http_is_spoken_where_the_endpoint_says_so_unless_it_is_forbidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "http://store:9000")
    assert aws_options()["allow_http"] == "true"
    monkeypatch.setenv("AWS_ALLOW_HTTP", "FALSE")
    assert "allow_http" not in aws_options()


def test_the_files_of_aws_are_read_where_the_environment_has_no_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = one\naws_secret_access_key = a%b\n"
        "[archive]\naws_access_key_id = two\naws_secret_access_key = c\n"
    )
    (tmp_path / ".aws" / "config").write_text("[profile archive]\nregion = eu-north-1\nendpoint_url = http://h:1\n")
    assert aws_options() == {"aws_access_key_id": "one", "aws_secret_access_key": "a%b"}
    monkeypatch.setenv("AWS_PROFILE", "archive")
    assert aws_options() == {
        "aws_access_key_id": "two", "aws_secret_access_key": "c", "aws_region": "eu-north-1",
        "aws_endpoint": "http://h:1", "allow_http": "true",
    }  # fmt: skip
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "three")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "d")
    assert aws_options()["aws_access_key_id"] == "three"
    (tmp_path / ".aws" / "config").write_bytes(b"\xff[[[")
    assert aws_options()["aws_access_key_id"] == "three"


@pytest.mark.parametrize("named", ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "~/.aws"])
def test_lance_lancedb_and_the_lease_agree(
    named: str, store: RunningStore, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own: the libraries keep what they have read once."""
    vector_gallery(tmp_path / "g", 20, table=table)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    told = store.environment
    if named == "~/.aws":
        (tmp_path / ".aws").mkdir()
        (tmp_path / ".aws" / "credentials").write_text(
            f"[default]\naws_access_key_id={told['AWS_ACCESS_KEY_ID']}\n"
            f"aws_secret_access_key={told['AWS_SECRET_ACCESS_KEY']}\n"
        )
        (tmp_path / ".aws" / "config").write_text(f"[default]\nendpoint_url={store.uri}\nregion=us-east-1\n")
    else:
        less = {"AWS_ENDPOINT": {}, "AWS_ENDPOINT_URL": {"AWS_ENDPOINT": ELSEWHERE}}.get(
            named, {"AWS_ENDPOINT": ELSEWHERE, "AWS_ENDPOINT_URL": ELSEWHERE}
        )
        keys = {name: told[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        environment |= less | keys | {named: store.uri}
    line = "import sys; from lookdown import Gallery; g = Gallery.open(sys.argv[1]); "
    line += "print(len(g), g.remove(g.snapshot.ids.to_pylist()[:3]))"
    done = subprocess.run(
        [sys.executable, "-c", line, str(tmp_path / "g")], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "20 3\n", done.stderr
