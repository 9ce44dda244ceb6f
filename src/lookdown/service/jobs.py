"""Jobs: work that takes longer than a request may. One runs at a time, and their results are kept for a while."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from lookdown.errors import LookdownError
from lookdown.gallery import MetricUpdate
from lookdown.progress import Progress
from lookdown.service.problems import Problem, body_of, of_error, without_paths
from lookdown.service.schemas import Job, Outcome, ProblemDetails
from lookdown.service.service_settings import ServiceSettings
from lookdown.service.threads import ThreadPool

__all__ = ["JobQueue", "Work"]

Work = Callable[[Progress], MetricUpdate]

_LOG = logging.getLogger("lookdown.service")
_RUNNING_MESSAGES = {
    "adapt": "finding clusters and estimating a metric from them",
    "teach": "estimating a metric with the labels that were given",
    "calibrate": "measuring what scores are worth on labelled chips",
}


class JobQueue:
    """The jobs of one gallery, which has a single writer."""

    def __init__(self, folder: Path, settings: ServiceSettings) -> None:
        self._folder, self._kept = folder, max(settings.jobs_kept, settings.jobs_waiting + 1)
        self._jobs: dict[str, Job] = {}
        self._thread = ThreadPool("jobs", threads=1, waiting=settings.jobs_waiting, retry_seconds=10)

    def start(self, kind: str, work: Work) -> Job:
        """Put a job into the queue."""
        job = Job.model_validate({
            "id": secrets.token_hex(8), "kind": kind, "status": "waiting", "message": "waiting for the job before it",
            "progress": None, "result": None, "error": None,
        })  # fmt: skip
        self._thread.submit(lambda: self._run(job, work))
        self._jobs[job.id] = job
        finished = [name for name, old in self._jobs.items() if old.status in ("done", "failed")]
        for name in finished[: max(0, len(self._jobs) - self._kept)]:
            del self._jobs[name]
        return job

    def get(self, name: str) -> Job | None:
        """Return a job, or None if it is unknown or forgotten."""
        return self._jobs.get(name)

    def stop(self, seconds: float) -> None:
        """Drop waiting jobs, and give the running one some time to finish."""
        for job in self._jobs.values():
            if job.status == "waiting":
                job.status, job.message = "failed", "the service was stopped"
        self._thread.stop(seconds)

    def _run(self, job: Job, work: Work) -> None:
        if job.status != "waiting":
            return
        job.message, job.status = _RUNNING_MESSAGES[job.kind], "running"
        start = time.monotonic()
        try:
            learnt = work(lambda done, total, unit: setattr(job, "progress", done / total if total else None))
        except LookdownError as error:
            _fail(job, of_error(error, self._folder))
        except Exception:
            _LOG.exception("the job %s failed", job.kind)
            _fail(job, Problem(500, "fault", "the job failed unexpectedly; the log of the service has the details"))
        else:
            reason = without_paths(learnt.reason, self._folder)
            metric = learnt.metric if learnt.changed else None
            job.result = Outcome(metric=metric, changed=learnt.changed, helped=learnt.helped, reason=reason)
            job.progress = 1.0
            job.message, job.status = f"{reason} ({time.monotonic() - start:.1f} s)", "done"


def _fail(job: Job, problem: Problem) -> None:
    job.error = ProblemDetails.model_validate(body_of(problem))
    job.message, job.status = problem.detail, "failed"
