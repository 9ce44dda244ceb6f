"""Credentials, region and endpoint of S3, resolved by botocore for Lance, LanceDB and obstore alike.

Each of the three would read the environment in its own way: they prefer different endpoint variables, obstore does not
read `~/.aws`, and none uses plain HTTP unless told to. Explicit options take precedence, so they agree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from lookdown.errors import MissingExtraError, StorageError

__all__ = ["SECRETS", "AwsSession"]

SECRETS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_CREDENTIALS_VALID_FOR = timedelta(minutes=5)  # botocore renews them at least 10 minutes before they expire


class AwsSession:
    """The AWS settings of the environment and of the profile in `~/.aws`, read once.

    Credentials that expire (roles, single sign-on) are renewed by botocore; ask for `options` again in long work.
    """

    def __init__(self) -> None:
        try:
            import botocore.session
        except ImportError as error:
            raise MissingExtraError("a table in a bucket", "object-storage") from error
        self._session = botocore.session.get_session()
        with _explained():
            self._credentials = self._session.get_credentials()
            self._settings = self._read_settings()

    def options(self) -> dict[str, str]:
        """Return the settings with current credentials, under names that Lance and obstore share.

        Without credentials, Lance and obstore look for some on their own.
        """
        if self._credentials is None:
            return dict(self._settings)
        with _explained():
            values = self._credentials.get_frozen_credentials()
        named = zip(SECRETS, (values.access_key, values.secret_key, values.token), strict=True)
        return self._settings | {name: value for name, value in named if value}

    def obstore_options(self) -> dict[str, Any]:
        """Return what obstore's `from_url` takes: settings, and a provider that renews credentials."""
        settings = {name: value for name, value in self._settings.items() if name != "allow_http"}
        options: dict[str, Any] = {"config": settings or None}
        if self._credentials is not None:
            from obstore.auth.boto3 import Boto3CredentialProvider

            self.options()  # raises our own error where the credentials cannot be had
            options["credential_provider"] = Boto3CredentialProvider(self._session, ttl=_CREDENTIALS_VALID_FOR)
        return options

    @property
    def allows_http(self) -> bool:
        """Whether the endpoint may be reached without TLS."""
        return "allow_http" in self._settings

    def _read_settings(self) -> dict[str, str]:
        profile = self._session.get_scoped_config()
        services = self._session.full_config.get("services", {}).get(profile.get("services"), {})
        endpoint = (
            os.environ.get("AWS_ENDPOINT_URL_S3")
            or os.environ.get("AWS_ENDPOINT_URL")
            or os.environ.get("AWS_ENDPOINT")  # of Lance and obstore, not of the AWS tools
            or services.get("s3", {}).get("endpoint_url")
            or profile.get("endpoint_url", "")
        )
        region = os.environ.get("AWS_REGION") or self._session.get_config_variable("region")
        http = os.environ.get("AWS_ALLOW_HTTP") or ("true" if endpoint.startswith("http://") else "false")
        settings = {
            "aws_endpoint": endpoint.rstrip("/"),
            "aws_region": region,
            "allow_http": "" if http.lower() in ("0", "false", "no", "off") else "true",
        }
        return {name: value for name, value in settings.items() if value}


@contextmanager
def _explained() -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StorageError(f"AWS credentials cannot be had: {error}; check AWS_PROFILE and ~/.aws") from error
