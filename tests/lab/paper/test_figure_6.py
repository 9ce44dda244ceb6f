"""Figure 6: results, frames and counts against a plain sort."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.lab.paper.smoke import smoke

from lookdown.adaptation import adapt
from lookdown.lab.paper import figure_6
from lookdown.lab.paper.report import Page, PageFigure, Table
from lookdown.lab.paper.tasks import TASKS, Task
from lookdown.metrics import Cosine

pytest.importorskip("matplotlib")


@lru_cache
def page() -> Page:
    return figure_6.make(smoke())


@lru_cache
def sorted_hits(task: Task, method: int) -> list[list[bool]]:
    """Of every query, whether each of the first ten is right, by sorting all scores."""
    case = smoke().case(task, ("identity", "unified", "glrt", "glrt")[method], 0)
    metric = Cosine().fit(case.embeddings) if method < 2 else case.source
    if method == 3:
        clusters = len(set(case.target_labels.tolist()))
        metric = adapt(case.source, case.target, clusters=clusters, method="cplfpa").metric
    scores = metric.score(case.embeddings[case.roles.query], case.embeddings[case.roles.gallery])
    labels = case.domain.labels
    return [
        [bool(labels[case.roles.gallery[place]] == labels[query]) for place in np.argsort(-row, kind="stable")[:10]]
        for query, row in zip(case.roles.query, scores, strict=True)
    ]


@pytest.mark.parametrize("method", range(4))
def test_the_table_counts_what_a_sort_finds(method: int) -> None:
    table = page().parts[0]
    assert isinstance(table, Table)
    for column, task in enumerate(TASKS, start=1):
        counts = [sum(hits) for hits in sorted_hits(task, method)]
        assert table.rows[method][column] == f"{np.mean(counts):.2f}"


def test_no_method_finds_more_than_there_are() -> None:
    table = page().parts[0]
    assert isinstance(table, Table)
    for column in range(1, 5):
        most = float(table.rows[-1][column])
        assert all(float(row[column]) <= most for row in table.rows[:-1])


def test_frames_agree_with_labels() -> None:
    from matplotlib.colors import to_hex

    pictures = [part for part in page().parts if isinstance(part, PageFigure)]
    assert len(pictures) == len(TASKS)
    lines = {"-": "solid", "--": "dashed"}
    for task, picture in zip(TASKS, pictures, strict=True):
        queries = smoke().roles(task, 0).query
        labels = smoke().domain(task).labels[queries]
        chosen = figure_6.sample_queries(labels)
        assert len(set(labels[chosen])) == len(chosen) == 3
        expected = [sorted_hits(task, method)[query] for query in chosen for method in range(4)]
        frames = [
            (to_hex(patch.get_edgecolor()).upper(), lines.get(str(patch.get_linestyle()), str(patch.get_linestyle())))
            for patch in picture.figure.axes[0].patches
        ]
        results = [frame for frame in frames if frame[0] != "#000000"]
        assert len(frames) - len(results) == len(chosen)
        assert results == [figure_6.RIGHT if hit else figure_6.WRONG for hits in expected for hit in hits]
        assert len(picture.figure.axes[0].images) == len(frames)


def test_chips_of_research_data_stay_among_the_runs(tmp_path: Path) -> None:
    text = page().write("figure_6", tmp_path / "out", tmp_path / "kept", "command").read_text()
    assert not (tmp_path / "kept").exists()  # the synthetic world may be shown to all
    for task in TASKS:
        assert replace(smoke(), seeds=1).caption(task) in text
        with Image.open(tmp_path / "out" / f"figure_6_{task.name.lower()}.png") as image:
            assert len(image.convert("RGB").getcolors(image.width * image.height) or []) > 1_000
    shown = replace(next(part for part in page().parts if isinstance(part, PageFigure)), shows_chips=True)
    Page("", "", (shown,)).write("figure_6", tmp_path / "other", tmp_path / "kept", "command")
    assert [file.name for file in (tmp_path / "other").iterdir()] == ["figure_6.md"]
    assert len(list((tmp_path / "kept").iterdir())) == 1
