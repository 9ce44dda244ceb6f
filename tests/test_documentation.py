"""The documentation leads somewhere: its site builds, its links and anchors exist, its commands can be typed."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer
from tests.service.page_server import chromium, watched
from tests.test_architecture import LAYERS

import lookdown
from lookdown import errors
from lookdown.cli import app
from lookdown.lab.paper.paper_values import ABLATION, COMPARISON
from lookdown.losses import LOSSES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
SITE = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
REMOTE = re.compile(r"(?:[a-z]+:)?//", flags=re.IGNORECASE)

needs_generator = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("zensical", "latex2mathml", "mkdocstrings_handlers")),
    reason="the site's generator is not installed; run: pip install --constraint constraints.txt '.[docs]'",
)


def named(pages: list[Path]) -> list[Any]:
    return [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages]


def without_code(text: str) -> str:
    """Drop fenced blocks and code spans, in which nothing is a link or a heading."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def links(text: str) -> list[str]:
    """Targets of links and images, as Markdown and as HTML."""
    text = without_code(text)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)


def anchors(text: str) -> set[str]:
    """Anchors of the headings, as GitHub and the site both name them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}


def dead(page: Path, link: str) -> str | None:
    """Why a link leads nowhere, None if it leads somewhere or out of the repository."""
    if REMOTE.match(link) or link.startswith("mailto:"):
        return None
    path, _, anchor = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{link}: no such file"
    if page.is_relative_to(DOCS) and not target.is_relative_to(DOCS):
        return f"{link}: leads out of docs/, where the site cannot follow"
    if anchor and anchor not in anchors(target.read_text()):
        return f"{link}: no such heading; there are {', '.join(sorted(anchors(target.read_text())))}"
    return None


@pytest.mark.parametrize("page", named(PAGES))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    assert not [reason for link in links(page.read_text()) if (reason := dead(page, link))]


def test_the_link_checker_sees_what_is_broken(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`, three\n\n```\n[x](fenced.md)\n# no heading\n```\n`[x](span.md)` ![y](a.jpg) [z](#one)"
    )
    assert links(page.read_text()) == ["a.jpg", "#one"]
    assert anchors(page.read_text()) == {"one-two-three"}
    assert "no such file" in str(dead(page, "a.jpg"))
    assert "no such heading" in str(dead(page, "#one"))
    assert dead(page, "#one-two-three") is dead(page, "page.md#one-two-three") is dead(page, "https://x.org") is None


def navigation(entries: list[Any]) -> Iterator[str]:
    """Pages that the navigation names, in order."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, list):
            yield from navigation(entry)
        else:
            yield from navigation(list(entry.values()))


def test_the_navigation_has_every_page_once() -> None:
    """The generator says nothing of a page that it cannot find, nor of one that no entry leads to."""
    listed = list(navigation(SITE["nav"]))
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_the_architecture_page_has_the_layers_in_their_order() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", (DOCS / "architecture.md").read_text(), flags=re.MULTILINE)
    assert rows == [(str(number), layer) for number, layer in enumerate(LAYERS, start=1)]
    boxes = re.findall(r'class="name">([^<]+)', (DOCS / "images" / "data-flow.svg").read_text())
    drawn = re.findall(r"(\d+) (\w+)", " ".join(boxes))
    assert len(drawn) > 8
    assert set(drawn) <= set(rows)


class Assets(HTMLParser):
    """Collects what a page makes a browser load, links that a reader may follow left out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value and (name in ("src", "srcset", "poster", "data") or (name == "href" and tag in ("link", "use"))):
                self.found.append(value)


def build(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors; the generator writes beside its configuration only, hence the copy."""
    project = tmp_path_factory.mktemp("documentation")
    for folder in ("docs", "docs_build", "src"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("zensical.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, project)
    built = build(project)
    assert built.returncode == 0, built.stdout + built.stderr
    return Path(project / SITE["site_dir"])


@needs_generator
def test_the_site_has_every_page(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        name = "index" if page.stem == "README" else page.stem
        assert (site / page.relative_to(DOCS).with_name(f"{name}.html")).is_file()


@needs_generator
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    """It is read on closed networks."""
    for page in site.rglob("*.html"):
        assets = Assets()
        assets.feed(page.read_text())
        assert assets.found
        assert not [asset for asset in assets.found if REMOTE.match(asset)], page.name
        local = [unquote(asset).split("?")[0] for asset in assets.found if not asset.startswith(("data:", "#"))]
        if page.name != "404.html":  # its addresses begin at the root of a server
            assert not [asset for asset in local if not (page.parent / asset).exists()], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", sheet.read_text()), sheet.name


@needs_generator
def test_formulas_are_drawn_by_the_browser_itself(site: Path) -> None:
    for name in ("metric", "kinds", "mixture"):
        page = (site / f"{name}.html").read_text()
        formulas = re.findall(r"\$[^$\n]+\$", without_code((DOCS / f"{name}.md").read_text()).replace("$$", "$"))
        assert page.count("<math ") == len(formulas) > 10
        assert "$" not in re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)


def documented_names() -> list[str]:
    """Names that the pages of the API reference describe, in order."""
    text = "\n".join(page.read_text() for page in sorted((DOCS / "api").glob("*.md")))
    names = re.findall(r"^::: lookdown\.(\w+)$", text, flags=re.MULTILINE)
    return [name for name in names if name != "errors"]  # a module, which is shown whole


def test_the_api_reference_has_every_public_name_once() -> None:
    assert sorted(documented_names()) == sorted(name for name in lookdown.__all__ if name != "__version__")


@needs_generator
def test_the_api_reference_describes_arguments_and_shows_the_source(site: Path) -> None:
    pages = {page.stem: page.read_text() for page in (site / "api").glob("*.html")}
    for name in documented_names():
        assert any(f'id="lookdown.{name}"' in page for page in pages.values()), name
    for name, _ in inspect.getmembers(errors, inspect.isclass):
        assert f'id="lookdown.{name}"' in pages["errors"] or f'id="lookdown.errors.{name}"' in pages["errors"], name
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", pages["search"]))
    assert 'id="lookdown.Gallery.search"' in pages["search"]
    assert re.search(r"Parameters: examples \(.{0,200}?\) \S ", text)
    assert "src/lookdown/gallery/gallery.py" in text


@needs_generator
def test_an_unknown_name_in_the_reference_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Page\n\n::: lookdown.Galery\n")
    (tmp_path / "zensical.toml").write_text(
        f'[project]\nsite_name = "x"\n[project.plugins.mkdocstrings.handlers.python]\npaths = ["{ROOT / "src"}"]\n'
    )
    assert build(tmp_path).returncode != 0


@needs_generator
def test_the_search_works_from_a_disk(site: Path) -> None:
    with chromium() as browser:
        reader = watched(browser)
        loaded: list[str] = []
        reader.page.on("request", lambda request: loaded.append(request.url))
        reader.page.goto((site / "losses" / "glrt.html").as_uri())
        reader.page.get_by_role("button", name="Search").first.click()
        box = reader.page.get_by_role("combobox", name="Search")
        box.press_sequentially("Neyman-Pearson")
        reader.page.get_by_text("Decisions at a false-alarm rate").first.wait_for()
        assert box.input_value() == "Neyman-Pearson"
        assert not reader.troubles
        assert all(url.startswith(("file:", "data:")) for url in loaded)


@needs_generator
@pytest.mark.parametrize("line", ["[x](nowhere.md)", "[x](metric.md#nothing)", "[x](#nothing)", "[x](../README.md)"])
def test_a_broken_link_fails_the_build(line: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Page\n\n{line}\n")
    (tmp_path / "docs" / "metric.md").write_text("# Metric\n")
    (tmp_path / "zensical.toml").write_text('[project]\nsite_name = "x"\n')
    assert "strict" in (broken := build(tmp_path)).stderr
    assert broken.returncode == 1


def command_lines(text: str) -> list[str]:
    """Lines that call lookdown, in plain and shell blocks and in code spans, without what stands before the name."""
    blocks = re.findall(r"^```(?:sh|console)?\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(r"`(lookdown [a-z][^`\n]*)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    found = [re.sub(r"^(?:\$ )?(?:\S*/bin/)?(?=lookdown )", "", line) for line in lines]
    return [line for line in [*found, *spans] if line.startswith("lookdown ")]


@cache
def program() -> Any:
    return typer.main.get_command(app)


def wrong(line: str) -> str | None:
    """What in a command line does not exist: the command, a command below it, or an option."""
    command = program()
    for word in shlex.split(line, comments=True)[1:]:
        word = word.strip("[]")
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        if word.startswith("-") and not re.fullmatch(r"-[\d.]+", word):
            if word.partition("=")[0] not in {*options, "--help"}:
                return f"{line}: {command.name} has no option {word}"
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return f"{line}: {command.name} has no command {word}"
            command = command.commands[word]
    return None


@pytest.mark.parametrize("page", named(PAGES))
def test_commands_can_be_typed_as_they_stand(page: Path) -> None:
    assert not [reason for line in command_lines(page.read_text()) if (reason := wrong(line))]


def test_the_checker_of_commands_sees_what_does_not_exist() -> None:
    page = "```\n.venv/bin/lookdown train RECIPE -o RUN [--set a=1]  # note\nother\n```\nand `lookdown serch x`.\n"
    assert command_lines(page) == ["lookdown train RECIPE -o RUN [--set a=1]  # note", "lookdown serch x"]
    assert wrong("lookdown train RECIPE -o RUN [--set a=1]  # --note") is None
    assert wrong("lookdown gallery label gallery --no-teach --as tanker ID") is None
    for line in ("lookdown serch x", "lookdown gallery lable g", "lookdown search g x --jsno", "lookdown -x"):
        assert wrong(line), line
    assert sum(len(command_lines(page.read_text())) for page in PAGES) > 50


def table_of(page: Path, heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a heading, by their first cell."""
    part = page.read_text().split(f"{heading}\n", 1)[1]
    rows = re.search(r"^\|.*?\n\n", part, flags=re.DOTALL | re.MULTILINE)
    assert rows is not None
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows[0].strip().splitlines()]
    return {row[0]: row[1:] for row in cells}


@pytest.mark.parametrize(
    ("row", "task", "table"),
    [
        ("aircraft, trained kinds", "CBRSOR-MAR", 10),
        ("aircraft, unseen kinds", "UDA-CBRSOR-MAR", 12),
        ("ships, trained kinds", "CBRSOR-FGSRSI", 9),
        ("ships, unseen kinds", "UDA-CBRSOR-FGSRSI", 11),
    ],
)
def test_the_results_in_the_readme_are_those_of_the_study_and_of_the_paper(row: str, task: str, table: int) -> None:
    shown = [float(part) for part in re.findall(r"\d+\.\d", " ".join(table_of(ROOT / "README.md", "## Results")[row]))]
    study = table_of(DOCS / "results" / "study.md", f"## {task}")
    found = {loss: [float(cell.split()[0]) for cell in study[loss]] for loss in LOSSES}
    baselines = [loss for loss in LOSSES if loss not in ("glrt", "unified")]
    best, adapted = (max(found[loss][rule] for loss in baselines) for rule in (0, 3))
    assert shown[:8:2] + shown[8:] == [found["identity"][0], best, *found["glrt"][1:4:2], adapted]
    paper = COMPARISON[table]
    best = max(value.mean_average_precision for loss, value in paper.items() if loss in baselines)
    ablation = ABLATION[{9: 1, 10: 2, 11: 3, 12: 4}[table]]
    ours = [ablation[2].mean_average_precision, ablation[3].mean_average_precision]
    assert shown[1:8:2] == [paper["identity"].mean_average_precision, best, *ours]
