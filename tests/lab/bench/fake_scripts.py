"""Small scripts that do what benchmarks do, well or badly."""

from __future__ import annotations

from pathlib import Path

from lookdown.lab.bench.scripts import FOLDER

__all__ = ["SCRIPTS", "write_scripts"]

_BEGINNING = f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\nfrom sidebyside import OUT, QUICK, Row, report\n"
SCRIPTS = {
    "fine": _BEGINNING + "print('a remark')\nreport('Fine', [Row.of('fast', 'slow', 1, 4, limit=0.5)])\n",
    "misses": _BEGINNING + "report('Misses', [Row.of('late', 'a limit', 3, 2, limit=1)], threads=None)\n",
    "fails": "raise ValueError('out of luck')\n",
    "lacks": "import no_such_package\n",
    "silent": "print('nothing to hand over')\n",
    "halfway": _BEGINNING + "try:\n    report('Halfway', [Row.of('fast', 'slow', 1, 4, limit=1)])\n"
    "finally:\n    sys.exit('then it broke')\n",
    "pictures": _BEGINNING + "(OUT / 'more.md').write_text('# More\\n')\n"
    "report('Pictures', [Row.of('quick' if QUICK else 'slow', 'x', 1, 1, limit=1)])\n",
    "threads": _BEGINNING + "import os\nthreads = int(os.environ['OMP_NUM_THREADS'])\n"
    "report('Threads', [Row.of('threads', 'one', threads, 1, limit=99)])\n",
}  # fmt: skip


def write_scripts(folder: Path, *names: str) -> Path:
    """Write some of them into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text(SCRIPTS[name])
    return folder
