"""What is said of training that ran away."""

from __future__ import annotations

from tests.training.runs import recipe

from lookdown.training.divergence import diverged


def test_the_sentence_names_the_place_and_the_command() -> None:
    made = recipe(stage2={"learning_rate": 0.02})
    told = str(diverged(made, 2, 7, "the loss is", ", batch 3 (chips a, b and 6 more)"))
    assert told.startswith("the loss is not a number in stage 2, epoch 7, batch 3 (chips a, b and 6 more); ")
    assert "`lookdown train --resume RUN --set stage2.learning_rate=0.01`, or look at these chips" in told
    assert str(diverged(made, 1, 1, "an embedding is")).endswith("--set stage1.learning_rate=0.025`")
