"""Requests and answers of the API as types: a body is what a client sends. The OpenAPI description is made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

Id = Annotated[str, Field(min_length=1, max_length=2_000)]
Ids = Annotated[list[Id], Field(max_length=500)]
Label = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]  # its square still fits a float32
Vector = Annotated[list[Number], Field(min_length=1, max_length=16_384)]
Degrees = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Views = Annotated[list[Vector], Field(min_length=1, max_length=8)]
Texts = Annotated[list[Label], Field(max_length=200)]
Moment = Annotated[str, Field(max_length=40)]


def _form(example: Any) -> str:
    if isinstance(example, str):
        return "id"
    return "views" if isinstance(example, list) and example and isinstance(example[0], list) else "embedding"


ExampleList = Annotated[
    list[
        Annotated[
            Annotated[Id, Tag("id")] | Annotated[Vector, Tag("embedding")] | Annotated[Views, Tag("views")],
            Discriminator(_form),
        ]
    ],
    Field(max_length=500),
]


class _Body(BaseModel):
    """What a client sends; an unknown key is refused, so that a typing error does not go unnoticed."""

    model_config = ConfigDict(extra="forbid")


class WhereBody(_Body):
    """Which chips to search; all conditions must hold."""

    label: Texts | None = None
    labelled: bool | None = None
    background: bool | None = None
    scene: Texts | None = None
    sensor: Texts | None = None
    since: Moment | None = Field(default=None, description="ISO 8601", examples=["2025-03-01"])
    until: Moment | None = Field(
        default=None, description="ISO 8601; a day is included to its end", examples=["2025-09-30"]
    )
    box: Annotated[list[Degrees], Field(min_length=4, max_length=4)] | None = Field(
        default=None, description="west, south, east, north in degrees", examples=[[3.9, 51.8, 4.6, 52.2]]
    )
    polygon: Annotated[str, Field(max_length=20_000)] | None = Field(
        default=None, description="WKT in degrees", examples=["POLYGON ((4 51, 5 51, 5 52, 4 51))"]
    )


class SearchBody(_Body):
    """What to find: the fields of `SearchRequest` in Python. An image in the form is one more example, the first."""

    model_config = ConfigDict(json_schema_extra={"examples": [
        {"examples": ["tanker-0003"], "k": 20},
        {"examples": ["tanker-0003"], "false_alarm_rate": 0.001, "where": {"since": "2025-03-01"}},
        {"examples": ["tanker-0003", "tanker-0004"], "counter_examples": ["tug-0001"], "k": 20},
        {"kind": "tanker", "k": 20},
    ]})  # fmt: skip

    examples: ExampleList = Field(
        default_factory=list, description="ids of chips, embeddings, or lists of embeddings of one object"
    )
    kind: Label | None = Field(
        default=None, description="instead of examples: a kind that the metric knows by name", examples=["tanker"]
    )
    counter_examples: ExampleList = Field(default_factory=list, description="what the hits should not be like")
    k: Annotated[int, Field(ge=1, le=1_000)] | None = Field(
        default=None, description="how many hits; 50 if there is no rate"
    )
    false_alarm_rate: Share | None = Field(default=None, description="instead of k: all that this rate accepts")
    where: WhereBody | None = None
    metric: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="another metric of the gallery than the one in use, or cosine"
    )
    prior: Share = Field(default=0.01, description="the share of the archive assumed to be of this kind")
    turned: bool = Field(default=False, description="embed an image in four quarter turns: its heading does not matter")
    overlap: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        default=0.2, description="windows of a scene that share more than this are one hit; 1 keeps every window"
    )
    expand: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="how many of the best hits join the examples for a second search"
    )
    rerank: bool = Field(default=False, description="order the hits by k-reciprocal neighbours")

    @model_validator(mode="after")
    def _k_or_rate(self) -> SearchBody:
        if self.k is not None and self.false_alarm_rate is not None:
            raise ValueError("give k or false_alarm_rate, not both: one says how many hits, the other how good")
        return self


class LabelsBody(_Body):
    """Labels of chips."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"labels": {"tanker-0003": "tanker"}, "background": ["background-0007"]}]}
    )

    labels: Annotated[dict[Id, Label | None], Field(max_length=1_000)] = Field(
        default_factory=dict, description="a kind each; null takes a label away"
    )
    background: Ids = Field(default_factory=list, description="chips that show none of the objects")
    marked: bool = Field(True, description="false puts back labels that came with the chips")


class MetricChoiceBody(_Body):
    """The metric to search by."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = Field(examples=["1-trained"])


class AdaptBody(_Body):
    """How to adapt the metric to the gallery."""

    clusters: Annotated[int, Field(ge=2, le=10_000)] | None = Field(
        default=None, description="kinds of objects, and one for the background; chosen automatically if null"
    )
    method: Literal["auto", "cplfpa"] = "auto"
    labels: Literal["marked", "all", "none"] = Field(default="marked", description="which labels are used")


class ChipBody(_Body):
    """The fields of a form beside the image of a new chip."""

    label: Label | None = None
    scene: Label | None = None
    time: Moment | None = None


class EmptyBody(_Body):
    """A body without fields."""


class ProblemDetails(BaseModel):
    """What is wrong, and what to do about it (RFC 9457)."""

    type: str = Field(examples=["urn:lookdown:unknown"])
    title: str
    status: int
    detail: str


class HealthAnswer(BaseModel):
    """Whether the service is up."""

    status: Literal["ok"]


class EstimateAnswer(BaseModel):
    """A figure, its interval, and how it was estimated."""

    value: float | None
    low: float | None
    high: float | None
    method: Literal["empirical", "analytic", "simulated"]
    supported: bool


class _ChipFields(BaseModel):
    """Fields of a chip."""

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


class ChipAnswer(_ChipFields):
    """A chip of the gallery."""

    marked: bool = False


class ChipsAnswer(BaseModel):
    """A sample of chips from all over the archive."""

    chips: list[ChipAnswer]
    total: int


class HitAnswer(_ChipFields):
    """A chip that a search returns: the fields of `Hit` in Python."""

    rank: int = Field(description="from 1")
    score: float | None
    posterior: float | None
    false_alarm_rate: EstimateAnswer | None
    kind: str | None = Field(
        description="the likeliest of the kinds that the metric knows; null for none of these, or if it knows no kinds"
    )
    kind_probability: float | None = Field(
        description="of that kind, or of none of these; null if the metric knows no kinds"
    )
    polygon: str | None = Field(description="WKT in pixels of the scene; null for a whole image")
    merged: int = Field(description="how many other windows of the scene show the same object")


class FirstExampleAnswer(BaseModel):
    """The first example: the image, if one was sent."""

    chip: str | None
    embedding: list[float] | list[list[float]] = Field(description="send it instead of the image to search again")
    thumbnail: str | None = Field(description="a data URL")


class SearchAnswer(BaseModel):
    """Hits, best first, and what they are worth: the fields of `Results` in Python."""

    query: str = Field(description="what was searched for, in words")
    example: FirstExampleAnswer | None = Field(description="null for a kind")
    hits: list[HitAnswer]
    accepted: int = Field(description="hits in all; where they were cut, windows farther down are not merged")
    truncated: bool
    rows_searched: int
    metric: str
    engine: str
    prior: float
    requested_false_alarm_rate: float | None
    threshold: EstimateAnswer | None
    expected_false_hits: EstimateAnswer | None
    notes: list[str]


class RateAnswer(BaseModel):
    """A false-alarm rate and the score that goes with it."""

    rate: float
    threshold: EstimateAnswer
    attained: EstimateAnswer = Field(
        description="the rate at that threshold, which stops at the highest calibrated score"
    )


class DistributionsAnswer(BaseModel):
    """Densities of the score for pairs of the same kind and of different kinds."""

    scores: list[float]
    same: list[float] | None
    different: list[float]


class ThresholdsAnswer(BaseModel):
    """What scores of a metric are worth."""

    metric: str
    calibrated: bool
    reason: str | None
    rates: list[RateAnswer]
    distributions: DistributionsAnswer | None


class CurrentMetricAnswer(BaseModel):
    """The metric in use."""

    name: str
    about: str
    calibrated: bool


class TimesAnswer(BaseModel):
    """The first and the last time."""

    first: str | None
    last: str | None


class LimitsAnswer(BaseModel):
    """Limits of one request."""

    upload_bytes: int
    pixels: int
    hits: int


class StatsAnswer(BaseModel):
    """The content of the gallery, and what this service allows."""

    name: str
    chips: int
    labels: dict[str, int]
    background: int
    unlabelled: int
    times: TimesAnswer
    bounds: list[float] | None
    with_place: int
    sensors: list[str]
    metric: CurrentMetricAnswer
    can_embed: bool
    access: Literal["read", "learn", "write"]
    limits: LimitsAnswer
    tile_url: str | None
    lowest_rate: float | None


class MetricAnswer(BaseModel):
    """A metric of the gallery."""

    name: str
    about: str
    created: str
    calibrated: bool
    base: str | None


class MetricsAnswer(BaseModel):
    """The metrics of the gallery, oldest first."""

    current: str
    metrics: list[MetricAnswer]


class MarkAnswer(BaseModel):
    """The mark of a chip."""

    label: str | None
    background: bool
    marked: bool  # by a user, rather than by the source of the chip


class LabelsAnswer(BaseModel):
    """How many chips were labelled, and their marks before, which undo it."""

    changed: int
    before: dict[str, MarkAnswer]


class NewChipAnswer(BaseModel):
    """A chip that was added."""

    id: str


class JobStart(BaseModel):
    """A job in the queue."""

    id: str
    kind: Literal["adapt", "teach", "calibrate"]
    status: Literal["waiting", "running", "done", "failed"]


class Outcome(BaseModel):
    """The outcome of a job."""

    metric: str | None
    changed: bool
    helped: bool
    reason: str


class Job(JobStart):
    """A job and its outcome."""

    progress: float | None
    message: str
    result: Outcome | None
    error: ProblemDetails | None


class PointAnswer(BaseModel):
    """A chip in the plane of the first two principal components."""

    id: str
    x: float
    y: float
    label: str | None


class EmbeddingMapAnswer(BaseModel):
    """Chips in a plane."""

    points: list[PointAnswer]


def form_with_image(**fields: dict[str, Any]) -> dict[str, Any]:
    """Describe a form with an image and further fields, for OpenAPI."""
    image = {"type": "string", "format": "binary", "description": "JPEG, PNG, TIFF or WebP"}
    schema = {"type": "object", "required": ["image"], "properties": {"image": image, **fields}}
    return {"multipart/form-data": {"schema": schema}}
