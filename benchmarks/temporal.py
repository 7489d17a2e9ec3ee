"""Temporal consistency: what it costs beside the optical flow that it needs, offline and online.

    python benchmarks/temporal.py [--size 1024x2048] [--pairs 10 40 100] [--frames FOLDER]

A texture that moves, with ids that move with it, as PNGs; or the images of FOLDER, resized.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

FLOWS = ("dis:ultrafast", "dis:fast", "dis:medium", "farneback", "farneback@0.5")


def shot(t: int, height: int, width: int, frames: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Frame t uint8 [y, x, 3] RGB and its ids uint8 [y, x]."""
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
    if frames is not None:
        files = sorted(Path(frames).iterdir())
        image = cv2.imread(str(files[t % len(files)]), cv2.IMREAD_COLOR_RGB)
        return cv2.resize(image, (width, height), interpolation=cv2.INTER_CUBIC), ids
    texture = sum(
        cv2.resize(rng.normal(0, s, (wide[1] // s, wide[0] // s, 3)).astype(np.float32), wide)
        for s in (4, 16, 64)
    )
    image = np.clip(128 + texture, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(image[y : y + height, x : x + width]), ids


def make(folder: Path, count: int, height: int, width: int, frames: str | None) -> None:
    """`count` frames and predictions, as PNGs."""
    from PIL import Image

    for t in range(count):
        if (folder / "predictions" / f"v_{t:04}.png").exists():
            continue
        for kind, image in zip(
            ("frames", "predictions"), shot(t, height, width, frames), strict=True
        ):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / kind / f"v_{t:04}.png", compress_level=1)


def greys(folder: Path, count: int) -> Iterator[np.ndarray]:
    import cv2

    for t in range(count):
        yield cv2.imread(str(folder / "frames" / f"v_{t:04}.png"), cv2.IMREAD_GRAYSCALE)


def flow_alone(folder: str, pairs: int, method: str, workers: int) -> tuple[float, float]:
    """Wall and CPU seconds of nothing but the flow, decoded before, `workers` pairs at a time."""
    from uqeval.maps.flow import Estimator, single_threaded
    from uqeval.maps.flow_method import flow_method

    estimator = Estimator(flow_method(method))
    images = list(greys(Path(folder), pairs + 1))
    with single_threaded(), ThreadPoolExecutor(workers) as pool:
        estimator(images[1], images[0])
        began, cpu = time.perf_counter(), time.process_time()
        for _ in pool.map(lambda t: estimator(images[t + 1], images[t]).shape, range(pairs)):
            pass
        return time.perf_counter() - began, time.process_time() - cpu


def command(*arguments: str) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MB of a uqeval command, start and all."""
    began = time.perf_counter()
    process = subprocess.Popen([str(Path(sys.executable).parent / "uqeval"), *arguments])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"uqeval {' '.join(arguments)} ended with {process.returncode}")
    wall = time.perf_counter() - began
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def observed(height: int, width: int, method: str, frames: str | None) -> list[float]:
    """Latencies in ms of an observer in this process, without the first frames."""
    from uqeval import TemporalObserver

    method, _, scale = method.partition("@")
    observer = TemporalObserver(method, flow_scale=float(scale or 1))
    shots = [shot(t, height, width, frames) for t in range(6)]
    order = [0, 1, 2, 3, 4, 5, 4, 3, 2, 1] * 3
    repeats = 3 if method.startswith("dis:") and method != "dis:medium" else 1
    found = [observer.update(*shots[t]).latency_ms for t in order[: 10 * repeats]]
    return sorted(found[3:])


def _observe(height: int, width: int, method: str, frames: str | None) -> None:
    times = observed(height, width, method, frames)
    median = times[len(times) // 2]
    print(
        f"{height}×{width} {method:<16} {median:8.1f} ms median {times[0]:8.1f} ms least "
        f"{times[-1]:8.1f} ms most {1e3 / median:6.1f} fps",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="1024x2048")
    parser.add_argument("--pairs", type=int, nargs="+", default=[10, 40, 100])
    parser.add_argument("--frames", help="a folder of images to take in place of the texture")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--only", choices=["tc", "observer", "tracks"])
    options = parser.parse_args()
    height, width = map(int, options.size.split("x"))
    workers = len(os.sched_getaffinity(0))
    folder = options.folder / f"temporal-{options.size}"
    if options.only != "observer":
        make(folder, max(options.pairs) + 1, height, width, options.frames)
    if options.only in (None, "tc"):
        print("uqeval tc against its flow alone, Farnebäck")
        for pairs in options.pairs:
            arguments = ("tc", str(folder), "--limit", str(pairs), "-q")
            wall, cpu, peak = command(*arguments)
            alone, alone_cpu = flow_alone(str(folder), pairs, "farneback", workers)
            print(
                f"{pairs} pairs: {wall:.2f} s ({cpu:.2f} CPU), flow alone {alone:.2f} s "
                f"({alone_cpu:.2f} CPU): {wall / alone:.2f} x ({cpu / alone_cpu:.2f} x); "
                f"peak {peak:.0f} MB",
                flush=True,
            )
    if options.only in (None, "tracks"):
        print("\nTC and C26 (--tracks) by dis:fast, 10 pairs; both take the flow there is")
        arguments = ("tc", str(folder), "--limit", "10", "-q", "--flow", "dis:fast")
        for name, more in (("TC", ()), ("TC and C26", ("--tracks",))):
            wall, cpu, peak = command(*arguments, *more)
            print(f"{name:<12} {wall:.2f} s ({cpu:.2f} CPU), peak {peak:.0f} MB", flush=True)
    if options.only in (None, "observer"):
        print("\nobserver, latency of a frame")
        for size in ((height // 2, width // 2), (height, width)):
            for method in FLOWS:
                _observe(*size, method, options.frames)


if __name__ == "__main__":
    main()
