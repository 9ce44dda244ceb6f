"""Tables I to IV, VI and VII: what training by the ratio, testing by it and adapting it are worth, one by one."""

from __future__ import annotations

from lookdown.lab.paper.experiment import Experiment, Trunk
from lookdown.lab.paper.loss_scores import scores
from lookdown.lab.paper.paper_values import ABLATION, BASE_CLUSTERS, Scores
from lookdown.lab.paper.report import Page, Table, percent, spread
from lookdown.lab.paper.rules import ADAPTED, COSINE, CPLFPA_AT_TEST, RATIO
from lookdown.lab.paper.tasks import MAR, SHIPS, UDA_MAR, UDA_SHIPS, Task

__all__ = ["ROWS", "make"]

_TABLES: dict[int, tuple[Task, Trunk]] = {
    1: (SHIPS, "first"),
    2: (MAR, "first"),
    3: (UDA_SHIPS, "first"),
    4: (UDA_MAR, "first"),
    6: (SHIPS, "second"),
    7: (UDA_SHIPS, "second"),
}
# The loss of stage 2, and how chips are compared. The paper's first row is the unified loss in Tables I and II and the
# identity loss in III and IV, as its Tables IX to XII show, so both are shown; for VI and VII the same is assumed.
ROWS: tuple[tuple[str, str, str], ...] = (
    ("identity loss", "identity", COSINE),
    ("unified loss on cosine", "unified", COSINE),
    ("GLRTML-TR", "glrt", COSINE),
    ("GLRTML-TR, -TE", "glrt", RATIO),
    ("GLRTML-TR, -TE, CPLFPA", "glrt", CPLFPA_AT_TEST),
    ("GLRTML-TR, -TE, our adaptation", "glrt", ADAPTED),
)


def make(experiment: Experiment, number: int) -> Page:
    """Return a table of the ablation, with the paper's figures beside ours."""
    task, trunk = _TABLES[number]
    ours = [scores(experiment, task, loss, rule, trunk) for _, loss, rule in ROWS]
    rows = []
    for (name, _, _), evaluations, theirs in zip(ROWS, ours, _papers(number), strict=True):
        cells = [spread([100 * getattr(one, measure) for one in evaluations]) for measure in Scores._fields]
        rows.append([name, *cells, *(percent(value) for value in theirs or (None,) * 3)])
    header = ("", "mAP", "R@50", "P@50", "paper: mAP", "R@50", "P@50")
    ours_last = " Every row but the last is the paper's; the last is ours, `lookdown.adapt` as it comes."
    caption = experiment.caption(task) + _trunk(experiment, task, trunk) + ours_last
    return Page(f"Table {_roman(number)}: ablation on {task.name}", caption, [Table(header, rows)])


def _papers(number: int) -> list[Scores | None]:
    first, trained, tested, adapted = ABLATION[number]
    unified = number in (1, 2, 6)
    return [None if unified else first, first if unified else None, trained, tested, adapted, None]


def _trunk(experiment: Experiment, task: Task, trunk: Trunk) -> str:
    name = experiment.recipe(task, "glrt", 0, trunk).network.backbone
    theirs = "Swin V2" if trunk == "second" else "ResNet-50"
    clusters = BASE_CLUSTERS[task.name]
    return (
        f" The trunk is {name}, the paper's {theirs}. CPLFPA has as many clusters as there are classes to be found, "
        f"and one for the background; the paper's number is {10 if task == UDA_MAR else clusters}."
    )


def _roman(number: int) -> str:
    return ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")[number - 1]
