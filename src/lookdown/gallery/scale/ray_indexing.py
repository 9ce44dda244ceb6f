"""Chips into the table by the machines of a Ray cluster: each reads, embeds and writes its share; here it is committed.

A step is some thousand chips, in the table as a whole or not at all. Which chips are new is found out here, so that a
run that was interrupted goes on where it was.
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
from lookdown.gallery.index.registry import ChipRegistry, Selection, select_new
from lookdown.gallery.index.sources import ChipGroup, Row
from lookdown.gallery.index.writer import AddReport, embedded_batches
from lookdown.gallery.scale.ray_cluster import Workers, workers_at
from lookdown.gallery.store.table import ChipTable, as_table, schema
from lookdown.networks.network_folder import PackedNetwork
from lookdown.progress import Progress

if TYPE_CHECKING:
    from lookdown.networks.network_folder import AnyEmbedder

__all__ = ["add_chips_on_ray"]

_STEP = 16_384  # chips that are committed together, or more where there are many processors
_FEWEST, _MOST = 16, 512  # chips in a job: a second or some of work, which is what a lost machine costs
_TURNS = 8  # jobs for each processor in a step: the last ones leave few idle
_TIDY = 8  # steps between two merges of small files


@dataclass(frozen=True, slots=True)
class _Job:
    """Chips for one machine, and the first of as many numbers for them."""

    parts: list[ChipGroup]
    first_key: int


@dataclass(slots=True)
class _Outcome:
    """What a machine made of a job."""

    node: str
    node_id: str  # as Ray has it
    fragments: list[Any] = field(default_factory=list)  # of the table, written and not yet part of it
    added: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    failed: list[Row] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  # files that are not there, on that machine


@dataclass(frozen=True, slots=True)
class _Embedding:
    """The work itself, as it is sent to the machines."""

    network: Any  # where Ray keeps the packed one
    uri: str
    storage_options: dict[str, str]

    def __call__(self, job: _Job) -> _Outcome:
        from lance_ray.fragment import write_fragment

        outcome, tables = _Outcome(socket.gethostname(), _node_id()), []
        if "://" not in self.uri and not Path(self.uri, "_versions").is_dir():
            outcome.unseen = [self.uri]
            return outcome
        embedder = _opened(self.network)
        for batch in embedded_batches(job.parts, embedder):
            if batch.rows:
                tables.append(as_table(batch.rows, batch.embeddings, first_key=job.first_key + outcome.added))
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
    records: ChipTable, embedder: AnyEmbedder, parts: Iterable[ChipGroup], progress: Progress, address: str
) -> AddReport:
    """Do what `add_chips` does, on the machines of a Ray cluster."""
    known, result, done, met = ChipRegistry(records), AddReport(), 0, 0
    with workers_at(address) as workers, closing(ahead(_steps(parts, known, _chips(workers)))) as steps:
        work = _Embedding(workers.share(PackedNetwork.of(embedder)), records.uri, records.storage_options)
        for number, (some, told) in enumerate(steps, start=1):
            result.present += told.present
            result.skipped |= told.skipped
            done += told.present + told.failed
            met += told.present + told.failed + len(told.positions)
            jobs = _jobs(some, known, workers)
            outcomes: dict[int, _Outcome] = {}
            for place, outcome in workers.spread(jobs, work) if jobs else ():
                outcomes[place] = outcome
                done += sum(len(part.rows) for part in jobs[place].parts)
                progress(done, met, "chips")
            _commit(records, [outcomes[place] for place in range(len(jobs))], known, result)
            progress(done, met, "chips")
            if number % _TIDY == 0:
                records.tidy()
    if known.moved:
        records.move(known.moved)
    if result.added:
        records.tidy()
    return result


def _chips(workers: Workers) -> int:
    return max(_STEP, workers.processors * _TURNS * _MOST)


def _steps(parts: Iterable[ChipGroup], known: ChipRegistry, chips: int) -> Generator[tuple[list[ChipGroup], Selection]]:
    """Yield the chips that are not there yet, some thousand at a time, and what is to be said of the others."""
    some: list[ChipGroup] = []
    told = Selection()
    for part in parts:
        found = select_new(part, known)
        told.count(found)
        for begin in range(0, len(found.positions), chips):
            piece = found.positions[begin : begin + chips]
            some.append(part.only(piece))
            told.positions += piece
            if len(told.positions) >= chips:
                yield some, told
                some, told = [], Selection()
    yield some, told


def _jobs(parts: Sequence[ChipGroup], known: ChipRegistry, workers: Workers) -> list[_Job]:
    """Deal the chips of a step out, in their order, into jobs of about the same size."""
    chips = sum(len(part.rows) for part in parts)
    size = min(max(_FEWEST, math.ceil(chips / (_TURNS * workers.processors))), _MOST)
    dealt: list[list[ChipGroup]] = []
    room = 0
    for part in parts:
        begin = 0
        while begin < len(part.rows):
            if not room:
                dealt.append([])
                room = size
            taken = range(begin, min(begin + room, len(part.rows)))
            dealt[-1].append(part.only(taken))
            begin, room = taken.stop, room - len(taken)
    jobs = []
    for some in dealt:
        jobs.append(_Job(some, known.next_key))
        known.next_key += sum(len(part.rows) for part in some)
    return jobs


def _commit(records: ChipTable, outcomes: Sequence[_Outcome], known: ChipRegistry, result: AddReport) -> None:
    """Make what was written part of the table, in the order of the chips, and say what was not."""
    for outcome in outcomes:
        _refuse_other_disk(records, outcome)
    if fragments := [fragment for outcome in outcomes for fragment in outcome.fragments]:
        records.commit(fragments)
    for outcome in outcomes:
        result.added += outcome.added
        for row in outcome.failed:
            known.forget(row)
        if hidden := [file for file in outcome.unseen if Path(file).exists()]:
            raise WorkersError(
                f"{outcome.node} does not see {hidden[0]}, which is here; give every node the images under the same "
                "path, and run the same again: what was added before is kept"
            )
        result.skipped |= outcome.skipped


def _refuse_other_disk(records: ChipTable, outcome: _Outcome) -> None:
    """Refuse what a machine has written where only it can read: the table would name files that it has not."""
    files = [file.path for fragment in outcome.fragments for file in fragment.files]
    elsewhere = "://" not in records.uri and not all(Path(records.uri, "data", name).is_file() for name in files)
    if records.uri in outcome.unseen or elsewhere:
        raise WorkersError(
            f"{outcome.node} does not see the table at {records.uri}; put the gallery on a disk that every node has "
            "under the same path"
        )


@lru_cache(maxsize=1)
def _opened(network: Any) -> AnyEmbedder:
    """Open the network once in a process; a job has one processor, so the network gets one thread."""
    import ray

    packed: PackedNetwork = ray.get(network)
    return packed.open(threads=1)


def _node_id() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())
