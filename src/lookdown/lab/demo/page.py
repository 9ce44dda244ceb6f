"""The demo's page: one file that needs no other, with every figure computed in the run that wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from lookdown.adaptation import Adaptation
from lookdown.lab.demo.archive import Accepted, SceneSearch
from lookdown.lab.demo.charts import draw_pairs, draw_scene, jpeg_url
from lookdown.lab.demo.comparison import ADAPTED, COSINE, RATIO, Chips, Way, way_of
from lookdown.lab.paper.figure_1 import PairScores

__all__ = ["Findings", "difference", "to_html"]

_HERE = Path(__file__).parent
_QUERIES = 3  # whose first results are shown
_FOOTER = (
    "The world is drawn, not photographed, so these figures say that the parts work together, not how well they do on "
    "your images. What was measured on real ones is in docs/results."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that the page shows."""

    home: Sequence[Way]
    abroad: Sequence[Way]
    adaptation: Adaptation  # of the run
    trained: int  # chips
    gallery: int  # chips and windows
    scenes: Sequence[SceneSearch]
    accepted: Sequence[Accepted]  # an example of each kind
    made: str  # when, with what, in which time
    commands: Sequence[str]

    @property
    def figures(self) -> dict[str, object]:
        """The figures of the page, for programs."""
        return {
            **{
                name: {way.name: way.evaluation.mean_average_precision for way in ways}
                for name, ways in (("home", self.home), ("abroad", self.abroad))
            },
            "scenes": {one.scene.stem: {"objects": len(one.objects), "right": sum(one.right)} for one in self.scenes},
            "accepted": {one.kind: {"right": one.right, "false": one.false} for one in self.accepted},
        }


def to_html(found: Findings) -> str:
    """Return the page."""
    unified, ours = way_of(found.home, "unified", COSINE), way_of(found.home, "glrt", RATIO)
    before, after = way_of(found.abroad, "glrt", RATIO), way_of(found.abroad, "glrt", ADAPTED)
    shown = [_pairs(way.pair_scores) for way in (unified, ours)]
    return (
        (_HERE / "page.html")
        .read_text(encoding="utf-8")
        .format(
            style=(_HERE / "page.css").read_text(encoding="utf-8"),
            made=escape(found.made),
            trained=f"{found.trained:,}",
            home_sizes=_sizes(ours.chips),
            home_table=_table(found.home),
            home_verdict=escape(difference(ours, unified)),
            pairs="".join(shown),
            home_rows=_rankings((unified, ours)),
            abroad_sizes=_sizes(after.chips),
            abroad_table=_table(found.abroad),
            abroad_verdict=escape(
                f"{difference(after, before)} The adaptation says of itself: {found.adaptation.reason}."
            ),
            abroad_rows=_rankings((before, after)),
            archive=escape(_archive(found)),
            scenes="".join(map(_scene, found.scenes)),
            accepted=escape(_accepted(found.accepted)),
            next=escape("\n".join(found.commands)),
            footer=_FOOTER,
        )
    )


def difference(ours: Way, theirs: Way) -> str:
    """Say how much better one way is than another, with its interval."""
    gain = ours.evaluation.difference(theirs.evaluation)
    whether = "more than chance gives" if gain.low > 0 else "less" if gain.high < 0 else "which may be chance"
    if not gain.supported:
        whether = "but the queries come from too few places to say"
    return (
        f"{ours.name} against {theirs.name}: {100 * gain:+.1f} mAP (95 % from {100 * gain.low:+.1f} to "
        f"{100 * gain.high:+.1f}), {whether}."
    )


def _sizes(chips: Chips) -> str:
    empty = int((chips.labels[chips.searched] == "").sum())
    kinds = len(set(chips.labels.tolist()) - {""})
    return (
        f"{len(chips.asked):,} queries of {kinds} kinds, {len(chips.searched):,} chips to search, {empty:,} of them "
        "without an object."
    )


def _table(ways: Sequence[Way]) -> str:
    rules = list(dict.fromkeys(way.rule for way in ways))
    best = max(ways, key=lambda way: way.evaluation.mean_average_precision)
    head = "".join(f'<th scope="col">{escape(rule)}</th>' for rule in rules)
    cells: dict[str, list[str]] = {}
    for way in ways:
        cells.setdefault(way.title, []).append(_cell(way, best))
    body = "".join(f'<tr><th scope="row">{escape(title)}</th>{"".join(row)}</tr>' for title, row in cells.items())
    caption = "<caption>mAP in percent, and its 95 % interval</caption>"
    return _scrolling(f"<table>{caption}<tr><td></td>{head}</tr>{body}</table>", "a table of mAP")


def _cell(way: Way, best: Way) -> str:
    found = way.evaluation.interval("mean_average_precision")
    marked = ' class="best"' if way is best else ""
    doubt = "" if found.supported else " (?)"
    return f"<td{marked}>{100 * found:.1f} <small>{100 * found.low:.1f} to {100 * found.high:.1f}{doubt}</small></td>"


def _rankings(ways: Sequence[Way]) -> str:
    """Return the first ten results of a few queries, one of a kind, by each way."""
    chips = ways[0].chips
    order = np.random.default_rng(0).permutation(chips.asked)
    firsts = np.unique(chips.labels[order], return_index=True)[1]
    return "".join(_ranking(ways, int(order[place])) for place in np.sort(firsts)[:_QUERIES])


def _ranking(ways: Sequence[Way], query: int) -> str:
    chips = ways[0].chips
    paths, kind = chips.manifest.paths, str(chips.labels[query])
    lines = []
    for way in ways:
        rows = way.first(query).tolist()
        right = chips.labels[rows] == kind
        pictures = "".join(
            f'<img src="{jpeg_url(paths[row])}" class="{how}" alt="{how}: {name}" title="{name}">'
            for row, how, name in zip(rows, _judged(right), map(escape, _kinds(chips, rows)), strict=True)
        )
        told = f"<span>{escape(way.rule)}<br><small>{right.sum()} of {len(right)} right</small></span>"
        lines.append(f'<div class="ranking">{told}{pictures}</div>')
    head = f'<div class="query"><img src="{jpeg_url(paths[query])}" alt="the query">a query: {escape(kind)}</div>'
    return head + _scrolling("".join(lines), f"first results for {kind}")


def _scrolling(content: str, label: str) -> str:
    """Return what may be wider than a window: it can be reached and moved by keys."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape(label)}">{content}</div>'


def _judged(right: Sequence[bool]) -> list[str]:
    return ["right" if good else "wrong" for good in right]


def _kinds(chips: Chips, rows: Sequence[int]) -> list[str]:
    return [str(chips.labels[row]) or "background" for row in rows]


def _pairs(scores: PairScores) -> str:
    told = f"{escape(scores.name)}: overlap {100 * scores.overlap:.1f} %"
    return f"<figure><figcaption>{told}</figcaption>{draw_pairs(scores)}</figure>"


def _archive(found: Findings) -> str:
    return (
        f"A gallery of {found.gallery:,} chips and windows of {len(found.scenes)} scenes. Each scene is searched for "
        "one kind that fills half a window or more, by all examples of it that ask elsewhere, in four turns each; as "
        "many places are shown as there are objects of that kind."
    )


def _scene(found: SceneSearch) -> str:
    told = (
        f"{found.scene.stem}: {found.kind} by {len(found.examples)} examples, {sum(found.right)} of {len(found.hits)} "
        "places right"
    )
    example = f'<img src="{jpeg_url(found.examples[0])}" alt="an example" width="64" height="64">'
    return f'<figure><figcaption class="query">{example}{escape(told)}</figcaption>{draw_scene(found)}</figure>'


def _accepted(found: Sequence[Accepted]) -> str:
    first = found[0].results
    right, false = (sum(counts) / len(found) for counts in zip(*((one.right, one.false) for one in found), strict=True))
    expected = first.expected_false_hits
    told = ""
    if expected is not None:
        doubt = "" if expected.supported else ", which the chips kept back are too few to support"
        told = f"; {expected:.0f} others are expected ({expected.low:.0f} to {expected.high:.0f}{doubt})"
    return (
        f"Instead of a number of hits, a false-alarm rate: at {first.requested_false_alarm_rate:g}, an example accepts "
        f"{right:.1f} chips and windows of its kind and {false:.1f} others of {first.rows_searched:,}{told}. That is "
        f"the mean over one example of each of {len(found)} kinds. The rate was measured on places that were kept back "
        "in training, among kinds alone; most of this archive is ground, which is easier to tell from an object, so "
        "fewer come."
    )
