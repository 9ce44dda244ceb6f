"""Scores: kept once they are known."""

from __future__ import annotations

from tests.lab.paper.smoke import smoke

from lookdown.lab.paper.loss_scores import scores
from lookdown.lab.paper.rules import COSINE, RULES
from lookdown.lab.paper.tasks import UDA_MAR


def test_what_was_scored_is_kept_beside_its_network_and_is_what_the_rule_gives() -> None:
    first = scores(smoke(), UDA_MAR, "identity", COSINE)
    trained = smoke().trained(UDA_MAR, smoke().recipe(UDA_MAR, "identity", 0))
    kept = {file: file.stat().st_mtime_ns for file in trained.path.glob("scores-*.json")}
    assert kept
    again = scores(smoke(), UDA_MAR, "identity", COSINE)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    for seed, (one, other) in enumerate(zip(first, again, strict=True)):
        case = smoke().case(UDA_MAR, "identity", seed)
        assert one.to_json() == other.to_json() == RULES[COSINE](case, seed).to_json()
