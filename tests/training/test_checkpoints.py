"""Checkpoints: whole or passed over, and the last good one is never lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lookdown.errors import OutputError
from lookdown.training.checkpoints import last_checkpoint, write_checkpoint


def write(folder: Path, epoch: int) -> None:
    write_checkpoint(folder, epoch, {"weight": torch.full((3,), float(epoch))}, {"stage": 1})


def test_the_latest_comes_back_and_two_are_kept(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path / "none") is None
    for epoch in range(1, 5):
        write(tmp_path, epoch)
    found = last_checkpoint(tmp_path)
    assert found is not None
    assert found.epoch == 4
    assert found.state == {"stage": 1}
    torch.testing.assert_close(found.tensors["weight"], torch.full((3,), 4.0))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "epoch-00003.json", "epoch-00003.safetensors", "epoch-00004.json", "epoch-00004.safetensors",
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["truncated", "flipped", "gone", "no json", "half json"])
def test_a_damaged_one_is_passed_over(tmp_path: Path, damage: str) -> None:
    write(tmp_path, 1)
    write(tmp_path, 2)
    tensors, description = tmp_path / "epoch-00002.safetensors", tmp_path / "epoch-00002.json"
    content = tensors.read_bytes()
    if damage == "truncated":
        tensors.write_bytes(content[:-4])
    elif damage == "flipped":
        tensors.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "gone":
        tensors.unlink()
    elif damage == "no json":
        description.unlink()
    else:
        description.write_text(description.read_text()[:20])
    found = last_checkpoint(tmp_path)
    assert found is not None
    assert found.epoch == 1


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"epoch-00003 cannot be written: .* --resume"):
        write(tmp_path / "file", 3)
