"""Optical flow between two grey images, by OpenCV or scikit-image, and its cache on disk."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.errors import DataError, UsageError
from uqeval.maps.flow_method import FlowMethod
from uqeval.stores.map_cache import CacheFolder, read_checked, write_checked

_PRESETS = {"ultrafast": 0, "fast": 1, "medium": 2}
#: The largest number of levels of DIS; a deeper pyramid would crash the process.
_LEVELS = 10


class Estimator:
    """A `FlowMethod` that several threads may call at once.

    The flow has the same bits for any number of OpenCV threads. Raises `UsageError` if the library
    for `tvl1` is not installed, and for `file`, which is not an estimate.
    """

    def __init__(self, method: FlowMethod) -> None:
        if method.name == "file":
            raise UsageError("--flow file is read, not estimated; name farneback, dis or tvl1.")
        self.method = method
        self._parameters = dict(method.parameters)
        self._library, self._version = _library_of(method)
        self._kept = threading.local()

    def __call__(self, previous: Array, next_: Array) -> NDArray[np.float32]:
        """Return flow float32 [y, x, 2] as (dx, dy) in pixels, on the grid of `previous`.

        `previous`, `next_`: uint8 [y, x] of one size; previous(p) ≈ next(p + flow(p)). Below full
        scale, both images are reduced by area. The flow is enlarged bilinearly and multiplied by
        the exact ratio of the sides. Raises `DataError` for images of different sizes, and for too
        small ones.
        """
        if previous.shape != next_.shape:
            raise DataError(
                f"flow between {_size(previous)} and {_size(next_)} pixels; "
                "expected two images of one size."
            )
        if self.method.scale == 1.0:
            return self._estimate(previous, next_)
        import cv2

        height, width = previous.shape
        small = tuple(max(1, math.floor(n * self.method.scale + 0.5)) for n in (width, height))
        flow: NDArray[np.float32] = self._estimate(
            *(cv2.resize(image, small, interpolation=cv2.INTER_AREA) for image in (previous, next_))
        )
        flow = cv2.resize(flow, (width, height), interpolation=cv2.INTER_LINEAR)
        flow *= np.array([width / small[0], height / small[1]], np.float32)
        return flow

    def record(self) -> dict[str, Any]:
        """Return all settings that the flow depends on, as JSON values."""
        return {
            "name": self.method.name,
            "id": self.method.id,
            "scale": self.method.scale,
            "parameters": dict(self._parameters),
            "library": self._library,
            "version": self._version,
        }

    def working_bytes(self, pixels: int) -> int:
        """Return the peak bytes of a call, including its result.

        Measured at 1024×2048 with OpenCV 5.0 and scikit-image 0.26, and rounded up by a tenth:
        Farnebäck 79 to 86 bytes per pixel, DIS ultrafast 11, fast 23, medium 60 (finest scale 0:
        209 to 247), TV-L1 139.
        """
        p, scale = self._parameters, self.method.scale
        if self.method.name == "farneback":
            bytes_per_pixel = 95.0
        elif self.method.name == "dis":
            refined = 220 if p["variational_refinement_iterations"] else 40
            bytes_per_pixel = 11 + (refined + 50 / p["patch_stride"] ** 2) / 4 ** p["finest_scale"]
        else:
            bytes_per_pixel = 155.0
        if scale == 1.0:
            return math.ceil(pixels * bytes_per_pixel)
        return math.ceil(pixels * (scale * scale * (bytes_per_pixel + 4) + 10))

    def _estimate(self, previous: Array, next_: Array) -> NDArray[np.float32]:
        if self.method.name == "tvl1":
            return _tvl1(self._parameters, previous, next_)
        import cv2

        if self.method.name == "farneback":
            return cv2.calcOpticalFlowFarneback(previous, next_, None, **self._parameters)
        return self._dis(previous.shape).calc(previous, next_, None)

    def _dis(self, size: tuple[int, ...]) -> Any:
        """Return this thread's DIS for images of this size, which reuses its buffers.

        It must not be shared between threads, and keeps the settings that it chose for a small
        image.
        """
        if getattr(self._kept, "size", None) != size:
            self._kept.dis, self._kept.size = _dis(self.method, self._parameters, size), size
        return self._kept.dis


def grey(rgb: Array) -> NDArray[np.uint8]:
    """Return grey uint8 [y, x] of decoded colours uint8 [y, x, 3]: 0.299 R + 0.587 G + 0.114 B."""
    import cv2

    return cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Restrict OpenCV to one thread, because several of our threads call it in parallel.

    The number of OpenCV's threads belongs to the process: enter this context once, around all
    threads.
    """
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


def _library_of(method: FlowMethod) -> tuple[str, str]:
    if method.name != "tvl1":
        import cv2

        return "opencv", cv2.__version__
    try:
        import skimage
    except ImportError:
        raise UsageError(
            "--flow tvl1 needs scikit-image: pip install scikit-image; or choose --flow dis."
        ) from None
    return "scikit-image", skimage.__version__


def _dis(method: FlowMethod, p: dict[str, Any], size: tuple[int, ...]) -> Any:
    """Return OpenCV's DIS for images of this size. Raises `DataError` for an unsupported size."""
    import cv2

    patch = p["patch_size"]
    short, long = sorted(size)
    if short < 2 * patch:
        raise DataError(
            f"images of {_size_text(size)} pixels; flow by dis needs at least "
            f"{2 * patch}×{2 * patch}. Choose farneback, or a larger --flow-scale."
        )
    # OpenCV's number of levels. With fewer levels than the finest scale needs, OpenCV chooses the
    # scale by the width alone, and reads outside of narrow images. So check that the finest scale
    # exists.
    levels = min(int(math.log2(long / (4 * patch)) + 0.5), int(math.log2(short // patch)))
    if levels >= _LEVELS:
        raise DataError(
            f"images of {_size_text(size)} pixels are too large for dis; give a --flow-scale."
        )
    estimator = cv2.DISOpticalFlow_create(_PRESETS[str(method.preset)])
    for name, value in p.items():
        if name == "finest_scale":
            value = min(value, levels)
        setter = "set" + "".join(word.capitalize() for word in name.split("_"))
        getattr(estimator, setter)(value)
    return estimator


def _tvl1(p: dict[str, Any], previous: Array, next_: Array) -> NDArray[np.float32]:
    from skimage.registration import optical_flow_tvl1

    if min(previous.shape) < 2:
        raise DataError(f"images of {_size(previous)} pixels; flow by tvl1 needs at least 2×2.")
    rows_and_columns = optical_flow_tvl1(previous, next_, **p)
    return np.ascontiguousarray(np.moveaxis(rows_and_columns[::-1], 0, 2))


def _size(image: Array) -> str:
    return _size_text(image.shape)


def _size_text(size: tuple[int, ...]) -> str:
    return "×".join(map(str, size))


class FlowCache:
    """Flow, keyed by the estimator's record and the bytes of both images.

    A file is an array float32 [y, x, 2] with a checksum, and is never changed. The folder takes 8
    bytes per pixel and pair; `uqeval` never removes files. Raises `OutputError` if it cannot be
    written.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = CacheFolder("flow", folder)

    def get(self, estimator: Estimator, previous: Array, next_: Array) -> NDArray[np.float32]:
        """Return `estimator(previous, next_)` from the cache, or estimate and cache it.

        A damaged file is replaced. On a full disk nothing is cached, which is no error.
        """
        path = self.path(estimator, previous, next_)
        flow = read_checked(path, (*previous.shape, 2), np.float32)
        if flow is None:
            self._folder.require_writable()
            flow = np.ascontiguousarray(estimator(previous, next_), np.float32)
            write_checked(path, flow)
        return flow

    def path(self, estimator: Estimator, previous: Array, next_: Array) -> Path:
        """Return the path of the cached flow between two images."""
        digest = hashlib.sha256()
        record = [estimator.record(), previous.shape, next_.shape]
        digest.update(json.dumps(record, sort_keys=True, allow_nan=False).encode())
        digest.update(np.ascontiguousarray(previous).data)
        digest.update(np.ascontiguousarray(next_).data)
        name = digest.hexdigest()
        return self._folder.path / name[:2] / f"{name}.npy"
