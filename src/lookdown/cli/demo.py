"""lookdown demo: the whole workflow on a synthetic world."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from lookdown.cli.shared_options import AsJson, print_json


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="folder to work in; it is reused")] = Path("demo"),
    as_json: AsJson = False,
) -> None:
    """Run the whole workflow on a synthetic world, in minutes.

    Draws ships and aircraft from above, trains on them, compares with baselines, moves to another sensor and to kinds
    that were never seen, adapts, indexes chips and scenes, searches them, and writes a page with the results. Run it
    again to continue after an interrupt.
    """
    from lookdown.cli.progress_bar import ProgressBar
    from lookdown.lab.demo import Listener, run_demo

    with ProgressBar("starting") as progress:

        def chapter(title: str) -> None:
            progress.say(title)
            progress.begin(title.split(":")[0])

        program = "lookdown" if shutil.which("lookdown") else sys.argv[0]
        report = run_demo(out, listener=Listener(chapter, progress, progress.say), program=program)
    if as_json:
        print_json(report)
        return
    typer.echo(f"\nlook at {report.page}, then try:\n")
    for line in report.commands:
        typer.echo(f"  {line}")
