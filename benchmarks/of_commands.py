"""Commands as a user runs them: start-up, first run, and temporal consistency beside its flow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common import Case, Setup, command, first_command

if TYPE_CHECKING:
    from uqeval import TemporalObserver

_FLOWS = ("dis:ultrafast", "dis:fast", "dis:medium", "farneback", "farneback@0.5")


def _shot(t: int, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Frame t uint8 [y, x, 3] RGB and its ids uint8 [y, x]: a texture that moves, with its ids."""
    import cv2

    rng = np.random.default_rng(0)
    step = 64 - abs(t % 128 - 64)  # there and back
    y, x = 3 * step, 7 * step
    wide = width + 7 * 64, height + 3 * 64
    regions = cv2.resize(
        rng.integers(0, 19, (24, 48), np.uint8), wide, interpolation=cv2.INTER_NEAREST
    )
    ids = regions[y : y + height, x : x + width].copy()
    ids[np.random.default_rng(t).random(ids.shape) < 0.01] = 2
    texture = sum(
        cv2.resize(rng.normal(0, s, (wide[1] // s, wide[0] // s, 3)).astype(np.float32), wide)
        for s in (4, 16, 64)
    )
    image = np.clip(128 + texture, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(image[y : y + height, x : x + width]), ids


def _make_video(folder: Path, count: int, height: int, width: int) -> None:
    from PIL import Image

    for kind in ("frames", "predictions"):
        (folder / kind).mkdir()
    for t in range(count):
        for kind, image in zip(("frames", "predictions"), _shot(t, height, width), strict=True):
            Image.fromarray(image).save(folder / kind / f"v_{t:04}.png", compress_level=1)


_GREYS: dict[str, list[np.ndarray]] = {}


def _flow(folder: str, method: str, workers: int) -> None:
    """Nothing but OpenCV's flow of frames that were decoded before, `workers` pairs at a time."""
    import cv2

    from uqeval.maps.flow import Estimator, single_threaded
    from uqeval.maps.flow_method import flow_method

    if folder not in _GREYS:
        files = sorted(Path(folder, "frames").iterdir())
        _GREYS[folder] = [cv2.imread(str(file), cv2.IMREAD_GRAYSCALE) for file in files]
    images, estimator = _GREYS[folder], Estimator(flow_method(method))
    with single_threaded(), ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda t: estimator(images[t + 1], images[t]).shape, range(len(images) - 1)))


def tc(setup: Setup) -> Iterator[Case]:
    """TC of 40 pairs of 512×1024, PNG files and start-up included, beside the flow alone."""
    size = (setup.size(41, 3), setup.size(512, 64), setup.size(1024, 96))
    folder = str(setup.make("video", _make_video, *size))
    for method in ("farneback", "dis:fast"):
        way = (folder, method, setup.workers)
        yield Case(f"{method}: OpenCV flow alone", _flow, way, yardstick=True)
        yield Case(f"{method}: uqeval tc", command, ("tc", folder, "--flow", method, "-q"))
    yield Case(
        "dis:fast: uqeval tc --tracks", command, ("tc", folder, "--flow", "dis:fast", "--tracks")
    )


_OBSERVED: dict[
    tuple[str, int, int], tuple[TemporalObserver, list[tuple[np.ndarray, np.ndarray]]]
] = {}


def _observe(method: str, height: int, width: int) -> None:
    """Ten updates of an observer."""
    from uqeval import TemporalObserver

    key = (method, height, width)
    if key not in _OBSERVED:
        name, _, scale = method.partition("@")
        observer = TemporalObserver(name, flow_scale=float(scale or 1))
        _OBSERVED[key] = observer, [_shot(t, height, width) for t in range(6)]
    observer, shots = _OBSERVED[key]
    for t in (0, 1, 2, 3, 4, 5, 4, 3, 2, 1):
        observer.update(*shots[t])


def observer(setup: Setup) -> Iterator[Case]:
    """Ten updates of an observer: a tenth is the latency of a frame."""
    for height, width in ((512, 1024), (1024, 2048)):
        size = (setup.size(height, 64), setup.size(width, 96))
        for method in _FLOWS:
            title = f"{height}×{width}, {method}"
            yield Case(title, _observe, (method, *size), yardstick=method == _FLOWS[0])


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def _make_tiny(folder: Path) -> None:
    import zarr

    import uqeval

    rng = np.random.default_rng(0)
    p = np.exp(rng.normal(size=(4, 5, 6, 32, 32)))
    group = zarr.open_group(folder / "tiny.zarr", mode="w")
    for name, values in (
        ("probs", (p / p.sum(2, keepdims=True)).astype("f2")),
        ("labels", rng.integers(0, 6, (4, 32, 32)).astype("u1")),
    ):
        group.create_array(name, data=values, chunks=(1, *values.shape[1:]))
    report = uqeval.evaluate(str(folder / "tiny.zarr"), None, ["pavpu"])
    for name in ("tiny", "other"):
        (folder / f"{name}.json").write_text(report.to_json(), "utf-8")
    (folder / "rules.yaml").write_text("pavpu.pavpu: {min: 0.1}\n")


def start(setup: Setup) -> Iterator[Case]:
    """Commands on a store of 4 items 5×6×32×32, kernels in their cache."""
    folder = setup.make("start", _make_tiny, fresh=True)
    report, other, rules = (str(folder / n) for n in ("tiny.json", "other.json", "rules.yaml"))
    yield Case("python -c 'import numpy'", _python, ("import numpy",), yardstick=True)
    yield Case("python -c 'import numba'", _python, ("import numba",))
    yield Case("uqeval --help", command, ("--help",))
    yield Case("uqeval gate", command, ("gate", report, rules))
    yield Case("uqeval compare", command, ("compare", report, other))
    yield Case("uqeval pavpu", command, ("pavpu", str(folder / "tiny.zarr")))


def _copy_package(folder: Path) -> None:
    """Copy uqeval as pip installs it: with the bytecode, without compiled loops."""
    import shutil

    import uqeval

    installed = Path(uqeval.__file__).parent
    shutil.copytree(installed, folder / "uqeval", ignore=shutil.ignore_patterns("*.nb[ic]"))


def first(setup: Setup) -> Iterator[Case]:
    """The same store on a fresh machine: all kernels are compiled."""
    folder = setup.make("start", _make_tiny, fresh=True)
    package = str(setup.make("package", _copy_package, fresh=True) / "uqeval")
    store = str(folder / "tiny.zarr")
    yield Case("python -c 'import numba'", _python, ("import numba",), yardstick=True)
    for family in ("pavpu", "calibration", "failure"):
        yield Case(f"uqeval {family}", first_command, (package, family, store), warm=False)
    output = str(folder / "report")
    yield Case("uqeval run", first_command, (package, "run", store, "-o", output), warm=False)
