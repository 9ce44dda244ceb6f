"""Two worlds: one that the network is trained on, and one with another sensor and kinds that it has never seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lookdown.errors import OutputError
from lookdown.lab.synthetic.kinds import KINDS
from lookdown.lab.synthetic.world import World, draw_world
from lookdown.progress import Progress

__all__ = ["TRAINED", "UNSEEN", "DemoScale", "draw_worlds"]


# Two in five kinds are kept for the second world. Most of them have a twin in the first that differs in one thing.
UNSEEN = tuple(name for index, name in enumerate(KINDS) if index % 5 in (1, 3))
TRAINED = tuple(name for name in KINDS if name not in UNSEEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoScale:
    """How much is drawn and trained; the defaults take two cores less than five minutes."""

    chips: int = 60  # of each kind that is trained on
    abroad: int = 60  # of each kind that is not
    size: int = 96  # pixels of a chip
    scene_size: int = 1536  # pixels
    shift: float = 0.4  # of the second sensor
    locations: int = 250  # in each world; with fewer than ten among the queries there is no interval
    changes: tuple[str, ...] = ()  # of the recipe

    @property
    def home(self) -> World:
        """Kinds in all roles, and an airfield and a port that are searched."""
        return World(
            kinds=TRAINED,
            chips=self.chips,
            size=self.size,
            locations=self.locations,
            scenes=2,
            scene_size=self.scene_size,
        )

    @property
    def elsewhere(self) -> World:
        """Other kinds, under another sensor, in other locations; nothing of it trains."""
        return World(
            kinds=UNSEEN,
            chips=self.abroad,
            size=self.size,
            locations=self.locations,
            shift=self.shift,
            protocol="uda",
            train_classes=(),
            seed=1,
        )


def draw_worlds(folder: Path, scale: DemoScale, progress: Progress) -> None:
    """Draw both worlds into `world` and `abroad` below a folder; what is there is left alone."""
    for name, world in (("world", scale.home), ("abroad", scale.elsewhere)):
        try:
            draw_world(world, folder / name, progress=progress)
        except OutputError as error:
            raise OutputError(
                f"{folder} is not of this demo; remove it, or name another folder with -o ({error})"
            ) from error
