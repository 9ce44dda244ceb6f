"""`python -m lookdown`, and the `lookdown` command."""

from __future__ import annotations

import sys

from lookdown.errors import LookdownError, MissingExtraError


def main() -> None:
    """Run the command line; an error that a user can meet is one sentence, not a traceback."""
    try:
        from lookdown.cli import app

        app(prog_name="lookdown")
    except LookdownError as error:
        sys.exit(f"lookdown: {error}")
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "packaging"):
            raise
        sys.exit(f"lookdown: {MissingExtraError('the command line', 'cli')}")


if __name__ == "__main__":
    main()
