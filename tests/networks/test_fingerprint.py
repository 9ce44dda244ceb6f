"""Equal bytes share a fingerprint, and any change shows."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from lookdown.networks.embedder import fingerprint

TENSORS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.tensor(7)}


def test_equal_bytes_share_it_in_any_order_layout_and_process() -> None:
    expected = fingerprint({"size": 3, "name": "x"}, TENSORS)
    assert fingerprint({"name": "x", "size": 3}, dict(reversed(TENSORS.items()))) == expected
    assert fingerprint({"name": "x", "size": 3}, {**TENSORS, "b": TENSORS["b"].T.contiguous().T}) == expected
    code = (
        "import torch; from lookdown.networks.embedder import fingerprint;"
        "print(fingerprint({'size': 3, 'name': 'x'}, {'a': torch.tensor(7), 'b': torch.arange(6.0).reshape(2, 3)}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == expected


@pytest.mark.parametrize(
    "tensors",
    [
        {**TENSORS, "b": TENSORS["b"].reshape(3, 2)},
        {**TENSORS, "b": torch.nextafter(TENSORS["b"], torch.tensor(9.0))},
        {**TENSORS, "b": TENSORS["b"].double()},
        {"c": TENSORS["b"], "a": TENSORS["a"]},
        {"b": TENSORS["b"]},
        {**TENSORS, "b": -TENSORS["b"]},
    ],
)
def test_any_change_of_a_tensor_shows(tensors: dict[str, Tensor]) -> None:
    assert fingerprint({"size": 3}, tensors) != fingerprint({"size": 3}, TENSORS)
    assert fingerprint({"size": 4}, TENSORS) != fingerprint({"size": 3}, TENSORS)
