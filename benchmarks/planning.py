"""What one chip takes, from the table to a query, and from that what 100 million and a billion would take."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss as typed_faiss
import lance
import numpy as np
from threadpoolctl import threadpool_limits

from embedding import Bare
from growth import seconds, vectors
from indexing import archive, squares
from lookdown import Cosine, Embedder, Gallery
from lookdown.adaptation import adapt
from lookdown.gallery.search.engines.in_memory import ExactEngine
from lookdown.gallery.search.engines.ivf import IVFEngine
from lookdown.gallery.search.engines.partition import number_of_lists
from lookdown.lab.bench.machine import this_machine
from lookdown.lab.bench.planning import Costs, Node, Plan, planning_page
from lookdown.metrics import GaussianLikelihoodRatio
from lookdown.networks import ExportedEmbedder
from lookdown.networks.export import Space, export
from lookdown.networks.quantize import quantize
from search import no_columns, stream
from sidebyside import OUT, QUICK, Row, peak_memory, report

faiss: Any = typed_faiss  # its types know nothing of lists that are filled by hand

HELD = 2_000 if QUICK else 600_000  # in a gallery whose memory is measured, against one of half as many
SIZES = (2_000, 20_000) if QUICK else (100_000, 1_000_000)  # of the approximate index
TARGETS = (100_000, 400_000) if QUICK else (131_072, 1_048_576)  # of adaptation; beyond 65,536 a sample is clustered
ARCHIVES = (1_000_000, 100_000_000, 1_000_000_000)
QUERIES, K, DIMENSIONS = 8, 50, 64
OPENED = "--opened"  # then this process opens a gallery, and says what memory it took


def core_seconds(work: Callable[[], object]) -> float:
    """Return the time of all cores together."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def networks(images: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], folder: Path) -> dict[str, ExportedEmbedder]:
    """Return EfficientNet-Lite0 in OpenVINO, float32 and int8."""
    embedder = Embedder("tf_efficientnet_lite0").eval()
    space = Space.of(Cosine().fit(embedder.embed(images[:8])).transform, embedder.settings.dimension, "cosine")
    whole = export(embedder, folder / "openvino", "openvino", images[:64], space)
    small = quantize(whole, folder / "openvino-int8", images, lambda embedder: 0.0).export
    assert small is not None
    return {exported.description.name: exported for exported in (whole, small)}


def indexed(folder: Path) -> tuple[float, dict[str, float], float]:
    """Return bytes in the table, seconds in each network and seconds outside of it, a JPEG chip of 144 pixels at most.

    The table is as its latest version has it; those of the last day are kept beside it, and are not counted.
    """
    paths = archive(folder / "world")
    images = squares(paths)
    exported = networks(images, folder / "exported")
    alone = {}
    for name, network in exported.items():
        bare = Bare(network)
        bare.run(images)  # warm
        alone[name] = core_seconds(lambda bare=bare: bare.run(images)) / len(images)  # type: ignore[misc]
    gallery = Gallery.create(folder / "gallery", exported["openvino"])
    assert gallery.embedder is not None
    gallery.embedder.embed(images[:1])  # compiled now
    whole = core_seconds(lambda: gallery.add(list(paths))) / len(images)
    table = folder / "gallery" / "records.lance"
    files = [file for part in lance.dataset(table).get_fragments() for file in part.data_files()]
    stored = sum((table / "data" / file.path).stat().st_size for file in files)
    return stored / len(images), alone, max(whole - alone["openvino"], 0.0)


def held(folder: Path) -> float:
    """Return bytes a chip in a process that searches a gallery approximately."""
    rows = [{"id": f"scenes/harbour-{number // 100:05d}.tif:{number:07d}", "source": ""} for number in range(HELD)]
    for name, count in (("large", HELD), ("small", HELD // 2)):
        gallery = Gallery.create(folder / name, dimension=DIMENSIONS)
        gallery.add_embeddings(rows[:count], vectors(np.random.default_rng(0), count)[0])
    taken = {
        name: int(subprocess.run(
            [sys.executable, __file__, OPENED, str(folder / name)], check=True, capture_output=True, text=True
        ).stdout)
        for name in ("large", "small")
    }  # fmt: skip
    least = DIMENSIONS * np.dtype(np.float32).itemsize  # few chips drown in what else a process takes
    return max((taken["large"] - taken["small"]) / (HELD - HELD // 2), least)


def simulated(rows: int, probes: int) -> float:
    """Return seconds of a query in an index of so many rows, of which only the lists are filled that are looked at."""
    rng = np.random.default_rng(0)
    lists = number_of_lists(rows)
    length = max(1, round(rows / lists))
    quantizer = faiss.IndexFlatL2(DIMENSIONS)
    quantizer.add(rng.standard_normal((lists, DIMENSIONS), dtype=np.float32))
    index = faiss.IndexIVFFlat(quantizer, DIMENSIONS, lists)
    index.is_trained, index.nprobe = True, min(probes, lists)
    queries = rng.standard_normal((QUERIES, DIMENSIONS), dtype=np.float32)
    block = rng.standard_normal((length, DIMENSIONS), dtype=np.float32)
    ids = np.arange(length, dtype=np.int64)
    for cell in np.unique(quantizer.search(queries, index.nprobe)[1]):
        index.invlists.add_entries(int(cell), length, faiss.swig_ptr(ids), faiss.swig_ptr(block.view(np.uint8)))
        index.ntotal += length
    return seconds(lambda: [index.search(query[None], K) for query in queries]) / QUERIES


def searched() -> tuple[float, float, dict[int, int], float]:
    """Return seconds a chip to list and to compare, lists looked through by size, and seconds of a real query."""
    probes = {}
    for size in SIZES:
        z = vectors(np.random.default_rng(0), size + QUERIES)[0]
        z, queries = z[:size], z[size:]
        begin = time.process_time()
        engine = IVFEngine(stream(z), no_columns(size))
        listed = (time.process_time() - begin) / size / number_of_lists(size)
        probes[size] = engine.probes
    real = seconds(lambda: [engine.nearest(query[None], K, None) for query in queries]) / QUERIES
    exact = ExactEngine(stream(z), no_columns(len(z)))
    compared = seconds(lambda: [exact.nearest(query[None], K, None) for query in queries]) / QUERIES / len(z)
    return listed, compared, probes, real


def adapted() -> tuple[float, float]:
    """Return seconds a chip, and once."""
    rng = np.random.default_rng(0)
    source = GaussianLikelihoodRatio().fit(*vectors(rng, 4_000))

    def taken(size: int) -> float:
        x = vectors(rng, size)[0]
        return seconds(lambda: adapt(source, x, clusters=20, method="cplfpa"))

    few, many = map(taken, TARGETS)
    each = max(many - few, 0.0) / (TARGETS[1] - TARGETS[0])
    return each, max(few - each * TARGETS[0], 0.0)


def main() -> None:
    """Measure with one thread where a core is the unit, and write the page where a folder is given."""
    faiss.omp_set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        stored, embedded, handled = indexed(Path(folder))
        memory = held(Path(folder))
    with threadpool_limits(1):
        listed, compared, probes, real = searched()
        assigned, clustered = adapted()
        costs = Costs(
            stored=stored, held=memory, embedded=embedded, handled=handled, listed=listed, compared=compared,
            assigned=assigned, clustered=clustered, probes=probes,
        )  # fmt: skip
        node = Node()
        shards = {size: Plan(size, costs, node).shard for size in ARCHIVES}
        queries = {size: simulated(shard, costs.probes_at(shard)) for size, shard in shards.items()}
        again = simulated(max(SIZES), probes[max(SIZES)])
    check = (
        f"At {max(SIZES):,} chips a simulated query takes {again * 1e3:.3g} ms, and one of the engine {real * 1e3:.3g}."
    )
    page = planning_page(costs, node, queries, check, this_machine().sentence())
    print("\n\n".join(part if isinstance(part, str) else part.markdown() for part in page.parts), "\n")  # type: ignore[union-attr]
    if OUT is not None:
        page.write("planning", OUT, OUT, "lookdown bench planning")
    what = f"a simulated query of {max(SIZES):,} chips, slower or faster"
    off = max(again / real, real / again)
    report("Planning", [Row.of(what, "a real one", off, 1, unit="times", limit=2)])


def opened(path: str) -> None:
    """Print what memory a process takes that has opened a gallery."""
    gallery = Gallery.open(path, engine="ivf")
    gallery.prepare()
    status = Path("/proc/self/status")  # what `peak_memory` says on Linux may be that of the process that started this
    lines = status.read_text().splitlines() if status.exists() else []
    highest = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    print(*(highest or [peak_memory()]))


if __name__ == "__main__":
    opened(sys.argv[2]) if sys.argv[1:2] == [OPENED] else main()
