"""A table in a bucket: how it is reached, who may write to it, and what goes wrong there in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from lookdown.errors import GalleryError, InputError, LookdownError, MissingExtraError, StorageError
from lookdown.gallery.scale.aws_environment import KEYS, aws_options
from lookdown.gallery.scale.lease import FILE, LEASE, Lease, NoConditionsError, UnreadableLeaseError
from lookdown.gallery.store.table_place import READS, TablePlace, first_line

__all__ = ["LEASE", "Bucket", "table_address"]

_ADDRESS = re.compile(r"(s3|gs)://([a-z0-9][a-z0-9._-]{1,61}[a-z0-9])((?:/[\w.!*'() +=,-]+)*)/*")
_RETRIES = 1_000  # never reached: the time decides, since refused connections fail at once
_AWAY_FOR = timedelta(seconds=10)  # a request is tried again; Lance does so six times over where it lists versions
_AGAIN = "run the same again: what was added before is kept"
_NO_ENTRY = re.compile(
    r"InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|ExpiredToken|InvalidToken|Forbidden|Unauthorized|"
    r"169\.254\.|no providers in chain|CredentialsNotLoaded|MissingCredential",
    re.IGNORECASE,
)
_AWAY = re.compile(
    r"error sending request|timed out|kind: (Connect|Timeout|Request)|dns error|connection|after \d+ retries|SlowDown",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"PermanentRedirect|AuthorizationHeaderMalformed|301 Moved")
_GONE = re.compile(r"was not found|not found:|NoSuchKey", re.IGNORECASE)
_MOST = 300  # characters of what a store says


def table_address(text: str) -> str:
    """Return an address of a table as it is kept; refuse what is none, credentials in it above all."""
    scheme, _, rest = text.partition("://")
    if rest and scheme not in ("s3", "gs"):
        raise InputError(f"a table cannot be kept at {scheme}://; give it as s3://bucket/name")
    if not (match := _ADDRESS.fullmatch(text)):
        raise InputError(
            "the address of a table is s3://bucket/name, without user, password or options; credentials are read from "
            "the environment"
        )
    return f"{match[1]}://{match[2]}{match[3]}"


@dataclass(frozen=True)
class Bucket(TablePlace):
    """A table of its own in an object store; writers in any copy of the folder are kept apart by a lease."""

    at: str  # s3://bucket/name
    whose: str = field(repr=False)  # what the table bears, so that another gallery's is not taken for ours

    def __post_init__(self) -> None:
        if table_address(self.at) != self.at:
            raise InputError(f"{self.at} ends in a slash; leave it out")

    @property
    def root(self) -> str:
        """What LanceDB connects to."""
        return self.at

    @property
    def address(self) -> str:
        """What `gallery.json` keeps."""
        return self.at

    @property
    def identity(self) -> str:
        """What the table bears."""
        return self.whose

    @property
    def storage_options(self) -> dict[str, str]:
        """What Lance must be told; with the credentials of the environment, so never shown or written down."""
        retries = {"client_max_retries": str(_RETRIES), "client_retry_timeout": f"{_AWAY_FOR.total_seconds():.0f}"}
        return (aws_options() if self.at.startswith("s3:") else {}) | retries

    @property
    def is_alone(self) -> bool:
        """A writer whose lease has lapsed may still be about to name a file: Lance keeps those for seven days."""
        return False

    def begun(self) -> bool:
        """Whether there is a table."""
        try:
            self._dataset()
        except ValueError as error:
            if self._is_gone(error):
                return False
            raise
        return True

    @contextmanager
    def writing(self, lock: Path) -> Iterator[None]:
        """Hold the lease; what a writer before, killed or cut off, may still be about to write is void then."""
        entered = False
        try:
            with self._lease.held(lock, self._fence):
                entered = True
                yield
        except LookdownError:
            raise
        except Exception as error:
            if entered:
                raise
            raise self.trouble("cannot be written", error) from error

    def check(self) -> None:
        """Refuse to write more once the lease may have lapsed."""
        self._lease.check()

    def reach(self) -> None:
        """Ask for one small object with little patience: an address where nobody answers is told soon."""
        store = self._store
        import obstore
        from obstore.exceptions import BaseError

        try:
            obstore.get(store, FILE)
        except (BaseError, FileNotFoundError) as error:
            if not isinstance(error, FileNotFoundError) or "NoSuchBucket" in str(error):
                raise self.trouble("cannot be opened", error) from error

    def trouble(self, what: str, error: BaseException) -> GalleryError:
        """Turn what Lance and the store say into a sentence; never with credentials."""
        text, bucket = str(error), self.at.split("/")[2]
        if isinstance(error, NoConditionsError) or "NotImplemented" in text:
            return StorageError(
                f"the store of {self.at} does not decide conditional writes (If-None-Match, If-Match), so two writers "
                "could not be kept apart; use a store that does, as S3 does, or a gallery on a disk"
            )
        if isinstance(error, UnreadableLeaseError):
            return StorageError(f"{self.at}/{FILE} is damaged; remove it if nobody is writing, and {_AGAIN}")
        if "NoSuchBucket" in text:
            return StorageError(f"the bucket {bucket} does not exist; make it, or check AWS_ENDPOINT_URL and the name")
        if "Incompatible transaction" in text or "ommit conflict" in text:
            return GalleryError(f"another writer has taken over {self.at}; {_AGAIN}")
        if "builder error" in text:
            return StorageError(f"the store of {self.at} is at http:// and AWS_ALLOW_HTTP forbids that; set it to true")
        if _ELSEWHERE.search(text):
            return StorageError(f"the bucket {bucket} is in another region; set AWS_REGION to that of the bucket")
        if _NO_ENTRY.search(text):
            return StorageError(
                f"the store of {self.at} does not let us in; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and "
                "AWS_SESSION_TOKEN, AWS_REGION) to ones that may read and write there"
            )
        if self._is_gone(error):
            return GalleryError(
                f"the table of {self.folder} at {self.at} {what}: it is gone, or parts of it are; restore it from a "
                "copy, or index anew into another folder"
            )
        if _AWAY.search(text):
            return StorageError(
                f"the store of {self.at} does not answer; check the network and AWS_ENDPOINT_URL, then {_AGAIN}"
            )
        after = "check the bucket; restore the table from a copy, or index anew" if what in READS else _AGAIN
        return GalleryError(f"the table of {self.folder} at {self.at} {what}: {_scrubbed(first_line(error))}; {after}")

    def occupied(self, rows: int) -> GalleryError:
        """Return the refusal to make a table where one with rows is."""
        return GalleryError(
            f"{self.at} holds a table of {rows:,} chips of another gallery; use a copy of that folder, or name another "
            "place"
        )

    def _fence(self) -> None:
        """Write a version that nothing begun before can be added to: Lance refuses what is older than a restoring.

        One who wrote between our look and that version is not lost: the version before is restored then.
        """
        try:
            table = self._dataset()
            seen = table.version
            table.restore()
            if table.version > seen + 1:
                table.checkout_version(table.version - 1).restore()
        except (OSError, RuntimeError, ValueError) as error:
            if not self._is_gone(error):  # it was killed before there was a table
                raise self.trouble("cannot be written", error) from error

    def _is_gone(self, error: BaseException) -> bool:
        return _GONE.search(str(error)) is not None and "NoSuchBucket" not in str(error)

    def _dataset(self) -> Any:
        import lance

        return lance.dataset(self.uri, storage_options=self.storage_options)

    @cached_property
    def _store(self) -> Any:
        try:
            from obstore.store import from_url
        except ImportError as error:
            raise MissingExtraError("a table in a bucket", "object-storage") from error

        options = aws_options() if self.at.startswith("s3:") else {}
        client: dict[str, Any] = {"timeout": "10s", "connect_timeout": "5s"}
        if options.pop("allow_http", None):
            client["allow_http"] = True
        retry: Any = {"max_retries": _RETRIES, "retry_timeout": _AWAY_FOR}
        return from_url(self.at, config=options or None, client_options=client, retry_config=retry)  # type: ignore[call-overload]

    @cached_property
    def _lease(self) -> Lease:
        return Lease(self._store, self.at, seconds=LEASE)


def _scrubbed(text: str) -> str:
    """Leave out whatever of the credentials a message echoes, and the document that a store answers with."""
    secrets = [value for name, value in aws_options().items() if name in KEYS]
    for secret in secrets:
        text = text.replace(secret, "…")
    return text.partition("<?xml")[0][:_MOST].rstrip(" :")
