"""Commands with intervals over many small items or classes, and over four times as many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import Case, Setup, command

#: Command lines without `--ci` and outputs; the files are those of `_make`.
_COMMANDS = (
    "failure probs.npz labels.npz",
    "failure --images probs.npz labels.npz",
    "calibration probs.npz labels.npz",
    "conformal probs.npz labels.npz --fit-on half.txt",
    "sparsification probs.npz labels.npz",
    "pavpu --window 1 probs.npz labels.npz",
    "divergence probs.npz others.npz",
    "ood probs.npz others.npz",
    "regression numbers.npz",
    "nmerci numbers.npz",
    "sparsification numbers.npz",
)
_SAMPLES, _CLASSES = 3, 3
#: Command lines with scores of each class, for the files of `_make_classes`.
_OF_CLASSES = ("failure probs.npz labels.npz", "calibration probs.npz labels.npz")


def _make(folder: Path, items: int) -> None:
    """Two stores of probabilities, labels and predicted numbers, of one pixel an item; and the
    names of half of the items."""
    rng = np.random.default_rng(0)
    (folder / "half.txt").write_text("".join(f"{i}\n" for i in range(0, items, 2)))
    for name, scale in (("probs", 2.0), ("others", 1.0)):
        probs = np.exp(scale * rng.normal(size=(items, _SAMPLES, _CLASSES, 1, 1)))
        probs /= probs.sum(axis=2, keepdims=True)
        np.savez(folder / f"{name}.npz", probs=probs.astype(np.float32))
        if name == "probs":
            passed = rng.random((items, 1)) > probs.mean(axis=1)[:, :, 0, 0].cumsum(axis=1)
            labels = passed.sum(axis=1).clip(0, _CLASSES - 1).astype(np.uint8)
            np.savez(folder / "labels.npz", labels=labels.reshape(-1, 1, 1))
    mean, std = rng.normal(size=(items, 1, 1)), rng.gamma(2.0, size=(items, 1, 1))
    target = mean + std * rng.normal(size=mean.shape)
    np.savez(folder / "numbers.npz", mean=mean, std=std, target=target)


def _make_classes(folder: Path, classes: int) -> None:
    """A store of probabilities of many classes, and labels: 500 items of one pixel."""
    rng = np.random.default_rng(0)
    probs = np.exp(3 * rng.normal(size=(500, classes)))
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (rng.random((500, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)
    np.savez(folder / "probs.npz", probs=probs.astype(np.float32), ignore_index=65535)
    np.savez(folder / "labels.npz", labels=labels.astype(np.uint16))


def _run(line: str, folder: Path) -> None:
    words = [str(folder / word) if "." in word else word for word in line.split()]
    command(*words, "--ci", "0.95", "--no-states", "--quiet", "-o", str(folder / "report.json"))


def _at_sizes(
    setup: Setup,
    kind: str,
    make: Callable[[Path, int], None],
    counts: Sequence[int],
    lines: Sequence[str],
) -> Iterator[Case]:
    """Each command line on data of each size; the first size is the yardstick."""
    folders = [setup.make(f"{kind}-{count}", make, count) for count in counts]
    for line in lines:
        for count, folder in zip(counts, folders, strict=True):
            yield Case(
                f"{count:,}: {line.replace('.npz', '')}", _run, (line, folder),
                yardstick=count == counts[0],
            )  # fmt: skip


def items(setup: Setup) -> Iterator[Case]:
    """Commands with `--ci` over 4,000 items of one pixel, and 16,000: linear is a ratio of 4."""
    counts = [setup.size(4_000, 20), setup.size(16_000, 80)]
    yield from _at_sizes(setup, "items", _make, counts, _COMMANDS)


def classes(setup: Setup) -> Iterator[Case]:
    """Commands with `--ci` over items of 250 classes, and of 1,000: linear is a ratio of 4."""
    counts = [setup.size(250, 5), setup.size(1_000, 20)]
    yield from _at_sizes(setup, "classes", _make_classes, counts, _OF_CLASSES)
