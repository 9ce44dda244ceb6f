"""Folders of data with a JSON description and a digest: how metrics, embedders and exports lie on disk.

Nothing in such a folder is ever executed. It is written whole or not at all, and refused if a byte was changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookdown.atomic import finish_replacement, readable_folder, write_folder
from lookdown.errors import LookdownError

__all__ = ["StoredKind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKind:
    """One kind of folder: what it is called in errors, what it may hold, and which version this lookdown reads.

    name: the noun with its article, `a metric`.
    marker: the JSON file with the description.
    files: every file that such a folder may hold, the marker included.
    required: keys of the description with their types, besides those that every kind has.
    written_by: what writes such a folder, for errors.
    again: the next step if a folder is damaged.
    error: the class of every error that is raised.
    """

    name: str
    marker: str
    files: Collection[str]
    format: str
    version: int
    written_by: str
    again: str
    error: type[LookdownError]
    required: Mapping[str, type] = field(default_factory=dict)

    def is_at(self, path: str | Path) -> bool:
        """Whether a folder is of this kind, by its marker."""
        return (readable_folder(Path(path)) / self.marker).is_file()

    def write(
        self, path: str | Path, description: Mapping[str, Any], files: Mapping[str, bytes], *, overwrite: bool = False
    ) -> None:
        """Write a folder; an older one is replaced only with `overwrite`, and only if it holds nothing else."""
        folder = Path(path)
        whole: dict[str, Any] = {"format": self.format, "version": self.version, **description}
        whole["sha256"] = digest(whole, files)
        self.replace(folder, {**files, self.marker: (json.dumps(whole, indent=2) + "\n").encode()}, overwrite=overwrite)

    def replace(self, folder: Path, files: Mapping[str, bytes], *, overwrite: bool = False) -> None:
        """Write files whose marker is among them, as `write` does."""
        try:
            finish_replacement(folder, known=self.files)
            self._refuse_to_replace(folder, overwrite=overwrite)
            write_folder(folder, files)
        except OSError as error:
            raise self.error(f"{folder} could not be written: {error}; free the disk or name another path") from error

    def describe(self, path: str | Path) -> dict[str, Any]:
        """Return the description of a folder; its digest is not compared yet."""
        file = readable_folder(Path(path)) / self.marker
        wrong = f"give a folder that {self.written_by} wrote"
        noun = self.name.partition(" ")[2]
        try:
            description = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise self.error(f"{file.parent} holds no {noun} ({file.name} is missing); {wrong}") from error
        except RecursionError as error:
            raise self.error(f"{file} is nested too deeply to describe {self.name}; {self.again}") from error
        except (OSError, ValueError) as error:
            raise self.error(f"{file} cannot be read: {error}; {self.again}") from error
        if not isinstance(description, dict) or description.get("format") != self.format:
            raise self.error(f"{file} does not describe {self.name}; {wrong}")
        if description.get("version") != self.version:
            raise self.error(
                f"{file} has format version {description.get('version')}, this lookdown reads version {self.version}; "
                f"write the {noun} anew with this version"
            )
        for key, kind in {**self.required, "sha256": str}.items():
            if not isinstance(description.get(key), kind):
                raise self.error(f"{file} lacks {key!r}, or has another type of it; {self.again}")
        return description

    def read(self, path: str | Path, description: Mapping[str, Any], names: Iterable[str]) -> dict[str, bytes]:
        """Return the content of the named files, if the folder is as it was written.

        description: what `describe` returned.
        """
        folder = readable_folder(Path(path))
        try:
            files = {name: (folder / name).read_bytes() for name in names}
        except OSError as error:
            raise self.error(f"{error.filename} cannot be read: {error.strerror}; {self.again}") from error
        if description["sha256"] != digest(description, files):
            raise self.changed(folder)
        return files

    def changed(self, folder: Path) -> LookdownError:
        """Return the error for a folder whose content does not match its digest."""
        return self.error(f"{folder} is not as it was saved: a file in it was changed or damaged; {self.again}")

    def _refuse_to_replace(self, folder: Path, *, overwrite: bool) -> None:
        if not folder.exists():
            return
        if not overwrite:
            raise self.error(f"{folder} exists; pass `overwrite=True` to replace it; nothing was written")
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if self.marker not in names or not names <= set(self.files):
            raise self.error(
                f"{folder} is not {self.name}, or holds other files as well; nothing was written, name another folder"
            )


def digest(description: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """Return a SHA-256 of a description without its own digest, and of files in the order of their names."""
    rest = {key: value for key, value in description.items() if key != "sha256"}
    content = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(files):
        content.update(files[name])
    return content.hexdigest()
