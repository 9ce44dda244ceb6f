"""What learns, and what of it a checkpoint holds."""

from __future__ import annotations

import pytest
import torch
from tests.training.runs import recipe

from lookdown.networks import Embedder
from lookdown.training.learner import Learner, learning_rate
from lookdown.training.recipe import Stage1


def embedder() -> Embedder:
    return Embedder("mobilenetv2_035", size=32, dimension=8, head="mlp", weights="none")


def step(learner: Learner, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    width = learner.network.part[0].in_features  # type: ignore[index]
    inputs, labels = torch.randn(16, width, generator=generator), torch.arange(16) % 4
    learner.optimizer.zero_grad()
    learner.loss(learner.network(inputs), labels).backward()  # type: ignore[no-untyped-call]
    learner.optimizer.step()


@pytest.mark.parametrize("loss", ["unified", "uce", "circle"])
def test_a_restored_learner_goes_on_with_the_same_bits(loss: str) -> None:
    made = recipe(stage2={"loss": loss})
    first = Learner(made, embedder(), 4, 2)
    step(first, 0)
    second = Learner(made, embedder(), 4, 2)
    second.restore(first.state(), stage=2)
    for seed in (1, 2, 3):
        step(first, seed)
        step(second, seed)
    ours, theirs = first.state(), second.state()
    assert ours.keys() == theirs.keys()
    assert any(name.startswith("momentum.") for name in ours)
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
def test_what_is_restored_is_where_the_parameters_are() -> None:
    made = recipe(stage2={"loss": "uce"})
    first = Learner(made, embedder(), 4, 2)
    step(first, 0)
    elsewhere = Learner(made, embedder(), 4, 2, device="meta")  # as good as a GPU, for a place
    elsewhere.restore(first.state(), stage=2)
    momenta = [state["momentum_buffer"] for state in elsewhere.optimizer.state.values()]
    assert len(momenta) == len(elsewhere.trained())
    assert {tensor.device.type for tensor in (*momenta, *elsewhere.trained())} == {"meta"}
    for parameter in elsewhere.trained():
        parameter.grad = torch.zeros_like(parameter)
    elsewhere.optimizer.step()


def test_stage_2_takes_over_network_and_classifier_and_starts_its_own_momentum() -> None:
    first = Learner(recipe(), embedder(), 4, 1)
    step(first, 0)
    second = Learner(recipe(stage2={"loss": "unified"}), embedder(), 4, 2)
    second.restore(first.state(), stage=1)
    for name, value in first.state().items():
        if name.startswith(("network.", "identity.")):
            torch.testing.assert_close(second.state()[name], value, rtol=0, atol=0)
    assert not any(name.startswith("momentum.") for name in second.state())


def test_alpha_weighs_the_identity_loss() -> None:
    x, y = torch.randn(12, 8, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3
    values = [
        Learner(recipe(stage2={"loss": "unified", "alpha": alpha}), embedder(), 4, 2).loss(x, y).item()
        for alpha in (0.0, 1.0, 3.0)
    ]
    assert values[2] - values[0] == pytest.approx(3 * (values[1] - values[0]), rel=1e-5)


def test_the_schedule_falls_from_the_rate_to_zero_or_stays() -> None:
    falling = [learning_rate(Stage1(learning_rate=0.4), step, 10) for step in range(11)]
    assert falling[0] == 0.4
    assert falling[5] == pytest.approx(0.2)
    assert falling[10] == pytest.approx(0)
    assert learning_rate(Stage1(learning_rate=0.4, schedule="constant"), 7, 10) == 0.4


def test_identity_in_stage_2_goes_on_with_the_classifier_of_stage_1() -> None:
    made = recipe(stage2={"loss": "identity"})
    first = Learner(made, made.network.embedder(0), classes=4, stage=1)
    with torch.no_grad():
        first.identity.weight.add_(1.0)
    second = Learner(made, made.network.embedder(0), classes=4, stage=2)
    second.restore(first.state(), stage=1)
    assert second.metric_loss is None
    assert torch.equal(second.identity.weight, first.identity.weight)
    embeddings, labels = torch.randn(6, 8, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 4
    assert torch.equal(second.loss(embeddings, labels), first.identity(embeddings, labels))
