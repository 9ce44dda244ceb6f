"""Everything that learns: what is optimized, and what a checkpoint has to hold."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

from lookdown.losses import IdentityLoss, Loss, make_loss
from lookdown.networks import Embedder
from lookdown.networks.stored_embedder import plain_tensors
from lookdown.training.recipe import Recipe, Stage, Stage1, Stage2

__all__ = ["Learner", "TrainableNetwork", "WholeBatchNorm", "learning_rate", "over_all_processes", "tensors_below"]


class TrainableNetwork(nn.Module):
    """The part of the embedder that is trained: all of it, or its head on cached features."""

    def __init__(self, embedder: Embedder, *, frozen: bool) -> None:
        super().__init__()
        self.part = embedder.head if frozen else embedder

    def forward(self, inputs: Tensor) -> Tensor:
        """Return embeddings."""
        embeddings: Tensor = self.part(inputs)
        return embeddings.float()


class Learner(nn.Module):
    """The network, its losses and the optimizer of one stage, all on one device, to which a state is restored."""

    def __init__(
        self, recipe: Recipe, embedder: Embedder, classes: int, stage: Stage, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__()
        dimension = recipe.network.dimension
        self.recipe, self.stage, self.settings = recipe, stage, recipe.stage(stage)
        self.network = TrainableNetwork(embedder, frozen=recipe.trunk == "frozen")
        self.identity = IdentityLoss(classes, dimension, seed=recipe.seed)
        self.metric_loss: Loss | None = None
        if stage == 2 and recipe.stage2.loss != "identity":  # which goes on with the classifier of stage 1
            self.metric_loss = make_loss(
                recipe.stage2.loss, recipe.stage2.options, classes=classes, dimension=dimension, seed=recipe.seed
            )
        self.to(device)
        self.optimizer = torch.optim.SGD(
            self.trained().values(),
            lr=self.settings.learning_rate,
            momentum=recipe.optimizer.momentum,
            weight_decay=recipe.optimizer.weight_decay,
        )

    def loss(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the identity loss, or in stage 2 the metric loss plus alpha times the identity loss."""
        if self.metric_loss is None:
            return self.identity(embeddings, labels)  # type: ignore[no-any-return]
        value: Tensor = self.metric_loss(embeddings, labels)
        if self.recipe.stage2.alpha:
            value = value + self.recipe.stage2.alpha * self.identity(embeddings, labels)
        return value

    def state(self) -> dict[str, Tensor]:
        """Return all tensors that a resumed run needs, by name."""
        tensors = self.state_dict()
        for name, parameter in self.trained().items():
            momentum = self.optimizer.state.get(parameter, {}).get("momentum_buffer")
            if momentum is not None:
                tensors[f"momentum.{name}"] = momentum
        return plain_tensors(tensors)

    def restore(self, tensors: Mapping[str, Tensor], *, stage: Stage) -> None:
        """Load what `state` returned; from the stage before, only the network and the classifier."""
        for part, module in self.named_children():
            if part != "metric_loss" or stage == self.stage:
                module.load_state_dict(tensors_below(f"{part}.", tensors))
        if stage != self.stage:
            return
        momentum = tensors_below("momentum.", tensors)
        for name, parameter in self.trained().items():
            if name in momentum:
                self.optimizer.state[parameter]["momentum_buffer"] = momentum[name].to(parameter.device).clone()

    def set_learning_rate(self, value: float) -> None:
        """Set the step size of the next step."""
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def trained(self) -> dict[str, nn.Parameter]:
        """Return the parameters that are optimized, by name."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}


def learning_rate(settings: Stage1 | Stage2, step: int, steps: int) -> float:
    """Return the rate of a step of a stage: constant, or falling to zero along half a cosine."""
    if settings.schedule == "constant":
        return settings.learning_rate
    return settings.learning_rate * 0.5 * (1 + math.cos(math.pi * step / steps))


def tensors_below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


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
        assert self.momentum is not None
        self.get_buffer("num_batches_tracked").add_(1)
        self.get_buffer("running_mean").lerp_(mean.detach(), self.momentum)
        self.get_buffer("running_var").lerp_(variance.detach() * count / max(count - 1, 1), self.momentum)
        normal: Tensor = (x - mean) * torch.rsqrt(variance + self.eps)
        return (normal * self.weight + self.bias).to(input.dtype)


def over_all_processes(network: nn.Module) -> None:
    """Make the normalisation layers of a head use the whole batch, in place, with the same parameters.

    Layers of a trunk keep to their own process, as is usual where each process has enough images.
    """
    for module in network.modules():
        if type(module) is nn.BatchNorm1d:
            module.__class__ = WholeBatchNorm
