"""A network as an ONNX graph, traced by torch in a process of its own.

torch's exporter imports much, writes to the terminal and to logs, and changes settings of torch. So
`python -m lookdown.networks.trace` runs it, and leaves only the file behind.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lookdown.errors import ExportError
from lookdown.networks.embedder import Embedder
from lookdown.networks.layers import FixedProjection
from lookdown.networks.stored_embedder import load_embedder

__all__ = ["trace", "trace_apart"]


class Graph(nn.Module):
    """What is exported: an embedder, and what a metric does to its embeddings."""

    factor: Tensor

    def __init__(self, embedder: Embedder, factor: Tensor, *, normalize: bool) -> None:
        super().__init__()
        self.embedder = embedder
        self.normalize = normalize
        self.register_buffer("factor", factor)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return raw embeddings and their transforms."""
        x = self.embedder(images)
        length = torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
        return x, (x / length if self.normalize else x) @ self.factor


def trace_apart(embedder: Embedder, factor: Tensor, file: Path, *, normalize: bool) -> None:
    """Write the graph of an embedder to a file, in another process."""
    with tempfile.TemporaryDirectory(prefix="lookdown-tracing-") as folder:
        embedder.save(Path(folder, "embedder"))
        save_file({"factor": factor.contiguous()}, Path(folder, "space.safetensors"))
        words = [sys.executable, "-W", "ignore", "-m", __name__, folder, str(file), str(int(normalize))]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"it ended with {done.returncode}"]
        raise ExportError(
            f"{embedder.settings.backbone} cannot be exported by torch {version('torch')}: {lines[-1].strip()}; use "
            "torch, or train another backbone"
        )


def trace(embedder: Embedder, factor: Tensor, file: Path, *, normalize: bool) -> None:
    """Write the graph of an embedder to a file."""
    settings = embedder.settings
    if isinstance(embedder.head, FixedProjection):  # OpenVINO 2026.4 computes its subtraction wrongly in batches
        embedder.head = embedder.head.as_linear()
    program = torch.onnx.export(
        Graph(embedder.float(), factor, normalize=normalize).eval(),
        (torch.zeros((2, settings.bands, settings.size, settings.size), dtype=torch.uint8),),
        dynamo=True,
        dynamic_shapes={"images": {0: torch.export.Dim("images")}},
        input_names=["images"],
        output_names=["embedding", "transformed"],
        verbose=False,
    )
    assert program is not None
    program.save(file, external_data=False)


def main() -> None:
    """Trace the network that the parent process has put into a folder."""
    folder, file, normalize = Path(sys.argv[1]), Path(sys.argv[2]), bool(int(sys.argv[3]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter; a user can do nothing about them
            factor = load_file(folder / "space.safetensors")["factor"]
            trace(load_embedder(folder / "embedder"), factor, file, normalize=normalize)
    except Exception as error:  # torch raises a dozen kinds of error for what it cannot trace
        sys.exit((str(error).strip() or type(error).__name__).splitlines()[0])


if __name__ == "__main__":
    main()
