"""Which list of the approximate index each chip is in, kept on disk: finding lists is what takes its time.

The lists serve any metric, since what an engine searches is a linear map of the embeddings. The file is derived: where
it is missing, damaged or older than the table, the engine makes up for it.
"""

from __future__ import annotations

import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lookdown.errors import DamagedCacheWarning

__all__ = ["read_lists", "write_lists"]

Keys = NDArray[np.int64]
Lists = NDArray[np.int32]


def read_lists(file: Path, keys: Keys) -> Lists | None:
    """Return the list of each chip by its number, -1 for those that came later; None where there is nothing to use."""
    try:
        stored = load(file.read_bytes())
        known, lists = stored["keys"], stored["lists"]
        if known.dtype != np.int64 or lists.dtype != np.int32 or known.shape != lists.shape or lists.min(initial=0) < 0:
            raise ValueError("it holds something else")
    except FileNotFoundError:
        return None
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        warnings.warn(f"{file} is damaged ({error}); the index is built again", DamagedCacheWarning, stacklevel=2)
        return None
    order = np.argsort(known)
    place = np.searchsorted(known, keys, sorter=order).clip(max=len(known) - 1)
    if not len(known):
        return None
    found = order[place]
    return np.where(known[found] == keys, lists[found], -1).astype(np.int32)


def write_lists(file: Path, keys: Keys, lists: Lists) -> None:
    """Write beside, then rename; a disk that is full or read-only costs time at the next opening, no more."""
    content = save({"keys": np.ascontiguousarray(keys), "lists": np.ascontiguousarray(lists)})
    with suppress(OSError), tempfile.TemporaryDirectory(dir=file.parent.parent, prefix=f".{file.parent.name}.") as own:
        # Readers write it as well, and take no lock: each beside in a folder of its own.
        beside = Path(own, file.name)
        beside.write_bytes(content)
        file.parent.mkdir(exist_ok=True)
        beside.replace(file)
