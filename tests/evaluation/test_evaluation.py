"""Means, intervals, differences, classes, text and JSON of one evaluation."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lookdown.errors import InputError
from lookdown.evaluation import Evaluation, QueryScores

LABELS = ("ship", "ship", None, "jet", "ship", "tank")
RELEVANT = np.array([7, 7, 0, 2, 7, 0])


def evaluation(shift: float = 0.0, **changes: Any) -> Evaluation:
    """Six queries in two scenes, two of them without anything to find."""
    base = np.where(RELEVANT > 0, [0.1, 0.4, 0, 0.9, 0.25, 0], np.nan)
    scores = QueryScores(
        labels=LABELS,
        groups=(1, 2, 2, 2, 1, 3),
        ids=None,
        relevant=RELEVANT,
        average_precision=base + shift,
        recall=base / 2,
        precision=base / 4,
        hit_rate=np.where(RELEVANT > 0, 1.0, np.nan),
    )
    settings = {"queries": scores, "k": 50, "gallery_size": 1234, "background_count": 300} | changes
    return Evaluation(**settings)  # type: ignore[arg-type]


def many(seed: int, gain: float = 0.0) -> Evaluation:
    """Scenes that are hard or easy for everyone, and a metric that is better by `gain` on each query."""
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(30), 8)
    hard = rng.uniform(0.2, 0.7, size=30)[groups]
    base = np.clip(hard + gain + np.random.default_rng(seed).normal(scale=0.02, size=240), 0, 1)
    scores = QueryScores(
        labels=tuple("abcd"[i % 4] for i in range(240)),
        groups=tuple(groups.tolist()),
        ids=None,
        relevant=np.full(240, 5),
        average_precision=base,
        recall=base,
        precision=base / 10,
        hit_rate=np.ones(240),
    )
    return Evaluation(queries=scores, k=50, gallery_size=1000, background_count=0)


def test_means_are_over_the_queries_that_have_something_to_find() -> None:
    found = evaluation()
    assert found.mean_average_precision == pytest.approx((0.1 + 0.4 + 0.9 + 0.25) / 4)
    assert found.class_mean_average_precision == pytest.approx(((0.1 + 0.4 + 0.25) / 3 + 0.9) / 2)
    assert found.recall == pytest.approx(found.mean_average_precision / 2)
    assert found.precision == pytest.approx(found.mean_average_precision / 4)
    assert found.hit_rate == 1
    assert (found.left_out, found.unlabelled) == (2, 1)


def test_classes_have_rows_even_if_all_of_their_queries_were_left_out() -> None:
    jet, ship, tank = evaluation().per_class()
    assert [row.label for row in (jet, ship, tank)] == ["jet", "ship", "tank"]
    assert [(row.queries, row.left_out, row.groups, row.relevant) for row in (jet, ship, tank)] == [
        (1, 0, 1, 2.0),
        (3, 0, 2, 7.0),
        (0, 1, 0, 0.0),
    ]
    assert ship.mean_average_precision == pytest.approx(0.25)
    assert ship.mean_average_precision.low == pytest.approx((0.1 + 0.25) / 2)  # both draws were the first scene
    assert ship.mean_average_precision.high == pytest.approx(0.4)
    assert not ship.mean_average_precision.supported
    assert jet.recall == 0.45
    assert math.isnan(jet.recall.low)  # one scene
    assert math.isnan(tank.precision)


def test_intervals_belong_to_the_means_and_narrow_with_the_level() -> None:
    found = many(0)
    for measure in ("mean_average_precision", "class_mean_average_precision", "recall", "precision", "hit_rate"):
        wide, narrow = found.interval(measure), found.interval(measure, level=0.5)
        assert float(wide) == getattr(found, measure)
        assert wide.low <= narrow.low <= wide <= narrow.high <= wide.high
        assert wide.supported
    assert found.interval().high - found.interval().low > 0.05
    assert found.interval(seed=1).low != found.interval(seed=2).low
    assert found.interval(seed=1).low == found.interval(seed=1).low
    with pytest.raises(InputError, match=r"there is no measure 'map'; known are mean_average_precision, "):
        found.interval("map")  # type: ignore[arg-type]


def test_a_paired_difference_sees_what_the_two_intervals_hide() -> None:
    better, worse = many(1, gain=0.01), many(2)
    assert better.interval().low < worse.interval().high  # the two overlap widely
    gain = better.difference(worse)
    assert gain == pytest.approx(better.mean_average_precision - worse.mean_average_precision)
    assert 0 < gain.low < gain < gain.high < 0.02
    loss = worse.difference(better)
    assert (float(loss), loss.low, loss.high) == pytest.approx((-gain, -gain.high, -gain.low))
    none = many(3).difference(many(4), "class_mean_average_precision")
    assert none.low < 0 < none.high
    same = better.difference(better, "recall")
    assert same.low == same == same.high == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 10}, "differ in their k"),
        ({"gallery_size": 1235}, "differ in their gallery_size"),
        ({"background_count": 0}, "differ in their background_count"),
        ({"queries": replace(evaluation().queries, groups=None)}, "differ in their groups"),
        ({"queries": replace(evaluation().queries, ids=tuple(range(6)))}, "differ in their ids"),
        ({"queries": replace(evaluation().queries, relevant=RELEVANT * 2)}, "differ in their numbers of relevant"),
    ],
)
def test_other_queries_are_not_compared(change: dict[str, Any], message: str) -> None:
    assert evaluation(**change) != evaluation()
    with pytest.raises(InputError, match=message):
        evaluation().difference(evaluation(**change))


def test_only_evaluations_are_compared() -> None:
    with pytest.raises(InputError, match="other must be an Evaluation, got float"):
        evaluation().difference(0.5)  # type: ignore[arg-type]


def test_json_brings_everything_back() -> None:
    found = evaluation(shift=1 / 30)
    text = found.to_json()
    assert "NaN" not in text
    assert Evaluation.from_json(text) == found
    assert Evaluation.from_json(text) != evaluation()
    assert Evaluation.from_json(many(0).to_json()).interval() == many(0).interval()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content | {"version": 2},
        lambda content: content | {"format": "coco"},
        lambda content: content | {"surplus": 1},
        lambda content: content | {"k": "50"},
        lambda content: content | {"gallery_size": None},
        lambda content: content | {"background_count": 1234},
        lambda content: {name: value for name, value in content.items() if name != "queries"},
        lambda content: content | {"queries": content["queries"] | {"recall": None}},
        lambda content: content | {"queries": content["queries"] | {"recall": [5] * 6}},
        lambda content: content | {"queries": {"labels": []}},
        lambda content: content | {"queries": []},
        lambda content: [content],
        lambda content: None,
    ],
)
def test_text_that_is_no_evaluation_is_refused(damage: Any) -> None:
    text = json.dumps(damage(json.loads(evaluation().to_json())))
    with pytest.raises(InputError, match="the text is not a stored evaluation"):
        Evaluation.from_json(text)
    with pytest.raises(InputError, match="the text is not a stored evaluation"):
        Evaluation.from_json(text[:-4])


def test_the_table_has_a_row_a_class_in_aligned_columns() -> None:
    lines = evaluation().table().splitlines()
    assert len({len(line) for line in lines[:-1]}) == 1
    assert lines[0].split() == ["class", "queries", "relevant", "mAP", "R@50", "P@50", "hit@1"]
    assert lines[2].split() == ["ship", "3", "7.0", "0.2500", "0.1250", "0.0625", "1.0000"]
    assert lines[3].split() == ["tank", "0", "0.0", "-", "-", "-", "-"]
    assert lines[4].split()[-4:] == ["0.5750", "0.2875", "0.1437", "1.0000"]
    assert lines[5].split()[-5:] == ["4", "0.4125", "0.2062", "0.1031", "1.0000"]
    assert lines[-1] == "4 queries of 2 classes in 2 groups, 2 left out; gallery of 1,234 of which 300 background"


def test_the_repr_says_it_in_a_line() -> None:
    assert repr(evaluation()) == (
        "Evaluation(mAP 0.4125, R@50 0.2062, P@50 0.1031, hit@1 1.0000; "
        "4 queries of 2 classes in 2 groups, 2 left out; gallery of 1,234 of which 300 background)"
    )
    assert "in" not in repr(evaluation(queries=replace(evaluation().queries, groups=None))).split()
