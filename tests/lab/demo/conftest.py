"""A story told once, at a scale of seconds, for all tests that look at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lookdown.lab.demo import DemoReport, DemoScale, Listener, run_demo

SMALL = DemoScale(
    chips=14,
    abroad=12,
    size=32,
    scene_size=640,
    changes=("network.size=32", "network.dimension=16", "stage1.epochs=2", "stage2.epochs=2", "views=4"),
)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a listener was told."""

    told: DemoReport
    chapters: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    progress: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.told.page.parent


def hear(folder: Path) -> Heard:
    """Tell the story into a folder, and keep what was said meanwhile."""
    chapters: list[str] = []
    notes: list[str] = []
    progress: list[tuple[int, int, str]] = []
    listener = Listener(
        chapters.append, lambda done, total, unit: progress.append((done, total or 0, unit)), notes.append
    )
    return Heard(run_demo(folder, SMALL, listener), chapters, notes, progress)


@pytest.fixture(scope="session")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    return hear(tmp_path_factory.mktemp("story") / "demo")
