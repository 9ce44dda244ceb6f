from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.lab.demo.conftest import Heard

from lookdown import Embedder
from lookdown.lab.demo.metric_comparison import WorldChips, adapted_approach, cosine_approach, ratio_approach, see_chips
from lookdown.progress import no_progress
from lookdown.training.evaluate_run import evaluate_run


def see(folder: Path, world: str, views: int) -> WorldChips:
    return see_chips(folder / world, folder / "run", views=views, progress=no_progress)


def test_ways_are_scored_as_evaluate_scores_the_run(heard: Heard) -> None:
    chips = see(heard.folder, "world", 1)
    found = evaluate_run(heard.folder / "run").evaluations
    for approach, name in ((cosine_approach, "cosine"), (ratio_approach, "glrt")):
        ours = approach(chips, heard.folder / "run", "glrt").evaluation
        assert ours.mean_average_precision == pytest.approx(found[name].mean_average_precision, abs=1e-4)


def test_turned_embeddings_are_those_of_turned_chips(heard: Heard) -> None:
    chips = see(heard.folder, "abroad", 4)
    run = heard.folder / "run"
    mean = np.mean([chips.embeddings(run, turn) for turn in range(4)], axis=0)
    whole = Embedder.load(run / "embedder").embed_chips(chips.manifest, turns=4).embeddings
    np.testing.assert_allclose(mean, whole, atol=1e-4)


def test_the_first_results_and_the_pairs_are_those_of_the_metric(heard: Heard) -> None:
    chips = see(heard.folder, "abroad", 4)
    approach, adaptation = adapted_approach(chips, heard.folder / "run", "glrt")
    assert approach.metric is adaptation.metric
    query = int(chips.asked[0])
    scores = approach.metric.score(approach.embeddings[[query]], approach.embeddings[chips.searched])[0]
    assert approach.first(query, 3).tolist() == chips.searched[np.argsort(-scores)[:3]].tolist()
    pairs = approach.pair_scores
    assert len(pairs.same) + len(pairs.different) == len(chips.asked) * len(chips.searched)
    same = chips.labels[chips.asked][:, None] == chips.labels[chips.searched]
    assert len(pairs.same) == same.sum()
