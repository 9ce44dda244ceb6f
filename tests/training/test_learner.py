"""What learns, and what of it a checkpoint holds; two processes, on loopback, learn what one does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.training.runs import recipe
from torch import nn

from lookdown.config import to_toml
from lookdown.metrics import load_metric
from lookdown.networks import Embedder
from lookdown.training.learner import Learner, WholeBatchNorm, learning_rate, over_all_processes
from lookdown.training.recipe import Stage1
from lookdown.training.run_folder import RunFolder


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
    assert {tensor.device.type for tensor in (*momenta, *elsewhere.trained().values())} == {"meta"}
    for parameter in elsewhere.trained().values():
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


def test_only_layers_of_a_head_change_and_their_parameters_stay() -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Conv1d(1, 1, 1), nn.BatchNorm2d(4))
    before = list(network.parameters())
    over_all_processes(network)
    assert [type(module) for module in network] == [nn.Linear, WholeBatchNorm, nn.Conv1d, nn.BatchNorm2d]
    assert all(a is b for a, b in zip(before, network.parameters(), strict=True))
    x = torch.randn(6, 4)
    torch.testing.assert_close(network[1].eval()(x), nn.BatchNorm1d(4).eval()(x))


def trained_by_one_and_by_two(folder: Path, **changes: Any) -> list[Path]:
    """Train by the same recipe in one process and in two; return both runs."""
    stages = {"stage1": {"epochs": 2, "learning_rate": 0.01}, "stage2": {"epochs": 2, "learning_rate": 0.005}}
    (folder / "quick.toml").write_text(to_toml(recipe(**stages, **changes)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    starter = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1", f"--master-port={port}"]
    for name, prefix in (("one", []), ("two", starter)):
        command = [sys.executable, *prefix, "-m", "lookdown", "train", "quick.toml", "-o", name]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    return [folder / "one", folder / "two"]


@pytest.mark.server
@pytest.mark.parametrize(
    "changes",
    [
        {"views": 4},
        # A trunk without batch normalisation, which each process would keep to itself.
        {"trunk": "finetune", "network": {"backbone": "test_convnext"}},
    ],
    ids=["frozen", "fine-tuned"],
)
def test_two_processes_learn_what_one_does(changes: dict[str, Any], tmp_path: Path) -> None:
    """The same batches, gradients and statistics: weights differ by rounding only after both stages."""
    runs = trained_by_one_and_by_two(tmp_path, **changes)
    one, two = (load_file(run / "embedder" / "embedder.safetensors") for run in runs)
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=2e-3, atol=2e-5, msg=name)
    x = np.random.default_rng(0).normal(size=(20, 8))
    first, second = (load_metric(run / "metric").score(x, x) for run in runs)
    np.testing.assert_allclose(first, second, rtol=1e-2, atol=1e-2)


@pytest.mark.server
def test_two_nodes_learn_what_one_process_does(tmp_path: Path) -> None:
    """Two `torchrun`, as on two machines that see one disk: the processes meet at the address of the first."""
    stages = {"stage1": {"epochs": 2, "learning_rate": 0.01}, "stage2": {"epochs": 2, "learning_rate": 0.005}}
    (tmp_path / "quick.toml").write_text(to_toml(recipe(**stages, views=4)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    train = ["-m", "lookdown", "train", "quick.toml", "-o"]
    meeting = ["--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={port}"]
    nodes = [[*("-m", "torch.distributed.run"), *meeting, f"--node-rank={rank}", *train, "two"] for rank in (0, 1)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for together in ([[*train, "one"]], nodes):
        started = [
            subprocess.Popen(
                [sys.executable, *command], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
            )
            for command in together
        ]
        said = [process.communicate(timeout=300)[1] for process in started]
        assert [process.returncode for process in started] == [0] * len(started), said
    one, two = (load_file(tmp_path / name / "embedder" / "embedder.safetensors") for name in ("one", "two"))
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=2e-3, atol=2e-5, msg=name)


@pytest.mark.server
def test_two_processes_learn_what_one_does_in_half_precision(tmp_path: Path) -> None:
    """Rounding is coarse there, so that what agrees is the course of the identity stage."""
    runs = trained_by_one_and_by_two(tmp_path, views=4, precision="bf16-mixed")
    one, two = ([record["loss"] for record in RunFolder.open(run).history()] for run in runs)
    assert len(one) == len(two) == 4
    np.testing.assert_allclose(one[:2], two[:2], rtol=1e-3)
