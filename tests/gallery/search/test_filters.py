"""Filters: each keeps the rows that a plain loop over plain values keeps, and says what it cannot use."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import shapely
import shapely.affinity

from lookdown.errors import InputError
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import CategoricalColumn, FilterColumns

TEXTS = [
    "tanker", "Tanker", "tanker ", "it's", "' OR 1=1 --", '"', "%", "_", "*", "a\nb", "", "None", "🚢", "é", "e\u0301",
    "\\", "label = 'tug'", "\x00",
]  # fmt: skip
ZONES = [UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-11, minutes=-30))]
NEW_YEAR = datetime(2021, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Chip:
    label: str | None = None
    scene: str = "s"
    sensor: str | None = None
    background: bool = False
    time: datetime | None = None
    time_text: str | None = None
    footprint: str | None = None

    @cached_property
    def shape(self) -> Any:
        return shapely.from_wkt(self.footprint, on_invalid="ignore")


def columns_of(chips: Sequence[Chip]) -> FilterColumns:
    shapes = shapely.from_wkt(np.array([chip.footprint for chip in chips], dtype=object), on_invalid="ignore")
    return FilterColumns(
        labels=CategoricalColumn.from_texts([chip.label for chip in chips]),
        scenes=CategoricalColumn.from_texts([chip.scene for chip in chips]),
        sensors=CategoricalColumn.from_texts([chip.sensor for chip in chips]),
        timestamps=CategoricalColumn.from_texts([chip.time_text for chip in chips]),
        background=np.array([chip.background for chip in chips], dtype=np.bool_),
        bounds=shapely.bounds(shapes).reshape(-1, 4),
        footprints=lambda rows: [chips[row].footprint for row in rows],
    )


def kept(chips: Sequence[Chip], **conditions: Any) -> list[int]:
    return np.flatnonzero(Where(**conditions).rows(columns_of(chips))).tolist()


def timed(*texts: str | None) -> list[Chip]:
    return [Chip(time_text=text) for text in texts]


def labelled(*labels: str | None) -> list[Chip]:
    return [Chip(label=label) for label in labels]


# The oracle: one chip, one condition and one plain Python value at a time.


def plain(field: str, value: Any) -> Callable[[Chip], bool]:
    if field in ("label", "scene", "sensor"):
        wanted = [value] if isinstance(value, str) else [*value]
        return lambda chip: any(getattr(chip, field) == text for text in wanted)
    if field in ("box", "polygon"):
        region = plain_region(value)
        return lambda chip: chip.shape is not None and any(chip.shape.intersects(copy) for copy in region)
    start = plain_start(value) if field == "since" else NEW_YEAR
    conditions: dict[str, Callable[[Chip], bool]] = {
        "labelled": lambda chip: (chip.label is not None) == value,
        "background": lambda chip: chip.background == value,
        "since": lambda chip: chip.time is not None and chip.time >= start,
        "until": lambda chip: chip.time is not None and comes_by(chip.time, value),
    }
    return conditions[field]


def plain_start(moment: str | date) -> datetime:
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def comes_by(time: datetime, moment: str | date) -> bool:
    whole_day = len(moment) == 10 if isinstance(moment, str) else not isinstance(moment, datetime)
    start = plain_start(moment)
    return time < start + timedelta(days=1) if whole_day else time <= start


def plain_region(place: Any) -> list[Any]:
    if isinstance(place, str):
        place = shapely.from_wkt(place)
    elif not isinstance(place, shapely.Geometry):
        west, south, east, north = place
        place = shapely.box(west, south, east + 360 if west > east else east, north)
    return [shapely.affinity.translate(place, turn) for turn in (-360, 0, 360)]


def random_time(dice: random.Random) -> datetime:
    moment = NEW_YEAR + timedelta(days=dice.randrange(40))
    if dice.random() < 0.5:  # else midnight, where days begin and end
        moment += timedelta(microseconds=dice.choice([-1, 1, dice.randrange(86_400_000_000)]))
    return moment.astimezone(dice.choice(ZONES))


def random_shape(dice: random.Random, size: float) -> Any:
    longitude, latitude = dice.choice([0, 10, 175, 180, -180, -175, 185]) + dice.randint(-8, 8), dice.randint(-12, 12)
    if dice.random() < 0.4:
        return shapely.box(longitude, latitude, longitude + dice.randint(1, 6) * size, latitude + size)
    corners = shapely.MultiPoint([(longitude + dice.gauss(0, size), latitude + dice.gauss(0, size)) for _ in range(6)])
    return corners.convex_hull


def random_chip(dice: random.Random) -> Chip:
    time = random_time(dice) if dice.random() < 0.8 else None
    text = time.isoformat(sep=dice.choice("T ")) if time else dice.choice([None, "", "yesterday"])
    unreadable = dice.choice([None, "", "POLYGON EMPTY", "POLYGON ((0 0, 1 1"])
    return Chip(
        label=dice.choice([*TEXTS, None, None]),
        scene=dice.choice(TEXTS),
        sensor=dice.choice([*TEXTS[:6], None]),
        background=dice.random() < 0.4,
        time=time,
        time_text=text,
        footprint=random_shape(dice, size=1.0).wkt if dice.random() < 0.8 else unreadable,
    )


def random_texts(dice: random.Random) -> Collection[str]:
    several = dice.choices([*TEXTS, "nowhere"], k=dice.choice([0, 2, 4, 9]))
    return dice.choice([dice.choice(TEXTS), several, tuple(several), set(several)])


def random_moment(dice: random.Random) -> str | date:
    time = random_time(dice)
    naive = time.astimezone(UTC).replace(tzinfo=None)
    forms: list[str | date] = [time, naive, naive.date(), time.isoformat(), naive.isoformat(), f"{naive:%Y-%m-%d}"]
    return dice.choice(forms)


def random_place(dice: random.Random) -> Any:
    shape = random_shape(dice, size=dice.choice([1.0, 8.0]))
    while dice.random() < 0.4:
        with_hole = shape.difference(random_shape(dice, size=1.0))
        shape = with_hole if with_hole.geom_type in ("Polygon", "MultiPolygon") and not with_hole.is_empty else shape
    west, south, east, north = shape.bounds
    as_written = [edge - 360 if edge > 180 else edge for edge in (west, east)]
    box = (as_written[0], south, as_written[1], north)
    return dice.choice([shape, shape.wkt, box, [west, south, east, north]])


def random_conditions(dice: random.Random) -> dict[str, Any]:
    makers = {
        "label": random_texts,
        "scene": random_texts,
        "sensor": random_texts,
        "labelled": lambda dice: dice.random() < 0.5,
        "background": lambda dice: dice.random() < 0.5,
        "since": random_moment,
        "until": random_moment,
        "within": random_place,
    }
    chosen = dice.sample([*makers], k=dice.choice([0, 1, 1, 2, 2, 3, 4]))
    conditions = {field: makers[field](dice) for field in chosen}
    if "within" in conditions:
        place = conditions.pop("within")
        conditions["polygon" if isinstance(place, shapely.Geometry) or "POLYGON" in str(place) else "box"] = place
    return conditions


def test_ten_thousand_filters_keep_what_a_plain_loop_keeps() -> None:
    dice = random.Random(0)
    chips = [random_chip(dice) for _ in range(300)]
    columns = columns_of(chips)
    some = refused = 0
    for _ in range(10_000):
        conditions = random_conditions(dice)
        since, until = conditions.get("since"), conditions.get("until")
        if since is not None and until is not None and not comes_by(plain_start(since), until):
            with pytest.raises(InputError, match=r"`since` .* is after `until`"):
                Where(**conditions)
            refused += 1
            continue
        tests = [plain(field, value) for field, value in conditions.items()]
        expected = [all(test(chip) for test in tests) for chip in chips]
        found = Where(**conditions).rows(columns)
        assert found.tolist() == expected, conditions
        some += any(expected) and not all(expected)
    assert some > 5_000
    assert refused > 50


def test_conditions_together_keep_what_each_alone_keeps() -> None:
    dice = random.Random(1)
    columns = columns_of([random_chip(dice) for _ in range(200)])
    for _ in range(300):
        conditions = random_conditions(dice)
        try:
            where = Where(**conditions)
        except InputError:
            continue
        alone = [Where(**{field: value}).rows(columns) for field, value in conditions.items()]
        np.testing.assert_array_equal(where.rows(columns), np.all([np.ones(200, np.bool_), *alone], axis=0))
        assert where.everything == (not conditions)
        assert replace(where) == where
        assert hash(replace(where)) == hash(where)
        assert pickle.loads(pickle.dumps(where)) == where


def test_a_gallery_without_rows_and_one_without_anything_known() -> None:
    conditions: list[dict[str, Any]] = [
        {"label": "a"}, {"labelled": True}, {"scene": []}, {"sensor": "x"}, {"since": "2021"}, {"until": "2021"},
        {"box": (-180, -90, 180, 90)}, {"polygon": "POLYGON ((-180 -90, 180 -90, 180 90, -180 90, -180 -90))"},
        {"background": True},
    ]  # fmt: skip
    for condition in conditions:
        assert kept([], **condition) == []
        assert kept([Chip(), Chip()], **condition) == []
    assert kept([Chip(), Chip()]) == [0, 1]


def test_texts_are_compared_as_they_are() -> None:
    chips = labelled(*TEXTS, None)
    for row, text in enumerate(TEXTS):
        assert kept(chips, label=text) == [row]
        assert kept(chips, label=[text, "nowhere"]) == [row]
    assert kept(chips, label=TEXTS) == [*range(len(TEXTS))]
    assert kept(chips, label=[]) == kept(chips, label=set()) == []


def test_an_empty_label_is_a_label() -> None:
    chips = labelled("", None, "tug")
    assert kept(chips, labelled=True) == [0, 2]
    assert kept(chips, labelled=False) == [1]
    assert kept(chips, labelled=False, label="tug") == []


def test_both_ends_of_a_time_are_included_and_a_day_to_its_end() -> None:
    chips = timed(
        "2020-12-31T23:59:59.999999Z", "2021-01-01", "2021-12-31T00:00:00Z", "2021-12-31T23:59:59.999999",
        "2022-01-01T00:00Z", "2022-01-01T01:00+02:00", None, "some day",
    )  # fmt: skip
    assert kept(chips, since="2021-01-01", until="2021-12-31") == [1, 2, 3, 5]
    assert kept(chips, since=date(2021, 1, 1), until=date(2021, 12, 31)) == [1, 2, 3, 5]
    assert kept(chips, since="2021", until="2021") == [1, 2, 3, 5]
    assert kept(chips, until="2021-12-31T00:00Z") == [0, 1, 2]
    assert kept(chips, until=datetime(2021, 12, 31)) == [0, 1, 2]
    assert kept(chips, since="2022-01-01T02:00+02:00") == [4]
    assert kept(chips, since="2022-01-01T00:00", until="2022-01-01T00:00") == [4]
    assert kept(chips, since="0001-01-01", until=date.max) == [0, 1, 2, 3, 4, 5]


def test_the_same_filter_is_equal_however_it_is_given() -> None:
    zone = timezone(timedelta(hours=2))
    assert Where(label="a", since="2021-01-01") == Where(label=["a"], since=date(2021, 1, 1))
    assert Where(label=["a", "a", "b"]).label == Where(label=("a", "b")).label == ("a", "b")
    assert Where(label={"c", "b", "a"}).label == ("a", "b", "c")
    assert Where(until="2021-12-31T10:00Z") == Where(until=datetime(2021, 12, 31, 12, tzinfo=zone))
    assert Where(box=[4, 51, 5, 52]) == Where(box="4,51,5,52")
    square = shapely.box(4, 51, 5, 52)
    assert Where(polygon=square) == Where(polygon=square.wkt)
    assert Where(label="a") != Where(scene="a") != Where(label="b")
    same = {Where(label=["a"], polygon=square): 1, Where(label="a", polygon=square.wkt): 2, Where(): 3}
    assert [*same.values()] == [2, 3]


def test_a_filter_does_not_change() -> None:
    labels = ["a"]
    where = Where(label=labels)
    labels.append("b")
    assert where.label == ("a",)
    with pytest.raises(FrozenInstanceError):
        where.label = "b"  # type: ignore[misc]
    assert replace(where, background=False) == Where(label="a", background=False)


def test_only_no_condition_is_everything() -> None:
    assert Where().everything
    values: dict[str, Any] = {
        "label": [], "scene": "", "sensor": "a", "labelled": False, "background": False, "since": "2021",
        "until": "2021", "box": (0, 0, 0, 0), "polygon": "POLYGON ((4 51, 5 51, 5 52, 4 51))",
    }  # fmt: skip
    assert {field.name for field in fields(Where)} == set(values)
    assert not any(Where(**{field: value}).everything for field, value in values.items())


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({}, "every chip"),
        (
            {"label": ["tanker", "it's"], "since": "2021-01-01", "until": "2021-12-31", "box": (4.5, 51, 5, 52)},
            "label tanker or 'it''s', from 2021-01-01 until 2021-12-31, within the box from 4.5 51 to 5 52",
        ),
        ({"label": "or", "labelled": True, "background": False}, "label 'or', with a label, no background"),
        ({"labelled": False, "background": True}, "without a label, background only"),
        ({"scene": [], "sensor": ["", "two words"]}, "scene out of none, sensor '' or 'two words'"),
        ({"label": [*"abcdefg"]}, "label a or b or c or d or e or 2 more"),
        ({"label": "a\n\x1b[2J\ud800"}, r"label 'a\n\x1b[2J\ud800'"),
        ({"since": "2021-07-04T12:30+02:00"}, "from 2021-07-04T10:30:00Z"),
        ({"until": "2021-07-04T00:00"}, "until 2021-07-04T00:00:00Z"),
        ({"until": "2021"}, "until 2021-12-31"),
        ({"polygon": "POLYGON ((4 51, 5 51, 5 52, 4 51))"}, "within a polygon from 4 51 to 5 52"),
    ],
)
def test_a_filter_in_words(conditions: dict[str, Any], words: str) -> None:
    assert Where(**conditions).describe() == words


@pytest.mark.parametrize("field", ["label", "scene", "sensor"])
@pytest.mark.parametrize("value", [5, b"tug", True, {"tug": 1}, iter(["tug"]), ["tug", None], [["tug"]], [5]])
def test_what_is_no_text_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^`{field}` must be text or a list of texts"):
        Where(**{field: value})


@pytest.mark.parametrize("field", ["labelled", "background"])
@pytest.mark.parametrize("value", [0, 1, "true", [], np.bool_(True)])
def test_what_is_neither_true_nor_false_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^`{field}` must be True, False or None, got "):
        Where(**{field: value})


@pytest.mark.parametrize("field", ["since", "until"])
@pytest.mark.parametrize("value", [5, "last week", "2021-13-01", "", np.datetime64("NaT"), ["2021"]])
def test_what_is_no_time_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field} .*ISO 8601"):
        Where(**{field: value})


@pytest.mark.parametrize("field", ["box", "polygon"])
@pytest.mark.parametrize("value", [(0, 1, 2), (0, 5, 1, 4), "POLYGON ((0 0", "here", shapely.Point(0, 0), 7, {}])
def test_what_is_no_region_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^`{field}` "):
        Where(**{field: value})


def test_a_box_and_a_polygon_must_both_be_met() -> None:
    chips = [Chip(footprint=shapely.box(x, 51, x + 0.1, 51.1).wkt) for x in (4.0, 4.5, 5.0)]
    polygon = "POLYGON ((4.4 50, 6 50, 6 53, 4.4 53, 4.4 50))"
    assert kept(chips, box=(3, 50, 4.7, 52)) == [0, 1]
    assert kept(chips, polygon=polygon) == [1, 2]
    assert kept(chips, box=(3, 50, 4.7, 52), polygon=polygon) == [1]


def test_times_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(InputError, match=r"^`since` 2022-01-01 is after `until` 2021-12-31; exchange them"):
        Where(since="2022-01-01", until="2021-12-31")
    assert Where(since="2021-12-31T23:00", until="2021-12-31").everything is False


def test_a_field_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(TypeError, match="labels"):
        Where(labels="tug")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Where("tug")  # type: ignore[call-arg]
