"""Batch normalisation over the batch of all processes, so that several processes learn what one would."""

from __future__ import annotations

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

__all__ = ["WholeBatchNorm", "over_all_processes"]


class WholeBatchNorm(nn.BatchNorm1d):
    """`BatchNorm1d` whose mean and variance are those of all processes; torch's own is for GPUs only."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise a part of the batch by the statistics of the whole, in float32, as torch does."""
        if not self.training:
            return super().forward(input)
        x = input.float()
        count = len(x) * torch.distributed.get_world_size()
        mean = all_reduce(x.sum(dim=0)) / count  # type: ignore[no-untyped-call]
        variance = all_reduce((x - mean).square().sum(dim=0)) / count  # type: ignore[no-untyped-call]
        self._update_running(mean.detach(), variance.detach() * count / max(count - 1, 1))
        normal: Tensor = (x - mean) * torch.rsqrt(variance + self.eps)
        return (normal * self.weight + self.bias).to(input.dtype)

    def _update_running(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.num_batches_tracked += 1
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)


def over_all_processes(network: nn.Module) -> None:
    """Make the normalisation layers of a head use the whole batch, in place, with the same parameters.

    Layers of a trunk keep to their own process, as is usual where each process has enough images.
    """
    for module in network.modules():
        if type(module) is nn.BatchNorm1d:
            module.__class__ = WholeBatchNorm
