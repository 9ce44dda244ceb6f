"""The loop itself, on clusters of points instead of chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from tests.training.runs import recipe

from lookdown.errors import TrainingError
from lookdown.losses import LOSSES, IdentityLoss
from lookdown.networks import Embedder
from lookdown.training.frozen_features import FrozenFeatures
from lookdown.training.loop import Epoch, Step, derived_seed, diverged, run_stages
from lookdown.training.recipe import Recipe
from lookdown.training.run_folder import Checkpoint
from lookdown.training.samples import FeatureSamples, embed_all
from lookdown.training.training_data import TrainingSet


def clusters(width: int, *, classes: int = 8, copies: int = 12) -> TrainingSet:
    """Return features around class means, in two views, with noise as large as what tells the classes apart."""
    rng = np.random.default_rng(0)
    labels = np.arange(classes * copies) % classes
    means = rng.normal(size=(classes, width)) / np.sqrt(width) * 3
    array = (means[labels] + rng.normal(size=(2, len(labels), width)) / np.sqrt(width) * 3).astype(np.float32)
    samples = FeatureSamples(FrozenFeatures(array, np.arange(len(labels)), {}), np.arange(len(labels)))
    return TrainingSet(samples, labels.astype(np.int64), [f"chip {row}" for row in range(len(labels))])


def run(made: Recipe, *, start: Checkpoint | None = None, chips: TrainingSet | None = None) -> list[Any]:
    """Train, and return what `on_epoch` was told: records and states."""
    embedder = Embedder("mobilenetv2_035", size=32, dimension=8, head="mlp", weights="none", seed=made.seed)
    told: list[Any] = []

    def on_epoch(epoch: Epoch) -> None:
        state = epoch.learner.state()
        if epoch.running is not None:
            state["running"] = torch.from_numpy(epoch.running.copy())
        told.append((epoch.record, state, epoch.stage))

    fabric = Fabric(accelerator="cpu", devices=1)
    run_stages(made, embedder, chips or clusters(embedder.trunk.width), fabric, start=start, on_epoch=on_epoch)
    return told


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_trains_in_stage_2(loss: str) -> None:
    told = run(recipe(stage1={"epochs": 3}, stage2={"loss": loss, "epochs": 3}))
    assert [record["stage"] for record, _, _ in told] == [1, 1, 1, 2, 2, 2]
    assert told[2][0]["loss"] < told[0][0]["loss"]
    assert told[-1][0]["accuracy"] > told[0][0]["accuracy"]


@pytest.mark.parametrize("statistics", ["exact", "running"])
@pytest.mark.parametrize("loss", ["glrt", "ccl", "sphere"])
def test_from_any_epoch_a_run_ends_with_the_same_bits(loss: str, statistics: str) -> None:
    made = recipe(stage1={"epochs": 2}, stage2={"epochs": 3, "loss": loss, "statistics": statistics})
    whole = run(made)
    for epoch in range(1, 5):
        record, state, stage = whole[epoch - 1]
        resumed = run(made, start=Checkpoint(epoch, state, {"stage": stage}))
        assert len(resumed) == 5 - epoch
        for name, value in whole[-1][1].items():
            torch.testing.assert_close(resumed[-1][1][name], value, rtol=0, atol=0, msg=f"{name} from epoch {epoch}")
        assert record["epoch"] == epoch


@pytest.mark.parametrize(
    ("loss", "statistics", "passes"), [("glrt", "exact", 3), ("glrt", "running", 1), ("triplet", "exact", 0)]
)
def test_passes_over_the_training_set_are_made_for_statistics_only(
    loss: str, statistics: str, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return embed_all(*arguments)

    monkeypatch.setattr("lookdown.training.loop.embed_all", counted)
    run(recipe(stage1={"epochs": 1}, stage2={"epochs": 3, "loss": loss, "statistics": statistics}))
    assert len(made) == passes


def test_a_mixture_with_running_statistics_goes_on_to_the_same_bits() -> None:
    made = recipe(stage1={"epochs": 1}, stage2={"epochs": 3, "statistics": "running"}, metric={"kind": "mixture"})
    whole = run(made)
    for epoch in (2, 3):
        _, state, stage = whole[epoch - 1]
        resumed = run(made, start=Checkpoint(epoch, state, {"stage": stage}))
        for name, value in whole[-1][1].items():
            torch.testing.assert_close(resumed[-1][1][name], value, rtol=0, atol=0, msg=f"{name} from epoch {epoch}")


def test_one_seed_one_result_and_another_seed_another() -> None:
    first, again, other = (run(recipe(seed=seed))[-1][1] for seed in (3, 3, 4))
    for name, value in first.items():
        torch.testing.assert_close(again[name], value, rtol=0, atol=0)
    assert any((other[name] != value).any() for name, value in first.items())


def test_a_loss_that_is_not_a_number_stops_the_run_and_names_the_batch() -> None:
    made = recipe()
    chips = clusters(Embedder("mobilenetv2_035", size=32, dimension=8, weights="none").trunk.width)
    assert isinstance(chips.samples, FeatureSamples)
    chips.samples.features.array[:, 17] = np.nan
    with pytest.raises(TrainingError, match=r"not a number in stage 1, epoch 1, batch \d+ \(chips chip"):
        run(made, chips=chips)


class _Torn(torch.autograd.Function):
    """Leaves values as they are, and makes NaN of their gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * float("nan")


@pytest.mark.parametrize("clip", [5.0, 0.0])
def test_a_gradient_that_is_not_a_number_stops_the_run_before_the_step(
    clip: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = IdentityLoss._loss
    calls = 0

    def torn_in_the_third_batch(self: IdentityLoss, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return right(self, _Torn.apply(x) if calls == 3 else x, y)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(IdentityLoss, "_loss", torn_in_the_third_batch)
    message = r"the gradient is not a number in stage 1, epoch 1, batch 3 \(chips .*--set stage1.learning_rate=0.025"
    with pytest.raises(TrainingError, match=message):
        run(recipe(optimizer={"clip": clip}))


def test_without_clipping_gradients_stay_as_they_are() -> None:
    """Their norm is looked at all the same; a bound that is never met gives the same bits."""
    free, wide = (run(recipe(optimizer={"clip": clip}))[-1][1] for clip in (0.0, 1e30))
    for name, value in free.items():
        torch.testing.assert_close(wide[name], value, rtol=0, atol=0)


def test_steps_are_told() -> None:
    steps: list[Step] = []
    embedder = Embedder("mobilenetv2_035", size=32, dimension=8, head="mlp", weights="none")
    run_stages(
        recipe(), embedder, clusters(embedder.trunk.width), Fabric(accelerator="cpu", devices=1), start=None,
        on_epoch=lambda epoch: None, on_step=steps.append,
    )  # fmt: skip
    assert [step.epoch for step in steps] == sorted(step.epoch for step in steps)
    assert {step.stage for step in steps} == {1, 2}
    assert all(0 <= step.accuracy <= 1 for step in steps)
    assert len(steps) == 4 * steps[0].steps


def test_the_sentence_names_the_place_and_the_command() -> None:
    made = recipe(stage2={"learning_rate": 0.02})
    told = str(diverged(made, 2, 7, "the loss is", ", batch 3 (chips a, b and 6 more)"))
    assert told.startswith("the loss is not a number in stage 2, epoch 7, batch 3 (chips a, b and 6 more); ")
    assert "`lookdown train --resume RUN --set stage2.learning_rate=0.01`, or look at these chips" in told
    assert str(diverged(made, 1, 1, "an embedding is")).endswith("--set stage1.learning_rate=0.025`")


def test_places_have_their_own_numbers_and_keep_them() -> None:
    seeds = {derived_seed(seed, "views", epoch, step) for seed in range(3) for epoch in range(20) for step in range(20)}
    assert len(seeds) == 3 * 20 * 20
    assert derived_seed(0, "views", 1, 23) != derived_seed(0, "views", 12, 3)
    assert derived_seed(7, "a", 1) == derived_seed(7, "a", 1) < 2**63
