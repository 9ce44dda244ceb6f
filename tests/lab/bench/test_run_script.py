"""Scripts run as real processes; whatever becomes of one is an outcome."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab.bench.fake_scripts import write_scripts

from lookdown.lab.bench.run_script import Outcome, run_script
from lookdown.lab.bench.scripts import FOLDER


def outcome(tmp_path: Path, name: str, *, quick: bool = False) -> Outcome:
    script = write_scripts(tmp_path / "scripts", name) / f"{name}.py"
    (tmp_path / "pages").mkdir(exist_ok=True)
    return run_script(script, tmp_path / "pages", threads=1, quick=quick)


def test_a_script_that_is_fine_hands_its_rows_over(tmp_path: Path) -> None:
    found = outcome(tmp_path, "fine")
    assert (found.script, found.title, found.threads, found.trouble) == ("fine", "Fine", 1, None)
    assert [row.what for row in found.rows] == ["fast"]
    assert not found.missed
    assert found.printed.startswith("a remark\n")
    assert "| fast | 1 s | slow | 4 s | 0.25 | at most 0.5 | met |" in found.printed
    assert found.seconds > 0


def test_a_target_that_is_missed_is_no_trouble_of_the_script(tmp_path: Path) -> None:
    found = outcome(tmp_path, "misses")
    assert [row.what for row in found.missed] == ["late"]
    assert found.trouble is None
    assert found.threads is None


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("fails", "fails.py ended with code 1: ValueError: out of luck; run it alone"),
        ("halfway", "halfway.py ended with code 1: then it broke; run it alone"),
        ("silent", "silent.py handed over no rows; end it with `report`"),
        ("lacks", "no_such_package is missing: .* run: pip install 'lookdown\\[bench\\]'"),
    ],
)
def test_trouble_is_a_sentence_with_the_next_step(tmp_path: Path, name: str, trouble: str) -> None:
    with pytest.raises(AssertionError, match=trouble):
        raise AssertionError(outcome(tmp_path, name).trouble)


def test_rows_before_the_trouble_are_kept(tmp_path: Path) -> None:
    assert [row.what for row in outcome(tmp_path, "halfway").rows] == ["fast"]


def test_pages_are_kept_and_a_quick_run_is_told_so(tmp_path: Path) -> None:
    assert outcome(tmp_path, "pictures", quick=True).rows[0].what == "quick"
    assert outcome(tmp_path, "pictures").rows[0].what == "slow"
    assert [file.name for file in (tmp_path / "pages").iterdir()] == ["more.md"]


def test_a_quick_run_is_not_judged_by_its_targets(tmp_path: Path) -> None:
    found = outcome(tmp_path, "misses", quick=True)
    assert found.trouble is None
    assert "MISSED" not in found.printed


def test_threads_are_pinned(tmp_path: Path) -> None:
    script = write_scripts(tmp_path, "threads") / "threads.py"
    for threads in (1, 3):
        assert run_script(script, tmp_path, threads=threads).rows[0].ours == threads


def test_a_real_script_runs_quickly(tmp_path: Path) -> None:
    pytest.importorskip("pytorch_metric_learning")
    found = run_script(FOLDER / "losses.py", tmp_path, threads=1, quick=True)
    assert found.trouble is None
    assert len(found.rows) == 6
    assert all(row.ours > 0 and row.theirs > 0 for row in found.rows)
