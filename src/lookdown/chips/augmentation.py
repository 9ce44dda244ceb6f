"""Random views of chips seen from straight above: no heading is special, and light, air and optics vary."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from lookdown.errors import InputError

__all__ = ["Augmentation", "Strengths", "blur", "brighten", "contrast", "haze", "warp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strengths:
    """The largest amount of each change; each image draws its own amount uniformly, and 0 switches a change off."""

    rotation: float = 180.0  # degrees either way; 180 allows every heading, since imagery from above has no upright
    flip: float = 0.5  # probability of each of the two flips
    scale: float = 0.1  # sizes from 1 - scale to 1 + scale; small, because size tells kinds apart
    shift: float = 0.05  # share of the side, either way: boxes are rarely centred to the pixel
    brightness: float = 0.2  # factors from 1 - brightness to 1 + brightness
    contrast: float = 0.2  # factors from 1 - contrast to 1 + contrast
    haze: float = 0.2  # largest share of `haze_grey` in the blend
    haze_grey: float = 0.85  # the grey that haze tends to
    blur: float = 1.0  # largest standard deviation of the Gaussian, in pixels
    noise: float = 0.02  # largest standard deviation of the noise, where white is 1

    def __post_init__(self) -> None:
        limits = {"rotation": 180.0, "scale": 0.9, "blur": 16.0}
        for name, value in asdict(self).items():
            if not 0 <= value <= (limit := limits.get(name, 1.0)):
                raise InputError(f"{name} must be a number from 0 (off) to {limit:g}, got {value!r}")

    @classmethod
    def off(cls) -> Strengths:
        """Return strengths that change nothing; switch on single changes with `dataclasses.replace`."""
        return cls(rotation=0, flip=0, scale=0, shift=0, brightness=0, contrast=0, haze=0, blur=0, noise=0)


class Augmentation(nn.Module):
    """Change every image of a batch in its own random way.

    Changes follow the path of the light: the object and its pose, illumination, air, optics, sensor. The random numbers
    of an image do not depend on which changes are on, so two runs that differ in one strength differ in nothing else.
    Nor do they depend on later images: a slice of a batch is changed as it would be within the whole.
    """

    def __init__(self, strengths: Strengths | None = None) -> None:
        super().__init__()
        self.strengths = strengths or Strengths()

    @torch.no_grad()
    def forward(self, images: Tensor, generator: torch.Generator, first: int = 0) -> Tensor:
        """Return changed copies with the same shape and dtype.

        images: (B, C, H, W) with any number of bands, uint8 or floats from 0 to 1.
        generator: the source of all randomness.
        first: position of the first image, if `images` is a slice of a larger batch.
        """
        strengths = self.strengths
        _refuse_unusable(images)
        # Drawn from a copy: the same for every slice of a batch, and without effect on the other random numbers.
        noise_seed = int(torch.randint(1 << 62, (), generator=generator.clone_state(), device=generator.device))
        rows = torch.rand(first + len(images), 11, generator=generator, device=generator.device)
        uniform = rows[first:].to(images.device)
        if not len(images) or strengths == replace(Strengths.off(), haze_grey=strengths.haze_grey):
            return images
        x = _as_working_floats(images)
        flip_x, flip_y, *draws = uniform.to(x.dtype).unbind(1)
        turn, size, right, down, light, spread, air, optics, sensor = (draw * 2 - 1 for draw in draws)  # from -1 to 1
        if strengths.rotation or strengths.flip or strengths.scale or strengths.shift:
            x = warp(
                x,
                degrees=turn * strengths.rotation,
                scale=1 + size * strengths.scale,
                shift=torch.stack([right, down], 1) * strengths.shift,
                flip=torch.stack([flip_x, flip_y], 1) < strengths.flip,
            )
        if strengths.brightness:
            x = brighten(x, 1 + light * strengths.brightness)
        if strengths.contrast:
            x = contrast(x, 1 + spread * strengths.contrast)
        if strengths.haze:
            x = haze(x, air.abs() * strengths.haze, strengths.haze_grey)
        if strengths.blur:
            x = blur(x, optics.abs() * strengths.blur, largest=strengths.blur)
        if strengths.noise:
            x = x + _per_image(sensor.abs() * strengths.noise) * _noise(x, noise_seed + first)
        x = x.clamp(0, 1)  # only at the end: the sensor saturates, not the light
        return (x * 255).round().to(torch.uint8) if images.dtype == torch.uint8 else x.to(images.dtype)


def warp(images: Tensor, *, degrees: Tensor, scale: Tensor, shift: Tensor, flip: Tensor) -> Tensor:
    """Flip, rotate counter-clockwise, scale and shift each image about its centre, sampled once (bilinear).

    `degrees` and `scale` are (B,); `shift` is (B, 2), right and down as shares of the side; `flip` is (B, 2) booleans,
    left-right and up-down. Pixels from beyond the border get the image's mean colour, as in `letterbox`: a reflection
    would mirror the bow of a ship that fills its chip, and so make the ship longer.
    """
    _, _, h, w = images.shape
    angle = torch.deg2rad(degrees)
    cos, sin = angle.cos() / scale, angle.sin() / scale
    mirror = 1 - 2 * flip.to(images.dtype)
    # From positions in the result back to positions in the image, where y points down and a side is 2 long.
    rows = [torch.stack([cos, -sin * h / w], 1), torch.stack([sin * w / h, cos], 1)]
    inverse = torch.stack(rows, 1) * mirror[:, :, None]
    theta = torch.cat([inverse, -inverse @ (2 * shift)[:, :, None]], 2)
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    mean = images.mean((2, 3), keepdim=True)
    return mean + functional.grid_sample(
        images - mean, grid, mode="bilinear", padding_mode="zeros", align_corners=False
    )


def brighten(images: Tensor, factor: Tensor) -> Tensor:
    """Multiply each image by its factor."""
    return images * _per_image(factor)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Stretch each band about its own mean, which stays: `mean + factor (x - mean)`."""
    mean = images.mean((2, 3), keepdim=True)
    return mean + _per_image(factor) * (images - mean)


def haze(images: Tensor, amount: Tensor, grey: float) -> Tensor:
    """Blend towards a grey that is the same in all bands: `(1 - amount) x + amount grey`."""
    return images + _per_image(amount) * (grey - images)


def blur(images: Tensor, sigma: Tensor, *, largest: float) -> Tensor:
    """Blur each image with a Gaussian of its own standard deviation in pixels, truncated at three times `largest`."""
    b, c, h, w = images.shape
    radius = max(1, math.ceil(3 * largest))
    steps = torch.arange(-radius, radius + 1, dtype=images.dtype, device=images.device)
    kernels = (-((steps / sigma[:, None].clamp_min(1e-3)) ** 2) / 2).exp()  # at 1e-3 a spike, which changes nothing
    kernels = (kernels / kernels.sum(1, keepdim=True)).repeat_interleave(c, 0)[:, None]
    padded = functional.pad(images, (radius,) * 4, mode="replicate").view(1, b * c, h + 2 * radius, w + 2 * radius)
    across = functional.conv2d(padded, kernels[:, :, None, :], groups=b * c)
    return functional.conv2d(across, kernels[:, :, :, None], groups=b * c).view(b, c, h, w)


def _noise(images: Tensor, seed: int) -> Tensor:
    """Return standard normal values; each image has a seed of its own, counted up from `seed`."""
    generator = torch.Generator(images.device)
    noise = torch.empty(images.shape, dtype=images.dtype, device=images.device)
    for row, values in enumerate(noise):
        values.normal_(generator=generator.manual_seed(seed + row))
    return noise


def _per_image(values: Tensor) -> Tensor:
    return values[:, None, None, None]


def _as_working_floats(images: Tensor) -> Tensor:
    if images.dtype == torch.uint8:
        return images.float() / 255
    return images.to(torch.promote_types(images.dtype, torch.float32))  # half precision is too coarse for resampling


def _refuse_unusable(images: Tensor) -> None:
    if images.ndim != 4 or 0 in images.shape[1:]:
        raise InputError(f"images must be a batch (B, C, H, W) with pixels, got shape {tuple(images.shape)}")
    if images.dtype == torch.uint8 or not len(images):
        return
    if not images.is_floating_point():
        raise InputError(f"images must be uint8 or floats from 0 to 1, got {images.dtype}")
    low, high = (float(value) for value in images.detach().aminmax())
    if not (low >= 0 and high <= 1):  # also true of NaN
        raise InputError(f"float images must lie from 0 to 1, got {low:g} to {high:g}; divide 8-bit values by 255")
