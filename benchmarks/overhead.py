"""Each command beside reading its maps: how much of its time is not reading, decoding and making
them.

`reading` makes the maps that a command asks for, once, with as many threads, and drops them.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from common import apart, labels_for, measure_cpu, softmax_stack

CLASSES = ("segmentation", "pavpu", "calibration", "failure", "sparsification")
NUMBERS = ("regression", "nmerci", "sparsification")


def make(folder: Path) -> None:
    """6 softmax stacks 10×19×512×1024 in float16, and 12 items of 2 Mpx of mean, std and target."""
    import zarr

    if folder.exists():
        return
    rng = np.random.default_rng(0)
    group = zarr.open_group(folder / "classes.zarr", mode="w")
    stack = softmax_stack(10, 19, 512, 1024)
    shape = (6, *stack.shape)
    probs = group.create_array("probs", shape=shape, chunks=(1, 5, *shape[2:]), dtype="f2")
    labels = group.create_array("labels", shape=(6, 512, 1024), chunks=(1, 512, 1024), dtype="u1")
    for i in range(6):
        probs[i], labels[i] = stack, labels_for(stack, i)
    group = zarr.open_group(folder / "numbers.zarr", mode="w")
    size = (1024, 2048)
    std = rng.gamma(2.0, 0.5, size).astype(np.float32) + np.float32(0.01)
    target = rng.uniform(2, 80, size).astype(np.float32)
    mean = target + rng.standard_t(4, size).astype(np.float32) * np.sqrt(std)
    for name, values in (("mean", mean), ("std", std), ("target", target)):
        array = group.create_array(name, shape=(12, *size), chunks=(1, *size), dtype="f4")
        for i in range(12):
            array[i] = values


def reading(store: str, family: str, workers: int) -> None:
    """The maps that a command asks for, made once."""
    from uqeval.inputs import InputOptions, open_inputs
    from uqeval.planning import plans_of

    inputs = open_inputs(store, None, InputOptions())
    source = inputs.source
    source.want(sorted(plans_of(inputs.facts(), {family: {}})[1]))
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda batch: bool(source.read(batch)), source.batches()))


def command(store: str, family: str, workers: int) -> None:
    """What the command of this name does with its default settings."""
    import uqeval

    uqeval.evaluate(store, None, {family: {}}, workers=workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench/overhead"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    apart(make, options.folder)
    for name, families in (("classes", CLASSES), ("numbers", NUMBERS)):
        for family in families:
            own = (str(options.folder / f"{name}.zarr"), family, options.workers)
            read = measure_cpu(reading, *own, repeats=options.repeats)
            whole = measure_cpu(command, *own, repeats=options.repeats)
            print(
                f"{name:<8} {family:<15} reading {read[0]:6.3f} s ({read[2]:.3f} s CPU), "
                f"command {whole[0]:6.3f} s ({whole[2]:.3f} s CPU) {whole[1]:5.0f} MB peak: "
                f"{whole[0] / read[0]:5.2f} readings ({whole[2] / read[2]:.2f} by CPU)",
                flush=True,
            )


if __name__ == "__main__":
    main()
