"""Every table and figure of the paper by its name, and the studies beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lookdown.errors import InputError
from lookdown.lab.paper import (
    ablation,
    choices,
    cluster_counts,
    false_alarm_rates,
    figure_1,
    figure_4,
    figure_5,
    figure_6,
    loss_comparison,
    robustness,
    running_time,
    study,
)
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.report import Page
from lookdown.suggestions import did_you_mean

__all__ = ["TARGETS", "reproduce"]

TARGETS: dict[str, Callable[[Experiment], Page]] = {
    **{f"table{number}": partial(ablation.make, number=number) for number in (1, 2, 3, 4)},
    "table5": cluster_counts.make,
    **{f"table{number}": partial(ablation.make, number=number) for number in (6, 7)},
    "table8": running_time.make,
    **{f"table{number}": partial(loss_comparison.make, number=number) for number in (9, 10, 11, 12)},
    "figure1": figure_1.make,
    "figure4": figure_4.make,
    "figure5": figure_5.make,
    "figure6": figure_6.make,
    "robustness": robustness.make,
    "false-alarms": false_alarm_rates.make,
    "choose": choices.make,
    "study": study.make,
}
_OF_THE_PAPER = [name for name in TARGETS if name not in ("choose", "study")]


def reproduce(names: Sequence[str], experiment: Experiment, out: Path, wrote: Callable[[Path], None]) -> None:
    """Make targets by name and write a page each; `all` is all but choosing and the study, which take longest."""
    wanted = [part for name in names for part in (_OF_THE_PAPER if name == "all" else [name])]
    if unknown := [name for name in wanted if name not in TARGETS]:
        raise InputError(f"there is no target {unknown[0]!r}; {did_you_mean(unknown[0], [*TARGETS, 'all'])}")
    for name in dict.fromkeys(wanted):
        page = TARGETS[name](experiment)
        wrote(page.write(name, _folder(out, experiment), experiment.runs / "pictures", _command(name, experiment)))


def _folder(out: Path, experiment: Experiment) -> Path:
    """Return where pages go; those of other networks than the usual one have a folder of their own."""
    return out / experiment.scale if experiment.scale in ("cpu", "paper") else out


def _command(name: str, experiment: Experiment) -> str:
    data = "" if experiment.data is None else f" --data {experiment.data}"
    seeds = f" --seeds {experiment.seeds}" if experiment.seeds else ""
    return f"lookdown reproduce {name} --scale {experiment.scale}{data}{seeds}"
