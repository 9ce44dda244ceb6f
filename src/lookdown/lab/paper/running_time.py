"""Table VIII: what adaptation takes and is worth, from samples of pairs and from all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lookdown.adaptation import CPLFPA
from lookdown.adaptation.pseudo_labels import Covariances
from lookdown.adaptation.target_metric import estimate, normalizes, target_clusters, weighting
from lookdown.lab.paper.experiment import Experiment
from lookdown.lab.paper.paper_values import RUNNING_TIME
from lookdown.lab.paper.report import Page, Table, percent, span, spread
from lookdown.lab.paper.rules import base_clusters
from lookdown.lab.paper.tasks import UDA_SHIPS
from lookdown.lab.paper.trained_network import Case
from lookdown.metrics import Metric, PairMoments
from lookdown.metrics.differences import draw_differences
from lookdown.metrics.inputs import unit
from lookdown.metrics.pair_moments import Weighting

__all__ = ["SAMPLES", "TimedTarget", "Turn", "make", "measure"]

Array = NDArray[np.float64]

SAMPLES = tuple(RUNNING_TIME)  # pairs of each kind
_TURNS, _FEW_TURNS = 9, 3  # how often a measurement is repeated; few in smoke


def make(experiment: Experiment) -> Page:
    """Return the seconds of each step and the mAP, each row of ours above the paper's."""
    turns = _FEW_TURNS if experiment.scale == "smoke" else _TURNS
    with threadpool_limits(1):
        cases = [experiment.case(UDA_SHIPS, "glrt", seed) for seed in experiment.each_seed]
        targets = [TimedTarget.of(case, seed, turns) for seed, case in enumerate(cases)]
        times = [measure(target, turns) for target in targets]
    caption = (
        f"{experiment.caption(UDA_SHIPS)} Adaptation by the paper's Algorithm 3 to "
        f"{span([len(t.rows) for t in targets])} chips, of the network that was trained by the likelihood ratio; mAP "
        "in percent. Seconds are of this machine, "
        f"on one thread: medians of {turns} repetitions a seed, in which the rows take turns; the total is their sum. "
        "A sample is drawn anew each time. The last column is measured in the same turns: how long all pairs take, "
        "differences and update together, as a multiple of what the sample takes. The paper's seconds are of another "
        "machine and 2,558 images."
    )
    return Page("Table VIII: running time", caption, (_table(targets, times), _said_of_pairs(times)))


class Turn(NamedTuple):
    """One estimate of a metric: its seconds, the same and different pairs behind it, and what it is worth."""

    differences: float
    update: float
    pairs: tuple[int, int]
    mean_average_precision: float

    @property
    def seconds(self) -> float:
        """What it takes once there are clusters."""
        return self.differences + self.update


Turns = dict[int | None, list[Turn]]  # by the number of pairs, None for all of them


@dataclass(frozen=True, slots=True)
class TimedTarget:
    """A target domain under pseudo-labels."""

    case: Case
    rows: Array  # as the metric compares them
    labels: NDArray[np.int64]
    clustering: float  # seconds

    @classmethod
    def of(cls, case: Case, seed: int, turns: int) -> TimedTarget:
        """Cluster the target several times, and keep the median of the seconds."""
        seconds = []
        for _ in range(turns):
            begin = time.perf_counter()
            clusters = target_clusters(case.source, case.target, base_clusters(case), CPLFPA, case.target, seed)
            labels = clusters.assign(case.target)[0]
            seconds.append(time.perf_counter() - begin)
        rows = np.asarray(unit(case.target) if normalizes(case.source) else case.target, np.float64)
        return cls(case, rows, labels, statistics.median(seconds))

    def sampled(self, pairs: int, seed: int) -> Turn:
        """Estimate the metric from so many pairs of each kind, or from all where there are no more."""
        draw = partial(draw_differences, self.rows, self.labels, pairs=pairs, weighting=self._weighting, seed=seed)
        begin = time.perf_counter()
        same, different = draw(same=True), draw(same=False)
        middle = time.perf_counter()
        samples, classes = len(self.labels), len(np.unique(self.labels))
        covariances = Covariances(
            same.T @ same / len(same),
            different.T @ different / len(different),
            self.rows.mean(axis=0),
            (samples - classes, samples - 1),
        )
        metric = estimate(self.case.source, CPLFPA, covariances)
        return self._turn(metric, begin, middle, (len(same), len(different)))

    def whole(self) -> Turn:
        """Estimate the metric from every pair, by the moments of the clusters; no pair is formed."""
        begin = time.perf_counter()
        moments = PairMoments.of(self.rows, self.labels)
        middle = time.perf_counter()
        metric = estimate(self.case.source, CPLFPA, Covariances.of(moments, self._weighting))
        return self._turn(metric, begin, middle, (moments.same_pairs, moments.different_pairs))

    @property
    def _weighting(self) -> Weighting:
        return weighting(self.case.source, CPLFPA)

    def _turn(self, metric: Metric, begin: float, middle: float, pairs: tuple[int, int]) -> Turn:
        end = time.perf_counter()
        return Turn(middle - begin, end - middle, pairs, self.case.mean_average_precision(metric))


def measure(target: TimedTarget, turns: int) -> Turns:
    """Let samples and all pairs take turns, so that a busy moment of the machine falls on all alike."""
    times: Turns = {pairs: [] for pairs in (*SAMPLES, None)}
    for turn in range(turns):
        for pairs, kept in times.items():
            kept.append(target.whole() if pairs is None else target.sampled(pairs, turn))
    return times


def _table(targets: Sequence[TimedTarget], times: Sequence[Turns]) -> Table:
    header = ("pairs of each kind", "clustering, s", "differences, s", "update, s", "total, s", "mAP", "all / sampled")
    rows: list[tuple[str, ...]] = []
    clustering = statistics.median(target.clustering for target in targets)
    for pairs in (*SAMPLES, None):
        turns = [turn for of_seed in times for turn in of_seed[pairs]]
        whole = [turn for of_seed in times for turn in of_seed[None]]
        steps = [
            clustering,
            *(statistics.median(values) for values in zip(*((t[0], t[1]) for t in turns), strict=True)),
        ]
        worth = spread([float(np.mean([turn.mean_average_precision for turn in of_seed[pairs]])) for of_seed in times])
        ratio = statistics.median(a.seconds / b.seconds for a, b in zip(whole, turns, strict=True))
        seconds = (f"{value:.4f}" for value in (*steps, sum(steps)))
        rows.append((f"{pairs:,}" if pairs else "all", *seconds, worth, f"{ratio:.2f}" if pairs else percent(None)))
        if pairs:
            rows.append((f"{pairs:,}, the paper", *(f"{value:.1f}" for value in RUNNING_TIME[pairs]), percent(None)))
    return Table(header, rows)


def _said_of_pairs(times: Sequence[Turns]) -> str:
    """Say how many pairs there are, and which samples are in truth all of them."""
    same, different = zip(*(of_seed[None][0].pairs for of_seed in times), strict=True)
    said = f"Under the pseudo-labels there are {span(same)} same and {span(different)} different pairs."
    for column, kind in enumerate(("same", "different")):
        if short := [pairs for pairs in SAMPLES if any(of_seed[None][0].pairs[column] < pairs for of_seed in times)]:
            asked = ", ".join(f"{pairs:,}" for pairs in short)
            said += f" Seeds that have fewer {kind} pairs than are asked for ({asked}) draw on all that there are."
    return said
