"""The service under load: many clients upload images at once, with batches in the network and without."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from lookdown import Embedder, Gallery, GaussianLikelihoodRatio
from lookdown.service import ServiceSettings
from lookdown.service.server import serve
from sidebyside import OPTIONS, QUICK, Row, report

SIDE, DIMENSIONS, KINDS = 64, 64, 200
IMAGES = 32  # different ones that clients send
WARM = 1.0  # seconds before the clock starts

TARGET_TAIL, TARGET_RATIO = 5.0, 2.0


@dataclass(frozen=True)
class Load:
    """What clients have seen."""

    seconds: list[float]  # of the requests that were answered
    errors: int
    elapsed: float

    @property
    def median(self) -> float:
        """Milliseconds."""
        return statistics.median(self.seconds) * 1e3

    @property
    def p99(self) -> float:
        """Milliseconds."""
        return float(np.quantile(self.seconds, 0.99)) * 1e3

    @property
    def throughput(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.elapsed


def make(folder: Path, chips: int, backbone: str) -> None:
    """Make a gallery of vectors around the network's own, so that a search finds something."""
    embedder = Embedder(backbone, size=SIDE, dimension=DIMENSIONS, weights="none").eval()
    rng = np.random.default_rng(0)
    centres = embedder.embed(rng.integers(0, 256, (KINDS, 3, SIDE, SIDE), np.uint8))
    spread = centres.std(axis=0)
    y = rng.integers(KINDS, size=chips)
    x = (centres[y] + rng.normal(size=(chips, DIMENSIONS)) * spread).astype(np.float32)
    sample = slice(0, min(chips, 4_000))
    metric = GaussianLikelihoodRatio().fit(x[sample], y[sample]).calibrate(x[sample][:1_000], y[sample][:1_000])
    gallery = Gallery.create(folder, embedder, metric)
    rows = [{"id": f"chip {n}", "scene": f"scene {n // 50}", "label": f"kind {k}"} for n, k in enumerate(y)]
    gallery.add_embeddings(rows, x, fingerprint=embedder.fingerprint)


def serve_alone(folder: Path, batch: int) -> None:
    """Serve in this process until it is told to end."""
    settings = ServiceSettings(port=0, batch=batch, batch_seconds=0.003 if batch > 1 else 0.0, requests_a_second=0)
    serve(Gallery.open(folder), settings, lambda address: print(address, flush=True))


@contextmanager
def server(folder: Path, batch: int) -> Iterator[int]:
    """Yield the port of a service in a process of its own."""
    started = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(folder), "--batch", str(batch)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert started.stdout is not None
        match = re.search(r":(\d+)\s*$", started.stdout.readline())
        assert match, "the service did not start"
        yield int(match[1])
    finally:
        started.terminate()
        started.wait(30)


def requests(turned: bool) -> list[bytes]:
    """Return whole requests, ready to be sent: clients should not be what is measured."""
    rng = np.random.default_rng(1)
    asked = json.dumps({"k": 20, "turned": turned})
    ready = []
    for _ in range(IMAGES):
        stream = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)).save(stream, "JPEG")
        body = b"".join((
            b'--b\r\nContent-Disposition: form-data; name="image"; filename="x.jpg"\r\n\r\n', stream.getvalue(),
            b'\r\n--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n', asked.encode(), b"\r\n--b--\r\n",
        ))  # fmt: skip
        head = (
            f"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        ready.append(head.encode() + body)
    return ready


async def client(port: int, ready: list[bytes], number: int, begin: float, end: float) -> tuple[list[float], int]:
    """Ask again and again over one connection; return the times of what was answered, and the errors."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds, errors, turn = [], 0, number
    while time.perf_counter() < end:
        sent = time.perf_counter()
        writer.write(ready[turn % len(ready)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length, head
        await reader.readexactly(int(length[1]))
        if sent >= begin:
            seconds.append(time.perf_counter() - sent)
            errors += not head.startswith(b"HTTP/1.1 200")
        turn += 1
    writer.close()
    return seconds, errors


def measure(folder: Path, batch: int, clients: int, length: float, turned: bool) -> Load:
    """Let clients ask for a while."""

    async def all_at_once(port: int) -> Load:
        begin = time.perf_counter() + WARM
        ready = requests(turned)
        answers = await asyncio.gather(*(client(port, ready, n, begin, begin + length) for n in range(clients)))
        elapsed = time.perf_counter() - begin
        return Load(
            [second for seconds, _ in answers for second in seconds], sum(errors for _, errors in answers), elapsed
        )

    with server(folder, batch) as port:
        return asyncio.run(all_at_once(port))


def main() -> None:
    """Measure with batches and without, and print a table; an answer that is an error ends it."""
    arguments = argparse.ArgumentParser(description=__doc__, parents=[OPTIONS])
    arguments.add_argument("--chips", type=int, default=2_000 if QUICK else 100_000)
    arguments.add_argument("--clients", type=int, default=8 if QUICK else 64)
    arguments.add_argument(
        "--seconds", type=float, default=1.0 if QUICK else 12.0, help="of each measurement; there are four"
    )
    arguments.add_argument("--backbone", default="tf_efficientnet_lite0")
    arguments.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments.add_argument("--batch", type=int, default=64)
    options = arguments.parse_args()
    if options.serve is not None:
        serve_alone(options.serve, options.batch)
        return
    print(f"{options.clients} clients, {options.chips:,} chips, {options.backbone}, {os.cpu_count()} processors\n")
    print("| images | in the network together | answers | errors | median, ms | p99, ms | p99 / median | a second |")
    print("|---|---|---|---|---|---|---|---|")
    rows, errors = [], 0
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder, "gallery"), options.chips, options.backbone)
        for turned, description in ((True, "in four turns"), (False, "as they lie")):
            loads = {
                batch: measure(Path(folder, "gallery"), batch, options.clients, options.seconds, turned)
                for batch in (options.batch, 1)
            }
            for batch, load in loads.items():
                together = f"up to {batch}" if batch > 1 else "those of one request"
                print(
                    f"| {description} | {together} | {len(load.seconds):,} | {load.errors} | {load.median:.0f} "
                    f"| {load.p99:.0f} | {load.p99 / load.median:.2f} | {load.throughput:.1f} |",
                    flush=True,
                )
            batched, alone = loads[options.batch], loads[1]
            errors += batched.errors + alone.errors
            asked = f"{options.clients} clients, images {description}"
            rows += [
                Row.of(
                    f"answers, {asked}, gathered in the network",
                    "one request at a time",
                    batched.throughput,
                    alone.throughput,
                    limit=TARGET_RATIO,
                    unit="a second",
                    better="higher",
                ),
                Row.of(f"p99, {asked}", "the median", batched.p99, batched.median, limit=TARGET_TAIL, unit="ms"),
            ]
    if errors:
        sys.exit(f"{errors} requests were answered by an error; see what the service says")
    print()
    report("The service under load", rows, threads=None)


if __name__ == "__main__":
    main()
