"""A schema with every type that a recipe can hold, and random instances of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hypothesis import strategies as st

from lookdown.config import FreeTable, NonEmptyPath
from lookdown.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    classes: int = 16
    samples: int = 4

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ValueError(f"samples must be at least 2 to form a pair, got {self.samples}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    name: str = "glrt"
    shrinkage: float | Literal["paper"] = "paper"
    options: FreeTable = field(default_factory=lambda: {"margin": 0.25})
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    epochs: int = 60
    learning_rate: float = 3.5e-4
    clip: float = 5.0
    precision: Literal["float32", "bfloat16"] = "float32"
    loss: Loss = field(default_factory=Loss)
    batches: Batches = field(default_factory=Batches)

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise InputError(f"epochs must not be negative, got {self.epochs}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    degrees: float
    flip: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    data: NonEmptyPath
    seed: int = 0
    notes: str = ""
    resume: bool = False
    weights: Literal["imagenet", "random"] | NonEmptyPath = "imagenet"
    size: int | float | tuple[int, int] = 112
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    classes: tuple[str, ...] = ()
    grid: tuple[tuple[int, ...], ...] = ((1,), ())
    turns: tuple[Turn, ...] = ()
    teacher: NonEmptyPath | None = None
    stage1: Stage = field(default_factory=Stage)
    stage2: Stage | None = None
    tracking: Nothing | Literal["off"] = "off"
    named: Mapping[str, Turn] = field(default_factory=dict)


WHOLE = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
# All of Unicode but surrogates, which no text file can hold; control characters and quotes oftener than by chance.
TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\0\b\t\n\f\r\x1f\x7f\"'\\#=[].{} \u2028"))
PATHS = TEXT.map(Path)
FREE = st.recursive(
    st.booleans() | WHOLE | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
TURNS = st.builds(Turn, degrees=FINITE, flip=st.none() | st.booleans())
LOSSES = st.builds(
    Loss,
    name=TEXT,
    shrinkage=FINITE | st.just("paper"),
    options=st.dictionaries(TEXT, FREE, max_size=3),
    weights=st.dictionaries(TEXT, FINITE, max_size=2),
)
STAGES = st.builds(
    Stage,
    epochs=st.integers(0, 2**63 - 1),
    learning_rate=FINITE,
    clip=FINITE,
    precision=st.sampled_from(["float32", "bfloat16"]),
    loss=LOSSES,
    batches=st.builds(Batches, classes=WHOLE, samples=st.integers(2, 9)),
)
RECIPES = st.builds(
    Recipe,
    data=PATHS,
    seed=WHOLE,
    notes=TEXT,
    resume=st.booleans(),
    weights=st.sampled_from(["imagenet", "random"])
    | PATHS.filter(lambda path: str(path) not in {"imagenet", "random"}),
    size=WHOLE | FINITE | st.tuples(WHOLE, WHOLE),
    mean=st.tuples(FINITE, FINITE, FINITE),
    classes=st.lists(TEXT, max_size=3).map(tuple),
    grid=st.lists(st.lists(WHOLE, max_size=2).map(tuple), max_size=2).map(tuple),
    turns=st.lists(TURNS, max_size=2).map(tuple),
    teacher=st.none() | PATHS,
    stage1=STAGES,
    stage2=st.none() | STAGES,
    tracking=st.just("off") | st.just(Nothing()),
    named=st.dictionaries(TEXT, TURNS, max_size=2),
)
