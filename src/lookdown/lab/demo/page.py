"""The demo's page: one file that needs no other, with every figure computed in the run that wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from lookdown.adaptation import Adaptation
from lookdown.lab.demo.archive import AcceptedHits, SceneSearch
from lookdown.lab.demo.charts import draw_pairs, draw_scene, jpeg_url
from lookdown.lab.demo.metric_comparison import ADAPTED, COSINE, RATIO, Approach, WorldChips, approach_of
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

    home: Sequence[Approach]
    abroad: Sequence[Approach]
    adaptation: Adaptation  # of the run
    trained: int  # chips
    gallery: int  # chips and windows
    scenes: Sequence[SceneSearch]
    accepted: Sequence[AcceptedHits]  # an example of each kind
    provenance: str  # when, with which version and in which time it was written
    commands: Sequence[str]

    @property
    def figures(self) -> dict[str, object]:
        """The figures of the page, for programs."""
        return {
            **{
                name: {approach.name: approach.evaluation.mean_average_precision for approach in approaches}
                for name, approaches in (("home", self.home), ("abroad", self.abroad))
            },
            "scenes": {one.scene.stem: {"objects": len(one.objects), "right": sum(one.right)} for one in self.scenes},
            "accepted": {one.kind: {"right": one.right, "false": one.false} for one in self.accepted},
        }


def to_html(findings: Findings) -> str:
    """Return the page."""
    unified, ours = approach_of(findings.home, "unified", COSINE), approach_of(findings.home, "glrt", RATIO)
    before, after = approach_of(findings.abroad, "glrt", RATIO), approach_of(findings.abroad, "glrt", ADAPTED)
    pairs = [_pairs(approach.pair_scores) for approach in (unified, ours)]
    return (
        (_HERE / "page.html")
        .read_text(encoding="utf-8")
        .format(
            style=(_HERE / "page.css").read_text(encoding="utf-8"),
            made=escape(findings.provenance),
            trained=f"{findings.trained:,}",
            home_sizes=_sizes(ours.chips),
            home_table=_table(findings.home),
            home_verdict=escape(difference(ours, unified)),
            pairs="".join(pairs),
            home_rows=_rankings((unified, ours)),
            abroad_sizes=_sizes(after.chips),
            abroad_table=_table(findings.abroad),
            abroad_verdict=escape(
                f"{difference(after, before)} The adaptation says of itself: {findings.adaptation.reason}."
            ),
            abroad_rows=_rankings((before, after)),
            archive=escape(_archive(findings)),
            scenes="".join(map(_scene, findings.scenes)),
            accepted=escape(_accepted(findings.accepted)),
            next=escape("\n".join(findings.commands)),
            footer=_FOOTER,
        )
    )


def difference(ours: Approach, theirs: Approach) -> str:
    """Say how much better one approach is than another, with its interval."""
    gain = ours.evaluation.difference(theirs.evaluation)
    whether = "more than chance gives" if gain.low > 0 else "less" if gain.high < 0 else "which may be chance"
    if not gain.supported:
        whether = "but the queries come from too few locations to say"
    return (
        f"{ours.name} against {theirs.name}: {100 * gain:+.1f} mAP (95 % from {100 * gain.low:+.1f} to "
        f"{100 * gain.high:+.1f}), {whether}."
    )


def _sizes(chips: WorldChips) -> str:
    empty = int((chips.labels[chips.searched] == "").sum())
    kinds = len(set(chips.labels.tolist()) - {""})
    return (
        f"{len(chips.asked):,} queries of {kinds} kinds, {len(chips.searched):,} chips to search, {empty:,} of them "
        "without an object."
    )


def _table(approaches: Sequence[Approach]) -> str:
    rules = list(dict.fromkeys(approach.rule for approach in approaches))
    best = max(approaches, key=lambda approach: approach.evaluation.mean_average_precision)
    head = "".join(f'<th scope="col">{escape(rule)}</th>' for rule in rules)
    cells: dict[str, list[str]] = {}
    for approach in approaches:
        cells.setdefault(approach.title, []).append(_cell(approach, best))
    body = "".join(f'<tr><th scope="row">{escape(title)}</th>{"".join(row)}</tr>' for title, row in cells.items())
    caption = "<caption>mAP in percent, and its 95 % interval</caption>"
    return _scrolling(f"<table>{caption}<tr><td></td>{head}</tr>{body}</table>", "a table of mAP")


def _cell(approach: Approach, best: Approach) -> str:
    precision = approach.evaluation.interval("mean_average_precision")
    marked = ' class="best"' if approach is best else ""
    doubt = "" if precision.supported else " (?)"
    interval = f"{100 * precision.low:.1f} to {100 * precision.high:.1f}{doubt}"
    return f"<td{marked}>{100 * precision:.1f} <small>{interval}</small></td>"


def _rankings(approaches: Sequence[Approach]) -> str:
    """Return the first ten results of a few queries, one of a kind, by each approach."""
    chips = approaches[0].chips
    order = np.random.default_rng(0).permutation(chips.asked)
    firsts = np.unique(chips.labels[order], return_index=True)[1]
    return "".join(_ranking(approaches, int(order[first])) for first in np.sort(firsts)[:_QUERIES])


def _ranking(approaches: Sequence[Approach], query: int) -> str:
    chips = approaches[0].chips
    paths, kind = chips.manifest.paths, str(chips.labels[query])
    lines = []
    for approach in approaches:
        rows = approach.first(query).tolist()
        right = chips.labels[rows] == kind
        pictures = "".join(
            f'<img src="{jpeg_url(paths[row])}" class="{how}" alt="{how}: {name}" title="{name}">'
            for row, how, name in zip(rows, _judged(right), map(escape, _kinds(chips, rows)), strict=True)
        )
        heading = f"<span>{escape(approach.rule)}<br><small>{right.sum()} of {len(right)} right</small></span>"
        lines.append(f'<div class="ranking">{heading}{pictures}</div>')
    head = f'<div class="query"><img src="{jpeg_url(paths[query])}" alt="the query">a query: {escape(kind)}</div>'
    return head + _scrolling("".join(lines), f"first results for {kind}")


def _scrolling(content: str, label: str) -> str:
    """Return what may be wider than a window: it can be reached and moved by keys."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape(label)}">{content}</div>'


def _judged(right: Sequence[bool]) -> list[str]:
    return ["right" if good else "wrong" for good in right]


def _kinds(chips: WorldChips, rows: Sequence[int]) -> list[str]:
    return [str(chips.labels[row]) or "background" for row in rows]


def _pairs(scores: PairScores) -> str:
    caption = f"{escape(scores.name)}: overlap {100 * scores.overlap:.1f} %"
    return f"<figure><figcaption>{caption}</figcaption>{draw_pairs(scores)}</figure>"


def _archive(findings: Findings) -> str:
    return (
        f"A gallery of {findings.gallery:,} chips and windows of {len(findings.scenes)} scenes. Each scene is searched "
        "for one kind that fills half a window or more, by all its query chips, in four turns each; as many hits are "
        "shown as there are objects of that kind."
    )


def _scene(search: SceneSearch) -> str:
    caption = (
        f"{search.scene.stem}: {search.kind} by {len(search.examples)} examples, {sum(search.right)} of "
        f"{len(search.hits)} hits right"
    )
    example = f'<img src="{jpeg_url(search.examples[0])}" alt="an example" width="64" height="64">'
    return f'<figure><figcaption class="query">{example}{escape(caption)}</figcaption>{draw_scene(search)}</figure>'


def _accepted(accepted: Sequence[AcceptedHits]) -> str:
    first = accepted[0].results
    right, false = (
        sum(counts) / len(accepted) for counts in zip(*((one.right, one.false) for one in accepted), strict=True)
    )
    expected = first.expected_false_hits
    expectation = ""
    if expected is not None:
        doubt = "" if expected.supported else ", which the chips kept back are too few to support"
        expectation = f"; {expected:.0f} others are expected ({expected.low:.0f} to {expected.high:.0f}{doubt})"
    return (
        f"Instead of a number of hits, a false-alarm rate: at {first.requested_false_alarm_rate:g}, an example accepts "
        f"{right:.1f} chips and windows of its kind and {false:.1f} others of {first.rows_searched:,}{expectation}. "
        f"That is the mean over one example of each of {len(accepted)} kinds. The rate was measured on scenes "
        "that were held out in training, among objects only. Most of this archive is ground, which is easier to tell "
        "from an object, so fewer false hits come."
    )
