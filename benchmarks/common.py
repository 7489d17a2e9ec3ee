"""Shared by all benchmarks: cases, their time and peak memory, and synthetic data."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import queue
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Setup:
    """The folder and the size of the data of benchmarks."""

    folder: Path
    workers: int = 2
    tiny: bool = False
    million: bool = False
    predictions: tuple[str, ...] = ()

    def size(self, normal: int, tiny: int) -> int:
        """Return a size: the `tiny` one only shows that the benchmark works."""
        return tiny if self.tiny else normal

    def make(
        self, name: str, call: Callable[..., None], *arguments: Any, fresh: bool = False
    ) -> Path:
        """Return the folder of data that `call` makes, once; `fresh`: in every run.

        It is made in a process of its own: later ones would inherit the peak memory.
        """
        folder = self.folder / (f"tiny-{name}" if self.tiny else name)
        if fresh or not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            if self.tiny:
                call(folder, *arguments)
            else:
                process = multiprocessing.get_context("spawn").Process(
                    target=call, args=(folder, *arguments)
                )
                process.start()
                process.join()
                if process.exitcode:
                    raise RuntimeError(f"{call.__name__} ended with {process.exitcode}")
            (folder / "made").touch()
        return folder


@dataclass(frozen=True)
class Case:
    """One row: a call, and the library that it needs.

    Rows after a `yardstick` are divided by it. `warm`: call once before, to compile and to fill the
    page cache.
    """

    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    yardstick: bool = False
    needs: str = ""
    warm: bool = True

    @property
    def is_possible(self) -> bool:
        return not self.needs or importlib.util.find_spec(self.needs) is not None


@dataclass(frozen=True)
class Cost:
    """Median wall and CPU seconds of a call, children included, and its peak memory in MB."""

    seconds: float
    cpu: float
    peak: float


def median(costs: Sequence[Cost]) -> Cost:
    """Return the medians of several measurements, and the highest peak memory."""
    middle = len(costs) // 2
    seconds, cpu = (
        sorted(getattr(cost, name) for cost in costs)[middle] for name in ("seconds", "cpu")
    )
    return Cost(seconds, cpu, max(cost.peak for cost in costs))


def _usage() -> tuple[float, float]:
    """CPU seconds and peak MB of this process and of those that it waited for."""
    both = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in both)
    return cpu, max(usage.ru_maxrss for usage in both) / 1024


def measure_here(case: Case, repeats: int) -> Cost:
    """Cost of a case in this process; the peak is that of the whole process."""
    if case.warm:
        case.call(*case.arguments)
    times, cpus = [], []
    for _ in range(repeats):
        began, (used, _) = time.perf_counter(), _usage()
        case.call(*case.arguments)
        times.append(time.perf_counter() - began)
        cpus.append(_usage()[0] - used)
    middle = repeats // 2
    return Cost(sorted(times)[middle], sorted(cpus)[middle], _usage()[1])


def _send(case: Case, repeats: int, out: Any) -> None:
    out.put(measure_here(case, repeats))


def measure(case: Case, repeats: int) -> Cost:
    """Cost of a case in a process of its own."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=_send, args=(case, repeats, out))
    process.start()
    while True:
        try:
            cost = out.get(timeout=1)
            break
        except queue.Empty:
            if not process.is_alive():
                raise RuntimeError(f"{case.name} ended with {process.exitcode}") from None
    process.join()
    return cost


def of(count: int, thing: str) -> str:
    """Return a count with its noun."""
    return f"{count} {thing}{'s' if count > 1 else ''}"


def command(*arguments: str) -> None:
    """Run `uqeval ARGUMENTS` as a user does, start-up included."""
    _run(arguments, dict(os.environ))


def first_command(package: str, *arguments: str) -> None:
    """Run `uqeval ARGUMENTS` as on a fresh machine: nothing is compiled yet.

    `package` is a copy of uqeval: a run also loads compiled loops from beside the installed one.
    """
    for saved in Path(package).rglob("*.nb[ic]"):
        saved.unlink()
    with tempfile.TemporaryDirectory() as home:
        path = {"PYTHONPATH": str(Path(package).parent), "HOME": home}
        without = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        _run(arguments, {k: v for k, v in os.environ.items() if k not in without} | path)


def _run(arguments: Sequence[str], environment: dict[str, str]) -> None:
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "uqeval", *arguments], capture_output=True, text=True,
        check=False, env=environment,
    )  # fmt: skip
    if done.returncode not in (0, 1):  # 1: a gate failed
        raise RuntimeError(f"uqeval {' '.join(arguments)}: {done.stderr}")


def evaluate(store: str, labels: str | None, families: tuple[str, ...], workers: int) -> None:
    """`uqeval FAMILY` in this process."""
    import uqeval

    uqeval.evaluate(store, labels, list(families), workers=workers)


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


def read_anew(path: Path) -> None:
    """Put a new file into the page cache as if it had been read from disk.

    Written data are cached in single pages, read data in larger ones, which are several times as
    fast to map.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 24):
            pass
