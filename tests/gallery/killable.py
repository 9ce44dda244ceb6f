"""Processes that tests of the gallery kill: one imports everything once, and forks a child for each piece of work.

Imports take seconds, and thirty kills want thirty processes. The one that forks imports and does nothing else, so that
no thread of a library has begun any work when it does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import lance  # noqa: F401  # otherwise imported when the first table is opened, in each child anew
import lancedb  # noqa: F401
import numpy as np
import torch
from tests.gallery.galleries import Embeddings, kinds

from lookdown.gallery import Gallery
from lookdown.gallery.index import vectors, writer
from lookdown.gallery.scale import bucket
from lookdown.gallery.search.filters import Where
from lookdown.networks import Embedder

Say = Callable[[object], None]

STEP = 10  # chips in a step of `index`
TIDY = 8  # steps between two merges of small files
BATCH = 50  # chips that `change` adds and removes at a time
LONG = 180.0  # seconds, for a machine that is busy with other things


class Child:
    """A process at work, and what it has said so far."""

    def __init__(self, parent: Nursery, pid: int, said: Path) -> None:
        self.parent, self.pid, self._said = parent, pid, said
        self.status: int | None = None

    @property
    def said(self) -> list[Any]:
        """What the child said; a line that it was killed in the middle of does not count."""
        return [json.loads(line) for line in self._said.read_text().split("\n")[:-1]]

    @property
    def ended(self) -> bool:
        if self.status is None:
            self.status = self.parent.ask(wait=self.pid)
        return self.status is not None

    def hear(self, enough: Callable[[list[Any]], bool]) -> list[Any]:
        """Wait until the child has said enough, or has ended."""
        deadline = time.monotonic() + LONG
        while not enough(said := self.said) and not self.ended:
            assert time.monotonic() < deadline, f"process {self.pid} has come no further than {said[-3:]}"
            time.sleep(0.001)
        return self.said

    def kill(self) -> bool:
        """Kill it with signal 9, and return whether that was what ended it."""
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)  # nobody has waited for it yet, so the number is still its own
            self.join()
        return self.status == -signal.SIGKILL

    def stop(self) -> None:
        """Make it stand still; it keeps what it holds."""
        os.kill(self.pid, signal.SIGSTOP)
        self.until_stopped()

    def until_stopped(self) -> None:
        deadline = time.monotonic() + LONG
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert not self.ended, f"process {self.pid} ended with {self.status} and did not stop: {self.said[-1:]}"
            assert time.monotonic() < deadline, f"process {self.pid} does not stop"
            time.sleep(0.001)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def join(self) -> list[Any]:
        """Wait until it ends, and return what it said."""
        return self.hear(lambda said: False)

    def finish(self) -> list[Any]:
        """Wait until it ends as it should, and return what it said."""
        said = self.join()
        assert self.status == 0, f"process {self.pid} ended with {self.status}: {said[-1:]}"
        return said


class Nursery:
    """The process that forks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = count()
        self._children: list[Child] = []
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.gallery.killable"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            child.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(LONG)
        self._process.stdout.close()

    def start(self, work: Callable[..., None], *arguments: object) -> Child:
        """Run one of the functions below in a process of its own."""
        said = self._folder / f"said {next(self._number)}"
        said.touch()
        shown = [str(item) if isinstance(item, Path) else item for item in arguments]
        child = Child(self, self.ask(work=work.__name__, arguments=shown, said=str(said)), said)
        self._children.append(child)
        return child

    def ask(self, **request: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that forks has died"
        return json.loads(answer)


def serve() -> None:
    """Fork a child for each request on the standard input, and say how a child has ended."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    warnings.simplefilter("ignore")  # Lance warns of forks; it has done nothing here yet
    children = set[int]()
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            pid, status = os.waitpid(request["wait"], os.WNOHANG)
            children.discard(pid)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if not answer:
                _work(**request)
            children.add(answer)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    for pid in children:  # the tests are gone; one that stands still would stay for ever
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _work(work: str, arguments: list[Any], said: str) -> None:
    """Do one piece of work and end; what goes wrong is said last."""
    file = os.open(said, os.O_WRONLY | os.O_APPEND)

    def say(word: object) -> None:
        os.write(file, json.dumps(word).encode() + b"\n")

    code = 1
    try:
        torch.set_num_threads(1)
        globals()[work](say, *arguments)
        code = 0
    except BaseException as error:
        say({"error": type(error).__name__, "message": str(error), "trace": traceback.format_exc()})
    finally:
        os._exit(code)  # without the handlers of the process that this is a copy of


def index(say: Say, gallery: str, images: str, embedder: str) -> None:
    """Make a gallery or go on with it, in steps of a few chips; say how many are in after each."""
    writer._BATCH_CHIPS, writer._TIDY_STEPS = STEP, TIDY
    path, network = Path(gallery), Embedder.load(embedder)
    say("begins")
    opened = Gallery.open(path) if (path / "gallery.json").exists() else Gallery.create(path, network)
    say("opened")
    added = opened.add(images, progress=lambda done, total, unit: say(done))
    say({"added": added.added})


def add(say: Say, gallery: str, name: str, chips: int, lease: float) -> None:
    """Add chips in steps of a few, to a table in a bucket, and say the last id of each step once it is in."""
    vectors._STEP_VECTORS, bucket.LEASE_SECONDS = STEP, lease
    opened = Gallery.open(gallery)
    append = opened._table.append

    def told(rows: Sequence[Mapping[str, Any]], embeddings: Embeddings, *, first_key: int) -> None:
        append(rows, embeddings, first_key=first_key)
        say(rows[-1]["id"])

    opened._table.append = told  # type: ignore[method-assign]
    say("opened")
    rows = [{"id": f"{name} {place}"} for place in range(chips)]
    say({"added": opened.add_embeddings(rows, kinds(chips, opened.snapshot.dimension)[0]).added})


def make(say: Say, gallery: str, embedder: str, last: int) -> None:
    """Make a gallery, and be killed at the change of a file that has this number."""
    network = Embedder.load(embedder)
    _killed_at(last, Path(gallery), say)
    Gallery.create(gallery, network)


def make_late(say: Say, gallery: str) -> None:
    """Make a gallery, and stand still right before the lock is taken."""

    number = count()

    def stop(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith("writer.lock") and not next(number):
            os.kill(os.getpid(), signal.SIGSTOP)

    sys.addaudithook(stop)
    Gallery.create(gallery, dimension=8)


def learn(say: Say, gallery: str, how: Literal["adapt", "teach", "calibrate"], seed: int, last: int = 0) -> None:
    """Change the metric, and say its name once that is done; be killed at the change of a file with this number."""
    opened = Gallery.open(gallery)
    ids = opened.snapshot.ids.to_pylist()
    say("begins")
    if last:
        _killed_at(last, Path(gallery), say)
    if how == "adapt":
        learnt = opened.adapt(clusters=8, seed=seed)
    elif how == "teach":
        some = range(seed % 100, 400, 20)
        learnt = opened.teach([ids[place] for place in some], [f"kind {place % 4}" for place in some], seed=seed)
    else:
        learnt = opened.calibrate(seed=seed)
    say({"metric": learnt.metric, "changed": learnt.changed})


def forget(say: Say, gallery: str, metric: str, last: int) -> None:
    """Drop a metric, and be killed at the change of a file with this number."""
    opened = Gallery.open(gallery)
    say("begins")
    _killed_at(last, Path(gallery), say)
    opened.forget(metric)


def change(say: Say, gallery: str, rounds: int) -> None:
    """Add chips in whole batches, take some of these out again, and change the metric, over and over."""
    opened = Gallery.open(gallery)
    dimension = opened.snapshot.dimension
    for turn in range(rounds):
        rows = [{"id": f"batch {turn}, {place}", "scene": f"batch {turn}"} for place in range(BATCH)]
        opened.add_embeddings(rows, kinds(BATCH, dimension, seed=1 + turn)[0])
        opened.adapt(clusters=4 + turn % 4, seed=turn)
        opened.label([f"batch {turn}, {place}" for place in range(4)], ["a", "a", "b", "b"])
        if turn % 3 == 2:
            opened.remove(where=Where(scene=f"batch {turn - 1}"))
        if turn % 4 == 3:
            opened.use("1-trained")
        say(opened.metric)


def read(say: Say, gallery: str, until: str) -> None:
    """Search until a file appears; each answer must be that of one metric over one whole state of the table."""
    opened = Gallery.open(gallery)
    query = opened.snapshot.embeddings(np.array([3]))[0]
    turn = 0
    while turn < 3 or not Path(until).exists():
        opened = opened if turn % 5 else Gallery.open(gallery)
        opened.refresh()
        snapshot, name = opened.snapshot, opened.metric
        found = opened.search(query, k=20, overlap=1)
        scores = opened._registry.load(name).score(query[None].astype(np.float64), snapshot.embeddings())[0]
        ids = snapshot.ids.to_pylist()
        wanted = [ids[row] for row in np.argsort(-scores, kind="stable")[:20]]
        batches = [text.split(",")[0] for text in ids if text.startswith("batch")]
        parts = {batch: batches.count(batch) for batch in set(batches) if batches.count(batch) != BATCH}
        hits = [hit.id for hit in found.hits]
        if (
            found.metric != name
            or hits != wanted
            or parts
            or len(set(ids)) != len(ids)
            or found.rows_searched != len(ids)
        ):
            raise AssertionError(f"{found.metric} or {name}: {hits} instead of {wanted}; in part: {parts}")
        opened.stats()
        say([name, len(ids)])
        turn += 1


def _killed_at(last: int, place: Path, say: Say) -> None:
    """Die right before Python changes a file below a folder for so many-th time."""
    number = count(1)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        changes = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir")
        if event == "open":
            changes = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        path = str(arguments[0]) if changes else ""
        if changes and (path.startswith(str(place)) or not path.startswith("/")) and next(number) == last:
            say([event, path.removeprefix(str(place))])
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    serve()
