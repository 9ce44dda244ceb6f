"""Results as a contact sheet: one HTML page that needs no other file, no script and no network."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from string import Template

from lookdown.gallery.results import wording
from lookdown.gallery.results.hit import Hit, Results

__all__ = ["to_html"]


def to_html(results: Results, query_thumbnail: bytes | None = None) -> str:
    """Return the page: the query, the hits as pictures with their figures, and what the figures mean.

    query_thumbnail: a JPEG of the query, for the head of the page.
    """
    cards = "".join(map(_card, results.hits))
    remarks = _paragraphs(wording.explanations(results))
    template = Path(__file__).with_name("contact_sheet.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=f"lookdown: {_text(wording.one_line(results.query)[:60])}",
        picture=f"{_image(query_thumbnail, 'the query')}\n" if query_thumbnail else "",
        query=_text(results.query),
        summary=_paragraphs([wording.headline(results, "the query"), wording.expectation(results)]),
        hits=f"<ol>\n{cards}</ol>\n" if cards else "",
        footer=f"<footer>\n{remarks}</footer>\n" if remarks else "",
    )


def _card(hit: Hit) -> str:
    label = hit.label if hit.label is not None else "background" if hit.background else "no label"
    picture = _image(hit.thumbnail, f"hit {hit.rank}") if hit.thumbnail else "no picture"
    figures = [("score", wording.score_text(hit.score))]
    if hit.posterior is not None:
        figures.append(("posterior", wording.posterior_text(hit.posterior)))
    if hit.false_alarm_rate is not None:
        figures.append(("false alarms", wording.rate_text(hit.false_alarm_rate)))
    if hit.kind_probability is not None:
        figures.append(("kind", wording.kind_text(hit.kind, hit.kind_probability)))
    if hit.merged:
        figures.append(("windows merged", f"+{hit.merged:,}"))
    rows = "".join(f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>" for name, value in figures)
    origin = "".join(map(_name, (hit.id, hit.source, *([] if hit.time is None else [hit.time]))))
    return (
        f'<li><div class="picture">{picture}</div><div class="caption">'
        f'<div class="kind">{_name(label)}<span class="rank">{hit.rank:,}</span></div>'
        f'<dl>{rows}</dl><div class="from">{origin}</div></div></li>\n'
    )


def _name(text: str) -> str:
    """Return a name that may run right to left or be very long: isolated, cut by the style, whole in the title."""
    return f'<bdi class="name" title="{_text(text)}">{_text(text)}</bdi>'


def _image(jpeg: bytes, description: str) -> str:
    return f'<img src="data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}" alt="{description}" decoding="async">'


def _paragraphs(sentences: list[str]) -> str:
    return "".join(f"<p>{_text(sentence)}</p>\n" for sentence in sentences)


def _text(text: str) -> str:
    return escape(wording.one_line(text), quote=True)
