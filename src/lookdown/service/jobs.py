"""Work that takes longer than a request may: one at a time in a thread, its outcome kept for a while."""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lookdown.errors import LookdownError
from lookdown.gallery import Learnt
from lookdown.progress import Progress
from lookdown.service.limits import too_busy
from lookdown.service.problems import Problem, body_of, of_error, without_paths

__all__ = ["Job", "JobQueue", "Kind", "Status", "Work"]

Kind = Literal["adapt", "teach", "calibrate"]
Status = Literal["waiting", "running", "done", "failed"]

Work = Callable[[Progress], Learnt]

_LOG = logging.getLogger("lookdown.service")
_DOING = {
    "adapt": "finding clusters and estimating a metric from them",
    "teach": "estimating a metric with the labels that were given",
    "calibrate": "measuring what scores are worth on labelled chips",
}


@dataclass(slots=True)
class Job:
    """A piece of work and what came of it; its thread alone changes it."""

    id: str
    kind: Kind
    status: Status = "waiting"
    progress: float | None = None
    message: str = "waiting for the job before it"
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class JobQueue:
    """JobQueue on one gallery, which has one writer at a time anyway."""

    def __init__(self, folder: Path, *, waiting: int, kept: int) -> None:
        self._folder, self._waiting, self._kept = folder, waiting, max(kept, waiting + 1)
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._queue: queue.SimpleQueue[tuple[Job, Work] | None] = queue.SimpleQueue()
        # A daemon, since learning can take minutes and a gallery survives a kill.
        self._thread = threading.Thread(target=self._work, name="lookdown-jobs", daemon=True)
        self._thread.start()

    def start(self, kind: Kind, work: Work) -> Job:
        """Put a piece of work into the line."""
        if sum(job.status in ("waiting", "running") for job in self._jobs.values()) > self._waiting:
            raise too_busy("too many jobs are waiting", 10)
        job = Job(secrets.token_hex(8), kind)
        self._jobs[job.id] = job
        finished = [name for name, old in self._jobs.items() if old.status in ("done", "failed")]
        for name in finished[: max(0, len(self._jobs) - self._kept)]:
            del self._jobs[name]
        self._queue.put((job, work))
        return job

    def get(self, name: str) -> Job | None:
        """Return a job, None where there is none, or no longer."""
        return self._jobs.get(name)

    def stop(self, seconds: float) -> None:
        """Drop what waits, and give what runs some time to end."""
        for job in self._jobs.values():
            if job.status == "waiting":
                job.status, job.message = "failed", "the service was stopped"
        self._queue.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            job, work = item
            if job.status == "waiting":
                self._do(job, work)

    def _do(self, job: Job, work: Work) -> None:
        job.message, job.status = _DOING[job.kind], "running"
        begin = time.monotonic()
        try:
            learnt = work(lambda done, total, unit: setattr(job, "progress", done / total if total else None))
        except LookdownError as error:
            self._fail(job, of_error(error, self._folder))
        except Exception:
            self._fail(job, Problem(500, "fault", "the job failed in a way nobody foresaw; the log says more"))
            _LOG.exception("the job %s failed", job.kind)
        else:
            reason = without_paths(learnt.reason, self._folder)
            job.result = {
                "metric": learnt.metric if learnt.changed else None,
                "changed": learnt.changed,
                "helped": learnt.helped,
                "reason": reason,
            }
            job.progress = 1.0
            job.message, job.status = f"{reason} ({time.monotonic() - begin:.1f} s)", "done"

    @staticmethod
    def _fail(job: Job, problem: Problem) -> None:
        job.error = body_of(problem)
        job.message, job.status = problem.detail, "failed"
