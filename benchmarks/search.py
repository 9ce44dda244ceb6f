"""Search of a million vectors: exact against faiss, approximate against exact, a new metric on old lists, memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import faiss
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lookdown.gallery.search.engines.engine import Engine, Nearest, Vectors, VectorStream
from lookdown.gallery.search.engines.in_memory import ExactEngine
from lookdown.gallery.search.engines.ivf import IVFEngine
from lookdown.gallery.search.filters import Where
from lookdown.gallery.store.snapshot import CategoricalColumn, FilterColumns
from sidebyside import QUICK, Row, compare, peak_memory, report

ROWS, DIMENSIONS, K = 40_000 if QUICK else 1_000_000, 64, 50
KINDS, SPREAD = 2000, 0.4  # of chips, and the spread within a kind over that between kinds
BATCH = 16_384
SHARES = (0.001, 0.01, 0.2, 0.8)
GALLERIES = ((2000, 0.4),) if QUICK else ((1000, 0.4), (2000, 0.4), (4000, 0.4), (20_000, 0.4), (2000, 0.7))
SIZE = f"{ROWS:,} x {DIMENSIONS}"


def chips(rows: int, kinds: int = KINDS, spread: float = SPREAD) -> Iterator[tuple[Vectors, NDArray[np.int64]]]:
    """Yield embeddings of kinds of objects and their variations, and the kinds; variances fall as 1, 1/2, 1/3, ..."""
    widths = np.arange(1, DIMENSIONS + 1, dtype=np.float32) ** -0.5
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((kinds, DIMENSIONS), dtype=np.float32) * widths
    for begin in range(0, rows, BATCH):
        drawn = rng.integers(kinds, size=min(BATCH, rows - begin))
        variations = rng.standard_normal((len(drawn), DIMENSIONS), dtype=np.float32) * widths
        yield centres[drawn] + np.float32(spread) * variations, drawn


def stream(z: Vectors) -> VectorStream:
    """Batches of what is in memory."""
    return VectorStream(len(z), z.shape[1], lambda: (z[begin : begin + BATCH] for begin in range(0, len(z), BATCH)))


def no_columns(rows: int) -> FilterColumns:
    """Nothing that a filter could read."""
    none, flags = CategoricalColumn((), np.empty(0, np.int32)), np.zeros(rows, np.bool_)
    return FilterColumns(none, none, none, none, flags, np.empty((0, 4)), lambda selected: [])


@dataclass(frozen=True, eq=False)  # known by itself: an array has no hash
class Keeping:
    """A filter that is known."""

    mask: NDArray[np.bool_]

    def rows(self, columns: FilterColumns) -> NDArray[np.bool_]:
        """Return which rows it keeps."""
        return self.mask


def one_by_one(engine: Engine, queries: Vectors, k: int = K, where: Where | None = None) -> list[Nearest]:
    """Search as users do."""
    return [engine.nearest(query[None], k, where)[0] for query in queries]


def milliseconds(engine: Engine, queries: Vectors, where: Where | None = None) -> float:
    """Return what a query takes, the least of three times."""
    taken = []
    for _ in range(3):
        begin = time.perf_counter()
        one_by_one(engine, queries, K, where)
        taken.append(time.perf_counter() - begin)
    return min(taken) / len(queries) * 1e3


def recall(nearest: list[Nearest], expected: list[Nearest]) -> float:
    """Share of what was expected that was found."""
    pairs = zip(nearest, expected, strict=True)
    return float(np.mean([len(np.intersect1d(one.rows, other.rows)) / len(other.rows) for one, other in pairs]))


def exact_against_faiss(exact: ExactEngine, z: Vectors, queries: Vectors) -> list[Row]:
    """The same answers by faiss' exact index."""
    flat = faiss.IndexFlatL2(DIMENSIONS)
    flat.add(z)
    answers = [Nearest(rows, np.empty(0)) for rows in flat.search(queries, K)[1]]
    assert recall(exact.nearest(queries, K), answers) > 0.9999
    several = queries[:20]

    def theirs() -> object:
        return [flat.search(query[None], K) for query in several]

    rows = [
        compare(f"exact, {SIZE}, 20 queries alone", lambda: one_by_one(exact, several), "faiss Flat", theirs, limit=1.1)
    ]
    for count in (32, 256):
        batch = queries[:count]
        what = f"exact, {SIZE}, {count} queries at once"

        def ours(batch: Vectors = batch) -> object:
            return exact.nearest(batch, K)

        def peer(batch: Vectors = batch) -> object:
            return flat.search(batch, K)

        rows.append(compare(what, ours, "faiss Flat", peer, limit=1.1, turns=3))
    return rows


def approximate_against_exact(exact: ExactEngine, ivf: IVFEngine, queries: Vectors) -> Row:
    """Single queries that are not in the gallery, at a recall of 0.99."""
    reached = recall(ivf.nearest(queries, K), exact.nearest(queries, K))
    assert reached >= 0.99, reached
    several = queries[:20]
    return compare(
        f"ivf, {ivf.probes} probes, recall {reached:.4f}, 20 queries alone",
        lambda: one_by_one(ivf, several),
        "exact",
        lambda: one_by_one(exact, several),
        limit=1 / 50,
    )


def another_metric(z: Vectors, queries: Vectors, ivf: IVFEngine) -> Row:
    """The lists of one metric under another, whose matrix has a condition of 1000, against lists of its own."""
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(DIMENSIONS, DIMENSIONS)))[0] for _ in range(2))
    map = (left * np.geomspace(1, 1000**-0.5, DIMENSIONS) @ right).astype(np.float32)
    mapped, columns = z @ map, no_columns(ROWS)
    switched = IVFEngine(stream(mapped), columns, ivf.assignment)
    assert QUICK or not switched.rebuilt  # few rows have few lists, which suit another metric less
    reached = recall(switched.nearest(queries @ map, K), ExactEngine(stream(mapped), columns).nearest(queries @ map, K))
    probes = switched.probes
    del switched
    return compare(
        f"another metric on the same lists, {probes} probes, recall {reached:.4f}",
        lambda: IVFEngine(stream(mapped), columns, ivf.assignment),
        "ivf from nothing",
        lambda: IVFEngine(stream(mapped), columns),
        limit=1 / 20,
        turns=3,
    )


def filtered(exact: ExactEngine, ivf: IVFEngine, z: Vectors, queries: Vectors) -> None:
    """Print time and recall of single queries with a filter, against the rows that it keeps in faiss' exact index."""
    rng = np.random.default_rng(0)
    print("| rows kept | exact, ms | recall | ivf, ms | recall |\n|---|---|---|---|---|")
    for share in SHARES:
        mask = rng.random(ROWS) < share
        kept = np.flatnonzero(mask)
        flat = faiss.IndexFlatL2(DIMENSIONS)
        flat.add(z[kept])
        answers = [Nearest(kept[flat.search(query[None], K)[1][0]], np.empty(0)) for query in queries]
        where = cast("Where", Keeping(mask))
        cells = []
        for engine in (exact, ivf):
            nearest = one_by_one(engine, queries, K, where)
            cells += [f"{milliseconds(engine, queries, where):.1f}", f"{recall(nearest, answers):.4f}"]
        print(f"| {share:.1%} | {' | '.join(cells)} |")
    print()


def other_galleries() -> None:
    """Print how probes, recall and speed depend on how many kinds there are, and on how they overlap."""
    print("| kinds | spread | own kind in 50 | probes | recall at 50 | at 1,000 | ivf over exact, times as fast |")
    print("|---|---|---|---|---|---|---|")
    for kinds, spread in GALLERIES:
        parts, labels = zip(*chips(ROWS + 100, kinds, spread), strict=True)
        z, drawn = np.concatenate(parts), np.concatenate(labels)
        z, queries = z[:ROWS], z[ROWS:]
        exact, ivf = ExactEngine(stream(z), no_columns(ROWS)), IVFEngine(stream(z), no_columns(ROWS))
        many = exact.nearest(queries, 1000)
        few = [Nearest(one.rows[:K], one.closeness[:K]) for one in many]
        own = np.mean([drawn[one.rows] == kind for one, kind in zip(few, drawn[ROWS:], strict=True)])
        cells = [f"{recall(ivf.nearest(queries, len(nearest[0].rows)), nearest):.4f}" for nearest in (few, many)]
        ratio = milliseconds(exact, queries[:20]) / milliseconds(ivf, queries[:20])
        print(f"| {kinds:,} | {spread:g} | {own:.1%} | {ivf.probes} | {' | '.join(cells)} | {ratio:.0f} |")
    print()


def memory(name: str) -> Row:
    """What a process grows by at most while it loads an engine from a stream, over the bytes of the vectors."""
    command = [sys.executable, __file__, "--load", name, *(["--quick"] if QUICK else [])]
    grown = float(subprocess.run(command, check=True, capture_output=True).stdout)
    vectors = ROWS * DIMENSIONS * 4 / 1e9
    return Row.of(f"memory of {name} while it is loaded", "the vectors", grown, vectors, limit=1.5, unit="GB")


def load(name: str) -> None:
    """Print by how many GB this process grows at most; what libraries take for themselves is taken before."""
    make: dict[str, Callable[[VectorStream, FilterColumns], Engine]] = {"exact": ExactEngine, "ivf": IVFEngine}
    before = 0
    for rows in (20_000, ROWS):

        def batches(rows: int = rows) -> Iterator[Vectors]:
            return (z for z, _ in chips(rows))

        before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        engine = make[name](VectorStream(rows, DIMENSIONS, batches), no_columns(rows))
        assert engine.count() == rows
    print((peak_memory() - before) / 1e9)


def main() -> None:
    """Measure everything with one BLAS and one OpenMP thread."""
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        if "--load" in sys.argv:
            load(sys.argv[sys.argv.index("--load") + 1])
            return
        rows = [memory("exact"), memory("ivf")]
        other_galleries()
        z = np.concatenate([part for part, _ in chips(ROWS + 256)])
        z, queries = z[:ROWS], z[ROWS:]
        exact, ivf = ExactEngine(stream(z), no_columns(ROWS)), IVFEngine(stream(z), no_columns(ROWS))
        filtered(exact, ivf, z, queries[:10])
        rows += [*exact_against_faiss(exact, z, queries), approximate_against_exact(exact, ivf, queries)]
        rows += [another_metric(z, queries, ivf)]
    report(f"Engines on {SIZE} float32, {KINDS:,} kinds of chips, k = {K}", rows)


if __name__ == "__main__":
    main()
