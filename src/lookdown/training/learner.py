"""Everything that learns: what is optimized, and what a checkpoint has to hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lookdown.losses import IdentityLoss, Loss, make_loss
from lookdown.networks import Embedder
from lookdown.networks.stored_embedder import plain_tensors
from lookdown.training.recipe import Recipe

__all__ = ["Learner", "Stage", "TrainableNetwork", "learning_rate", "tensors_below"]

Stage = Literal[1, 2]


class TrainableNetwork(nn.Module):
    """The part of the embedder that is trained: all of it, or its head on cached features."""

    def __init__(self, embedder: Embedder, *, frozen: bool) -> None:
        super().__init__()
        self.part = embedder.head if frozen else embedder

    def forward(self, inputs: Tensor) -> Tensor:
        """Return embeddings."""
        embeddings: Tensor = self.part(inputs)
        return embeddings.float()


class Learner:
    """The network, its losses and the optimizer of one stage, all on one device, to which a state is restored."""

    def __init__(
        self, recipe: Recipe, embedder: Embedder, classes: int, stage: Stage, device: torch.device | str = "cpu"
    ) -> None:
        dimension = recipe.network.dimension
        self.recipe, self.stage = recipe, stage
        self.network = TrainableNetwork(embedder, frozen=recipe.trunk == "frozen").to(device)
        self.identity = IdentityLoss(classes, dimension, seed=recipe.seed).to(device)
        self.metric_loss: Loss | None = None
        if stage == 2 and recipe.stage2.loss != "identity":  # which goes on with the classifier of stage 1
            self.metric_loss = make_loss(
                recipe.stage2.loss, recipe.stage2.options, classes=classes, dimension=dimension, seed=recipe.seed
            ).to(device)
        settings = recipe.stage1 if stage == 1 else recipe.stage2
        self.optimizer = torch.optim.SGD(
            self.trained(),
            lr=settings.learning_rate,
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
        tensors = {
            f"{part}.{name}": value
            for part, module in self._parts().items()
            for name, value in module.state_dict().items()
        }
        for name, parameter in self._parameters():
            momentum = self.optimizer.state.get(parameter, {}).get("momentum_buffer")
            if momentum is not None:
                tensors[f"momentum.{name}"] = momentum
        return plain_tensors(tensors)

    def restore(self, tensors: Mapping[str, Tensor], *, stage: Stage) -> None:
        """Load what `state` returned; from the stage before, only the network and the classifier."""
        for part, module in self._parts().items():
            if part != "metric_loss" or stage == self.stage:
                module.load_state_dict(tensors_below(f"{part}.", tensors))
        if stage != self.stage:
            return
        momentum = tensors_below("momentum.", tensors)
        for name, parameter in self._parameters():
            if name in momentum:
                self.optimizer.state[parameter]["momentum_buffer"] = momentum[name].to(parameter.device).clone()

    def set_learning_rate(self, value: float) -> None:
        """Set the step size of the next step."""
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def trained(self) -> list[nn.Parameter]:
        """Return the parameters that are optimized."""
        return [parameter for _, parameter in self._parameters()]

    def _parts(self) -> dict[str, nn.Module]:
        parts = {"network": self.network, "identity": self.identity, "metric_loss": self.metric_loss}
        return {name: part for name, part in parts.items() if part is not None}

    def _parameters(self) -> list[tuple[str, nn.Parameter]]:
        return [
            (f"{part}.{name}", parameter)
            for part, module in self._parts().items()
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        ]


def learning_rate(settings: Any, step: int, steps: int) -> float:
    """Return the rate of a step of a stage: constant, or falling to zero along half a cosine."""
    if settings.schedule == "constant":
        return float(settings.learning_rate)
    return float(settings.learning_rate * 0.5 * (1 + math.cos(math.pi * step / steps)))


def tensors_below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
