"""Two processes, on loopback, learn what one does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tests.training.runs import recipe
from torch import nn

from lookdown.config import to_toml
from lookdown.metrics import load_metric
from lookdown.training.batch_norm import WholeBatchNorm, over_all_processes

ROOT = Path(__file__).parents[2]


def test_only_layers_of_a_head_change_and_their_parameters_stay() -> None:
    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Conv1d(1, 1, 1), nn.BatchNorm2d(4))
    before = list(network.parameters())
    over_all_processes(network)
    assert [type(module) for module in network] == [nn.Linear, WholeBatchNorm, nn.Conv1d, nn.BatchNorm2d]
    assert all(a is b for a, b in zip(before, network.parameters(), strict=True))
    x = torch.randn(6, 4)
    torch.testing.assert_close(network[1].eval()(x), nn.BatchNorm1d(4).eval()(x))


def test_two_processes_learn_what_one_does(tmp_path: Path) -> None:
    """The same batches, gradients and statistics: weights differ by rounding only after both stages."""
    made = recipe(views=4, stage1={"epochs": 2, "learning_rate": 0.01}, stage2={"epochs": 2, "learning_rate": 0.005})
    (tmp_path / "quick.toml").write_text(to_toml(made))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    starter = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1", f"--master-port={port}"]
    for name, prefix in (("one", []), ("two", starter)):
        command = [sys.executable, *prefix, "-m", "lookdown", "train", "quick.toml", "-o", name]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    one, two = (load_file(tmp_path / name / "embedder" / "embedder.safetensors") for name in ("one", "two"))
    for name, value in one.items():
        if name.startswith("head."):
            torch.testing.assert_close(two[name], value, rtol=2e-3, atol=2e-5, msg=name)
    x = np.random.default_rng(0).normal(size=(20, 8))
    first, second = (load_metric(tmp_path / name / "metric").score(x, x) for name in ("one", "two"))
    np.testing.assert_allclose(first, second, rtol=1e-2, atol=1e-2)
