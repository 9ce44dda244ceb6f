"""The lock of a table in a bucket: one process holds it, and it expires."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import obstore
import pytest
from obstore.store import MemoryStore, from_url
from tests.gallery.scale.running_store import RunningStore

from lookdown.errors import GalleryBusyError, GalleryError
from lookdown.gallery.scale.lease import LEASE_FILE, Clock, DamagedLeaseError, Lease, NoConditionalPutsError

SHORT = 2.0  # seconds


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "writer.lock"
    file.touch()
    return file


@pytest.fixture
def other(tmp_path: Path) -> Path:
    file = tmp_path / "other.lock"
    file.touch()
    return file


@pytest.fixture
def note() -> Mock:
    """What is called to void the steps of a writer that did not end in good order."""
    return Mock()


@pytest.fixture
def place(store: RunningStore, table: str) -> Any:
    client: Any = {"allow_http": True, "timeout": "1s"}
    return from_url(table, client_options=client, retry_config={"max_retries": 0})


class SetClock(Clock):
    """A clock that stands still until a test moves it, and with it that of the store."""

    def __init__(self, store: RunningStore) -> None:
        self._store, self._now = store, 0.0
        self._waiting: dict[threading.Thread, float] = {}
        self._known: set[threading.Thread] = set()

    def now(self) -> float:
        return self._now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        thread, until = threading.current_thread(), self._now + seconds
        self._known.add(thread)
        self._waiting[thread] = until
        while not event.wait(0.001) and self._now < until:
            pass
        del self._waiting[thread]
        return event.is_set()

    def jump(self, seconds: float) -> None:
        """Move this machine's clock alone, as if nobody had come to do anything meanwhile."""
        self._now += seconds

    def advance(self, seconds: float, step: float = 0.1) -> None:
        """Move both clocks, and let whoever waits for a moment on the way do its work there."""
        while not self._waiting:
            time.sleep(0.001)
        for _ in range(round(seconds / step)):
            self._store.advance(step)
            self._now += step
            while any(thread.is_alive() and self._waiting.get(thread, 0.0) <= self._now for thread in self._known):
                time.sleep(0.001)


@pytest.fixture
def clock(store: RunningStore) -> SetClock:
    return SetClock(store)


def holder(place: Any) -> object:
    return json.loads(bytes(obstore.get(place, LEASE_FILE).bytes()))["writer"]


def test_one_holds_it_and_the_other_is_told_who(place: Any, lock: Path, other: Path, note: Mock) -> None:
    first, second = Lease(place, "s3://lake/x", seconds=60), Lease(place, "s3://lake/x", seconds=60)
    with first.hold(lock, note):
        first.check()
        busy = (
            r"s3://lake/x is being written to by process \d+ on \S+ since .*; wait until it is done.*after 60 seconds"
        )
        with pytest.raises(GalleryBusyError, match=busy), second.hold(other, note):
            pass
    assert holder(place) is None
    with pytest.raises(GalleryError, match="has expired"):
        first.check()
    with second.hold(other, note):
        assert not note.called


@pytest.mark.parametrize("there", [False, True])
def test_of_many_at_once_one_gets_it(there: bool, place: Any, tmp_path: Path, lock: Path, note: Mock) -> None:
    if there:
        with Lease(place, "x", seconds=60).hold(lock, note):
            pass
    together, enough = threading.Barrier(6), threading.Event()
    outcomes: list[str] = []

    def one(number: int) -> None:
        file = tmp_path / f"{number}.lock"
        file.touch()
        together.wait()
        try:
            with Lease(place, "x", seconds=60).hold(file, note):
                outcomes.append("held")
                enough.wait()
        except GalleryBusyError:
            outcomes.append("busy")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    while len(outcomes) < 6:
        time.sleep(0.01)
    enough.set()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["busy"] * 5 + ["held"]


def killed(place: Any, lock: Path, seconds: float = SHORT) -> None:
    """Leave a lease as a killed process does."""
    Lease(place, "x", seconds=seconds)._acquire(lock)


def test_a_lease_that_is_renewed_stays_and_one_that_is_not_lapses(
    place: Any, lock: Path, other: Path, note: Mock, store: RunningStore, clock: SetClock
) -> None:
    with Lease(place, "x", seconds=SHORT, clock=clock).hold(lock, note):
        clock.advance(1.5 * SHORT)
        with pytest.raises(GalleryBusyError), Lease(place, "x", seconds=SHORT).hold(other, note):
            pass
    killed(place, lock)
    with pytest.raises(GalleryBusyError), Lease(place, "x", seconds=SHORT).hold(other, note):
        pass
    store.advance(SHORT + 1.1)  # the clock of a store shows whole seconds
    with Lease(place, "x", seconds=SHORT).hold(other, note):
        assert note.call_count == 1
    assert [one["path"] for one in obstore.list(place).collect()] == [LEASE_FILE]  # no clock is left behind


def test_who_holds_the_same_file_lock_need_not_wait(place: Any, lock: Path, note: Mock) -> None:
    killed(place, lock, 60)
    with Lease(place, "x", seconds=60).hold(lock, note):
        assert note.call_count == 1


def test_who_comes_after_one_that_failed_voids_what_may_be_under_way(place: Any, lock: Path, note: Mock) -> None:
    with pytest.raises(OSError, match="cut off"), Lease(place, "x", seconds=60).hold(lock, note):
        raise OSError("cut off")
    assert not note.called
    assert holder(place) is None
    note.side_effect = [OSError("not yet"), None]
    with pytest.raises(OSError, match="not yet"), Lease(place, "x", seconds=60).hold(lock, note):
        pass
    for _ in range(2):
        with Lease(place, "x", seconds=60).hold(lock, note):
            assert note.call_count == 2  # by the first that could, and only by that


def test_who_was_taken_over_knows_and_does_not_give_back_what_is_anothers(
    place: Any, lock: Path, note: Mock, clock: SetClock
) -> None:
    first, second = Lease(place, "x", seconds=SHORT, clock=clock), Lease(place, "x", seconds=60)
    with first.hold(lock, note):
        with second.hold(lock, note):
            assert note.call_count == 1
            clock.advance(SHORT)
            with pytest.raises(GalleryError, match=r"has expired.*or another writer has taken over"):
                first.check()
            second.check()
        held = Lease(place, "x", seconds=60)
        held._acquire(lock)
    assert holder(place) is not None


def test_who_cannot_renew_stops_before_others_may_begin(
    place: Any, lock: Path, store: RunningStore, note: Mock, clock: SetClock
) -> None:
    lease = Lease(place, "x", seconds=SHORT, clock=clock)
    with lease.hold(lock, note):
        lease.check()
        store.pause()
        try:
            clock.jump(SHORT)
            with pytest.raises(GalleryError, match="could not be renewed for 2 seconds"):
                lease.check()
        finally:
            store.go_on()
    with Lease(place, "x", seconds=SHORT).hold(lock, note):
        pass


def test_an_answer_that_was_lost_is_no_refusal(
    place: Any, lock: Path, monkeypatch: pytest.MonkeyPatch, note: Mock, clock: SetClock
) -> None:
    put = obstore.put

    def twice(*given: Any, **named: Any) -> Any:
        put(*given, **named)
        return put(*given, **named)  # as a client does that has heard nothing

    lease = Lease(place, "x", seconds=SHORT, clock=clock)
    monkeypatch.setattr(lease, "_require_conditional_puts", lambda: None)
    monkeypatch.setattr(obstore, "put", twice)
    with lease.hold(lock, note):
        clock.advance(SHORT)
        lease.check()
    assert holder(place) is None


def ignores(condition: Callable[[object], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    put = obstore.put

    def careless(*given: Any, mode: Any) -> Any:
        return put(*given, mode="overwrite" if condition(mode) else mode)

    monkeypatch.setattr(obstore, "put", careless)


@pytest.mark.parametrize("which", ["create", "update"])
def test_a_store_that_ignores_conditions_is_found_out(
    which: str, lock: Path, monkeypatch: pytest.MonkeyPatch, note: Mock
) -> None:
    ignores(lambda mode: (mode == "create") == (which == "create"), monkeypatch)
    memory = MemoryStore()
    with pytest.raises(NoConditionalPutsError), Lease(memory, "x", seconds=60).hold(lock, note):
        pass
    assert obstore.list(memory).collect() == []


def test_what_is_no_lease_is_not_written_over(lock: Path, note: Mock) -> None:
    memory = MemoryStore()
    obstore.put(memory, LEASE_FILE, b"mine")
    with pytest.raises(DamagedLeaseError), Lease(memory, "x", seconds=60).hold(lock, note):
        pass
    assert bytes(obstore.get(memory, LEASE_FILE).bytes()) == b"mine"
