"""What a machine has of what a recipe asks for."""

from __future__ import annotations

import pytest
import torch

from lookdown.errors import InputError
from lookdown.training.devices import nearest_device, refuse_missing_device


@pytest.mark.parametrize(
    ("wanted", "there", "found"),
    [
        ("cpu", {"cuda", "mps"}, "cpu"),
        ("auto", set(), "cpu"),
        ("auto", {"cuda"}, "cuda"),
        ("auto", {"mps"}, "mps"),
        ("cuda", {"cuda"}, "cuda"),
        ("cuda", {"mps"}, "cpu"),
        ("mps", {"mps"}, "mps"),
    ],
)
def test_the_device_of_the_recipe_or_else_the_cpu(
    wanted: str, there: set[str], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in there)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in there)
    assert nearest_device(wanted) == torch.device(found)
    if found == wanted or wanted == "auto":
        refuse_missing_device(wanted)
    else:
        with pytest.raises(InputError, match=f'device = "{wanted}" is not available on this machine; .*device=auto'):
            refuse_missing_device(wanted)
