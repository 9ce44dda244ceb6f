"""A table in a bucket: its address, its lock, and sentences for the errors of object stores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from lookdown.errors import GalleryError, InputError, LookdownError, MissingExtraError, StorageError
from lookdown.gallery.scale.aws import SECRETS, AwsSession
from lookdown.gallery.scale.lease import LEASE_FILE, LEASE_SECONDS, DamagedLeaseError, Lease, NoConditionalPutsError
from lookdown.gallery.store.table import READING, TableLocation, first_line, is_not_found

__all__ = ["LEASE_SECONDS", "BucketLocation", "table_address"]

_ADDRESS = re.compile(r"(s3|gs)://([a-z0-9][a-z0-9._-]{1,61}[a-z0-9])((?:/[\w.!*'() +=,-]+)*)/*")
_MOST_RETRIES = 1_000  # never reached, since the time below ends the retries; refused connections fail at once
_RETRY_FOR = timedelta(seconds=10)  # for one request; Lance repeats this six times where it lists versions
_RUN_AGAIN = "run the same again: what was added before is kept"
_RESTORE = "check the bucket; restore the table from a copy, or index anew"
_REFUSED = re.compile(
    r"InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|ExpiredToken|InvalidToken|Forbidden|Unauthorized|"
    r"169\.254\.|no providers in chain|CredentialsNotLoaded|MissingCredential",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"error sending request|timed out|kind: (Connect|Timeout|Request)|dns error|connection|after \d+ retries|SlowDown",
    re.IGNORECASE,
)
_OTHER_REGION = re.compile(r"PermanentRedirect|AuthorizationHeaderMalformed|301 Moved")
_QUOTED_CHARACTERS = 300  # of an error of the store


def table_address(text: str) -> str:
    """Return the address of a table without trailing slashes; refuse any other text, above all with credentials."""
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
class BucketLocation(TableLocation):
    """A table in an object store. A lease in the bucket keeps apart the writers of all copies of the folder."""

    address: str = field()  # s3://bucket/name
    identity: str = field(repr=False)

    # A writer whose lease has expired may still commit the files that it wrote: Lance keeps those for seven days.
    unlisted_files_are_leftovers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if table_address(self.address) != self.address:
            raise InputError(f"{self.address} ends in a slash; leave it out")

    @property
    def storage_options(self) -> dict[str, str]:
        """Options for Lance, with current credentials: never print them or write them down."""
        seconds = f"{_RETRY_FOR.total_seconds():.0f}"
        retries = {"client_max_retries": str(_MOST_RETRIES), "client_retry_timeout": seconds}
        return (self._aws.options() if self._aws else {}) | retries

    @contextmanager
    def writing(self, lock_file: Path) -> Iterator[None]:
        """Hold the lease; first invalidate any step that a killed or cut-off lock holder may still finish."""
        entered = False
        try:
            with self._lease.hold(lock_file, self._fence):
                entered = True
                yield
        except LookdownError:
            raise
        except Exception as error:
            if entered:
                raise
            raise self.explain("cannot be written", error) from error

    def check_lock(self) -> None:
        """Raise if the lease may have expired."""
        self._lease.check()

    def check_reachable(self) -> None:
        """Ask for one small object; this fails sooner than Lance does."""
        store = self._store
        import obstore
        from obstore.exceptions import BaseError

        try:
            obstore.get(store, LEASE_FILE)
        except (BaseError, FileNotFoundError) as error:
            if not isinstance(error, FileNotFoundError) or "NoSuchBucket" in str(error):
                raise self.explain("cannot be opened", error) from error

    def explain(self, failure: str, error: BaseException) -> GalleryError:
        """Return a sentence for an error of Lance or of the store, without credentials."""
        text, bucket = str(error), self.address.split("/")[2]
        if isinstance(error, NoConditionalPutsError) or "NotImplemented" in text:
            return StorageError(
                f"the store of {self.address} does not decide conditional writes (If-None-Match, If-Match), so two "
                "writers could not be kept apart; use a store that does, as S3 does, or a gallery on a disk"
            )
        if isinstance(error, DamagedLeaseError):
            file = f"{self.address}/{LEASE_FILE}"
            return StorageError(f"{file} is damaged; remove it if nobody is writing, and {_RUN_AGAIN}")
        if "NoSuchBucket" in text:
            return StorageError(f"the bucket {bucket} does not exist; make it, or check AWS_ENDPOINT_URL and the name")
        if "Incompatible transaction" in text or "ommit conflict" in text:
            return GalleryError(f"another writer has taken over {self.address}; {_RUN_AGAIN}")
        if "builder error" in text:
            return StorageError(
                f"the store of {self.address} is at http:// and AWS_ALLOW_HTTP forbids that; set it to true"
            )
        if _OTHER_REGION.search(text):
            return StorageError(f"the bucket {bucket} is in another region; set AWS_REGION to that of the bucket")
        if _REFUSED.search(text):
            return StorageError(
                f"the store of {self.address} refuses our credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
                "(and AWS_SESSION_TOKEN, AWS_REGION), or AWS_PROFILE, to ones that may read and write there"
            )
        if is_not_found(error):
            return GalleryError(
                f"the table of {self.folder} at {self.address} {failure}: it is gone, or parts of it are; restore it "
                "from a copy, or index anew into another folder"
            )
        if _NO_ANSWER.search(text):
            return StorageError(
                f"the store of {self.address} does not answer; check the network and AWS_ENDPOINT_URL, then "
                f"{_RUN_AGAIN}"
            )
        next_step = _RESTORE if failure in READING else _RUN_AGAIN
        reason = self._without_secrets(first_line(error))
        return GalleryError(f"the table of {self.folder} at {self.address} {failure}: {reason}; {next_step}")

    def occupied(self, rows: int) -> GalleryError:
        """Return the error for a new table where there is one with rows."""
        return GalleryError(
            f"{self.address} holds a table of {rows:,} chips of another gallery; use a copy of that folder, or name "
            "another address"
        )

    def _fence(self) -> None:
        """Write a version that invalidates every step begun before it: Lance refuses those older than a restore.

        If another writer commits between our reading and our restore, restore the version of that commit instead.
        """
        try:
            dataset = self.open()
            seen = dataset.version
            dataset.restore()
            if dataset.version > seen + 1:
                dataset.checkout_version(dataset.version - 1).restore()
        except (OSError, RuntimeError, ValueError) as error:
            if not is_not_found(error):  # the earlier lock holder was killed before it created the table
                raise self.explain("cannot be written", error) from error

    @cached_property
    def _aws(self) -> AwsSession | None:
        return AwsSession() if self.address.startswith("s3:") else None

    @cached_property
    def _store(self) -> Any:
        try:
            from obstore.store import from_url
        except ImportError as error:
            raise MissingExtraError("a table in a bucket", "object-storage") from error

        options = self._aws.obstore_options() if self._aws else {}
        client: dict[str, Any] = {"timeout": "10s", "connect_timeout": "5s"}
        if self._aws and self._aws.allows_http:
            client["allow_http"] = True
        retry: Any = {"max_retries": _MOST_RETRIES, "retry_timeout": _RETRY_FOR}
        return from_url(self.address, client_options=client, retry_config=retry, **options)  # type: ignore[call-overload]

    @cached_property
    def _lease(self) -> Lease:
        return Lease(self._store, self.address, seconds=LEASE_SECONDS)

    def _without_secrets(self, text: str) -> str:
        """Remove credentials that a message repeats, and the XML that a store answers with."""
        with suppress(LookdownError):
            for name, value in self.storage_options.items():
                if name in SECRETS:
                    text = text.replace(value, "…")
        return text.partition("<?xml")[0][:_QUOTED_CHARACTERS].rstrip(" :")
