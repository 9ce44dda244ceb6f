"""The headline study: every loss, compared in every way, on data that were not looked at when settings were chosen.

A baseline is compared by the cosine. Testing by the ratio and adaptation work on any embedding, so every loss has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookdown.evaluation import Evaluation
from lookdown.experiments.choosing import choose, chosen_common
from lookdown.experiments.comparison import BASELINES
from lookdown.experiments.report import Page, Table, half_width, spread
from lookdown.experiments.rules import ADAPTED, CLASSICAL, COSINE, RATIO, RULES
from lookdown.experiments.scored import scores
from lookdown.experiments.setting import Setting
from lookdown.experiments.tasks import TASKS, Task

__all__ = ["Found", "make", "run"]

Scores = dict[str, dict[str, list[Evaluation]]]  # loss, rule, seed
FINE_TUNED = ("identity", "unified", "glrt")  # and the best baseline by validation: what two cores can do


@dataclass(frozen=True, slots=True)
class Found:
    """A task, all that was scored on it, and the baseline that validation would have chosen."""

    task: Task
    scores: Scores
    by_validation: str

    @property
    def by_test(self) -> str:
        """The baseline that is best on the test by the cosine: chosen after the fact, in its favour."""
        some = [loss for loss in self.scores if loss not in ("glrt", "unified")]
        return max(some, key=lambda loss: _mean(self.scores[loss][COSINE]))


def make(setting: Setting) -> Page:
    """Return the tables of all four tasks, and whether the targets are met."""
    parts: list[Table | str] = []
    for task in TASKS if setting.scale != "cpu" else [task for task in TASKS if task.images == "MAR"]:
        found = run(setting, task)
        parts += [f"## {task.name}\n\n{setting.caption(task)}", _table(found), _verdict(found)]
    caption = (
        "mAP in percent. Every loss was trained from the same first stage, with the same batches, views and number of "
        "updates, and the settings that were best for it on validation splits (choose.md). `+ GLRT at test` compares "
        "by the likelihood ratio of the training chips, `+ CPLFPA` by the paper's adaptation, `+ adaptation` by "
        "`lookdown.adapt` as it comes, `+ target whitening` by the inverse covariance of the target. LDA, KISSME and "
        "PLDA are fitted to the embeddings of the identity loss."
    )
    return Page(f"The headline study, scale {setting.scale}", caption, parts)


def run(setting: Setting, task: Task) -> Found:
    """Train and score every loss of a scale on a task."""
    best = _validated_best(setting, task)
    losses: tuple[str, ...] = (*BASELINES, "unified", "glrt")
    if setting.scale == "cpu":
        losses = tuple(dict.fromkeys((*FINE_TUNED[:2], best, FINE_TUNED[2])))
    rules = {loss: (*RULES, *(CLASSICAL if loss == "identity" else ())) for loss in losses}
    found = {loss: {rule: scores(setting, task, loss, rule) for rule in rules[loss]} for loss in losses}
    return Found(task, found, best)


def difference(ours: Sequence[Evaluation], theirs: Sequence[Evaluation]) -> tuple[list[float], float, float]:
    """Return the difference in mAP for each seed, and its interval over the queries' scene groups, all in percent.

    The interval is of the mean over seeds, each with its own draws of groups.
    """
    pairs = list(zip(ours, theirs, strict=True))
    each = [100 * (a.mean_average_precision - b.mean_average_precision) for a, b in pairs]
    widths = []
    for seed, (a, b) in enumerate(pairs):
        found = a.difference(b, seed=seed)
        widths.append(50 * (found.high - found.low))
    half = float(np.sqrt(np.sum(np.square(widths))) / len(widths))
    return each, float(np.mean(each)) - half, float(np.mean(each)) + half


def _table(found: Found) -> Table:
    rows = [
        [loss, *(spread([100 * one.mean_average_precision for one in ways[name]]) for name in RULES)]
        for loss, ways in found.scores.items()
    ]
    for name in CLASSICAL:
        values = [100 * one.mean_average_precision for one in found.scores["identity"][name]]
        rows.append([f"identity, {name}", spread(values), *[""] * (len(RULES) - 1)])
    return Table(("loss", *RULES), rows)


def _verdict(found: Found) -> str:
    """Say what holds of the targets, from the figures."""
    ours = found.scores["glrt"][ADAPTED if found.task.unseen else RATIO]
    against = {
        f"best baseline by validation ({found.by_validation}, cosine)": found.scores[found.by_validation][COSINE],
        f"best baseline by test ({found.by_test}, cosine)": found.scores[found.by_test][COSINE],
        "unified loss on cosine": found.scores["unified"][COSINE],
    }
    if found.task.unseen:
        against["GLRT without adaptation"] = found.scores["glrt"][RATIO]
    name = "GLRT + adaptation" if found.task.unseen else "GLRT (training + test)"
    return "\n".join([f"{name} against:", "", *(_line(*pair, ours) for pair in against.items())])


def _line(name: str, theirs: Sequence[Evaluation], ours: Sequence[Evaluation]) -> str:
    each, low, high = difference(ours, theirs)
    seeds = "" if len(each) < 2 else f"paired over {len(each)} seeds ± {half_width(each):.1f}; "
    groups = (
        "too few scene groups for an interval"
        if np.isnan(low)
        else (f"95 % over scene groups {low:+.1f} to {high:+.1f}")
    )
    return f"- {name}: {np.mean(each):+.1f} mAP ({seeds}{groups})"


def _validated_best(setting: Setting, task: Task) -> str:
    """Return the baseline that the validation splits put first; for a network that is fine-tuned, those of its head."""
    judged = setting if setting.scale in ("head", "smoke") else Setting("head", setting.runs, setting.data)
    common = chosen_common(judged, task)
    kept = {loss: max(score for _, score in choose(judged, task, loss, common)) for loss in BASELINES}
    return max(kept, key=lambda loss: kept[loss])


def _mean(found: Sequence[Evaluation]) -> float:
    return float(np.mean([one.mean_average_precision for one in found]))
