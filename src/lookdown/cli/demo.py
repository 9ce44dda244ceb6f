"""lookdown demo: the whole story on the synthetic world."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from lookdown.cli.json_output import AsJson, print_json


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="folder to work in; what is there is used again")] = Path(
        "demo"
    ),
    as_json: AsJson = False,
) -> None:
    """Tell the whole story on a world of its own, in minutes.

    Draws ships and aircraft from above, trains on them, compares with baselines, meets another sensor with kinds it
    has never seen, adapts, indexes chips and scenes, searches them, and writes a page of what was found. Stopped and
    typed again, it goes on where it was.
    """
    from lookdown.cli.progress import ProgressBar
    from lookdown.lab.demo import Listener, tell

    with ProgressBar("beginning") as progress:

        def chapter(title: str) -> None:
            progress.say(title)
            progress.begin(title.split(":")[0])

        program = "lookdown" if shutil.which("lookdown") else sys.argv[0]
        told = tell(out, listener=Listener(chapter, progress, progress.say), program=program)
    if as_json:
        print_json(told)
        return
    typer.echo(f"\nlook at {told.page}, then try:\n")
    for line in told.commands:
        typer.echo(f"  {line}")
