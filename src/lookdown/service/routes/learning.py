"""Labels, metrics, and the jobs that estimate new metrics; a job does not put its metric into use."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path
from fastapi.responses import JSONResponse, Response

from lookdown.service.answers import metrics
from lookdown.service.problems import PROBLEMS, unknown
from lookdown.service.schemas import (
    AdaptBody,
    EmptyBody,
    Job,
    JobStart,
    LabelsAnswer,
    LabelsBody,
    MetricChoiceBody,
    MetricsAnswer,
)
from lookdown.service.served_gallery import GalleryDependency, needs

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["learning"], responses=PROBLEMS)

_LEARN = [needs("learn")]
Nothing = Annotated[EmptyBody | None, Body()]


@router.put("/labels", response_model=LabelsAnswer, dependencies=_LEARN)
async def label(request: LabelsBody, served: GalleryDependency) -> Response:
    """Label chips; the answer holds the labels from before, to undo the change."""
    ids = [*request.labels, *request.background]

    def work() -> Response:
        served.check_chips(ids)
        if not ids:
            return JSONResponse({"changed": 0, "before": {}})
        before = served.gallery.label(
            [*request.labels], [*request.labels.values()], background=request.background, marked=request.marked
        )
        marks = {name: mark._asdict() for name, mark in before.items()}
        return JSONResponse({"changed": len(ids), "before": marks})

    return await served.change(work)


@router.get("/metrics", response_model=MetricsAnswer)
async def list_metrics(served: GalleryDependency) -> Response:
    """Return the metrics of the gallery, and which is in use."""
    return await served.reading.run(lambda: JSONResponse(metrics(served.gallery)))


@router.put("/metrics/current", response_model=MetricsAnswer, dependencies=_LEARN)
async def use(request: MetricChoiceBody, served: GalleryDependency) -> Response:
    """Put another metric into use."""

    def work() -> Response:
        served.check_metric(request.name, stored=True)
        served.gallery.use(request.name)
        return JSONResponse(metrics(served.gallery))

    return await served.change(work)


@router.delete("/metrics/{name}", status_code=204, response_class=Response, dependencies=_LEARN)
async def forget(name: Annotated[str, Path(max_length=100)], served: GalleryDependency) -> Response:
    """Drop a metric, except the one in use and the first."""

    def work() -> None:
        served.check_metric(name, stored=True)
        served.gallery.forget(name)

    await served.change(work)
    return Response(status_code=204)


@router.post("/adapt", status_code=202, response_model=JobStart, dependencies=_LEARN)
async def adapt(served: GalleryDependency, request: Annotated[AdaptBody | None, Body()] = None) -> Job:
    """Estimate a new metric from the chips of the gallery."""
    request = request or AdaptBody()
    options: dict[str, Any] = request.model_dump() | {"clusters": request.clusters or "auto"}
    return served.start("adapt", lambda progress: served.gallery.adapt(**options, use=False, progress=progress))


@router.post("/teach", status_code=202, response_model=JobStart, dependencies=_LEARN)
async def teach(served: GalleryDependency, request: Nothing = None) -> Job:
    """Estimate a new metric with all labels that users have given."""
    return served.start("teach", lambda progress: served.gallery.teach([], [], use=False, progress=progress))


@router.post("/calibrate", status_code=202, response_model=JobStart, dependencies=_LEARN)
async def calibrate(served: GalleryDependency, request: Nothing = None) -> Job:
    """Measure the false-alarm rates of the metric in use, on labelled chips."""
    metric = served.gallery.metric  # the one in use now, even if another is in use when the job runs
    return served.start("calibrate", lambda _: served.gallery.calibrate(metric=metric, use=False))


@router.get("/jobs/{id}", response_model=Job)
async def read_job(id: Annotated[str, Path(max_length=100)], served: GalleryDependency) -> Job:
    """Return the progress of a job, and its result."""
    if (job := served.jobs.get(id)) is None:
        raise unknown("job", id)
    return job
