"""Each change against its formula written as a loop, and the promises: bits, range, dtype, one generator."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lookdown.chips.augmentation import Augmentation, Strengths, blur, brighten, contrast, haze, warp
from lookdown.errors import InputError

CHANGES = ("rotation", "flip", "scale", "shift", "brightness", "contrast", "haze", "blur", "noise")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_images(b: int = 4, c: int = 3, h: int = 16, w: int = 16) -> Tensor:
    return torch.rand(b, c, h, w, generator=seeded(7))


def only(**strengths: float) -> Augmentation:
    return Augmentation(replace(Strengths.off(), **strengths))


def warped(
    images: Tensor,
    degrees: float = 0,
    scale: float = 1,
    shift: tuple[float, float] = (0, 0),
    flip: tuple[int, int] = (0, 0),
) -> Tensor:
    b = len(images)
    return warp(
        images,
        degrees=torch.full((b,), float(degrees)),
        scale=torch.full((b,), float(scale)),
        shift=torch.tensor([shift] * b, dtype=torch.float32),
        flip=torch.tensor([flip] * b, dtype=torch.bool),
    )


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64, torch.float16])
def test_with_everything_off_the_bits_stay(dtype: torch.dtype) -> None:
    images = (some_images() * 255).to(dtype) if dtype == torch.uint8 else some_images().to(dtype)
    assert torch.equal(only()(images, seeded()), images)
    assert torch.equal(only(haze_grey=0.1)(images, seeded()), images)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_quarter_turns_equal_rot90(turns: int) -> None:
    images = some_images()
    torch.testing.assert_close(warped(images, 90 * turns), images.rot90(turns, (2, 3)), atol=1e-4, rtol=0)


def test_flips_equal_flip() -> None:
    images = some_images(h=9, w=14)
    torch.testing.assert_close(warped(images, flip=(1, 0)), images.flip(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(warped(images, flip=(0, 1)), images.flip(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(only(flip=1)(images, seeded()), images.flip(2, 3), atol=1e-5, rtol=0)
    turned = images.flip(3)[:, :, :, :9]  # a flip comes before a turn
    square = images[:, :, :, 5:]
    torch.testing.assert_close(warped(square, 90, flip=(1, 0)), turned.rot90(1, (2, 3)), atol=1e-4, rtol=0)


def test_a_turn_does_not_stretch_a_long_chip() -> None:
    images = torch.zeros(1, 1, 40, 80)
    images[:, :, 16:24, 25:55] = 1  # 30 wide, 8 high
    upright = warped(images, 90)[0, 0] > 0.5
    assert upright.any(0).sum() == 8
    assert upright.any(1).sum() == 30


def test_shift_moves_right_and_down_and_scale_enlarges() -> None:
    images = torch.zeros(1, 1, 20, 40)
    images[:, :, 8:12, 16:24] = 1
    moved = warped(images, shift=(0.25, 0.1))
    assert torch.equal(moved > 0.5, images.roll((2, 10), (2, 3)) > 0.5)
    larger = warped(images, scale=2)[0, 0] > 0.5
    assert (int(larger.any(0).sum()), int(larger.any(1).sum())) == (16, 8)
    both = warped(images, 90, shift=(0.25, 0.1))  # the shift comes after the turn, so it is not turned
    assert torch.equal(both > 0.5, warped(images, 90).roll((2, 10), (2, 3)) > 0.5)


def test_what_lies_beyond_the_border_gets_the_mean_colour_of_its_band() -> None:
    images = some_images(2, 3, 8, 8)
    moved = warped(images, shift=(0.25, 0))
    torch.testing.assert_close(moved[:, :, :, 2:], images[:, :, :, :6], atol=1e-5, rtol=0)
    torch.testing.assert_close(moved[:, :, :, :2], images.mean((2, 3))[:, :, None, None].expand(2, 3, 8, 2))


def test_a_ship_that_fills_its_chip_is_not_lengthened_by_a_turn() -> None:
    images = torch.zeros(1, 1, 64, 64)
    images[:, :, 29:35] = 1  # from border to border
    y, x = (warped(images, 45)[0, 0] > 0.5).nonzero().unbind(1)
    along = (x - y) / math.sqrt(2)
    assert abs(float(along.max() - along.min()) - 64) < 2


def test_brightness_contrast_and_haze_equal_naive_loops() -> None:
    images, factor = some_images(3, 5, 4, 6), torch.tensor([0.7, 1.0, 1.3])
    brighter, stretched, hazy = (torch.empty_like(images) for _ in range(3))
    for i in range(3):
        for c in range(5):
            mean = sum(float(images[i, c, y, x]) for y in range(4) for x in range(6)) / 24
            for y in range(4):
                for x in range(6):
                    value, amount = float(images[i, c, y, x]), float(factor[i]) / 2
                    brighter[i, c, y, x] = float(factor[i]) * value
                    stretched[i, c, y, x] = mean + float(factor[i]) * (value - mean)
                    hazy[i, c, y, x] = (1 - amount) * value + amount * 0.9
    torch.testing.assert_close(brighten(images, factor), brighter)
    torch.testing.assert_close(contrast(images, factor), stretched)
    torch.testing.assert_close(haze(images, factor / 2, 0.9), hazy)
    torch.testing.assert_close(contrast(images, factor).mean((2, 3)), images.mean((2, 3)))


def test_haze_never_darkens_below_the_blend_with_the_most_haze() -> None:
    images = some_images(64)
    hazy = only(haze=0.4, haze_grey=0.8)(images, seeded())
    thickest = 0.6 * images + 0.4 * 0.8
    low, high = torch.minimum(images, thickest), torch.maximum(images, thickest)
    assert (hazy >= low - 1e-6).all()
    assert (hazy <= high + 1e-6).all()
    amount = ((hazy - images) / (0.8 - images)).flatten(1).median(1).values
    assert amount.min() < 0.05
    assert amount.max() > 0.35


def test_blur_equals_a_naive_gaussian_for_each_image() -> None:
    images, sigma = some_images(3, 2, 7, 9), torch.tensor([0.0, 0.6, 1.4])
    found = blur(images, sigma, largest=1.4)
    radius = math.ceil(3 * 1.4)
    assert torch.equal(found[0], images[0])
    for i in (1, 2):
        weight = [math.exp(-(k**2) / (2 * float(sigma[i]) ** 2)) for k in range(-radius, radius + 1)]
        for y in range(7):
            for x in range(9):
                total = torch.zeros(2)
                for dy in range(-radius, radius + 1):
                    for dx in range(-radius, radius + 1):
                        pixel = images[i, :, min(max(y + dy, 0), 6), min(max(x + dx, 0), 8)]
                        total += weight[dy + radius] * weight[dx + radius] * pixel
                torch.testing.assert_close(found[i, :, y, x], total / sum(weight) ** 2)


def test_noise_has_the_spread_asked_for_and_no_mean() -> None:
    images = torch.full((400, 1, 24, 24), 0.5)
    change = only(noise=0.1)(images, seeded()) - images
    spread = change.flatten(1).std(1)
    assert abs(float(change.mean())) < 1e-3
    assert spread.max() < 0.11
    assert abs(float(spread.mean()) - 0.05) < 0.005  # uniform from 0 to 0.1


def test_the_same_generator_state_gives_the_same_bits_and_another_does_not() -> None:
    images, augmentation = some_images(), Augmentation()
    first = augmentation(images, seeded(1))
    assert torch.equal(first, augmentation(images, seeded(1)))
    assert not torch.equal(first, augmentation(images, seeded(2)))
    going_on = seeded(1)
    augmentation(images, going_on)
    assert not torch.equal(first, augmentation(images, going_on))


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_works_alone_and_differs_from_image_to_image(change: str) -> None:
    images = some_images(1).expand(16, 3, 16, 16)
    changed = only(**{change: 1 if change == "blur" else 0.5})(images, seeded())
    distinct = {"flip": 4, "blur": 10}.get(change, 16)  # a slight blur rounds to none
    assert len(changed.flatten(1).unique(dim=0)) >= distinct
    assert (changed - images).abs().max() > 0.05


def test_switching_one_change_off_leaves_the_draws_of_the_others() -> None:
    images = some_images()
    for off in CHANGES:
        with_it, without = seeded(), seeded()
        Augmentation()(images, with_it)
        Augmentation(replace(Strengths(), **{off: 0}))(images, without)
        assert torch.equal(with_it.get_state(), without.get_state())
    turned = only(rotation=180)(images, seeded())
    torch.testing.assert_close(only(rotation=180, brightness=1e-6)(images, seeded()), turned, atol=1e-5, rtol=0)


@pytest.mark.parametrize("change", [*CHANGES, "all"])
def test_a_part_of_a_batch_is_changed_as_within_the_whole(change: str) -> None:
    images = some_images(24, 3, 40, 40)
    augmentation = Augmentation() if change == "all" else only(**{change: 0.5})
    whole = augmentation(images, seeded())
    for first, last in ((0, 1), (0, 9), (9, 24), (23, 24)):
        part = augmentation(images[first:last], seeded(), first)
        torch.testing.assert_close(part, whole[first:last], rtol=0, atol=1e-6)


@pytest.mark.parametrize("bands", [1, 3, 4, 13])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_range_dtype_and_shape_are_kept_for_any_bands(bands: int, dtype: torch.dtype) -> None:
    top = 255 if dtype == torch.uint8 else 1
    images = (some_images(6, bands, 12, 18).round() * top).to(dtype)  # black and white: every change could overshoot
    before = images.clone()
    changed = Augmentation(Strengths(brightness=1, contrast=1, noise=0.5))(images, seeded())
    assert changed.dtype == dtype
    assert changed.shape == images.shape
    assert changed.min() >= 0
    assert changed.max() <= top
    assert changed.unique().numel() > 20
    assert torch.equal(images, before)


def test_uint8_and_floats_are_changed_alike() -> None:
    images = (some_images() * 255).to(torch.uint8)
    changed, of_floats = Augmentation()(images, seeded()), Augmentation()(images / 255, seeded())
    assert torch.equal(changed, (of_floats * 255).round().to(torch.uint8))


def test_global_randomness_is_neither_used_nor_moved() -> None:
    images = some_images()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first = Augmentation()(images, seeded())
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(4)
    assert torch.equal(first, Augmentation()(images, seeded()))


def test_no_gradient_is_recorded() -> None:
    assert not Augmentation()(some_images().requires_grad_(), seeded()).requires_grad


@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 3, 1, 1), (2, 3, 2, 50)])
def test_odd_shapes_pass(shape: tuple[int, ...]) -> None:
    images = torch.full(shape, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        changed = Augmentation()(images, seeded())
    assert changed.shape == shape
    assert changed.isfinite().all()


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (torch.zeros(3, 8, 8), "B, C, H, W"),
        (torch.zeros(2, 3, 0, 8), "with pixels"),
        (torch.full((1, 3, 8, 8), 128.0), "divide 8-bit values by 255"),
        (torch.full((1, 3, 8, 8), math.nan), "from 0 to 1"),
        (torch.zeros(1, 3, 8, 8, dtype=torch.int64), "uint8 or floats"),
    ],
)
def test_unusable_images_are_refused(images: Tensor, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Augmentation()(images, seeded())


@pytest.mark.parametrize("wrong", [{"rotation": 181}, {"flip": -0.1}, {"scale": 1}, {"haze": math.nan}])
def test_strengths_out_of_range_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Strengths(**wrong)
