"""The lock of a table in a bucket: an object that one process holds, and that expires unless it is renewed.

The holder acquires, renews and releases it by conditional puts (If-None-Match, If-Match), which the store serializes.
The object is never deleted: releasing it means writing that nobody holds it, if we still do. Its age is measured by the
clock of the store alone; the clocks of two machines are never compared.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lookdown.errors import GalleryBusyError, GalleryError

__all__ = ["LEASE_FILE", "LEASE_SECONDS", "Clock", "DamagedLeaseError", "Lease", "NoConditionalPutsError"]

LEASE_FILE = "writer.json"
LEASE_SECONDS = 60.0  # longer than usual outages of a store or a network, short enough to wait for a killed writer
# The rest are fractions of a lease.
_RENEW_AFTER = 1 / 4
_RETRY_AFTER = 1 / 60  # when a renewal has failed
_STOP_BEFORE_END = 1 / 4  # leaves time for a step that has begun before others may take over


class NoConditionalPutsError(Exception):
    """The store ignores the condition of a put."""


class DamagedLeaseError(Exception):
    """The object exists, and is not a lease."""


class Clock:
    """The clock of this machine; tests pass one that they move themselves."""

    def now(self) -> float:
        """Return seconds that also pass while the machine sleeps."""
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boot is None else time.clock_gettime(boot)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the seconds have passed; return whether it is set."""
        return event.wait(seconds)


@dataclass(frozen=True, slots=True)
class _Stored:
    """The object in the store."""

    content: dict[str, Any]
    tag: dict[str, str]  # the condition of the next put
    changed: datetime  # by the clock of the store

    @property
    def holder(self) -> str:
        return str(self.content.get("writer") or "")


class Lease:
    """One lock.

    store: the obstore store that the object is in.
    name: what errors call the locked table.
    seconds: how long the lease lasts without renewal.
    """

    def __init__(self, store: Any, name: str, *, seconds: float, clock: Clock | None = None) -> None:
        self._store, self._name, self._seconds, self._clock = store, name, seconds, clock or Clock()
        self._tag: dict[str, str] = {}
        self._content: dict[str, Any] = {}
        self._valid_until = 0.0
        self._putting = threading.Lock()

    @contextmanager
    def hold(self, lock_file: Path, fence: Callable[[], None]) -> Iterator[None]:
        """Hold the lease.

        lock_file: a file that this process has locked: an earlier holder with the same lock file must be dead.
        fence: called first if the earlier holder did not release the lease cleanly, to invalidate a step that it may
            still finish. If it raises, the lease is not released, so that the next holder calls its own.
        """
        needs_fence = self._acquire(lock_file)
        done = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(done,), name="lease", daemon=True)
        renewing.start()
        released: dict[str, Any] | None = None
        try:
            if needs_fence:
                fence()
            released = {"writer": None, "unclean": True}
            yield
            released = {"writer": None}
        finally:
            done.set()
            renewing.join()
            with suppress(Exception):  # if the store does not answer, the lease expires
                if released is not None:
                    self._put(released, self._tag)
            self._valid_until = 0.0

    def check(self) -> None:
        """Raise if the lease may have expired: another process may be writing."""
        if self._clock.now() > self._valid_until:
            raise GalleryError(
                f"the lock of {self._name} has expired: it could not be renewed for "
                f"{self._seconds * (1 - _STOP_BEFORE_END):.0f} seconds, or another writer has taken over; check the "
                "network, and run the same again: what was added before is kept"
            )

    def _acquire(self, lock_file: Path) -> bool:
        """Become the holder; return whether the earlier one did not release the lease cleanly."""
        content = {
            "writer": f"process {os.getpid()} on {socket.gethostname()}",
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "token": uuid.uuid4().hex,
            "lock": _file_identity(lock_file),
        }
        stored = self._read()
        if stored is None:
            if self._put(content, None):
                self._require_conditional_puts()
                return False
            stored = self._read()
        if stored is None or (stored.holder and not self._is_expired(stored, content["lock"])):
            raise self._busy(stored)
        if not self._put(content, stored.tag):
            raise self._busy(self._read())
        return bool(stored.holder or stored.content.get("unclean"))

    def _is_expired(self, stored: _Stored, lock: str) -> bool:
        if stored.content.get("lock") == lock:
            return True
        return (self._store_time() - stored.changed).total_seconds() > self._seconds

    def _busy(self, stored: _Stored | None) -> GalleryBusyError:
        known = stored and stored.holder
        holder = f"{stored.holder} since {stored.content.get('since')}" if stored and known else "another process"
        return GalleryBusyError(
            f"{self._name} is being written to by {holder}; wait until it is done, then do it again (the lock of a "
            f"killed writer expires after {self._seconds:.0f} seconds)"
        )

    def _renew(self, done: threading.Event) -> None:
        count, pause = 0, _RENEW_AFTER
        while not self._clock.wait(done, self._seconds * pause):
            count += 1
            try:
                renewed = self._put(self._content | {"beat": count}, self._tag)
            except Exception:  # many kinds, when the store does not answer: retry until the lease has expired
                pause = _RETRY_AFTER
                continue
            pause = _RENEW_AFTER
            if not renewed:
                self._valid_until = 0.0
                return

    def _put(self, content: dict[str, Any], tag: dict[str, str] | None) -> bool:
        """Write the object if it still has this tag, or, without a tag, if it does not exist; return whether we did."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        encoded = (json.dumps(content) + "\n").encode()
        mode: Any = "create" if tag is None else tag
        with self._putting:
            begun = self._clock.now()
            try:
                new_tag = _tag(obstore.put(self._store, LEASE_FILE, encoded, mode=mode))
            except (AlreadyExistsError, PreconditionError) as error:
                if "NoSuchBucket" in str(error):
                    raise
                stored = self._read()  # our own content if only the answer to an earlier try was lost
                if stored is None or stored.content != content:
                    return False
                new_tag = stored.tag
            self._tag, self._content = new_tag, content
            self._valid_until = begun + self._seconds * (1 - _STOP_BEFORE_END)
            return True

    def _read(self) -> _Stored | None:
        import obstore

        try:
            answer = obstore.get(self._store, LEASE_FILE)
            encoded = bytes(answer.bytes())
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise
            return None
        try:
            content = dict(json.loads(encoded))
        except (TypeError, ValueError) as error:
            raise DamagedLeaseError from error
        return _Stored(content, _tag(answer.meta), answer.meta["last_modified"])

    def _require_conditional_puts(self) -> None:
        """Raise if the store ignores conditions: it would then refuse nobody. Checked when the object is new."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        for mode in ("create", {"e_tag": '"0123456789abcdef0123456789abcdef"'}):
            try:
                obstore.put(self._store, LEASE_FILE, b"{}", mode=mode)  # type: ignore[arg-type]
            except (AlreadyExistsError, PreconditionError):
                continue
            obstore.delete(self._store, LEASE_FILE)
            raise NoConditionalPutsError

    def _store_time(self) -> datetime:
        """Return the time of the store: that of an object it writes now."""
        import obstore

        name = f"writer-clock-{uuid.uuid4().hex}"
        obstore.put(self._store, name, b"", mode="overwrite")
        try:
            return obstore.head(self._store, name)["last_modified"]
        finally:
            obstore.delete(self._store, name)


def _tag(meta: Any) -> dict[str, str]:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name)}


def _file_identity(file: Path) -> str:
    """Return what identifies a file among all machines: the boot of the system, its device and its inode."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    system = boot.read_text().strip() if boot.exists() else f"{socket.gethostname()} {uuid.getnode()}"
    status = file.stat()
    return f"{system} {status.st_dev} {status.st_ino}"
