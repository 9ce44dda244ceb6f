"""Scenes behind one reader: Pillow decodes photographs whole, rasterio reads GeoTIFFs window by window."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from rasterio._err import CPLE_BaseError  # some calls let GDAL's own errors through
from rasterio.enums import ColorInterp
from rasterio.errors import RasterioError
from rasterio.warp import transform as warp
from rasterio.windows import Window

from lookdown.chips.photographs import MAX_PIXELS, open_photograph, quietly, refuse_remote
from lookdown.errors import ImageError, InputError

__all__ = ["SUFFIXES", "TIFF", "SceneReader", "affine", "open_scene", "project"]

Box = tuple[int, int, int, int]  # x0, y0, x1, y1 in pixels, the ends not included
Bytes = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Points = NDArray[np.float64]

SAMPLE_SIDE_PIXELS = 1024  # the stretch is estimated from about a million pixels, however large the scene
EARTH_RADIUS_METRES = 6_371_008.8  # the mean of the ellipsoid

TIFF = frozenset({".tif", ".tiff"})
SUFFIXES = TIFF | {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".webp"}
GREY = frozenset({"1", "L", "LA", "La"})
MERCATOR = re.compile(r'PROJECTION\["Mercator_(1SP|Auxiliary_Sphere)"')  # in WKT: true to scale at the equator only

# Overviews, masks and statistics beside a GeoTIFF may be a VRT that names any file or URL, so they are ignored.
NO_SIDECARS = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_PAM_ENABLED": "NO"}

GDAL_ERRORS = (RasterioError, CPLE_BaseError)


def open_scene(path: Path, *, stretch: tuple[float, float] = (2, 98)) -> SceneReader:
    """Open an image for reading by windows.

    stretch: percentiles of each band that become 0 and 255, unless the image has 8 bits.
    """
    low, high = stretch
    if not 0 <= low < high <= 100:
        raise InputError(f"stretch must be two rising percentiles between 0 and 100, got {stretch}")
    path = Path(path)
    refuse_remote(path)
    if path.suffix.lower() == ".vrt":
        raise ImageError(f"{path} is a VRT, which may point to any other file; write it out with gdal_translate first")
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror}; check the path, or copy the file again") from error
    if not path.is_file():
        raise ImageError(f"{path} is not a file; give one image")
    if not size:
        raise ImageError(f"{path} is empty (0 bytes); copy the file again")
    return (_GeoTiff if path.suffix.lower() in TIFF else _Photograph)(path, stretch)


def affine(transform: Any, points: Points) -> Points:
    """Apply an affine map to points `(n, 2)`: from pixels to the CRS of a scene, or by its inverse back."""
    x, y = points.T
    t = transform
    return np.column_stack([t.a * x + t.b * y + t.c, t.d * x + t.e * y + t.f])


def project(source: Any, target: Any, points: Points) -> Points:
    """Transform points `(n, 2)` from one CRS to another; NaN for all of them if one cannot be transformed."""
    try:
        return np.column_stack(warp(source, target, points[:, 0], points[:, 1])[:2])
    except GDAL_ERRORS:  # beyond the poles, or an engineering grid that is nowhere on Earth
        return np.full_like(points, np.nan)


class SceneReader(AbstractContextManager["SceneReader", None]):
    """An open image, for a `with` statement: `read` returns 8-bit pixels, `valid` which of them hold data."""

    path: Path
    width: int
    height: int
    bands: int
    crs: Any = None  # rasterio's CRS, None if the image has no georeference
    transform: Any = None  # from (x, y) in pixels to the CRS

    def __init__(self, path: Path, stretch: tuple[float, float]) -> None:
        self.path = path
        self._stretch = stretch

    def read(self, window: Box) -> Bytes:
        """Return the pixels of a window inside the image, `(height, width, bands)`; stretched nodata are 0."""
        self._check(window)
        values = self._values(window)
        if values.dtype == np.uint8:
            return np.ascontiguousarray(values)
        low, high = self._limits
        span = np.where(high > low, high - low, 1)  # a flat band becomes black
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.rint((values - low) * (255 / span))
        scaled[~(self._known(window) & np.isfinite(values))] = 0
        return scaled.clip(0, 255).astype(np.uint8)

    @abstractmethod
    def valid(self, window: Box) -> Mask:
        """Return `(height, width)`, false where no band holds data."""

    def footprint(self, polygon: Sequence[tuple[float, float]]) -> str | None:
        """Return pixel corners as a WKT polygon in degrees (longitude, latitude), None without a georeference.

        Across the date line longitudes exceed 180, so that the polygon stays in one piece.
        """
        if self.crs is None:
            return None
        lon, lat = self._lon_lat(np.array(polygon, np.float64).reshape(-1, 2))
        if not np.isfinite([lon, lat]).all():
            return None  # outside of the projection
        if np.ptp(lon) > 180:
            lon = np.where(lon < 0, lon + 360, lon)
        corners = [f"{x:.9f} {y:.9f}" for x, y in zip(lon, lat, strict=True)]  # nine decimals: a tenth of a millimetre
        if corners[0] != corners[-1]:
            corners.append(corners[0])
        return f"POLYGON (({', '.join(corners)}))"

    @property
    def gsd(self) -> float | None:
        """Metres a pixel on the ground (the root of its area) in the middle of the scene, None if not georeferenced."""
        if self.crs is None:
            return None
        _, (latitude,) = self._lon_lat(np.array([[self.width / 2, self.height / 2]]))
        if not math.isfinite(latitude):
            return None
        _, unit = self.crs.units_factor  # metres, or radians
        side: float = math.sqrt(abs(self.transform.determinant)) * unit
        shrink = math.cos(math.radians(latitude))
        if self.crs.is_geographic:  # a degree of longitude shrinks towards the poles, one of latitude does not
            return side * EARTH_RADIUS_METRES * math.sqrt(shrink)
        return side * shrink if MERCATOR.search(self.crs.to_wkt()) else side

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def _values(self, window: Box) -> NDArray[Any]:
        """Return stored values, (h, w, bands)."""

    @abstractmethod
    def _known(self, window: Box) -> Mask:
        """Return where each band holds data; broadcasts to (h, w, bands)."""

    @abstractmethod
    def _sample(self) -> tuple[NDArray[Any], Mask]:
        """Return values and where they are data, both (h, w, bands), thinned to `SAMPLE_SIDE_PIXELS`."""

    @cached_property
    def _limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values, known = self._sample()
        known = known & np.isfinite(values)
        bands = [values[..., i][known[..., i]].astype(np.float64) for i in range(self.bands)]
        limits = np.array([np.percentile(band, self._stretch) if band.size else (0.0, 0.0) for band in bands])
        return limits[:, 0], limits[:, 1]

    def _lon_lat(self, corners: Points) -> Points:
        """Return longitudes and latitudes, (2, n), of pixels (n, 2)."""
        return project(self.crs, "EPSG:4326", affine(self.transform, corners)).T

    def _check(self, window: Box) -> None:
        x0, y0, x1, y1 = window
        if not (0 <= x0 < x1 <= self.width and 0 <= y0 < y1 <= self.height):
            raise ImageError(
                f"{self.path}: window {window} is not inside the image of {self.width} x {self.height} pixels; clip it"
            )


class _Photograph(SceneReader):
    """JPEG, PNG and the like, decoded as a whole; EXIF orientation is ignored, as boxes refer to the stored pixels."""

    def __init__(self, path: Path, stretch: tuple[float, float]) -> None:
        super().__init__(path, stretch)
        try:
            with open_photograph(path) as image:
                self._pixels, self._opaque = _decode(image)
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise ImageError(
                f"{path} has more than {MAX_PIXELS // 1_000_000} megapixels; save it as a tiled GeoTIFF, "
                "which is read in parts"
            ) from error
        except UnidentifiedImageError as error:
            raise ImageError(f"{path} is not an image that lookdown reads; use JPEG, PNG or GeoTIFF") from error
        except Exception as error:  # decoders raise a dozen kinds of error for damaged bytes
            raise ImageError(f"{path} is damaged or truncated: {error}; copy the file again") from error
        self.height, self.width, self.bands = self._pixels.shape
        if not self._pixels.size:
            raise ImageError(f"{path} has no pixels ({self.width} x {self.height}); copy the file again")

    def valid(self, window: Box) -> Mask:
        self._check(window)
        x0, y0, x1, y1 = window
        if self._opaque is None:
            return np.ones((y1 - y0, x1 - x0), np.bool_)
        return self._opaque[y0:y1, x0:x1].copy()

    def close(self) -> None:
        pass  # the file was closed once decoded

    def _values(self, window: Box) -> NDArray[Any]:
        x0, y0, x1, y1 = window
        return self._pixels[y0:y1, x0:x1]

    def _known(self, window: Box) -> Mask:
        return self.valid(window)[..., None]

    def _sample(self) -> tuple[NDArray[Any], Mask]:
        step = math.ceil(max(self.width, self.height) / SAMPLE_SIDE_PIXELS)
        values = self._pixels[::step, ::step]
        return values, np.ones(values.shape, np.bool_)


class _GeoTiff(SceneReader):
    """TIFF of any depth and size; alpha, mask and nodata determine what is valid; a palette becomes colours."""

    def __init__(self, path: Path, stretch: tuple[float, float]) -> None:
        super().__init__(path, stretch)
        try:
            with quietly(), rasterio.Env(**NO_SIDECARS):
                # An absolute path is never read as a driver's prefix, and no other driver may open the file.
                self._file = rasterio.open(path.absolute(), driver="GTiff")
                crs, transform = self._file.crs, self._file.transform
                colours = self._file.colorinterp
                self._palette = self._colours() if colours[0] == ColorInterp.palette else None
        except GDAL_ERRORS as error:
            raise ImageError(
                f"{path} is not a GeoTIFF, or is truncated: {_reason(error)}; copy the file again"
            ) from error
        self.width, self.height = self._file.width, self._file.height
        self._indexes = [i for i, kind in enumerate(colours, 1) if kind != ColorInterp.alpha] or [1]
        self.bands = len(self._indexes) if self._palette is None else 3
        if reason := self._reason_to_refuse():
            self.close()
            raise ImageError(f"{path} {reason}")
        if crs and transform.determinant and not transform.is_identity:  # identity: a CRS, but no position in it
            self.crs, self.transform = crs, transform

    def valid(self, window: Box) -> Mask:
        self._check(window)
        with self._reading():
            mask = self._file.dataset_mask(window=_window(window)) != 0
        if np.issubdtype(self._file.dtypes[0], np.floating):  # NaN is no data, declared or not
            mask &= np.isfinite(self._values(window)).any(axis=2)
        return np.asarray(mask, np.bool_)

    def close(self) -> None:
        self._file.close()

    def _values(self, window: Box) -> NDArray[Any]:
        values = self._bands_last(self._file.read, window=_window(window))
        return values if self._palette is None else self._palette[values[..., 0]]

    def _known(self, window: Box) -> Mask:
        known: Mask = self._bands_last(self._file.read_masks, window=_window(window)) != 0
        return known

    def _sample(self) -> tuple[NDArray[Any], Mask]:
        step = math.ceil(max(self.width, self.height) / SAMPLE_SIDE_PIXELS)
        shape = (len(self._indexes), math.ceil(self.height / step), math.ceil(self.width / step))
        # Nearest neighbour, which is the default, never blends data with nodata.
        values, masks = (self._bands_last(read, out_shape=shape) for read in (self._file.read, self._file.read_masks))
        return values, masks != 0

    def _bands_last(self, read: Callable[..., NDArray[Any]], **part: Any) -> NDArray[Any]:
        with self._reading():
            return np.moveaxis(read(self._indexes, **part), 0, -1)

    def _colours(self) -> Bytes:
        table = np.zeros((65536, 3), np.uint8)
        for index, colour in self._file.colormap(1).items():
            table[index] = colour[:3]
        return table

    def _reason_to_refuse(self) -> str | None:
        if self._file.dtypes[0].startswith("complex"):
            return "holds complex numbers; write their amplitude to a GeoTIFF first"
        if max(rows * columns for rows, columns in self._file.block_shapes) > MAX_PIXELS:
            blocks = f"blocks of more than {MAX_PIXELS // 1_000_000} megapixels"
            return f"is stored in {blocks}; rewrite it with gdal_translate -co TILED=YES"
        return None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            with rasterio.Env(**NO_SIDECARS):
                yield
        except GDAL_ERRORS as error:
            raise ImageError(f"{self.path} is damaged or truncated: {_reason(error)}; copy the file again") from error


def _decode(image: Image.Image) -> tuple[NDArray[Any], Mask | None]:
    """Return pixels (h, w, bands) without alpha, and where they are not fully transparent, None if all are opaque."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):  # deep grey: stretched like a GeoTIFF
        return np.array(image)[..., None], None
    colour, alpha = ("L", "LA") if image.mode in GREY else ("RGB", "RGBA")
    if not image.has_transparency_data:
        return np.array(image.convert(colour)).reshape(image.height, image.width, -1), None
    pixels = np.array(image.convert(alpha))
    return pixels[..., :-1], pixels[..., -1] > 0


def _window(box: Box) -> Window:
    x0, y0, x1, y1 = box
    return Window(x0, y0, x1 - x0, y1 - y0)


def _reason(error: Exception) -> str:
    """Return GDAL's own message, which rasterio keeps as the cause."""
    return str(error.__cause__ or error).rstrip(".")
