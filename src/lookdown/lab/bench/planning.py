"""What an archive of any size takes, worked out from what one chip takes: bytes, machines, hours, and a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, log

from lookdown.gallery.search.engines.partition import number_of_lists
from lookdown.lab.bench.row import figure
from lookdown.lab.paper.report import Page, Table

__all__ = ["Costs", "Node", "Plan", "planning_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was measured, a chip unless it says otherwise; seconds are of one core."""

    stored: float  # bytes in the table: row, raw embedding, thumbnail
    held: float  # bytes in a process that searches: vector, id, columns that filters read
    embedded: Mapping[str, float]  # seconds in the network, by what runs it
    handled: float  # seconds outside the network: read, letterboxed, written
    listed: float  # seconds to find its list, for each list there is
    compared: float  # seconds to compare it with one query
    assigned: float  # seconds to find its cluster and add it to the moments
    clustered: float  # seconds of K-means, on a sample whose size does not grow
    probes: Mapping[int, int]  # chips in a gallery to lists that a query looks through: two sizes

    def probes_at(self, chips: int) -> int:
        """Return how many lists a query looks through, by the power of N that the two sizes lie on."""
        (few, least), (many, most) = sorted(self.probes.items())
        power = max(0.0, log(most / least) / log(many / few))
        return max(1, round(most * exp(power * log(chips / many))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One of the machines of a plan; not one that was measured."""

    cores: int = 16
    memory: float = 64e9  # bytes
    share: float = 0.75  # of the memory that vectors may have; the rest is for their making and for the system


@dataclass(frozen=True, slots=True)
class Plan:
    """An archive of so many chips on as many machines as hold it."""

    chips: int
    costs: Costs
    node: Node

    @property
    def machines(self) -> int:
        """As many as hold what is searched."""
        return ceil(self.chips * self.costs.held / (self.node.memory * self.node.share))

    @property
    def shard(self) -> int:
        """Chips on each of them."""
        return ceil(self.chips / self.machines)

    @property
    def cores(self) -> int:
        """Of all machines."""
        return self.machines * self.node.cores

    def hours_to_embed(self, runtime: str) -> float:
        """Read, embedded and written by all cores."""
        return self.chips * (self.costs.embedded[runtime] + self.costs.handled) / self.cores / 3600

    @property
    def hours_to_list(self) -> float:
        """For lists of the approximate index: each chip is compared with the centroid of each list of its machine."""
        return self.chips * number_of_lists(self.shard) * self.costs.listed / self.cores / 3600

    @property
    def seconds_to_adapt(self) -> float:
        """K-means on one core, then every chip on the core that has it."""
        return self.costs.clustered + self.chips * self.costs.assigned / self.cores

    @property
    def seconds_to_compare(self) -> float:
        """One query with every chip, by all cores."""
        return self.chips * self.costs.compared / self.cores


def planning_page(costs: Costs, node: Node, queries: Mapping[int, float], check: str, measured_on: str) -> Page:
    """Return the page.

    queries: seconds of a simulated approximate query on one core of one machine, by the size of the archive.
    check: what the simulation comes to where it can be compared with a measurement.
    """
    plans = [Plan(chips, costs, node) for chips in queries]
    caption = (
        "What one chip takes was measured here; what an archive takes is arithmetic from that, for machines of "
        f"{node.cores} cores and {node.memory / 1e9:.0f} GB, of which vectors may have {node.share:.0%}. Networks "
        "between machines, object storage and failures are not in it, and cores of another kind are faster or slower. "
        f"{measured_on}"
    )
    notes = (
        "**How to read it.** *Measured*: a row of the first table. *Arithmetic*: measured a chip, times the chips, "
        "over the cores. *Extrapolated*: the lists that a query looks through grow by the power of N that two measured "
        "sizes lie on, which nothing guarantees. *Simulated*: an index in which only the lists are filled that the "
        "queries look through, each as long as it would be; recall cannot be simulated, and a gallery measures its own "
        f"when it is opened. {check}"
    )
    ways = (
        "**What does it.** Embedding: `lookdown index --workers ray` on all machines, the table on a shared disk or in "
        "a bucket. One gallery is searched by one process, which holds its vectors: beyond one machine make a gallery "
        "a machine, ask all of them, and merge by score, since scores of one metric are comparable; or let a Milvus "
        "cluster hold the vectors, which compares every one (the last row). Adaptation: over the shards of a table on "
        "Ray. See [scale-out](../scale-out.md)."
    )
    return Page("Planning a large archive", caption, (_measured(costs), _plans(plans, queries), notes, ways))


def _measured(costs: Costs) -> Table:
    sizes = ", ".join(f"{probes} at {chips:,} chips" for chips, probes in sorted(costs.probes.items()))
    rows = [
        ["in the table: row, raw embedding, thumbnail", f"{costs.stored:,.0f} bytes"],
        ["in the memory of a process that searches approximately", f"{costs.held:,.0f} bytes"],
        *([f"in the network, {name}", _micro(seconds)] for name, seconds in costs.embedded.items()),
        ["outside the network: read, letterboxed, written", _micro(costs.handled)],
        ["to find its list, a list", f"{costs.listed * 1e9:.3g} ns"],
        ["to be compared with one query", f"{costs.compared * 1e9:.3g} ns"],
        ["to be assigned to a cluster and added to the moments", _micro(costs.assigned)],
        ["K-means of the sample, once", f"{costs.clustered:.3g} s"],
        ["lists that a query looks through, once", sizes],
    ]
    return Table(("a chip takes, in seconds of one core", "measured"), rows)


def _plans(plans: Sequence[Plan], queries: Mapping[int, float]) -> Table:
    costs = plans[0].costs
    rows = [
        ["table on a disk or in a bucket, GB", "arithmetic", *(f"{p.chips * costs.stored / 1e9:,.0f}" for p in plans)],
        ["memory to search, GB", "arithmetic", *(f"{p.chips * costs.held / 1e9:,.1f}" for p in plans)],
        ["machines", "arithmetic", *(f"{p.machines:,}" for p in plans)],
        ["chips a machine", "arithmetic", *(f"{p.shard:,}" for p in plans)],
        *(
            [f"to embed by {name}, hours", "arithmetic", *(figure(p.hours_to_embed(name)) for p in plans)]
            for name in costs.embedded
        ),
        ["lists a machine", "arithmetic", *(f"{number_of_lists(p.shard):,}" for p in plans)],
        ["to find the lists, hours", "arithmetic", *(figure(p.hours_to_list) for p in plans)],
        ["lists that a query looks through", "extrapolated", *(f"{costs.probes_at(p.shard):,}" for p in plans)],
        ["an approximate query, ms on one core of each", "simulated", *(figure(1e3 * s) for s in queries.values())],
        [
            "such queries a second, all cores",
            "simulated",
            *(figure(p.node.cores / s) for p, s in zip(plans, queries.values(), strict=True)),
        ],
        ["to adapt, s", "arithmetic", *(figure(p.seconds_to_adapt) for p in plans)],
        ["an exact query, ms on all cores", "arithmetic", *(figure(1e3 * p.seconds_to_compare) for p in plans)],
    ]
    return Table(("", "", *(f"{p.chips:,} chips" for p in plans)), rows)


def _micro(seconds: float) -> str:
    return f"{figure(seconds * 1e6)} µs"
