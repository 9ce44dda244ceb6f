"""The right to write to a table in a bucket: an object that one writer holds, and that lapses if it is not renewed.

It is taken, renewed and given back by conditional puts (If-None-Match, If-Match), which the store decides one after
another. It is never deleted: to give it back is to write that nobody holds it, on the condition that we still do. Its
age is told by the store's clock alone; the clocks of two machines are never compared.
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

__all__ = ["FILE", "LEASE", "Clock", "Lease", "NoConditionsError", "UnreadableLeaseError"]

FILE = "writer.json"
LEASE = 60.0  # seconds: longer than a store or a network is away by chance, short enough to wait for a killed writer
_RENEW = 1 / 4  # of a lease: when it is renewed
_TRY_AGAIN = 1 / 60  # of a lease: when that is tried again where it failed
_MARGIN = 1 / 4  # of a lease: a writer stops so long before others may take over, for what it has begun


class NoConditionsError(Exception):
    """The store writes although it was told not to."""


class UnreadableLeaseError(Exception):
    """The object is there, and says nothing that we understand."""


class Clock:
    """The time of this machine, as a lease counts it; a test gives the lease a clock that it moves itself."""

    def now(self) -> float:
        """Return seconds that also pass while the machine sleeps."""
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boot is None else time.clock_gettime(boot)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the seconds have passed; return whether it is set."""
        return event.wait(seconds)


@dataclass(frozen=True, slots=True)
class _Held:
    """The object as the store has it."""

    told: dict[str, Any]
    tag: dict[str, str]  # what it must still be, for a put to take place
    changed: datetime  # by the clock of the store

    @property
    def writer(self) -> str:
        return str(self.told.get("writer") or "")


class Lease:
    """One object beside a table."""

    def __init__(self, store: Any, shown: str, *, seconds: float, clock: Clock | None = None) -> None:
        self._store, self._shown, self._seconds, self._clock = store, shown, seconds, clock or Clock()
        self._tag: dict[str, str] = {}
        self._told: dict[str, Any] = {}
        self._until = 0.0
        self._changing = threading.Lock()

    @contextmanager
    def held(self, lock: Path, void: Callable[[], None]) -> Iterator[None]:
        """Hold it for a while.

        lock: a file that this process holds a lock of: whoever had the lease with the same file is no more.
        void: what to do first if the writer before has not ended in good order, and a step of it may still be under
            way. Until that is done the lease is not given back, so that it falls to the next one to do.
        """
        disorder = self._take(lock)
        done = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(done,), name="lease", daemon=True)
        renewing.start()
        ended: dict[str, Any] | None = None
        try:
            if disorder:
                void()
            ended = {"writer": None, "disorder": True}
            yield
            ended = {"writer": None}
        finally:
            done.set()
            renewing.join()
            with suppress(Exception):  # away: it lapses by itself
                if ended is not None:
                    self._put(ended, self._tag)
            self._until = 0.0

    def check(self) -> None:
        """Refuse to go on if the lease may have lapsed: another may be writing."""
        if self._clock.now() > self._until:
            raise GalleryError(
                f"the right to write to {self._shown} has lapsed: it could not be renewed for "
                f"{self._seconds * (1 - _MARGIN):.0f} seconds, or another writer has taken over; check the network, "
                "and run the same again: what was added before is kept"
            )

    def _take(self, lock: Path) -> bool:
        """Become the writer; return whether the one before ended otherwise than in good order."""
        mine = {
            "writer": f"process {os.getpid()} on {socket.gethostname()}",
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "token": uuid.uuid4().hex,
            "lock": _identity(lock),
        }
        there = self._read()
        if there is None:
            if self._put(mine, None):
                self._prove()
                return False
            there = self._read()
        if there is None or (there.writer and not self._is_dead(there, mine["lock"])):
            raise self._busy(there)
        if not self._put(mine, there.tag):
            raise self._busy(self._read())
        return bool(there.writer or there.told.get("disorder"))

    def _is_dead(self, there: _Held, lock: str) -> bool:
        return there.told.get("lock") == lock or (self._store_time() - there.changed).total_seconds() > self._seconds

    def _busy(self, there: _Held | None) -> GalleryBusyError:
        who = f"{there.writer} since {there.told.get('since')}" if there and there.writer else "another process"
        return GalleryBusyError(
            f"{self._shown} is being written to by {who}; wait until it is done, then do it again (the right of a "
            f"writer that was killed lapses after {self._seconds:.0f} seconds)"
        )

    def _renew(self, done: threading.Event) -> None:
        beat, pause = 0, _RENEW
        while not self._clock.wait(done, self._seconds * pause):
            beat += 1
            try:
                kept = self._put(self._told | {"beat": beat}, self._tag)
            except Exception:  # the store is away, in one of many ways: tried again, until the lease has lapsed
                pause = _TRY_AGAIN
                continue
            pause = _RENEW
            if not kept:
                self._until = 0.0
                return

    def _put(self, told: dict[str, Any], tag: dict[str, str] | None) -> bool:
        """Write the object if it is still what it was, or is not there yet; False if it is something else."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        content = (json.dumps(told) + "\n").encode()
        with self._changing:
            asked = self._clock.now()
            mode: Any = "create" if tag is None else tag
            try:
                after = _tag(obstore.put(self._store, FILE, content, mode=mode))
            except (AlreadyExistsError, PreconditionError) as error:
                if "NoSuchBucket" in str(error):
                    raise
                there = self._read()  # ours if only the answer to an earlier try was lost
                if there is None or there.told != told:
                    return False
                after = there.tag
            self._tag, self._told = after, told
            self._until = asked + self._seconds * (1 - _MARGIN)
            return True

    def _read(self) -> _Held | None:
        import obstore

        try:
            found = obstore.get(self._store, FILE)
            content = bytes(found.bytes())
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise
            return None
        try:
            told = dict(json.loads(content))
        except (TypeError, ValueError) as error:
            raise UnreadableLeaseError from error
        return _Held(told, _tag(found.meta), found.meta["last_modified"])

    def _prove(self) -> None:
        """See, when the object is new, that the store decides conditions: else nobody is ever refused."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        for mode in ("create", {"e_tag": '"0123456789abcdef0123456789abcdef"'}):
            try:
                obstore.put(self._store, FILE, b"{}", mode=mode)  # type: ignore[arg-type]
            except (AlreadyExistsError, PreconditionError):
                continue
            obstore.delete(self._store, FILE)
            raise NoConditionsError

    def _store_time(self) -> datetime:
        """Return what time it is for the store: that of an object that it writes now."""
        import obstore

        name = f"writer-clock-{uuid.uuid4().hex}"
        obstore.put(self._store, name, b"", mode="overwrite")
        try:
            return obstore.head(self._store, name)["last_modified"]
        finally:
            obstore.delete(self._store, name)


def _tag(meta: Any) -> dict[str, str]:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name)}


def _identity(lock: Path) -> str:
    """Return what tells a locked file from every other: the run of the system that keeps the lock, and its number."""
    system = Path("/proc/sys/kernel/random/boot_id")
    run = system.read_text().strip() if system.exists() else f"{socket.gethostname()} {uuid.getnode()}"
    about = lock.stat()
    return f"{run} {about.st_dev} {about.st_ino}"
