"""The headline study: paired differences, and the best baseline in two senses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.lab.paper.smoke import smoke

from lookdown.evaluation import Evaluation, evaluate
from lookdown.lab.paper import loss_comparison, study
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.rules import ADAPTED, COSINE, CPLFPA_AT_TEST, RULES
from lookdown.lab.paper.tasks import SHIPS, UDA_MAR, Task
from lookdown.losses import LOSSES


def test_the_study_compares_with_the_best_baseline_and_says_by_how_much() -> None:
    found = study.run(smoke(), SHIPS)
    assert set(found.scores) == set(LOSSES)
    means = {loss: np.mean([one.mean_average_precision for one in ways[COSINE]]) for loss, ways in found.scores.items()}
    assert means[found.by_test] == max(means[loss] for loss in loss_comparison.BASELINES)
    assert set(found.by_validation) <= set(loss_comparison.BASELINES)
    assert len(found.by_validation) == len(smoke().each_seed)
    assert set(RULES) <= set(found.scores["glrt"])


def test_a_network_that_is_fine_tuned_has_the_best_baseline_of_each_split_in_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which losses are scored where; the scores themselves are of a network that takes minutes."""
    asked: list[tuple[str, int]] = []

    def scored(experiment: Experiment, task: Task, loss: str, rule: str, seed: int) -> Evaluation:
        asked.append((loss, seed))
        at = {"glrt": 0, "unified": 4}.get(loss, 2)
        ranks = -np.abs(np.arange(5.0) - at)[None]
        return evaluate(ranks, None, ["a"], None, ["a", "b", "b", "b", "b"], groups=["here"])

    monkeypatch.setattr(study, "score", scored)
    experiment = Experiment("cpu", tmp_path)
    found = study.run(experiment, UDA_MAR)
    best = [experiment.best_baseline(UDA_MAR, seed) for seed in experiment.each_seed]
    assert list(found.by_validation) == best
    assert len(set(best)) > 1, "else there is nothing to tell apart"
    assert set(found.scores) == {"best by validation", "identity", "unified", "glrt"}
    wanted = [(loss, seed) for loss in ("identity", "unified", "glrt") for seed in experiment.each_seed]
    assert set(asked) == {*wanted, *((loss, seed) for seed, loss in enumerate(best))}
    assert found.by_test in ("best by validation", "identity")
    for rule, whose in ((CPLFPA_AT_TEST, "the paper's"), (ADAPTED, "ours")):
        verdict = study._verdict(found, rule)
        assert verdict.startswith(f"GLRT {rule} ({whose}) against:")
        assert f"best baseline by validation, cosine ({', '.join(map(str, best))}): +" in verdict
        assert "GLRT, + GLRT at test: " in verdict


def test_differences_are_paired_and_groups_are_drawn_once_for_all_seeds() -> None:
    rng = np.random.default_rng(0)
    groups = [[f"g{i % 12}" for i in range(40)], [f"g{i % 15}" for i in range(30)]]
    labels = [["a"] * 40, ["a"] * 30]
    pairs = []
    for seed in (0, 1):
        both = rng.normal(size=(2, len(groups[seed]), 20))
        relevant = ["a"] * 5 + ["b"] * 15
        pairs.append([evaluate(one, None, labels[seed], None, relevant, groups=groups[seed]) for one in both])
    ours, theirs = zip(*pairs, strict=True)
    each, whole = study.difference(ours, theirs)
    wanted = [100 * (a.mean_average_precision - b.mean_average_precision) for a, b in pairs]
    assert np.allclose(each, wanted)
    assert np.isclose(float(whole), np.mean(wanted))
    replicates = []
    for _ in range(2000):
        drawn = rng.integers(15, size=15)
        gains = []
        for seed, (a, b) in enumerate(pairs):
            rows = [i for group in drawn for i, name in enumerate(groups[seed]) if name == f"g{group}"]
            gains.append(100 * np.mean((a.queries.average_precision - b.queries.average_precision)[rows]))
        replicates.append(np.mean(gains))
    assert np.allclose([whole.low, whole.high], np.quantile(replicates, [0.025, 0.975]), atol=0.35)
    assert whole.supported
    alone, same = study.difference(ours, ours)
    assert (alone, float(same)) == ([0.0, 0.0], 0.0)
