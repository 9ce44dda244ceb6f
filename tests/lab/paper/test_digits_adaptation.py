"""The digits tell the story of adaptation: a source metric that collapses, and clusters that bring it back."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from lookdown.lab.paper.digits_adaptation import run

DIGITS = load_digits().target


def test_unseen_classes_collapse_under_the_source_metric_and_come_back() -> None:
    found = run(DIGITS < 5, DIGITS >= 5)
    assert found["source ratio"] < found["cosine"] - 10
    assert found["CPLFPA, K = classes"] > found["cosine"] + 8
    assert found["auto"] > found["auto of differences"] > found["cosine"] + 4
    assert found["CPLFPA, K = classes - 1"] < found["CPLFPA, K = classes"] - 10, "too few clusters hurt"
    assert found["CPLFPA, K = 2 x classes"] > found["CPLFPA, K = classes"] - 5, "too many hardly do"
    assert found["true labels (ceiling)"] == max(found.values())


def test_where_nothing_has_changed_less_is_lost_than_by_the_paper() -> None:
    early = np.arange(len(DIGITS)) < 900
    found = run(early, ~early)
    assert found["source ratio"] > found["cosine"] + 10
    assert found["CPLFPA, K = classes"] < found["auto of differences"] < found["source ratio"] < found["auto"]
