"""What the API takes and gives, as types; the OpenAPI description is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "AdaptRequest",
    "Added",
    "Chip",
    "Chips",
    "EmbeddingMap",
    "Estimate",
    "Health",
    "Hit",
    "Job",
    "Labelled",
    "LabelsRequest",
    "Metrics",
    "Point",
    "ProblemDetails",
    "SearchAnswer",
    "SearchRequest",
    "Stats",
    "Thresholds",
    "UseRequest",
    "WhereRequest",
]

Id = Annotated[str, Field(min_length=1, max_length=2_000)]
Ids = Annotated[list[Id], Field(max_length=500)]
Label = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]  # its square still fits a float32
Vector = Annotated[list[Number], Field(min_length=1, max_length=16_384)]
Degrees = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Texts = Annotated[list[Label], Field(max_length=200)]
Moment = Annotated[str, Field(max_length=40)]


class _Asked(BaseModel):
    """What a client sends; a key that is not known is refused, or a typing error would go unnoticed."""

    model_config = ConfigDict(extra="forbid")


class WhereRequest(_Asked):
    """Which chips to search; conditions together must all hold."""

    label: Texts | None = None
    labelled: bool | None = None
    background: bool | None = None
    sensor: Texts | None = None
    since: Moment | None = Field(default=None, description="ISO 8601", examples=["2025-03-01"])
    until: Moment | None = Field(
        default=None, description="ISO 8601; a day is meant to its end", examples=["2025-09-30"]
    )
    within: Annotated[list[Degrees], Field(min_length=4, max_length=4)] | None = Field(
        default=None, description="west, south, east, north in degrees", examples=[[3.9, 51.8, 4.6, 52.2]]
    )


class SearchRequest(_Asked):
    """What to find: a chip by its id, an embedding, or an image that is sent with it; exactly one of these."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"chip": "tanker-0003", "k": 20},
                {"chip": "tanker-0003", "false_alarm_rate": 0.001, "where": {"since": "2025-03-01"}},
                {"chip": "tanker-0003", "positive": ["tanker-0004"], "negative": ["tug-0001"], "k": 20},
            ]
        },
    )

    chip: Id | None = None
    embedding: Vector | Annotated[list[Vector], Field(min_length=1, max_length=8)] | None = Field(
        default=None, description="as the network of the gallery gives it; several are views of one object"
    )
    positive: Ids = Field(default_factory=list, description="chips marked right: more examples")
    negative: Ids = Field(default_factory=list, description="chips marked wrong: counter-examples")
    k: Annotated[int, Field(ge=1, le=1_000)] | None = Field(
        default=None, description="how many hits; 50 without a rate"
    )
    false_alarm_rate: Share | None = Field(default=None, description="instead of k: all that this rate accepts")
    where: WhereRequest | None = None
    metric: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="another metric of the gallery than the one in use, or cosine"
    )
    prior: Share | None = Field(default=None, description="the share of the archive that may be of this kind; 0.01")
    turned: bool = Field(
        default=True, description="see an image in its four quarter turns, so that it may lie as it likes"
    )

    @model_validator(mode="after")
    def _one_way(self) -> SearchRequest:
        if self.k is not None and self.false_alarm_rate is not None:
            raise ValueError("give k or false_alarm_rate, not both: one says how many hits, the other how good")
        if self.chip is not None and self.embedding is not None:
            raise ValueError("give a chip, an embedding or an image, one of them")
        return self


class LabelsRequest(_Asked):
    """What chips show."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"labels": {"tanker-0003": "tanker"}, "background": ["background-0007"]}]},
    )

    labels: Annotated[dict[Id, Label | None], Field(max_length=1_000)] = Field(
        default_factory=dict, description="a kind each; null takes a label away"
    )
    background: Ids = Field(default_factory=list, description="chips that show none of the objects")
    marked: bool = Field(True, description="false puts back labels that came with the chips")


class UseRequest(_Asked):
    """Which metric to search by."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = Field(examples=["1-trained"])


class AdaptRequest(_Asked):
    """How to estimate a metric anew on what the gallery holds."""

    clusters: Annotated[int, Field(ge=2, le=10_000)] | None = Field(
        default=None, description="kinds of objects, and one for the background; found by itself if null"
    )
    method: Literal["auto", "cplfpa"] = "auto"
    labels: Literal["marked", "all", "none"] = Field(default="marked", description="whose labels count")


class NothingRequest(_Asked):
    """Nothing to say."""


class ProblemDetails(BaseModel):
    """What is wrong, and what to do about it (RFC 9457)."""

    type: str = Field(examples=["urn:lookdown:unknown"])
    title: str
    status: int
    detail: str


class Health(BaseModel):
    """Whether the service is up."""

    status: Literal["ok"]


class Estimate(BaseModel):
    """A figure, how it was found and how far it may be off."""

    value: float | None
    low: float | None
    high: float | None
    method: Literal["empirical", "analytic", "simulated"]
    supported: bool


class _Described(BaseModel):
    """What is known of a chip."""

    id: str
    label: str | None
    background: bool
    scene: str
    time: str | None
    sensor: str | None
    gsd: float | None
    source: str = Field(description="the name of its file")
    footprint: dict[str, Any] | None = Field(description="a GeoJSON geometry, degrees")
    thumbnail: str = Field(description="where its picture is")


class Chip(_Described):
    """A chip of the gallery."""

    marked: bool = False


class Chips(BaseModel):
    """Some chips, spread over the archive."""

    chips: list[Chip]
    total: int


class Hit(_Described):
    """A chip that was found."""

    score: float | None
    posterior: float | None
    false_alarm_rate: Estimate | None
    merged: int


class Query(BaseModel):
    """What was searched for."""

    told: str
    chip: str | None
    embedding: list[float] | list[list[float]] = Field(description="send it instead of the image to search again")
    thumbnail: str | None = Field(description="a data URL")


class SearchAnswer(BaseModel):
    """Hits, best first, and what they are worth."""

    query: Query
    hits: list[Hit]
    accepted: int = Field(description="hits in all; where they were cut, windows farther down are not merged")
    truncated: bool
    rows_searched: int
    metric: str
    engine: str
    prior: float
    requested_false_alarm_rate: float | None
    threshold: Estimate | None
    expected_false_hits: Estimate | None
    notes: list[str]


class Rate(BaseModel):
    """A false-alarm rate and the score that goes with it."""

    rate: float
    threshold: Estimate
    attained: Estimate = Field(description="the rate at that threshold, which stops at the highest calibrated score")


class Distributions(BaseModel):
    """Densities of the score for pairs of the same kind and of different kinds."""

    scores: list[float]
    same: list[float] | None
    different: list[float]


class Thresholds(BaseModel):
    """What scores of a metric are worth."""

    metric: str
    calibrated: bool
    reason: str | None
    rates: list[Rate]
    distributions: Distributions | None


class MetricName(BaseModel):
    """The metric in use."""

    name: str
    about: str
    calibrated: bool


class Times(BaseModel):
    """From when to when."""

    first: str | None
    last: str | None


class LimitsTold(BaseModel):
    """How much one request may hold."""

    upload_bytes: int
    pixels: int
    hits: int


class Stats(BaseModel):
    """What the gallery holds, and what may be done with it here."""

    name: str
    chips: int
    labels: dict[str, int]
    background: int
    unlabelled: int
    times: Times
    bounds: list[float] | None
    with_place: int
    sensors: list[str]
    metric: MetricName
    can_embed: bool
    access: Literal["read", "learn", "write"]
    limits: LimitsTold
    tile_url: str | None
    lowest_rate: float | None


class Metric(BaseModel):
    """A metric of the gallery."""

    name: str
    about: str
    created: str
    calibrated: bool
    base: str | None


class Metrics(BaseModel):
    """The metrics of the gallery, oldest first."""

    current: str
    metrics: list[Metric]


class Mark(BaseModel):
    """What was known of a chip."""

    label: str | None
    background: bool
    marked: bool  # said by a user, rather than by the source of the chip


class Labelled(BaseModel):
    """What labelling has changed; `before` undoes it."""

    changed: int
    before: dict[str, Mark]


class Added(BaseModel):
    """A chip that was added."""

    id: str


class JobStarted(BaseModel):
    """A job in the line."""

    id: str
    kind: Literal["adapt", "teach", "calibrate"]
    status: Literal["waiting", "running", "done", "failed"]


class Outcome(BaseModel):
    """What came of a job."""

    metric: str | None
    changed: bool
    helped: bool
    reason: str


class Job(JobStarted):
    """A job and what came of it."""

    progress: float | None
    message: str
    result: Outcome | None
    error: ProblemDetails | None


class Point(BaseModel):
    """A chip in the plane of the first two principal components."""

    id: str
    x: float
    y: float
    label: str | None


class EmbeddingMap(BaseModel):
    """Chips in a plane."""

    points: list[Point]
