"""Networks trained once: found again by all that decides them, gone on with where they were stopped."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.training.runs import recipe, world

from lookdown.lab.paper import trained_network as module
from lookdown.lab.paper.domains import Domain, divide, read_domain
from lookdown.lab.paper.trained_network import Case, fitted_ratio, train_on
from lookdown.metrics import Cosine
from lookdown.training.loop import run_stages
from lookdown.training.recipe import Recipe, Stage2
from lookdown.training.run_folder import last_checkpoint


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    shutil.copytree(world(), tmp_path / "ships")
    return read_domain(tmp_path / "ships", recipe())


def test_the_same_recipe_is_trained_once_and_another_anew(
    domain: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = divide(domain, 0).train
    calls: list[Stage2] = []

    def counted(made: Recipe, *given: Any, **named: Any) -> None:
        calls.append(made.stage2)
        run_stages(made, *given, **named)

    monkeypatch.setattr(module, "run_stages", counted)
    first = train_on(domain, rows, recipe(), tmp_path / "runs")
    assert [stage.epochs for stage in calls] == [0, 2], "stage 1 is kept for other losses"
    again = train_on(domain, rows, recipe(), tmp_path / "runs")
    assert len(calls) == 2
    assert again.path == first.path
    other = train_on(domain, rows, recipe(stage2={"loss": "unified"}), tmp_path / "runs")
    assert [stage.loss for stage in calls[2:]] == ["unified"], "from the same first stage"
    assert not np.array_equal(other.embeddings(domain), first.embeddings(domain))
    for changed in (recipe(seed=1), recipe(stage1={"learning_rate": 0.01})):
        assert train_on(domain, rows, changed, tmp_path / "runs").path != first.path
    assert train_on(domain, rows[:-1], recipe(), tmp_path / "runs").path != first.path


def test_a_shared_first_stage_gives_the_bits_of_one_run(domain: Domain, tmp_path: Path) -> None:
    from lightning_fabric import Fabric

    from lookdown.training.samples import embed_all
    from lookdown.training.training_data import TrainingSet

    rows = divide(domain, 0).train
    found = train_on(domain, rows, recipe(), tmp_path / "runs").embeddings(domain)
    embedder = recipe().network.embedder(0)
    codes = np.unique(domain.labels[rows], return_inverse=True)[1].astype(np.int64)
    chips = TrainingSet(domain.samples(rows), codes, domain.ids[rows].tolist())
    run_stages(recipe(), embedder, chips, Fabric(accelerator="cpu", devices=1), start=None, on_epoch=lambda epoch: None)
    assert np.array_equal(found, embed_all(embedder.head, domain.samples(np.arange(len(domain))), 8))


def test_a_network_that_is_fine_tuned_goes_on_after_a_stop(domain: Domain, tmp_path: Path) -> None:
    made = recipe(trunk="finetune", stage1={"epochs": 3}, stage2={"statistics": "running", "epochs": 3})
    chips = read_domain(tmp_path / "ships", made)
    rows = divide(chips, 0).train
    whole = train_on(chips, rows, made, tmp_path / "whole")

    class StoppedError(Exception):
        pass

    seen: list[str] = []

    def stop(line: str) -> None:
        seen.append(line)
        if len(seen) in (3, 7):  # in the middle of either stage; the epoch that is told of is done again
            raise StoppedError

    for _ in range(2):
        with pytest.raises(StoppedError):
            train_on(chips, rows, made, tmp_path / "parts", stop)
    parts = train_on(chips, rows, made, tmp_path / "parts", seen.append)
    assert len(seen) == 8
    assert parts.path.name == whole.path.name
    assert np.array_equal(parts.embeddings(chips), whole.embeddings(chips))
    kept = last_checkpoint(parts.path)
    assert kept is not None
    assert kept.epoch == 6


def test_the_whole_network_sees_chips_as_the_kept_embeddings_say(domain: Domain, tmp_path: Path) -> None:
    rows = divide(domain, 0).train
    trained = train_on(domain, rows, recipe(), tmp_path / "runs")
    seen = trained.embedder().embed(list(domain.paths[:5]))
    assert np.allclose(seen, trained.embeddings(domain)[:5], atol=1e-4)


@pytest.mark.parametrize("trunk", ["frozen", "finetune"])
def test_steady_embeddings_are_the_mean_over_turns_of_the_whole_network(trunk: str, tmp_path: Path) -> None:
    shutil.copytree(world(), tmp_path / "ships")
    made = recipe(views=4, trunk=trunk)
    domain = read_domain(tmp_path / "ships", made)
    trained = train_on(domain, divide(domain, 0).train, made, tmp_path / "runs")
    seen = trained.embedder().embed(list(domain.paths[:5]), turns=4)
    assert np.allclose(seen, trained.steady_embeddings(domain, np.arange(5)), atol=1e-4)


def test_a_case_is_searched_with_its_places(domain: Domain, tmp_path: Path) -> None:
    roles = divide(domain, 0)
    trained = train_on(domain, roles.train, recipe(), tmp_path / "runs")
    embeddings = trained.embeddings(domain)
    source = fitted_ratio(embeddings[roles.train], domain.labels[roles.train], recipe())
    case = Case(domain, roles, embeddings, source, lambda: trained.steady_embeddings(domain, roles.target))
    found = case.evaluate(Cosine().fit(case.target))
    assert 0 < case.mean_average_precision(case.source) < 100
    assert 100 * found.mean_average_precision == case.mean_average_precision(Cosine().fit(case.target))
    assert found.queries.groups == tuple(domain.groups[roles.query].tolist())
    assert np.array_equal(case.steady_target, trained.steady_embeddings(domain, roles.target))
    assert np.allclose(case.steady_target, trained.steady_embeddings(domain, np.arange(len(domain)))[roles.target])
    assert (case.target_labels == "").sum() == domain.background[roles.gallery].sum()
