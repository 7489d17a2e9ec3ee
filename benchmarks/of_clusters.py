"""A Dask cluster on this machine compared with threads: the overhead of distributing items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.common import Case, Setup, command, of, softmax_stack

_SAMPLES, _CLASSES = 4, 5


def _make(folder: Path, items: int, side: int) -> None:
    import zarr

    group = zarr.create_group(folder / "store.zarr", overwrite=True)
    shape = (items, _SAMPLES, _CLASSES, side, side)
    probs = group.create_array(
        "probs", shape=shape, chunks=(1, *shape[1:]), dtype="f2", compressors=None
    )
    labels = group.create_array(
        "labels", shape=(items, side, side), chunks=(1, side, side), dtype="u1", compressors=None
    )
    stack = softmax_stack(_SAMPLES, _CLASSES, side, side)
    truth = np.random.default_rng(0).integers(0, _CLASSES, (side, side))
    for item in range(items):
        probs[item], labels[item] = np.roll(stack, item, axis=-1), np.roll(truth, item, axis=-1)


def cluster(setup: Setup) -> Iterator[Case]:
    """pavpu of images of 256×256, start-up included: threads, and workers of `--dask local:N`."""
    for count in (10, 100, 1000):
        items, side = setup.size(count, 2), setup.size(256, 8)
        folder = setup.make(f"cluster-{items}-{side}", _make, items, side)
        pavpu = ("pavpu", str(folder / "store.zarr"), "--workers")
        title = f"{of(items, 'item')}: {{}}"
        yield Case(title.format("one thread"), command, (*pavpu, "1"), yardstick=True)
        yield Case(title.format("two threads"), command, (*pavpu, "2"))
        for workers in (1, 2):
            dask = (*pavpu, "1", "--dask", f"local:{workers}")
            yield Case(title.format(f"--dask local:{workers}"), command, dask, needs="distributed")
