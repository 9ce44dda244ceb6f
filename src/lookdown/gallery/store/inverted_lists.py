"""The inverted lists of the IVF index on disk: which list each chip is in. Clustering them is the slow part.

The lists serve every metric, since an engine searches a linear map of the embeddings. The file is a cache: where it is
missing, damaged or older than the table, the engine assigns the lists again.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lookdown.atomic import write_file
from lookdown.errors import DamagedCacheWarning

__all__ = ["read_lists", "write_lists"]

Keys = NDArray[np.int64]
Lists = NDArray[np.int32]


def read_lists(file: Path, keys: Keys) -> Lists | None:
    """Return the list of each chip by its key, -1 for chips added later; None where there is no usable file."""
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
    if not len(known):
        return None
    order = np.argsort(known)
    nearest = order[np.searchsorted(known, keys, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[nearest] == keys, lists[nearest], -1).astype(np.int32)


def write_lists(file: Path, keys: Keys, lists: Lists) -> None:
    """Write the lists. A full or read-only disk is no error: it only makes the next opening slower.

    Readers write this file too, without the lock of the gallery.
    """
    content = save({"keys": np.ascontiguousarray(keys), "lists": np.ascontiguousarray(lists)})
    with suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        write_file(file, content, flush=False)
