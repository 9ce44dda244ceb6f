"""Results as a contact sheet: one HTML page that needs no other file, no script and no network."""

from __future__ import annotations

import base64
from html import escape

from lookdown.gallery.results.hit import Hit, Results
from lookdown.gallery.results.wording import (
    expectation,
    explanations,
    headline,
    one_line,
    posterior_text,
    rate_text,
    score_text,
)

__all__ = ["to_html"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
{picture}<div>
<h1><bdi>{query}</bdi></h1>
{summary}</div>
</header>
<main>
{hits}</main>
{footer}</body>
</html>
"""

_STYLE = """
:root {
  color-scheme: light dark;
  --page: #f4f5f3; --card: #fff; --edge: #dfe2de; --text: #1f2629; --quiet: #5c676b; --well: #e9ebe8;
}
@media (prefers-color-scheme: dark) {
  :root { --page: #14181a; --card: #1d2225; --edge: #30373a; --text: #e3e8e8; --quiet: #9aa5a8; --well: #101314; }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 84rem; padding: 2rem clamp(1rem, 4vw, 3rem);
  background: var(--page); color: var(--text); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
header { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: center; margin-bottom: 2rem; }
header > div { flex: 1 1 18rem; min-width: 0; }
header img { width: 9rem; height: 9rem; object-fit: contain; background: var(--well); border-radius: .5rem; }
h1 { margin: 0 0 .4rem; font-size: 1.5rem; font-weight: 600; line-height: 1.25; overflow-wrap: anywhere; }
p { margin: 0 0 .4rem; max-width: 70ch; overflow-wrap: anywhere; }
ol {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(12rem, 100%), 1fr)); gap: 1rem;
  margin: 0; padding: 0; list-style: none;
}
li {
  display: flex; flex-direction: column; overflow: hidden; break-inside: avoid; min-width: 0;
  background: var(--card); border: 1px solid var(--edge); border-radius: .5rem;
}
.picture {
  display: grid; place-items: center; aspect-ratio: 1; background: var(--well); color: var(--quiet); font-size: .85rem;
}
.picture img { width: 100%; height: 100%; object-fit: contain; min-height: 0; }
.caption { padding: .7rem .8rem .8rem; font-size: .8rem; min-width: 0; }
.kind { display: flex; gap: .5rem; align-items: baseline; margin-bottom: .3rem; font-size: .95rem; font-weight: 600; }
.kind .name { flex: 1; }
.rank { color: var(--quiet); font-weight: 400; font-variant-numeric: tabular-nums; }
dl { margin: 0; }
dl div { display: flex; justify-content: space-between; gap: .4rem; }
dt { color: var(--quiet); }
dd { margin: 0; white-space: nowrap; font-variant-numeric: tabular-nums; }
.from { margin-top: .5rem; padding-top: .5rem; border-top: 1px solid var(--edge); color: var(--quiet); }
.name {
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; overflow-wrap: anywhere; min-width: 0;
}
footer {
  margin-top: 2rem; padding-top: 1rem; border-top: 1px solid var(--edge); color: var(--quiet); font-size: .9rem;
}
@media (max-width: 30rem) {
  body { padding-top: 1rem; }
  ol { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .6rem; }
  header img { width: 6rem; height: 6rem; }
  h1 { font-size: 1.2rem; }
  .caption { padding: .5rem .6rem .6rem; }
}
@media print { body { max-width: none; padding: 0; } }
"""


def to_html(results: Results, query_thumbnail: bytes | None = None) -> str:
    """Return the page: the query, the hits as pictures with their figures, and what the figures mean.

    query_thumbnail: a JPEG of the query, for the head of the page.
    """
    cards = "".join(map(_card, results.hits))
    remarks = _paragraphs(explanations(results))
    return _PAGE.format(
        title=f"lookdown: {_text(one_line(results.query)[:60])}",
        style=_STYLE,
        picture=f"{_image(query_thumbnail, 'the query')}\n" if query_thumbnail else "",
        query=_text(results.query),
        summary=_paragraphs([headline(results, "the query"), expectation(results)]),
        hits=f"<ol>\n{cards}</ol>\n" if cards else "",
        footer=f"<footer>\n{remarks}</footer>\n" if remarks else "",
    )


def _card(hit: Hit) -> str:
    label = hit.label if hit.label is not None else "background" if hit.background else "no label"
    picture = _image(hit.thumbnail, f"hit {hit.rank}") if hit.thumbnail else "no picture"
    figures = [("score", score_text(hit.score))]
    if hit.posterior is not None:
        figures.append(("posterior", posterior_text(hit.posterior)))
    if hit.false_alarm_rate is not None:
        figures.append(("false alarms", rate_text(hit.false_alarm_rate)))
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
    return escape(one_line(text), quote=True)
