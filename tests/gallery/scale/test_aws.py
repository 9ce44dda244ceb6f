"""One resolution of AWS settings, so that Lance, LanceDB and obstore agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.gallery.galleries import vector_gallery
from tests.gallery.scale.running_store import RunningStore

from lookdown.errors import StorageError
from lookdown.gallery.scale.aws import AwsSession

ELSEWHERE = "http://127.0.0.1:9"  # where nobody listens


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def options() -> dict[str, str]:
    return AwsSession().options()


def write_files(home: Path, config: str, credentials: str = "") -> None:
    (home / ".aws").mkdir(exist_ok=True)
    (home / ".aws" / "config").write_text(config)
    (home / ".aws" / "credentials").write_text(credentials)


def test_an_empty_environment_says_nothing() -> None:
    assert options() == {}
    assert AwsSession().obstore_options() == {"config": None}


def test_keys_region_and_endpoint_go_by_one_name_each(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
        "AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT": "https://a/", "AWS_ENDPOINT_URL": "https://b",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    known = {"aws_access_key_id": "id", "aws_secret_access_key": "secret", "aws_session_token": "token"}
    assert options() == known | {"aws_region": "eu-west-1", "aws_endpoint": "https://b"}
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://c")
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    assert options() == known | {"aws_region": "eu-west-2", "aws_endpoint": "https://c"}


def test_plain_http_is_spoken_where_the_endpoint_says_so_unless_it_is_forbidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "http://store:9000")
    assert options()["allow_http"] == "true"
    monkeypatch.setenv("AWS_ALLOW_HTTP", "FALSE")
    assert "allow_http" not in options()


def test_the_files_of_aws_are_read_where_the_environment_has_no_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_files(
        tmp_path,
        "[profile archive]\nregion = eu-north-1\nendpoint_url = http://h:1\n",
        "[default]\naws_access_key_id = one\naws_secret_access_key = a%b\n"
        "[archive]\naws_access_key_id = two\naws_secret_access_key = c\naws_session_token = t\n",
    )
    assert options() == {"aws_access_key_id": "one", "aws_secret_access_key": "a%b"}
    monkeypatch.setenv("AWS_PROFILE", "archive")
    assert options() == {
        "aws_access_key_id": "two", "aws_secret_access_key": "c", "aws_session_token": "t",
        "aws_region": "eu-north-1", "aws_endpoint": "http://h:1", "allow_http": "true",
    }  # fmt: skip
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "three")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "d")
    assert options()["aws_access_key_id"] == "three"


def test_an_endpoint_of_s3_alone_goes_before_that_of_the_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profile = "[default]\nendpoint_url = https://all\nservices = local\n"
    write_files(tmp_path, profile + "[services local]\ns3 =\n  endpoint_url = https://s3\n")
    assert options()["aws_endpoint"] == "https://s3"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://environment")
    assert options()["aws_endpoint"] == "https://environment"


@pytest.mark.parametrize("trouble", ["no such profile", "damaged file"])
def test_settings_that_cannot_be_read_are_said(trouble: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if trouble == "damaged file":
        write_files(tmp_path, "[[[")
    else:
        monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(StorageError, match=r"AWS credentials cannot be had: .*; check AWS_PROFILE and ~/\.aws"):
        AwsSession()


def issue_by_process(home: Path, name: str, valid: timedelta) -> None:
    """Let a profile get its credentials from a command, as roles and single sign-on do from a server."""
    issued = {
        "Version": 1, "AccessKeyId": name, "SecretAccessKey": "secret", "SessionToken": "token",
        "Expiration": (datetime.now(UTC) + valid).isoformat(),
    }  # fmt: skip
    (home / "issued.json").write_text(json.dumps(issued))
    write_files(home, f"[default]\ncredential_process = cat {home / 'issued.json'}\n")


def test_credentials_that_expire_are_renewed(tmp_path: Path) -> None:
    issue_by_process(tmp_path, "first", timedelta(minutes=1))  # so soon that each use asks for new ones
    session = AwsSession()
    provider = session.obstore_options()["credential_provider"]
    assert session.options()["aws_access_key_id"] == provider()["access_key_id"] == "first"
    issue_by_process(tmp_path, "second", timedelta(hours=1))
    assert session.options()["aws_access_key_id"] == provider()["access_key_id"] == "second"
    issue_by_process(tmp_path, "third", timedelta(hours=1))
    assert session.options()["aws_access_key_id"] == "second"


def test_an_open_gallery_goes_on_with_new_credentials(
    store: RunningStore, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name)
    issue_by_process(tmp_path, "first", timedelta(minutes=1))
    gallery, *_ = vector_gallery(tmp_path / "g", 20, table=table)
    snapshot, opened = gallery.snapshot, gallery.snapshot._opened
    issue_by_process(tmp_path, "second", timedelta(hours=1))
    assert len(snapshot.embeddings()) == 20
    assert snapshot._opened is not opened
    assert gallery.remove(snapshot.ids.to_pylist()[:3]) == 3
    assert len(snapshot.embeddings()) == 20
    for options in (snapshot._options, gallery._table._dataset_options, gallery._table._lancedb_options):
        assert options["aws_access_key_id"] == "second"


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
        write_files(
            tmp_path,
            f"[default]\nendpoint_url={store.uri}\nregion=us-east-1\n",
            f"[default]\naws_access_key_id={told['AWS_ACCESS_KEY_ID']}\n"
            f"aws_secret_access_key={told['AWS_SECRET_ACCESS_KEY']}\n",
        )
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
