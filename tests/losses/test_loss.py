"""What holds for every loss: gradients, precision, order, batches without pairs, refusals, resumption."""

from __future__ import annotations

import inspect
import math
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.losses.batches import CLASSES, DIMENSION, LABELS, SETTINGS, batch, loss_for
from torch import Tensor

from lookdown.errors import InputError
from lookdown.losses import LOSSES, CCLLoss, ClassLoss, GLRTLoss, IdentityLoss, Loss, make_loss

every_loss = pytest.mark.parametrize("setting", SETTINGS)
NEEDS_PAIRS = [setting for setting in SETTINGS if not issubclass(LOSSES[setting.split()[0]], ClassLoss)]


def gradient(loss: Loss, x: Tensor, y: Tensor, autocast: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    x = x.detach().clone().requires_grad_()
    with torch.autocast("cpu", dtype=autocast, enabled=autocast is not None):
        value = loss(x, y)
    value.backward()
    assert x.grad is not None
    return value.detach(), x.grad


# The weights of circle and AdaSP are constants by definition, which finite differences do not know: their own files.
@pytest.mark.parametrize("setting", [setting for setting in SETTINGS if setting not in ("circle", "sp")])
def test_the_gradient_is_that_of_finite_differences(setting: str) -> None:
    x, y = batch()
    loss = loss_for(setting)
    assert torch.autograd.gradcheck(lambda e: loss(e, y), x.requires_grad_())
    value = loss(x, y)
    assert value.shape == ()
    assert value.dtype == torch.float64
    assert 0 < value.item() < 1e4


@every_loss
@pytest.mark.parametrize("name", ["weight", "bias", "threshold"])
def test_the_gradient_of_parameters_too(setting: str, name: str) -> None:
    x, y = batch()
    loss = loss_for(setting)
    parameter = dict(loss.named_parameters()).get(name)
    if parameter is None:
        assert not isinstance(loss, ClassLoss) or name != "weight" or setting == "ccl"
        return
    call = torch.func.functional_call
    assert torch.autograd.gradcheck(lambda p: call(loss, {name: p}, (x, y)), parameter.detach().requires_grad_())


@every_loss
def test_the_order_of_the_batch_does_not_matter(setting: str) -> None:
    x, y = batch()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    value, slope = gradient(loss_for(setting), x, y)
    shuffled, turned = gradient(loss_for(setting), x[order], y[order])
    torch.testing.assert_close(shuffled, value, rtol=0, atol=1e-12 * max(1, value.item()))
    torch.testing.assert_close(turned, slope[order], rtol=0, atol=1e-12 * max(1, slope.abs().max().item()))


@pytest.mark.parametrize("setting", NEEDS_PAIRS)
def test_the_names_of_labels_do_not_matter_to_a_loss_of_pairs(setting: str) -> None:
    x, y = batch()
    names = torch.tensor([17, -4, 2**40, 0, 9])
    torch.testing.assert_close(loss_for(setting)(x, names[y]), loss_for(setting)(x, y), rtol=0, atol=1e-12)
    assert loss_for(setting)(x, y.to(torch.int32)) == loss_for(setting)(x, y)


@every_loss
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_worked_out_in_float32(setting: str, dtype: torch.dtype, autocast: bool) -> None:
    x, y = batch(dtype=dtype)
    loss = loss_for(setting, torch.float32)
    value, slope = gradient(loss, x, y, dtype if autocast else None)
    exact, wide = gradient(loss, x.float(), y)
    assert value.dtype == torch.float32
    assert value.isfinite()
    assert slope.isfinite().all()
    assert slope.dtype == dtype
    torch.testing.assert_close(value, exact, rtol=0, atol=0)
    torch.testing.assert_close(slope, wide.to(dtype), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_what_is_asked_beside_the_loss_is_float32_too(dtype: torch.dtype) -> None:
    x, y = batch(dtype=dtype)
    glrt, identity, ccl = (loss_for(name, torch.float32) for name in ("glrt", "identity", "ccl"))
    assert isinstance(glrt, GLRTLoss)
    assert isinstance(identity, IdentityLoss)
    assert isinstance(ccl, CCLLoss)
    twin = deepcopy(ccl)
    expected = [glrt.scores(x.float()), identity.logits(x.float())]
    ccl.update(x.float(), y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = [glrt.scores(x), identity.logits(x)]
        twin.update(x, y)
    for one, other in zip([*found, twin.centers], [*expected, ccl.centers], strict=True):
        assert one.dtype == torch.float32
        assert torch.equal(one, other)


@every_loss
@pytest.mark.parametrize(
    "dtype",
    [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32],
)
def test_labels_of_any_integer_type_are_the_same(setting: str, dtype: torch.dtype) -> None:
    x, y = batch()
    loss, twin = loss_for(setting), loss_for(setting)
    assert torch.equal(loss(x, y.to(dtype)), twin(x, y))
    loss.update(x, y.to(dtype))
    twin.update(x, y)
    assert all(torch.equal(value, twin.state_dict()[name]) for name, value in loss.state_dict().items())


@every_loss
@pytest.mark.parametrize(
    "trouble", ["zero", "all zero", "tiny", "huge", "copies", "copies of another class", "opposite"]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_loss_and_gradients_stay_finite(setting: str, trouble: str, dtype: torch.dtype) -> None:
    x, y = batch(dtype=dtype)
    if trouble in ("zero", "all zero"):
        x[slice(0, 1) if trouble == "zero" else slice(None)] = 0
    elif trouble == "tiny":
        x *= 1e-30
    elif trouble == "huge":
        x *= 1e15 if "raw" in setting else 1e30
    elif trouble == "copies":
        x[[3, 8]] = x[0].clone()
    else:
        x[1] = x[0].clone() if trouble == "copies of another class" else -x[0]
    value, slope = gradient(loss_for(setting, torch.float32), x, y)
    assert value.isfinite()
    assert slope.isfinite().all()


@every_loss
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_reaches_the_training_loop(setting: str, bad: float) -> None:
    loss = loss_for(setting)
    for row in range(len(LABELS)):
        x, y = batch()
        x[row, 2] = bad
        assert not loss(x, y).isfinite()


@pytest.mark.parametrize("setting", NEEDS_PAIRS)
@pytest.mark.parametrize("labels", [[0], [0, 0, 0], [0, 1, 2]], ids=["one row", "one class", "one row a class"])
def test_a_batch_without_pairs_is_a_zero_that_can_be_descended(setting: str, labels: list[int]) -> None:
    x, y = batch()[0][: len(labels)], torch.tensor(labels)
    value, slope = gradient(loss_for(setting), x, y)
    # These two need pairs of one kind only.
    if (setting.startswith("contrastive") and len(labels) > 1) or (setting.startswith("instance") and labels[-1] == 2):
        assert slope.abs().sum() > 0
        return
    assert value == 0
    assert (slope == 0).all()
    x[0, 0] = math.nan
    assert loss_for(setting)(x, y).isnan()


@every_loss
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (
            torch.zeros(4),
            torch.zeros(4, dtype=torch.long),
            "matrix of samples by dimensions; got torch.float32 of shape",
        ),
        (torch.zeros(0, DIMENSION), torch.zeros(0, dtype=torch.long), "got torch.float32 of shape \\(0, 6\\)"),
        (torch.zeros(4, DIMENSION, dtype=torch.int64), torch.zeros(4, dtype=torch.long), "floating-point"),
        (torch.zeros(4, DIMENSION), torch.zeros(3, dtype=torch.long), "4 embeddings needs 4 labels"),
        (torch.zeros(4, DIMENSION), torch.zeros(4, 1, dtype=torch.long), "labels in one dimension"),
        (torch.zeros(4, DIMENSION), torch.zeros(4), "labels are integers"),
        (torch.zeros(4, DIMENSION), torch.zeros(4, dtype=torch.bool), "labels are integers"),
    ],
)
def test_a_bad_batch_is_refused(setting: str, x: Tensor, y: Tensor, message: str) -> None:
    loss = loss_for(setting, torch.float32)
    with pytest.raises(InputError, match=message):
        loss(x, y)
    with pytest.raises(InputError, match=message):
        loss.update(x, y)


@pytest.mark.parametrize("setting", [setting for setting in SETTINGS if setting not in NEEDS_PAIRS])
def test_class_indices_and_dimensions_are_checked(setting: str) -> None:
    x, y = batch()
    with pytest.raises(InputError, match="from 0 to 4 for 5 classes, the batch has 5"):
        loss_for(setting)(x, y + 1)
    with pytest.raises(InputError, match="the batch has -1"):
        loss_for(setting)(x, y - 1)
    with pytest.raises(InputError, match="made for 6 dimensions, the embeddings have 5"):
        loss_for(setting)(x[:, :5], y)
    for wrong in ({"classes": 0}, {"dimension": 2.5}, {"classes": True}):
        with pytest.raises(InputError, match="a whole number of at least 1"):
            make_loss(setting.split()[0], **{"classes": CLASSES, "dimension": DIMENSION, **wrong})  # type: ignore[arg-type]


@every_loss
def test_the_state_resumes_to_the_bit(setting: str, tmp_path: Path) -> None:
    x, y = batch(dtype=torch.float32)
    loss = loss_for(setting, torch.float32)
    save_file(loss.state_dict(), tmp_path / "loss.safetensors")
    fresh = make_loss(setting.split()[0], SETTINGS[setting], classes=CLASSES, dimension=DIMENSION, seed=8)
    fresh.load_state_dict(load_file(tmp_path / "loss.safetensors"))
    for one, other in zip(gradient(loss, x, y), gradient(fresh, x, y), strict=True):
        assert torch.equal(one, other)
    for each in (loss, fresh):
        each.update(*batch(2, torch.float32))
        each.progress(0.5)
    assert loss.state_dict().keys() == fresh.state_dict().keys()
    assert all(torch.equal(value, fresh.state_dict()[name]) for name, value in loss.state_dict().items())


@every_loss
def test_making_one_leaves_the_global_generator_alone_and_the_seed_decides(setting: str) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    losses = [
        make_loss(setting.split()[0], SETTINGS[setting], classes=CLASSES, dimension=DIMENSION, seed=s)
        for s in (1, 1, 2)
    ]
    assert torch.equal(before, torch.get_rng_state())
    first, same, other = (loss.state_dict() for loss in losses)
    assert all(torch.equal(first[name], same[name]) for name in first)
    if "weight" in first:
        assert not torch.equal(first["weight"], other["weight"])


@every_loss
def test_descending_it_lowers_it_almost_every_step(setting: str) -> None:
    x, y = batch()
    x = x.requires_grad_()
    loss = loss_for(setting)
    values = []
    for _ in range(60):
        value = loss(x, y)
        values.append(value.item())
        (slope,) = torch.autograd.grad(value, x)
        with torch.no_grad():
            x -= 0.02 * slope / slope.norm()  # short steps, whatever the scale of the loss
    assert values[-1] < values[0]
    assert sum(later < earlier for earlier, later in pairwise(values)) > 50


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
def test_progress_is_a_fraction(fraction: float) -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        loss_for("circle").progress(fraction)


def test_names_and_options_are_checked_with_a_suggestion() -> None:
    def make(name: str, options: dict[str, Any] | None = None) -> Loss:
        return make_loss(name, options, classes=CLASSES, dimension=DIMENSION)

    with pytest.raises(InputError, match="there is no loss 'triplett'; did you mean triplet\\?"):
        make("triplett")
    with pytest.raises(InputError, match="there is no loss 'xyz'; known are identity, sphere"):
        make("xyz")
    with pytest.raises(InputError, match="the loss circle has no option 'gama'; did you mean gamma\\?"):
        make("circle", {"gama": 3})
    with pytest.raises(InputError, match="the loss uce has no option 'classes'; known are margin, scale"):
        make("uce", {"classes": 3})
    with pytest.raises(InputError, match="margin must be a number, got 'wide'"):
        make("circle", {"margin": "wide"})
    assert make("circle", {"gamma": 3}).gamma == 3.0


def test_the_table_has_the_twelve() -> None:
    assert list(LOSSES) == [
        "identity", "sphere", "triplet", "lifted", "instance", "contrastive", "circle", "sp", "uce", "ccl", "unified",
        "glrt",
    ]  # fmt: skip
    assert [name for name, kind in LOSSES.items() if kind.needs_metric] == ["glrt"]


@pytest.mark.parametrize("name", LOSSES)
def test_each_has_a_page_with_its_parameters(name: str) -> None:
    folder = Path(__file__).parents[2] / "docs" / "losses"
    page = (folder / f"{name}.md").read_text()
    assert f"]({name}.md)" in (folder / "README.md").read_text()
    for parameter in inspect.signature(LOSSES[name]).parameters.values():
        assert f"| `{parameter.name}` |" in page
        if parameter.default is not inspect.Parameter.empty:
            shown = repr(parameter.default).strip("'")
            assert f"| `{parameter.name}` | {shown} |" in page, f"{parameter.name} = {shown}"
