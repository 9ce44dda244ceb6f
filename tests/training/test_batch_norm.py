"""Two processes, on loopback, learn what one does."""

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
from lookdown.training.batch_norm import WholeBatchNorm, over_all_processes
from lookdown.training.run_folder import RunFolder

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]


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


def test_two_processes_learn_what_one_does_in_half_precision(tmp_path: Path) -> None:
    """Rounding is coarse there, so that what agrees is the course of the identity stage."""
    runs = trained_by_one_and_by_two(tmp_path, views=4, precision="bf16-mixed")
    one, two = ([record["loss"] for record in RunFolder.open(run).history()] for run in runs)
    assert len(one) == len(two) == 4
    np.testing.assert_allclose(one[:2], two[:2], rtol=1e-3)
