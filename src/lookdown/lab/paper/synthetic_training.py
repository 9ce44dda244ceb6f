"""What training and testing by the likelihood ratio are worth in the synthetic world, over several seeds.

`python -m lookdown.lab.paper.synthetic_training WORLD` prints the table of docs/training.md; WORLD is a folder that
`lookdown prepare synthetic` has made. The trunk is frozen, so every row takes seconds once all chips are embedded.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray

from lookdown.chips.manifest import Manifest
from lookdown.config import read_recipe
from lookdown.evaluation import Evaluation, evaluate
from lookdown.metrics import Cosine, load_metric
from lookdown.networks.stored_embedder import load_embedder
from lookdown.training.frozen_features import FrozenFeatures, frozen_features
from lookdown.training.recipe import Recipe
from lookdown.training.train import train

__all__ = ["VARIANTS", "run"]

RECIPE = Path("recipes/synthetic.toml")
VARIANTS: dict[str, tuple[str, ...]] = {
    "identity alone": ("stage2.epochs=0",),
    "unified loss on cosine": ("stage2.loss=unified",),
    "GLRT loss, exact statistics": (),
    "GLRT loss, running statistics": ("stage2.statistics=running",),
}


def run(
    recipe: Path, world: Path, seeds: Sequence[int], variants: Mapping[str, Sequence[str]], more: Sequence[str] = ()
) -> dict[str, list[tuple[float, float]]]:
    """Return the mAP by cosine and by the likelihood ratio, for each variant of stage 2 and each seed."""
    base = read_recipe(Recipe, recipe, [f"data.manifest={world}", *more])
    manifest = Manifest.read(world)
    parts = {role: _features(base, manifest.with_role(role), world) for role in ("query", "gallery")}
    scores: dict[str, list[tuple[float, float]]] = {}
    for name, changes in variants.items():
        changed = read_recipe(Recipe, recipe, [f"data.manifest={world}", *more, *changes])
        for seed in seeds:
            with TemporaryDirectory() as folder:
                done = train(replace(changed, seed=seed), Path(folder) / "run").path
                cosine, ratio = _searched(done, manifest, parts)
            scores.setdefault(name, []).append((cosine.mean_average_precision, ratio.mean_average_precision))
    return scores


def _features(recipe: Recipe, chips: Manifest, world: Path) -> FrozenFeatures:
    return frozen_features(recipe.network.embedder(recipe.seed), chips.paths, world / "features", views=1)


def _searched(run: Path, manifest: Manifest, parts: Mapping[str, FrozenFeatures]) -> list[Evaluation]:
    """Search the gallery by the cosine and by the run's own metric."""
    head = load_embedder(run / "embedder").head
    embeddings: dict[str, NDArray[np.float32]] = {}
    with torch.inference_mode():
        for role, features in parts.items():
            embeddings[role] = head(torch.from_numpy(np.array(features.array[0]))).numpy()
    asked, searched = manifest.with_role("query"), manifest.with_role("gallery")
    return [
        evaluate(
            metric,
            embeddings["query"],
            [asked.labels[row] for row in parts["query"].indices],
            embeddings["gallery"],
            [searched.labels[row] for row in parts["gallery"].indices],
            searched.background[parts["gallery"].indices],
        )
        for metric in (Cosine().fit(embeddings["gallery"]), load_metric(run / "metric"))
    ]


def main() -> None:
    """Print the table: means over five seeds, and how far the seeds spread."""
    scores = run(RECIPE, Path(sys.argv[1]), range(5), VARIANTS)
    print("| stage 2 | by cosine | by the ratio | ratio - cosine |\n|---|---|---|---|")
    for name, pairs in scores.items():
        values = 100 * np.array(pairs)
        cells = [*values.T, values[:, 1] - values[:, 0]]
        print(f"| {name} | " + " | ".join(f"{cell.mean():.1f} ± {cell.std(ddof=1):.1f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
