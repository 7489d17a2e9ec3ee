"""The use case `warmup`: run commands on small inputs, which it writes, so that their kernels are
compiled.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.locks import temporary
from uqeval.errors import OutputError, UsageError, cut
from uqeval.usecases.compiling import compiling_ahead
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.warmup.recipes import command_lines

_VARIABLE = "NUMBA_CACHE_DIR"


@dataclass(frozen=True)
class Warmup:
    """The kernels of a command: those compiled now, and those from the cache.

    A kernel counts once for each combination of dtypes.
    """

    command: str
    compiled: int
    loaded: int
    seconds: float


def check_cache_folder() -> None:
    """Raise `OutputError` if compiled kernels cannot be saved, `UsageError` if none are compiled.

    Creates the folder `NUMBA_CACHE_DIR`.
    """
    from uqeval.kernels import _jit

    if _jit.IS_INTERPRETED:
        raise UsageError(
            "NUMBA_DISABLE_JIT is set, so nothing is compiled. Unset it: env -u NUMBA_DISABLE_JIT "
            "uqeval warmup"
        )
    if (folder := os.environ.get(_VARIABLE)) is None:
        import uqeval.kernels.samples  # noqa: F401  # any kernel tells the folder

        folders = _jit.cache_folders()
        if folders and not any(folders.values()):
            raise OutputError(
                f"no folder for compiled loops is writable: neither {cut(next(iter(folders)))} "
                "nor a folder in your home. Name a writable folder: NUMBA_CACHE_DIR=DIR uqeval "
                "warmup"
            )
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise OutputError(
            f"{_VARIABLE}={cut(folder)} cannot be written: {error.strerror or error}. Expected a "
            "folder to which compiled loops can be saved. Name a writable folder: "
            f"{_VARIABLE}=DIR uqeval warmup"
        ) from error


def warm_up(commands: Sequence[str], run: Callable[[Sequence[str]], None]) -> list[Warmup]:
    """Run each command on small inputs of all dtypes; `run` runs one command line.

    Raises `OutputError` if a kernel cannot be saved.
    """
    from uqeval.kernels import _jit, _saved

    results: list[Warmup] = []
    known: set[str] = set()
    # This process compiles all kernels, so that the results count them.
    with compiling_ahead((), 1), temporary() as folder:
        out = folder / "out"
        out.mkdir()
        write_inputs(folder)
        with chdir(folder):
            for command in commands:
                began, (compiled, loaded) = time.perf_counter(), _jit.compiled_and_loaded()
                for line in command_lines(command):
                    if line not in known:
                        known.add(line)
                        run(line.format(out=out).split())
                        _check_saved(_saved.NOT_SAVED)
                now = _jit.compiled_and_loaded()
                seconds = time.perf_counter() - began
                results.append(Warmup(command, now[0] - compiled, now[1] - loaded, seconds))
    return results


def _check_saved(errors: Sequence[OSError]) -> None:
    if errors:
        error = errors[0]
        place = os.environ.get(_VARIABLE) or error.filename or "the cache"
        raise OutputError(
            f"{cut(place)}: a compiled loop cannot be saved: {error.strerror or error}. Free some "
            f"space, or name another folder: {_VARIABLE}=DIR uqeval warmup"
        )


#: Pixels on a side: an item of this size is counted alone, not together with others.
_LARGE = 256
#: More classes than 8 bits can count, and classes of an item that is read in bands of rows.
_MANY, _BANDED = 300, 80


def write_inputs(folder: Path) -> None:
    """Write all inputs that the recipes name."""
    classes = synthetic_data.classes("warmup")
    probs = classes["probs"].astype(np.float64)
    probs /= probs.sum(axis=2, keepdims=True)
    common = {"names": classes["names"], "labels": classes["labels"]}
    _save_probs(folder, common, probs)
    _save_other_kinds(folder, common, probs)
    _save_numbers(folder)
    outside = np.array([f"outside_{i}" for i in range(len(probs))])
    for name, values in (("outside", probs), ("outside-single", probs[:, 0])):
        np.savez(folder / f"{name}.npz", names=outside, probs=values.astype(np.float32))
    masks = (classes["labels"] == 4).astype(np.uint8)
    np.savez(folder / "masks.npz", names=classes["names"], labels=masks)
    raters = np.stack([classes["labels"], classes["labels"][..., ::-1]], axis=1)
    np.savez(folder / "annotations.npz", names=classes["names"], labels=raters)
    (folder / "calibration.txt").write_text("\n".join(classes["names"][:-1]))
    video = synthetic_data.video("warmup", frames=6, size=64)
    video["flow_forward"] = -video["flow"]
    np.savez(folder / "video.npz", **video)
    np.savez(folder / "labelled-video.npz", **video, labels=video["predictions"])


def _save_probs(folder: Path, common: dict[str, Any], probs: Array) -> None:
    """Write class probabilities of each dtype, of samples and of single predictions."""
    for name, values in (("probs", probs), ("single", probs[:, 0])):
        for dtype in ("f2", "f4", "f8"):
            np.savez(folder / f"{name}-{dtype}.npz", **common, probs=values.astype(dtype))
        for dtype in ("u1", "u2"):
            _save_scaled(folder / f"{name}-{dtype}", common, values, np.dtype(dtype))


def _save_scaled(folder: Path, common: dict[str, Any], probs: Array, dtype: np.dtype[Any]) -> None:
    """Write probabilities as integers, whose sum is 1: a file for each item."""
    folder.mkdir()
    most = np.iinfo(dtype).max
    for name, labels, values in zip(common["names"], common["labels"], probs, strict=True):
        integers = np.floor(values * most)
        largest = integers.argmax(axis=-3, keepdims=True)
        remainder = most - integers.sum(axis=-3, keepdims=True)
        np.put_along_axis(
            integers, largest, np.take_along_axis(integers, largest, -3) + remainder, axis=-3
        )
        stored = {"probs": integers.astype(dtype), "labels": labels, "scale": np.float64(1 / most)}
        np.savez(folder / f"{name}.npz", **stored)


def _save_other_kinds(folder: Path, common: dict[str, Any], probs: Array) -> None:
    """Write logits, two classes, one, many, rows of a table, maps, and a large image."""
    names, labels = common["names"], common["labels"]
    first = probs[:, :, :1]
    binary = np.where(labels == 255, 255, labels != 0).astype(np.uint8)
    rows = {
        "probs": probs[0, 0].reshape(probs.shape[2], -1).T,
        "labels": np.where(labels[0] == 255, 0, labels[0]).ravel(),
    }
    # Intervals of many items read single bins of their ranks.
    sharpened = [rows["probs"] ** exponent for exponent in (1, 1.1, 1.2, 1.3, 1.4)]
    table = np.concatenate([powers / powers.sum(axis=1, keepdims=True) for powers in sharpened])
    np.savez(
        folder / "table.npz", probs=table.astype("f4"), labels=np.tile(rows["labels"], 5)
    )  # fmt: skip
    many = np.full((len(names), 2, _MANY, 8, 8), 0.5 / _MANY)
    many[:, :, ::100] += 0.5 / len(range(0, _MANY, 100))
    ids = synthetic_data.integers("many", (len(names), 8, 8), _MANY).astype(np.uint16)
    times = _LARGE // labels.shape[-1] + 1
    large_labels = np.tile(labels[:1], (1, times, times))
    banded = np.full((1, 1, _BANDED, *large_labels.shape[1:]), 1 / _BANDED, np.float16)
    np.savez(folder / "banded.npz", names=names[:1], labels=large_labels, probs=banded)
    maps = {"predictions": probs.mean(axis=1).argmax(axis=1).astype(np.uint8)}
    for dtype in ("f2", "f4"):
        logits = np.log(np.maximum(probs, 1e-3)).astype(dtype)
        two = np.concatenate([first, 1 - first], axis=2).astype(dtype)
        large = np.tile(probs[:1].astype(dtype), (1, 1, 1, times, times))
        entropy = -(probs * np.log(probs + 1e-12)).sum(axis=2).mean(axis=1).astype(dtype)
        inputs = {
            "logits": common | {"logits": logits},
            "two": {"names": names, "labels": binary, "probs": two},
            "foreground": {
                "names": names, "labels": binary, "probs": (1 - first).astype(dtype)
            },
            "rows": rows | {"probs": rows["probs"].astype(dtype)},
            "many": {"names": names, "labels": ids, "probs": many.astype(dtype)},
            "large": {"names": names[:1], "labels": large_labels, "probs": large},
            "maps": common | maps | {"entropy": entropy},
        }  # fmt: skip
        for name, arrays in inputs.items():
            np.savez(folder / f"{name}-{dtype}.npz", **arrays)


def _save_numbers(folder: Path) -> None:
    """Write predicted numbers of each dtype, members and samples of them, with a target."""
    numbers = synthetic_data.numbers("warmup")
    offsets = synthetic_data.uniform("warmup members", (3,))[:, None, None]
    times = _LARGE // numbers["mean"].shape[-1] + 1
    for dtype in ("f2", "f4", "f8"):
        stored = {name: values.astype(dtype) for name, values in numbers.items()}
        members = {
            name: (numbers[name][:, None] + offsets).astype(dtype) for name in ("mean", "std")
        }
        target = {"target": stored["target"]}
        logarithms = {"mean": stored["mean"], "log_variance": np.log(stored["std"]) * 2}
        inputs = {
            "numbers": stored,
            "members": members | target,
            "samples": {"samples": members["mean"]} | target,
            "logarithms": logarithms | target,
            "number-rows": {n: v[0].reshape(-1, 1, 1) for n, v in stored.items()},
            "large-numbers": {n: np.tile(v[:1], (1, times, times)) for n, v in stored.items()},
        }
        for name, arrays in inputs.items():
            np.savez(folder / f"{name}-{dtype}.npz", **arrays)
