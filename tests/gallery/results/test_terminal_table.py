"""The table of a terminal: aligned, within its width, and names are only names."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from tests.gallery.results.found import NAUGHTY, bare, found, hit, measured, named, naughty

from lookdown.gallery.results.terminal_table import cut, table
from lookdown.gallery.results.wording import one_line
from lookdown.metrics.estimate import Estimate


def rows(text: str) -> list[str]:
    """The lines of the hits, between the blank lines."""
    return text.split("\n\n")[1].split("\n")


def test_every_column_stands_below_its_title() -> None:
    second = hit(id="b", score=-12.5, false_alarm_rate=measured(1e-7, supported=False), posterior=0.99999, merged=12)
    lines = rows(table(found(hit(), second), width=140))
    assert lines[0].split() == ["false"]
    assert lines[1].split() == ["rank", "id", "score", "posterior", "alarms", "label", "scene", "time", "merged"]
    assert lines[2].split() == [
        "1", "harbour-001-00037", "4.250", "0.930", "0.001", "cargo", "ship", "harbour-001", "2025-03-04T10:12:00Z",
    ]  # fmt: skip
    assert lines[3].split()[2:5] == ["-12.500", ">0.999", "1e-07?"]
    assert lines[3].endswith("+12")
    for number in ("score", "posterior", "alarms"):
        end = lines[1].index(number) + len(number)
        assert all(line[end] == " " != line[end - 1] for line in lines[1:])
    for text in ("id ", "label", "scene", "time"):
        begin = lines[1].index(text)
        assert all(line[begin] != " " == line[begin - 1] for line in lines[1:])


def test_it_begins_with_the_search_and_ends_with_what_the_figures_mean() -> None:
    lines = table(
        found(hit(), hit(), expected_false_hits=measured(0.32), notes=("One image could not be read.",)), width=200
    ).split("\n")
    assert lines[0] == "Searched 3,200 chips for ship.jpg: 2 hits, best first (metric glrt, engine exact)."
    below = lines[lines.index("", 2) + 1 :]
    assert below[0].startswith("About 0.32 of these 2 hits are expected to be false: rate 0.0001 x 3,200 chips")
    assert "(the prior)" in below[2]
    assert below[-1] == "One image could not be read."


def test_a_mark_in_a_cell_is_explained_below() -> None:
    marked = table(found(hit(false_alarm_rate=Estimate.of_model(1e-3, "analytic"))))
    assert "0.001?" in marked
    assert "A figure with ? is not supported" in marked
    assert "?" not in table(found(hit()))


def test_the_kind_that_a_hit_is_taken_for_has_a_column_and_a_sentence() -> None:
    text = table(found(hit(kind="F-16", kind_probability=0.931), hit(kind_probability=0.62), bare()), width=140)
    assert rows(text)[1].split()[5:7] == ["label", "kind"]
    begin = rows(text)[1].index("kind")
    assert [line[begin:].split("  ")[0] for line in rows(text)[2:]] == ["F-16, 93 %", "none of these, 62 %", "-"]
    assert "Kind: the likeliest of the kinds that the metric knows, or none of these." in text
    assert "Kind:" not in table(found(hit()))


def test_columns_that_are_empty_are_left_out() -> None:
    lines = rows(table(found(bare(), bare(background=True), expected_false_hits=None)))
    assert lines[0].split() == ["rank", "id", "score", "label", "scene"]
    assert lines[1].split()[3] == "-"
    assert lines[2].split()[3] == "background"
    assert "label" not in rows(table(found(bare())))[0]


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_no_line_is_wider_than_the_terminal_whatever_the_names(width: int) -> None:
    weak = measured(1.5e-5, supported=False)
    hits = [named(name, score=-10.25, false_alarm_rate=weak, merged=3) for name in NAUGHTY]
    text = table(found(*hits, query="x" * 500, notes=("y" * 500,)), width=width)
    assert max(map(cell_len, text.split("\n"))) <= width
    assert len(rows(text)) == len(NAUGHTY) + 2


def test_long_names_are_cut_in_the_middle_at_eighty_columns() -> None:
    name = "first" + "-" * 490 + "last"
    weak = measured(1.5e-5, supported=False)
    ordinary = [hit(id=name, scene=name, false_alarm_rate=weak, merged=3), hit(score=-10.125)]
    text = table(found(*ordinary), width=80)
    line = rows(text)[2]
    assert "firs" in line
    assert "last" in line
    assert "2025-03-04 " in line
    assert "10:12" not in line  # the day, not half of the time
    assert "No room for scene: widen the terminal" in " ".join(text.split("\n"))


def test_columns_leave_before_ids_do() -> None:
    text = table(found(hit(merged=1)), width=30)
    assert rows(text)[-1].split() == ["1", "harbo…0037", "4.250", "0.930", "0.001"]
    assert "No room for scene, time, merged, label" in " ".join(text.split("\n"))
    assert len(table(found(hit()), width=0).split("\n")) > 5


def test_cut_columns_use_the_room_that_is_left() -> None:
    assert max(map(cell_len, rows(table(found(hit(id="x" * 500)), width=100)))) >= 99


def test_only_the_first_are_shown_when_asked() -> None:
    text = table(found(*[hit(id=f"chip-{number}") for number in range(1, 1201)]), limit=2)
    assert rows(text)[-1] == "... and 1,198 more"
    assert "chip-2 " in text
    assert "chip-3 " not in text
    assert "1,200 hits" in text


def test_names_are_not_taken_for_markup_nor_for_codes_of_the_terminal() -> None:
    text = table(naughty(), width=400)
    assert "[red]not red[/red]" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert len(rows(text)) == len(NAUGHTY) + 2
    text.encode()


def test_rich_prints_it_as_it_is_where_markup_is_off() -> None:
    from rich.console import Console

    text = table(naughty(), width=120)
    shown = io.StringIO()
    Console(file=shown, width=500, no_color=True).print(text, markup=False, highlight=False, emoji=False)
    assert [line.rstrip() for line in shown.getvalue().split("\n")] == [
        *(line.rstrip() for line in text.split("\n")),
        "",
    ]


def test_an_empty_result_has_no_table_and_some_advice() -> None:
    text = table(found(rows_searched=0))
    assert text.split("\n\n")[0].startswith("Searched 0 chips for ship.jpg: no hits")
    assert "Widen the filter." in text
    assert "rank" not in text


def test_a_name_that_is_no_text_can_be_printed() -> None:
    table(found(hit(id="a\udcff"), query="b\udcff")).encode()


@pytest.mark.parametrize(
    ("text", "width"), [("ship", 4), ("船", 2), ("🚢", 2), ("e\u0301", 1), ("سفينة", 5), ("\uff21", 2), ("", 0)]
)
def test_cells_are_columns_of_a_terminal(text: str, width: int) -> None:
    assert cell_len(text) == width


@pytest.mark.parametrize("name", NAUGHTY)
@pytest.mark.parametrize("width", [1, 2, 3, 10, 11, 40])
def test_a_cut_name_fits_and_keeps_both_ends(name: str, width: int) -> None:
    line = one_line(name)
    short = cut(line, width)
    assert cell_len(short) <= width
    if cell_len(line) <= width:
        assert short == line
    else:
        head, tail = short.split("…")
        assert line.startswith(head)
        assert line.endswith(tail)
        assert cell_len(short) >= width - 2  # a wide sign may leave a column on either side


def test_an_accent_does_not_outlive_its_letter() -> None:
    assert cut("abcdefghie\u0301j", 5) == "ab…e\u0301j"
    assert cut("abcdefghie\u0301", 4) == "ab…e\u0301"
    assert cut("abcdefgh船\u0301", 3) == "a…"
