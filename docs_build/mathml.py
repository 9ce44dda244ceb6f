"""Formulas of the pages as MathML, written when the site is built: a browser draws them without a script."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

__all__ = ["MathML", "makeExtension"]

_ABOVE_ESCAPES = 185  # below code spans (190), so that a dollar in code stays one


class MathML(Extension):
    """`$x$` in a line and `$$x$$` as a paragraph of its own, as the code forges read them."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register both forms."""
        md.inlinePatterns.register(_Inline(r"\$([^$\n]+)\$", md), "mathml", _ABOVE_ESCAPES)
        md.parser.blockprocessors.register(_Block(md.parser), "mathml", _ABOVE_ESCAPES)


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802
        return self.md.htmlStash.store(_mathml(m[1], "inline")), m.start(), m.end()


class _Block(BlockProcessor):
    _FORMULA = re.compile(r"\s*\$\$(.+)\$\$\s*", flags=re.DOTALL)

    def test(self, parent: Element, block: str) -> bool:
        return self._FORMULA.fullmatch(block) is not None

    def run(self, parent: Element, blocks: list[str]) -> None:
        formula = self._FORMULA.fullmatch(blocks.pop(0))
        assert formula is not None  # `test` has seen it
        paragraph = SubElement(parent, "div", {"class": "formula"})
        paragraph.text = self.parser.md.htmlStash.store(_mathml(formula[1], "block"))


def _mathml(formula: str, display: str) -> str:
    text = convert(formula, display=display)
    text = text.replace(r"\_", "_")  # left as it is inside \texttt
    return text.replace('<mo stretchy="false">&#x0007C;', '<mo stretchy="false" lspace="0" rspace="0">&#x0007C;')


def makeExtension(**settings: Any) -> MathML:  # noqa: N802
    """Return the extension; Python-Markdown looks for this name."""
    return MathML(**settings)
