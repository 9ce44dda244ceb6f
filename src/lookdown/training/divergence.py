"""Training that has run away: what is said of it, and how to go on."""

from __future__ import annotations

from lookdown.errors import TrainingError
from lookdown.training.learner import Stage
from lookdown.training.recipe import Recipe

__all__ = ["diverged"]


def diverged(recipe: Recipe, stage: Stage, epoch: int, what: str, batch: str = "") -> TrainingError:
    """Return the error for numbers that are none; epochs are counted from 1, `batch` names its chips."""
    rate = (recipe.stage1 if stage == 1 else recipe.stage2).learning_rate / 2
    return TrainingError(
        f"{what} not a number in stage {stage}, epoch {epoch}{batch}; the state before this epoch is kept. Go on from "
        f"there with a lower rate, `lookdown train --resume RUN --set stage{stage}.learning_rate={rate:g}`"
        + (", or look at these chips" if batch else "")
    )
