"""What adaptation is worth on real images: the tables of docs/adaptation.md.

`python -m lookdown.lab.paper.adaptation_tables MAR20 FAIR1M SYNTHETIC -o OUT` prints them. The three folders were
prepared with `--split none`; OUT keeps the embeddings of trained heads, so that a study that was stopped goes on. Each
table is of five seeds, by another choice of classes and places each: heads are trained on some classes and searched
on others (near domains), or trained on one data set and searched on another (far domains).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lookdown.adaptation import AUTO, AUTO_OF_DIFFERENCES, CPLFPA, AdaptationSettings, adapt
from lookdown.adaptation.separation import choose_clusters
from lookdown.adaptation.target_metric import normalizes
from lookdown.adaptation.ward_tree import LEVELS
from lookdown.chips.protocols import conventional
from lookdown.config import read_recipe
from lookdown.lab.paper.domains import Domain, Roles, Rows, divide, read_domain, validation_roles
from lookdown.lab.paper.trained_network import Case, fitted_ratio, train_on
from lookdown.metrics import Cosine, Metric
from lookdown.training.recipe import Recipe

__all__ = ["VARIANTS", "Study", "few_labels", "helped", "sweep", "variants"]

Values = NDArray[np.float64]  # a number a seed
Head = Literal["identity", "glrt"]  # after stage 1, after stage 2
HEADS: tuple[Head, ...] = ("identity", "glrt")

RECIPE = Path("recipes/adaptation.toml")
PAPER = "CPLFPA (Algorithm 3)"
VARIANTS: dict[str, AdaptationSettings] = {
    PAPER: CPLFPA,
    "clusters by four turns, as in all below": CPLFPA,
    "each cluster counts alike": AdaptationSettings(weighting="classes"),
    "indefinite matrix kept": AdaptationSettings(indefinite="keep"),
    "nearest 90 % of each cluster": AdaptationSettings(nearest=0.9),
    "nearest 70 % of each cluster": AdaptationSettings(nearest=0.7),
    "soft clusters": AdaptationSettings(softness=0.5),
    "half of a full-rank metric": AdaptationSettings(full_rank=0.5),
    "clustered again": AdaptationSettings(rounds=2),
    "source worth 300 chips": AdaptationSettings(source_chips=300),
    "clustered again, source worth 300 chips": AdaptationSettings(rounds=2, source_chips=300),
    "tree": AdaptationSettings(levels=LEVELS),
    "tree, centred": AdaptationSettings(levels=LEVELS, centred=True),
    "tree, centred, shrinkage by OAS": AdaptationSettings(levels=LEVELS, centred=True, shrinkage="auto"),
    "tree, centred, shrinkage by OAS, each cluster alike (auto of differences)": AUTO_OF_DIFFERENCES,
    "auto of differences, clustered again": replace(AUTO_OF_DIFFERENCES, rounds=2),
    "auto of differences, source worth 300 chips": replace(AUTO_OF_DIFFERENCES, source_chips=300),
    "pseudo-kinds of the same clusters (auto)": AUTO,
}


class Study:
    """Domains, and the cases that heads trained on them make."""

    def __init__(self, domains: list[Domain], recipe: Recipe, kept: Path, seeds: int = 5) -> None:
        self.domains, self.recipe, self.kept, self.seeds = domains, recipe, kept, seeds

    def near(self, domain: Domain, head: Head, *, validation: bool) -> Iterator[Case]:
        """Yield a case a seed: trained on some classes of a domain, searched on others."""
        roles_of = validation_roles if validation else divide
        for seed in range(self.seeds):
            roles = roles_of(domain, seed)
            yield self._case(domain, roles.train, domain, roles, head, seed)

    def far(self, source: Domain, target: Domain, head: Head) -> Iterator[Case]:
        """Yield a case a seed: trained on all objects of a domain, searched in another."""
        for seed in range(self.seeds):
            train = np.flatnonzero(~source.background)
            yield self._case(source, train, target, divide(target, seed), head, seed)

    def _case(self, source: Domain, train: Rows, target: Domain, roles: Roles, head: Head, seed: int) -> Case:
        recipe = replace(self.recipe, seed=seed)
        if head == "identity":
            recipe = replace(recipe, stage2=replace(recipe.stage2, epochs=0))
        trained = train_on(source, train, recipe, self.kept)
        metric = fitted_ratio(trained.embeddings(source)[train], source.labels[train])
        return Case(
            target, roles, trained.embeddings(target), metric, lambda: trained.steady_embeddings(target, roles.target)
        )


def variants(cases: list[Case], clusters: int | None = None) -> dict[str, Values]:
    """Return the mAP of the cosine, the source metric, every variant, and of true labels, for each case."""
    rows: dict[str, list[float]] = {}
    for seed, case in enumerate(cases):
        by = case.steady_target
        count = choose_clusters(by, normalize=normalizes(case.source), seed=seed) if clusters is None else clusters
        metrics: dict[str, Metric] = {"cosine": Cosine().fit(case.target), "source metric": case.source}
        for name, settings in VARIANTS.items():
            number: int | Literal["auto"] = "auto" if settings.levels and clusters is None else count
            seen = None if name == PAPER else by
            adaptation = adapt(case.source, case.target, clusters=number, method=settings, cluster_by=seen, seed=seed)
            metrics[name] = adaptation.metric
        metrics["true labels (ceiling)"] = fitted_ratio(case.target, case.target_labels)
        for name, metric in metrics.items():
            rows.setdefault(name, []).append(case.mean_average_precision(metric))
    return {name: np.array(values) for name, values in rows.items()}


def sweep(
    cases: list[Case], offsets: tuple[int, ...] = (-3, 0, 3), times: tuple[int, ...] = (2, 3, 4, 6)
) -> dict[str, Values]:
    """Return the mAP of `auto` for numbers of clusters around that of the kinds, and for the automatic one."""
    rows: dict[str, list[float]] = {}
    for seed, case in enumerate(cases):
        kinds = len(np.unique(case.target_labels))  # background among them
        counts = {f"kinds {offset:+d}" if offset else "kinds": max(2, kinds + offset) for offset in offsets}
        counts |= {f"{factor} x kinds": factor * kinds for factor in times}
        by = case.steady_target
        for name in ("automatic", *counts):
            count: int | Literal["auto"] = counts.get(name, "auto")
            adaptation = adapt(case.source, case.target, clusters=count, method=AUTO, cluster_by=by, seed=seed)
            rows.setdefault(name, []).append(case.mean_average_precision(adaptation.metric))
            if name == "automatic":
                rows.setdefault("(its number)", []).append(adaptation.clusters)
    return {name: np.array(values) for name, values in rows.items()}


def helped(cases: list[Case]) -> list[tuple[bool, float, float]]:
    """Return for each case what `adapt` says of itself, the separation, and what adapting would have gained."""
    rows = []
    for seed, case in enumerate(cases):
        by = case.steady_target
        said = adapt(case.source, case.target, cluster_by=by, seed=seed)
        done = adapt(case.source, case.target, method=AUTO, cluster_by=by, seed=seed)
        gain = case.mean_average_precision(done.metric) - case.mean_average_precision(case.source)
        rows.append((said.helped, said.separation, gain))
    return rows


def few_labels(domain: Domain, counts: tuple[int, ...], seeds: int, dimension: int = 64) -> dict[str, Values]:
    """Return the mAP with so many true labels a class, beginning with the cosine of principal components.

    Labels are of the places that train; queries and gallery are of others.
    """
    features = np.concatenate([part.numpy() for _, part in domain.samples(np.arange(len(domain))).plain()])
    features = features.astype(np.float64)
    centred = features - features.mean(axis=0)
    embeddings = centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :dimension]
    rows: dict[str, list[float]] = {}
    for seed in range(seeds):
        roles = divide(domain, seed, protocol=conventional)
        case = Case(domain, roles, embeddings, Cosine().fit(embeddings), lambda: embeddings)
        images = np.concatenate([roles.train, roles.target])
        rows.setdefault("cosine", []).append(case.mean_average_precision(case.source))
        for count in counts:
            marked = _marked(domain, roles.train, count, seed)
            labels = [domain.labels[row] if row in marked else None for row in images.tolist()]
            adaptation = adapt(case.source, embeddings[images], labels=labels, seed=seed)
            rows.setdefault(f"{count} labels a class", []).append(case.mean_average_precision(adaptation.metric))
    return {name: np.array(values) for name, values in rows.items()}


def _marked(domain: Domain, rows: NDArray[np.int64], count: int, seed: int) -> set[int]:
    """Return some rows of each class."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(rows)
    classes = domain.labels[shuffled]
    return {int(row) for name in np.unique(classes) for row in shuffled[classes == name][:count]}


def _print(title: str, columns: dict[str, dict[str, Values]]) -> None:
    """Print a table with a column a domain: means over seeds, and how far seeds differ from the source's."""
    print(f"\n{title}\n\n| | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for name in next(iter(columns.values())):
        cells = []
        for rows in columns.values():
            base = rows.get("source metric", rows.get("cosine"))
            gain = "" if base is None or name == "cosine" else f" ({(rows[name] - base).mean():+.1f})"
            cells.append(f"{rows[name].mean():.1f}{gain}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs=3, type=Path, metavar="FOLDER")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--test", action="store_true", help="score queries and gallery too, near and far")
    options = parser.parse_args()
    recipe = read_recipe(Recipe, RECIPE)
    domains = [read_domain(folder, recipe) for folder in options.folders]
    study = Study(domains, recipe, options.out)
    for validation in (True, False) if options.test else (True,):
        part = "validation" if validation else "test"
        cases = {
            f"{domain.name}, {head}": list(study.near(domain, head, validation=validation))
            for domain in domains[:2]
            for head in HEADS
        }
        _print(f"Variants, {part}, automatic K", {name: variants(group) for name, group in cases.items()})
        _print(f"Number of clusters, {part}", {name: sweep(group) for name, group in cases.items()})
    if not options.test:
        return
    said = [row for group in cases.values() for row in helped(group)]
    for source, target in permutations(domains, 2):
        for head in HEADS:
            rows = helped(list(study.far(source, target, head)))
            print(
                f"{source.name} -> {target.name}, {head}: " + ", ".join(f"{a:.2f} {gain:+.1f}" for _, a, gain in rows)
            )
            said += rows
    for answer in (True, False):
        gains = np.array([gain for yes, _, gain in said if yes == answer])
        print(
            f"helped = {answer}: {len(gains)} cases, mean gain {gains.mean():+.2f}, better in {(gains > 0).mean():.0%}"
        )
    _print("Labels", {domain.name: few_labels(domain, (0, 2, 5, 10, 20), 5) for domain in domains[:2]})


if __name__ == "__main__":
    main()
