"""What moments, adaptation, indexing, search and evaluation cost against N, over three decades."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import faiss
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from threadpoolctl import threadpool_limits

from lookdown import Embedder, Gallery
from lookdown.adaptation import adapt
from lookdown.evaluation import evaluate
from lookdown.gallery.search.engines.in_memory import ExactEngine
from lookdown.gallery.search.engines.ivf import IVFEngine
from lookdown.lab.bench.growth import Curve, growth_page
from lookdown.lab.bench.machine import this_machine
from lookdown.metrics import GaussianLikelihoodRatio, PairMoments
from search import no_columns, stream
from sidebyside import OUT, QUICK, report

DIMENSIONS, KINDS, QUERIES = 64, 100, 50
SIZES = (100, 300, 1_000) if QUICK else (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
IMAGES = (10, 100) if QUICK else (10, 100, 1_000, 10_000)
LONG = 0.1 if QUICK else 1.0  # seconds that a point is measured for, where once takes less
SLACK = 2  # of what a row costs, from one end of the last decade to the other

# Each reason was tried: by other numbers of classes and dimensions, and by a profile at both ends.
WHY = {
    "moments": "What is done once a class outweighs the rows while a class has less than some 100: at 1,000 rows "
    "100 classes take nine times as long as one. From 30,000 rows on it is one pass over the rows, and linear.",
    "adaptation": "K-means is more than nine tenths of it, and linear in what it is run on. That is all rows up to "
    "65,536, and a sample of 65,536 beyond: what still grows is the assignment of rows to clusters and their moments, "
    "and a million rows cost little more than 100,000.",
    "indexing": "A hundred images cost about what ten do: the network is read back from the new gallery first. The "
    "network's own time for each image is half of it at 1,000 and seven tenths at 3,000; that part is linear.",
    "exact search": "Up to some thousand rows the call itself takes the time. It grows faster than N where the vectors "
    "outgrow the last cache, 32 MB here and shared with whatever else runs, which 64 dimensions do at 125,000 rows (16 "
    "dimensions at four times as many, 256 at a quarter). Beyond, it runs at the speed of the memory, and is linear.",
    "ivf search": "Not linear: there are about twice the root of N lists, and as many are looked through as held 0.99 "
    "of the answers to trial queries, 8 of 512 at 100,000 rows and 20 of 2,048 at a million. Up to 100,000 rows the "
    "call itself takes the time. `auto` takes this engine above 1,000,000 rows.",
    "evaluation": "Up to some thousand rows what is done once a query takes the time. Then it is sorting scores, which "
    "goes as N log N. At a million rows a block of two million scores holds two queries, so that the whole gallery is "
    "read from memory for every two of them, and working out scores takes as long as sorting: dearer than linear.",
}

Vectors = NDArray[np.float32]


def vectors(rng: np.random.Generator, rows: int) -> tuple[Vectors, NDArray[np.int64]]:
    """Return embeddings of kinds that overlap, and the kinds."""
    drawn = rng.integers(KINDS, size=rows)
    centres = np.random.default_rng(0).standard_normal((KINDS, DIMENSIONS), dtype=np.float32)
    x = rng.standard_normal((rows, DIMENSIONS), dtype=np.float32)
    x += centres[drawn]
    return x, drawn


def seconds(work: Callable[[], object]) -> float:
    """Return the median over as many turns as fit into a while, after one to warm up where that is cheap."""
    taken: list[float] = []
    while not taken or (sum(taken) < LONG and len(taken) < 50):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken[1:] or taken)


def measured(
    name: str, what: str, why: str, sizes: Sequence[int], work: Callable[[int], Callable[[], object]]
) -> Curve:
    """Measure a curve; `work` prepares N rows and returns what is timed."""
    times = [seconds(work(size)) for size in sizes]
    print(
        f"{name}: " + ", ".join(f"{size:,} {taken:.3g} s" for size, taken in zip(sizes, times, strict=True)), flush=True
    )
    return Curve(name, what, why, sizes, times)


def moments(rng: np.random.Generator) -> Curve:
    """All pairs of N embeddings."""

    def work(rows: int) -> Callable[[], object]:
        x, y = vectors(rng, rows)
        return lambda: PairMoments.of(x, y).covariances()

    what = f"covariances over all pairs of N embeddings, {DIMENSIONS} dimensions, {KINDS} classes"
    return measured("moments", what, WHY["moments"], SIZES, work)


def adaptation(rng: np.random.Generator) -> Curve:
    """Algorithm 3 on N unlabelled embeddings."""
    source = GaussianLikelihoodRatio().fit(*vectors(rng, 4_000))

    def work(rows: int) -> Callable[[], object]:
        x = vectors(rng, rows)[0]
        return lambda: adapt(source, x, clusters=20, method="cplfpa")

    return measured("adaptation", "to N unlabelled embeddings, 20 clusters", WHY["adaptation"], SIZES, work)


def indexing(rng: np.random.Generator, folder: Path) -> Curve:
    """N small images through a small network into a new gallery."""
    torch.set_num_threads(1)
    embedder = Embedder("resnet10t", size=32, dimension=16, weights="none").eval()
    images = folder / "images"
    images.mkdir()
    turns = iter(range(1_000_000))

    def work(rows: int) -> Callable[[], object]:
        files = [images / f"{number}.png" for number in range(rows)]
        for file in files:
            if not file.exists():
                Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(file)

        def turn() -> None:
            added = Gallery.create(folder / f"gallery {next(turns)}", embedder).add(files)
            assert added.added == rows

        return turn

    return measured("indexing", "N images of 32 pixels, a ResNet of ten layers", WHY["indexing"], IMAGES, work)


def search(rng: np.random.Generator, kind: type[ExactEngine] | type[IVFEngine]) -> Curve:
    """One query, the best 50 of N."""
    query = vectors(rng, 1)[0]

    def work(rows: int) -> Callable[[], object]:
        engine = kind(stream(vectors(rng, rows)[0]), no_columns(rows))
        return lambda: engine.nearest(query, 50, None)

    name = f"{kind.name} search"
    return measured(name, "one query, the best 50 of N vectors", WHY[name], SIZES, work)


def evaluation(rng: np.random.Generator) -> Curve:
    """A fixed number of queries against N."""
    metric = GaussianLikelihoodRatio().fit(*vectors(rng, 4_000))
    queries, labels = vectors(rng, QUERIES)

    def work(rows: int) -> Callable[[], object]:
        x, y = vectors(rng, rows)
        return lambda: evaluate(metric, queries, labels, x, y)

    return measured("evaluation", f"{QUERIES} queries, a gallery of N", WHY["evaluation"], SIZES, work)


def main() -> None:
    """Measure with one thread, and write the page where a folder is given."""
    rng, machine = np.random.default_rng(0), this_machine()
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        curves = [
            moments(rng),
            adaptation(rng),
            indexing(rng, Path(folder)),
            search(rng, ExactEngine),
            search(rng, IVFEngine),
        ]
        curves.append(evaluation(rng))
    print()
    if OUT is not None:
        page = growth_page(curves, machine.sentence())
        page.write("growth", OUT, OUT, "lookdown bench growth")
    report("Cost against N", [curve.last_decade(limit=SLACK) for curve in curves])


if __name__ == "__main__":
    main()
