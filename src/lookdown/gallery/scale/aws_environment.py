"""Credentials and the endpoint of S3, from the usual environment, once for all who ask the store.

Lance, LanceDB and obstore each read the environment by themselves, and not alike: where several variables name an
endpoint they choose different ones, only Lance reads `~/.aws`, and none speaks plain HTTP unless told so twice. What is
handed over explicitly goes before what they would read, so they agree.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as DamagedFile
from pathlib import Path

__all__ = ["KEYS", "aws_options"]

KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")  # as the AWS tools rank them; ours is last
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_OFF = ("0", "false", "no", "off")


def aws_options() -> dict[str, str]:
    """Return what is known, by the names that Lance and obstore share; what is left out they find by themselves."""
    told = {name: value for name in KEYS if (value := os.environ.get(name.upper()))}
    profile = _profile()
    if "aws_access_key_id" not in told and "aws_secret_access_key" not in told:
        told = {name: profile[name] for name in KEYS if profile.get(name)}
    endpoint = _first(_ENDPOINTS) or profile.get("endpoint_url", "")
    region = _first(_REGIONS) or profile.get("region", "")
    told |= {"aws_endpoint": endpoint.rstrip("/")} if endpoint else {}
    told |= {"aws_region": region} if region else {}
    allowed = os.environ.get("AWS_ALLOW_HTTP", "true" if endpoint.startswith("http://") else "")
    if allowed and allowed.lower() not in _OFF:
        told["allow_http"] = "true"
    return told


def _first(names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := os.environ.get(name))), "")


def _profile() -> Mapping[str, str]:
    """Return the settings of the profile in use, of both files; roles and single sign-on are not followed."""
    name = os.environ.get("AWS_PROFILE") or "default"
    home = Path(os.path.expanduser("~")) / ".aws"  # noqa: PTH111  # without a home it is no error
    files = (
        (os.environ.get("AWS_CONFIG_FILE") or home / "config", name if name == "default" else f"profile {name}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials", name),
    )
    found: dict[str, str] = {}
    for file, section in files:
        parser = ConfigParser(interpolation=None, strict=False)
        try:
            parser.read(file)
        except (DamagedFile, OSError, UnicodeDecodeError):
            continue
        if parser.has_section(section):
            found |= dict(parser[section])
    return found
