"""Each command beside reading its maps: how much of its time is not reading, decoding and making
them.

`reading` makes the maps that a command asks for, once, with as many threads, and drops them. Of 500
small items: what intervals, a gate with `confidence` and a comparison cost beside their evaluation.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import apart, labels_for, measure_cpu, softmax_stack

CLASSES = ("segmentation", "pavpu", "calibration", "failure", "sparsification")
NUMBERS = ("regression", "nmerci", "sparsification")
NAMES = ("a", "numbers")


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
    from uqeval.usecases.plans import evaluations_of

    inputs = open_inputs(store, None, InputOptions())
    source = inputs.source
    source.want(sorted(evaluations_of(inputs.info(), {family: {}})[1]))
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda batch: bool(source.read(batch)), source.batches()))


def command(store: str, family: str, workers: int) -> None:
    """What the command of this name does with its default settings."""
    import uqeval

    uqeval.evaluate(store, None, {family: {}}, workers=workers)


def make_items(folder: Path, count: int) -> None:
    """Two models of the same small images of 19 classes, and a mean with σ: reports with states."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    truth = np.kron(rng.integers(0, 19, (count, 6, 8)), np.ones((8, 8), np.int64)).astype("u1")
    hit = truth[:, None] == np.arange(19)[:, None, None]
    for name, skill in (("a", 2.0), ("b", 1.8)):
        scale = rng.uniform(0.5, 1.5, (count, 1, 1, 1, 1))
        z = scale * rng.normal(size=(count, 2, *hit.shape[1:])) + skill * hit[:, None]
        p = np.exp(z)
        np.save(folder / f"{name}.npy", (p / p.sum(2, keepdims=True)).astype("f2"))
    np.save(folder / "truth.npy", truth)
    size = truth.shape
    std, target = rng.gamma(2.0, 0.5, size) + 0.01, rng.uniform(2, 80, size)
    mean = target + rng.normal(size=size) * std * rng.uniform(0.5, 1.5, (count, 1, 1))
    np.savez(folder / "numbers.npz", mean=mean, std=std, target=target)
    for name in ("a", "b", "numbers"):
        report = items_evaluated(folder, name)
        (folder / f"{name}.json").write_text(report.to_json(), "utf-8")


def items_evaluated(folder: Path, name: str) -> Any:
    """What `uqeval run` evaluates, with states."""
    import uqeval

    states = folder / f"{name}.states.zip"
    if name == "numbers":
        return uqeval.evaluate(folder / "numbers.npz", None, list(NUMBERS), states=states)
    own = [folder / f"{name}.npy", folder / "truth.npy"]
    return uqeval.evaluate(*own, list(CLASSES), axes="NTCHW", states=states)


def intervals(path: Path) -> None:
    """All intervals of a report, from its states, as `uqeval run --ci 0.95` has them."""
    from uqeval.report.schema import Report
    from uqeval.statistics.from_states import scoring_of
    from uqeval.statistics.options import CutOptions
    from uqeval.statistics.slices_and_intervals import with_slices_and_intervals

    report = Report.load(path)
    with_slices_and_intervals(report, scoring_of(path, report), CutOptions(ci=0.95))


def cli(*arguments: str) -> None:
    """One command, in a process of its own."""
    subprocess.run([sys.executable, "-m", "uqeval", *arguments], check=False, capture_output=True)


def of_items(folder: Path, count: int, repeats: int) -> None:
    """Print what is read off the states of many items, beside evaluating them."""
    apart(make_items, folder, count)
    rules = folder / "rules.yaml"
    rules.write_text(
        "segmentation.miou: {min: 0.1, confidence: 0.95}\n"
        "pavpu.pavpu: {min: 0.1, confidence: 0.95}\n"
        "calibration.ece: {max: 0.9, confidence: 0.95}\n"
    )
    a, b = (str(folder / f"{name}.json") for name in "ab")
    whole = {name: measure_cpu(items_evaluated, folder, name, repeats=1) for name in NAMES}
    calls: list[tuple[str, str, Callable[..., None], tuple[Any, ...]]] = [
        ("a", "intervals of classes", intervals, (folder / "a.json",)),
        ("numbers", "intervals of numbers", intervals, (folder / "numbers.json",)),
        ("a", "gate with confidence", cli, ("gate", a, str(rules))),
        ("a", "compare two models", cli, ("compare", a, b)),
    ]
    for name, title, call, arguments in calls:
        own = measure_cpu(call, *arguments, repeats=repeats)
        print(
            f"{count} items: {title:<22} {own[0]:6.2f} s {own[1]:5.0f} MB peak: "
            f"{own[0] / whole[name][0]:5.2f} evaluations of {whole[name][0]:.2f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench/overhead"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--items", type=int, default=500)
    options = parser.parse_args()
    of_items(options.folder / "items", options.items, min(options.repeats, 3))
    apart(make, options.folder / "large")
    for name, families in (("classes", CLASSES), ("numbers", NUMBERS)):
        for family in families:
            own = (str(options.folder / "large" / f"{name}.zarr"), family, options.workers)
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
