"""Add chips to the table by a Ray cluster: its nodes read, embed and write, and this process commits what they wrote.

Several thousand chips are one step, which the table gets as a whole or not at all. This process finds out which chips
are new, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookdown.chips.reader import ahead
from lookdown.errors import WorkersError
from lookdown.gallery.index.sources import ChipGroup, Row
from lookdown.gallery.index.writer import AddReport, ChipRegistry, Selection, embedded_batches, select_new
from lookdown.gallery.scale.ray_cluster import RayCluster, ray_cluster
from lookdown.gallery.store.table import ChipTable, as_table, schema
from lookdown.networks.network_folder import PackedNetwork
from lookdown.progress import Progress

if TYPE_CHECKING:
    from lookdown.networks.network_folder import AnyEmbedder

__all__ = ["add_chips_on_ray"]

_STEP_CHIPS = 16_384  # committed together, or more where there are many CPUs
_JOB_CHIPS = 16, 512  # at least and at most: a few seconds of work, which is what a lost node costs
_JOBS_PER_CPU = 8  # in one step, so that few CPUs are idle at its end
_TIDY_STEPS = 8  # between two merges of small files


@dataclass(frozen=True, slots=True)
class _Job:
    """Chips for one task, and the first of their keys."""

    groups: list[ChipGroup]
    first_key: int

    @property
    def chips(self) -> int:
        return sum(len(group.rows) for group in self.groups)


@dataclass(slots=True)
class _Outcome:
    """The result of a job."""

    node: str  # its host name
    node_id: str  # Ray's
    fragments: list[Any] = field(default_factory=list)  # of the table, written but not committed
    added: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    failed: list[Row] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  # files that do not exist on that node


@dataclass(frozen=True, slots=True)
class _Embedding:
    """What is sent to the nodes: how to do a job."""

    network: Any  # Ray's reference to the packed network
    uri: str
    storage_options: dict[str, str]

    def __call__(self, job: _Job) -> _Outcome:
        from lance_ray.fragment import write_fragment

        outcome, tables = _Outcome(socket.gethostname(), _node_id()), []
        if "://" not in self.uri and not Path(self.uri, "_versions").is_dir():
            outcome.unseen = [self.uri]
            return outcome
        embedder = _open_network(self.network)
        for batch, embeddings in embedded_batches(job.groups, embedder):
            if batch.rows:
                tables.append(as_table(batch.rows, embeddings, first_key=job.first_key + outcome.added))
            outcome.added += len(batch.rows)
            outcome.skipped |= batch.skipped
            outcome.failed += [{name: row[name] for name in ("id", "source", "polygon")} for row in batch.unreadable]
        outcome.unseen = [row["source"] for row in outcome.failed if not Path(row["source"]).exists()]
        if tables:
            columns = schema(embedder.settings.dimension)
            written = write_fragment(tables, self.uri, schema=columns, storage_options=self.storage_options or None)
            outcome.fragments = [fragment for fragment, _ in written]
        return outcome


def add_chips_on_ray(
    table: ChipTable, embedder: AnyEmbedder, groups: Iterable[ChipGroup], progress: Progress, address: str
) -> AddReport:
    """Do what `add_chips` does, on the Ray cluster at an address."""
    registry, report, done, total = ChipRegistry(table), AddReport(), 0, 0
    with ray_cluster(address) as cluster, closing(ahead(_steps(groups, registry, _step_chips(cluster)))) as steps:
        network = cluster.share(PackedNetwork.of(embedder))
        for number, (new, selection) in enumerate(steps, start=1):
            report.present += selection.present
            report.skipped |= selection.skipped
            done += selection.present + selection.failed
            total += selection.present + selection.failed + len(selection.positions)
            jobs = _jobs(new, registry, cluster)
            work = _Embedding(network, table.location.uri, table.location.storage_options)  # with current credentials
            outcomes: dict[int, _Outcome] = {}
            for index, outcome in cluster.map(work, jobs) if jobs else ():
                outcomes[index] = outcome
                done += jobs[index].chips
                progress(done, total, "chips")
            _commit(table, [outcomes[index] for index in range(len(jobs))], registry, report)
            progress(done, total, "chips")
            if number % _TIDY_STEPS == 0:
                table.tidy()
    if registry.moved:
        table.move(registry.moved)
    if report.added:
        table.tidy()
    return report


def _step_chips(cluster: RayCluster) -> int:
    return max(_STEP_CHIPS, cluster.cpus * _JOBS_PER_CPU * _JOB_CHIPS[1])


def _steps(
    groups: Iterable[ChipGroup], registry: ChipRegistry, chips: int
) -> Generator[tuple[list[ChipGroup], Selection]]:
    """Yield new chips, `chips` at a time, and what became of the others."""
    new: list[ChipGroup] = []
    step = Selection()
    for group in groups:
        selection = select_new(group, registry)
        step.count(selection)
        for begin in range(0, len(selection.positions), chips):
            positions = selection.positions[begin : begin + chips]
            new.append(group.only(positions))
            step.positions += positions
            if len(step.positions) >= chips:
                yield new, step
                new, step = [], Selection()
    yield new, step


def _jobs(groups: Sequence[ChipGroup], registry: ChipRegistry, cluster: RayCluster) -> list[_Job]:
    """Divide the chips of a step, in their order, into jobs of about the same size."""
    least, most = _JOB_CHIPS
    chips = sum(len(group.rows) for group in groups)
    size = min(max(least, math.ceil(chips / (_JOBS_PER_CPU * cluster.cpus))), most)
    jobs: list[_Job] = []
    room = 0  # for chips in the last job
    for group in groups:
        begin = 0
        while begin < len(group.rows):
            if not room:
                jobs.append(_Job([], registry.next_key))
                room = size
            positions = range(begin, min(begin + room, len(group.rows)))
            jobs[-1].groups.append(group.only(positions))
            registry.next_key += len(positions)
            begin, room = positions.stop, room - len(positions)
    return jobs


def _commit(table: ChipTable, outcomes: Sequence[_Outcome], registry: ChipRegistry, report: AddReport) -> None:
    """Commit what the nodes wrote, in the order of the chips, and report what could not be added."""
    for outcome in outcomes:
        _require_same_disk(table, outcome)
    if fragments := [fragment for outcome in outcomes for fragment in outcome.fragments]:
        table.commit(fragments)
    for outcome in outcomes:
        report.added += outcome.added
        for row in outcome.failed:
            registry.forget(row)
        if hidden := [file for file in outcome.unseen if Path(file).exists()]:
            raise WorkersError(
                f"{outcome.node} does not see {hidden[0]}, which is here; give every node the images under the same "
                "path, and run the same again: what was added before is kept"
            )
        report.skipped |= outcome.skipped


def _require_same_disk(table: ChipTable, outcome: _Outcome) -> None:
    """Raise if a node wrote to a disk of its own: the table would refer to files that only that node has."""
    files = [file.path for fragment in outcome.fragments for file in fragment.files]
    uri = table.location.uri
    elsewhere = "://" not in uri and not all(Path(uri, "data", name).is_file() for name in files)
    if uri in outcome.unseen or elsewhere:
        raise WorkersError(
            f"{outcome.node} does not see the table at {uri}; put the gallery on a disk that every node has "
            "under the same path"
        )


@lru_cache(maxsize=1)
def _open_network(network: Any) -> AnyEmbedder:
    """Open the network once per process, with one thread, since a job has one CPU."""
    import ray

    packed: PackedNetwork = ray.get(network)
    return packed.open(threads=1)


def _node_id() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())
