"""JobQueue, one at a time."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from lookdown.errors import GalleryError
from lookdown.gallery import MetricUpdate
from lookdown.progress import Progress, no_progress
from lookdown.service.jobs import JobQueue
from lookdown.service.problems import Problem
from lookdown.service.schemas import Job, Outcome
from lookdown.service.service_settings import ServiceSettings

FOLDER = Path("/srv/archives/north")


def learnt(progress: Progress = no_progress, *, changed: bool = True) -> MetricUpdate:
    return MetricUpdate(metric="2-adapted", changed=changed, helped=True, reason="/srv/archives/north was adapted")


def ended(job: Job) -> Job:
    deadline = time.monotonic() + 10
    while job.status in ("waiting", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return job


def test_jobs_run_one_after_the_other_and_say_what_came_of_them() -> None:
    jobs = JobQueue(FOLDER, ServiceSettings(jobs_waiting=4, jobs_kept=10))
    running: list[int] = []
    most: list[int] = []

    def work(progress: Progress) -> MetricUpdate:
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()
        return learnt()

    started = [jobs.start("adapt", work) for _ in range(5)]
    for job in started:
        assert ended(job).result == Outcome(metric="2-adapted", changed=True, helped=True, reason="north was adapted")
        assert job.message.startswith("north was adapted (")
        assert jobs.get(job.id) is job
    assert max(most) == 1
    result = ended(jobs.start("teach", lambda progress: learnt(changed=False))).result
    assert result is not None
    assert result.metric is None
    jobs.stop(1)


def test_it_can_be_seen_how_far_a_job_is() -> None:
    jobs = JobQueue(FOLDER, ServiceSettings(jobs_waiting=4, jobs_kept=10))
    seen: list[float | None] = []

    def work(progress: Progress) -> MetricUpdate:
        for done in (1, 2):
            progress(done, 4, "trials")
            seen.append(job.progress)
        return learnt()

    gate = threading.Event()

    def first(progress: Progress) -> MetricUpdate:
        gate.wait()
        return learnt()

    jobs.start("adapt", first)
    job = jobs.start("adapt", work)
    assert job.progress is None
    gate.set()
    assert ended(job).progress == 1
    assert seen == [0.25, 0.5]
    jobs.stop(1)


def test_what_fails_says_why_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    jobs = JobQueue(FOLDER, ServiceSettings(jobs_waiting=4, jobs_kept=10))

    def refuse(progress: Progress) -> MetricUpdate:
        raise GalleryError("/srv/archives/north holds no chips yet; add some")

    def break_(progress: Progress) -> MetricUpdate:
        raise ZeroDivisionError("secret")

    first, second = ended(jobs.start("adapt", refuse)), ended(jobs.start("adapt", break_))
    assert (first.status, first.message) == ("failed", "north holds no chips yet; add some")
    assert first.error is not None
    assert first.error.status == 409
    assert second.error is not None
    assert (second.error.status, "secret" in second.message) == (500, False)
    assert "secret" in caplog.text
    assert ended(jobs.start("adapt", learnt)).status == "done"
    jobs.stop(1)


def test_waiting_and_kept_jobs_are_bounded() -> None:
    jobs = JobQueue(FOLDER, ServiceSettings(jobs_waiting=2, jobs_kept=5))
    gate = threading.Event()

    def stuck(progress: Progress) -> MetricUpdate:
        gate.wait()
        return learnt()

    line = [jobs.start("adapt", stuck) for _ in range(3)]
    with pytest.raises(Problem) as refused:
        jobs.start("adapt", learnt)
    assert refused.value.status_code == 429
    gate.set()
    for job in line:
        ended(job)
    for _ in range(20):
        ended(jobs.start("calibrate", learnt))
    assert len(jobs._jobs) == 5
    assert jobs.get(line[0].id) is None
    jobs.stop(1)


def test_the_end_drops_what_waits_and_does_not_wait_for_ever() -> None:
    jobs = JobQueue(FOLDER, ServiceSettings(jobs_waiting=2, jobs_kept=5))
    gate, entered = threading.Event(), threading.Event()

    def stuck(progress: Progress) -> MetricUpdate:
        entered.set()
        gate.wait()
        return learnt()

    first, second = jobs.start("adapt", stuck), jobs.start("adapt", learnt)
    entered.wait()
    begin = time.monotonic()
    jobs.stop(0.05)
    assert time.monotonic() - begin < 2
    assert (second.status, second.message) == ("failed", "the service was stopped")
    gate.set()
    assert ended(first).status == "done"
