"""What the benchmarks share: data with structure, stores of it, time and peak memory of a call."""

from __future__ import annotations

import multiprocessing
import os
import queue
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def softmax_stack(samples: int, classes: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """float16 [sample, class, y, x]: smooth regions; samples that disagree at their borders."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(size=(classes, height // 32 + 2, width // 32 + 2)).astype(np.float32) * 4
    y = np.linspace(0, coarse.shape[1] - 1.001, height)
    x = np.linspace(0, coarse.shape[2] - 1.001, width)
    i, j = y.astype(int), x.astype(int)
    v, u = (y - i).astype(np.float32)[:, None], (x - j).astype(np.float32)
    logits = np.empty((classes, height, width), np.float32)
    for c in range(classes):
        a = coarse[c]
        top = a[i][:, j] * (1 - u) + a[i][:, j + 1] * u
        low = a[i + 1][:, j] * (1 - u) + a[i + 1][:, j + 1] * u
        logits[c] = top * (1 - v) + low * v
    stack = np.empty((samples, classes, height, width), np.float16)
    for t in range(samples):
        noisy = logits + rng.normal(size=(classes, 1, 1)).astype(np.float32)
        noisy = noisy + rng.normal(size=(1, height, width)).astype(np.float32) * 0.3 * noisy.std(0)
        noisy -= noisy.max(axis=0)
        np.exp(noisy, out=noisy)
        stack[t] = noisy / noisy.sum(axis=0)
    return stack


def labels_for(stack: np.ndarray, seed: int = 0) -> np.ndarray:
    """uint8 [y, x]: mostly what the first sample predicts, some of it wrong, some void."""
    rng = np.random.default_rng(seed)
    label = stack[0].argmax(axis=0).astype(np.uint8)
    wrong = rng.random(label.shape) < 0.1
    label[wrong] = rng.integers(0, stack.shape[1], int(wrong.sum()))
    label[rng.random(label.shape) < 0.05] = 255
    return label


def _measured(call: Callable[..., Any], arguments: tuple[Any, ...], repeats: int, out: Any) -> None:
    call(*arguments)  # compile, and fill the page cache
    times, cpu = [], []
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        call(*arguments)
        times.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    out.put((sorted(times)[len(times) // 2], peak, min(cpu)))


def measure(call: Callable[..., Any], *arguments: Any, repeats: int = 3) -> tuple[float, float]:
    """Median seconds, and peak resident MB, of a call in a process of its own."""
    seconds, peak, _ = measure_cpu(call, *arguments, repeats=repeats)
    return seconds, peak


def measure_cpu(
    call: Callable[..., Any], *arguments: Any, repeats: int = 3
) -> tuple[float, float, float]:
    """As `measure`, and the least CPU seconds of all threads, which other work hardly changes."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=_measured, args=(call, arguments, repeats, out))
    process.start()
    result = None
    while result is None:
        try:
            result = out.get(timeout=1)
        except queue.Empty:
            if not process.is_alive():
                raise RuntimeError(f"{call.__name__} died with {process.exitcode}") from None
    process.join()
    return result


def row(name: str, seconds: float, peak: float, base: float, nbytes: int) -> None:
    """Print one line: seconds, MB/s, peak memory, and how many times faster than `base` seconds."""
    print(
        f"{name:<44} {seconds:8.3f} s {nbytes / seconds / 1e6:9.0f} MB/s "
        f"{peak:7.0f} MB peak {base / seconds:8.1f} x"
    )


def apart(call: Callable[..., Any], *arguments: Any) -> None:
    """Make a call in a process of its own; those that follow would inherit its peak memory."""
    process = multiprocessing.get_context("spawn").Process(target=call, args=arguments)
    process.start()
    process.join()


def cached(folder: Path, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
    """An array made once and kept in `folder`, memory-mapped."""
    path = folder / f"{name}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.save(path, make())
    return np.load(path, mmap_mode="r")


def read_anew(path: Path) -> None:
    """Have a file that was just written lie in the page cache as if it had been read from disk.

    What was written lies there in single pages, what is read in larger pieces, which are several
    times as quick to map.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 24):
            pass
