"""Overhead and limits of a cluster: `python -m benchmarks.scale`.

Four measurements, for the table of docs/scale.md:

- `client`: the client's time and memory for N images of 1024×2048 with 19 classes, whose states are
  made up: nothing is read;
- `tasks`: the time that Dask takes for a job, with jobs of items that only wait;
- `throttled`: items that take half a second each to be read, by 1 to 8 worker processes, beside
  the time that the delay alone predicts;
- `linear`: `pavpu` of 10 to 10,000 small images on this machine.

`predicted` prints the table of the same page from the figures in `Machine`.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from uqeval.engine.remote import Counts, CountTallies, Done, Opened
from uqeval.inputs.opened import last_digits

if TYPE_CHECKING:
    from uqeval.engine.options import RunOptions
    from uqeval.engine.passes import Items, Turn
    from uqeval.inputs import Inputs
    from uqeval.stores.states.blocks import PackedItems
    from uqeval.tallies._contract import Tally

CLASSES, HEIGHT, WIDTH = 19, 1024, 2048
#: Seconds that an item takes to be read, in `throttled`.
READ_SECONDS = 0.5
#: Items of a job in `client`, as a cluster of 128 workers has them for 100,000 images.
JOB = 100


# The client


def _empty_store(folder: Path, items: int) -> Path:
    """A store whose chunks are missing: its items are opened, and never read."""
    import zarr

    path = folder / f"{items}.zarr"
    group = zarr.create_group(path, overwrite=True)
    group.create_array(
        "probs", shape=(items, 1, CLASSES, 64, 64), chunks=(1000, 1, CLASSES, 64, 64), dtype="f2"
    )
    group.create_array("labels", shape=(items, 64, 64), chunks=(1000, 64, 64), dtype="u1")
    return path


def _street(names: Collection[str]) -> dict[str, Any]:
    """Maps of one image: an error at every fifth pixel, uncertainties without ties."""
    generator = np.random.default_rng(0)
    uncertainty = generator.random((HEIGHT, WIDTH), dtype=np.float32)
    label = generator.integers(0, CLASSES, (HEIGHT // 8, WIDTH // 8)).astype(np.uint8)
    label = label.repeat(8, 0).repeat(8, 1)
    prediction = np.where(uncertainty > 0.8, (label + 1) % CLASSES, label).astype(np.uint8)
    known = {"label": label, "prediction": prediction}
    return {name: known.get(name, uncertainty) for name in names}


class MadeUp:
    """A cluster whose workers send the states of the same image again and again."""

    workers = 128

    def __init__(self) -> None:
        self.sent_bytes = 0.0

    def executor(self, inputs: Inputs, options: RunOptions, maps: Collection[str]) -> MadeUp:
        return self

    def end(self) -> None: ...

    def count(self, turn: Turn) -> Generator[Items, None, None]:
        from uqeval.engine.counting import Counting
        from uqeval.engine.dask_executor import received

        counting = turn.counting
        own = Counting(counting.tallies, counting.tallies, {})
        maps = _street({name for tally in counting.tallies for name in tally.reads})
        packed: dict[Tally, PackedItems] = {}
        for tally, counted in zip(own.apart, own.states_of([maps], 0), strict=True):
            assert counted.packed is not None  # all are retained
            packed[tally] = counted.packed
        totals = {
            number: packed[tally].states(tally.most_bytes)[0]
            for number, tally in enumerate(counting.tallies) if tally.adds_exactly
        }  # fmt: skip
        sent: list[PackedItems | None] = [packed[tally] for tally in counting.sent]
        self.sent_bytes += sum(len(packed[tally].data) for tally in counting.sent)
        self.sent_bytes += sum(map(len, totals.values())) / JOB
        for first in range(0, turn.source.items, JOB):
            items = range(first, min(first + JOB, turn.source.items))
            states = [(item, sent) for item in items] if sent else []
            yield from received(turn, items, Done(Counts(totals, states, True), 0, last_digits()))


def client(items: int, family: str, states: bool) -> dict[str, Any]:
    """Evaluate a set whose states are made up; time and memory of the client."""
    from uqeval.engine.options import RunOptions
    from uqeval.inputs import InputOptions, open_inputs
    from uqeval.usecases.evaluate import run

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = _empty_store(folder, items)
        began, cpu_began = time.perf_counter(), time.process_time()
        inputs = open_inputs(str(path), None, InputOptions(missing_chunks="fill"))
        opened = time.perf_counter() - began
        cluster = MadeUp()
        file = folder / "own.states.zip" if states else None
        report = run(
            inputs, {family: {}}, RunOptions(memory=4 * 10**9, cluster=cluster, states=file)
        )
        (folder / "report.json").write_text(report.to_json())
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
        return {
            "items": items, "family": family, "open": opened, "seconds": seconds, "cpu": cpu,
            "cpu_ms_an_item": cpu / items * 1000, "sent_bytes_an_item": cluster.sent_bytes,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "report_mb": (folder / "report.json").stat().st_size / 1e6,
            "states_mb": file.stat().st_size / 1e6 if file else None,
        }  # fmt: skip


# Jobs


@dataclass(frozen=True)
class Wait:
    """Work that waits for each item, and sends some bytes back."""

    seconds: float
    nbytes: int

    def __call__(self, opened: Opened) -> bytes:
        time.sleep(self.seconds * len(opened.items))
        return bytes(self.nbytes)


def tasks(items: int, seconds: float, workers: int) -> dict[str, Any]:
    """Time of jobs of one item that only wait, and what Dask adds to each."""
    from uqeval.engine.dask_cluster import DaskCluster
    from uqeval.engine.options import RunOptions
    from uqeval.inputs import InputOptions, open_inputs

    with tempfile.TemporaryDirectory() as folder:
        probs, labels = Path(folder, "p.npy"), Path(folder, "l.npy")
        np.save(probs, np.full((items, 2), 0.5, np.float32))
        np.save(labels, np.zeros(items, np.uint8))
        with DaskCluster(f"local:{workers}") as cluster:
            inputs = open_inputs(str(probs), str(labels), InputOptions())
            executor = cluster.executor(inputs, RunOptions(), ("label",))
            list(executor.each(Wait(0, 0), [range(n, n + 1) for n in range(workers * 2)]))
            began = time.perf_counter()
            ones = [range(n, n + 1) for n in range(items)]
            list(executor.each(Wait(seconds, 20_000), ones))
            taken = time.perf_counter() - began
            executor.end()
    ideal = seconds * -(-items // workers)
    return {"items": items, "wait": seconds, "workers": workers, "seconds": taken, "ideal": ideal,
            "ms_a_job": (taken - ideal) / items * 1000}  # fmt: skip


# Slow reads


@dataclass(frozen=True)
class SlowCount(CountTallies):
    """Counts items that take some seconds each to be read."""

    def __call__(self, opened: Opened) -> Counts:
        time.sleep(READ_SECONDS * len(opened.items))
        return super().__call__(opened)


def throttled(items: int, most_workers: int) -> list[dict[str, Any]]:
    """Segmentation scores of items that take `READ_SECONDS` each, by 1 to 8 workers."""
    from benchmarks.of_clusters import _make
    from uqeval.engine import dask_cluster, dask_executor
    from uqeval.engine.options import RunOptions
    from uqeval.inputs import InputOptions, open_inputs
    from uqeval.usecases.evaluate import run

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        _make(Path(folder), items, 512)
        workers = 1
        while workers <= most_workers:
            with dask_cluster.DaskCluster(f"local:{workers}") as cluster:
                inputs = open_inputs(f"{folder}/store.zarr", None, InputOptions())
                run(inputs, {"segmentation": {}}, RunOptions(1, cluster=cluster))  # compiles
                with patch.object(dask_executor, "CountTallies", SlowCount):
                    began = time.perf_counter()
                    run(inputs, {"segmentation": {}}, RunOptions(1, cluster=cluster))
                    seconds = time.perf_counter() - began
            predicted = -(-items // workers) * READ_SECONDS
            row = {"items": items, "workers": workers, "seconds": seconds, "predicted": predicted}
            rows.append(row)
            print(json.dumps(row), flush=True)
            workers *= 2
    return rows


# Time by the number of items


def linear(items: int) -> dict[str, Any]:
    """`pavpu` of small images in threads: time and memory."""
    from benchmarks.of_clusters import _make
    from uqeval import evaluate

    with tempfile.TemporaryDirectory() as folder:
        _make(Path(folder), items, 128)
        store = f"{folder}/store.zarr"
        evaluate(store, None, "pavpu", limit=2)  # compiles
        began = time.perf_counter()
        evaluate(store, None, "pavpu", workers=1)
        seconds = time.perf_counter() - began
    return {"items": items, "seconds": seconds, "ms_an_item": seconds / items * 1000,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}  # fmt: skip


# Prediction


@dataclass(frozen=True)
class Machine:
    """What is measured on one machine: see docs/scale.md."""

    bytes_a_second: float = 0.4e9
    client_seconds_an_item: float = 0.0004
    job_seconds: float = 0.003
    start_seconds: float = 5.0
    client_bytes: float = 200e6
    client_bytes_an_item: float = 3200.0


def predicted(
    items: int, item_bytes: float, workers: int, cores: int, network: float, machine: Machine
) -> dict[str, float]:
    """Hours, core hours and the client's GB for a set that is read once.

    `network`: bytes a second that the store gives to all workers together.
    """
    rate = min(workers * cores * machine.bytes_a_second, network)
    jobs = min(items, max(10_000, 8 * workers))
    reading = items * item_bytes / rate
    of_client = items * machine.client_seconds_an_item + jobs * machine.job_seconds
    seconds = machine.start_seconds + max(reading, of_client)
    return {
        "hours": seconds / 3600, "core_hours": seconds / 3600 * workers * cores,
        "client_gb": (machine.client_bytes + items * machine.client_bytes_an_item) / 1e9,
        "client_share": of_client / seconds,
    }  # fmt: skip


def predictions() -> None:
    """Print the table of docs/scale.md."""
    item = 20 * CLASSES * HEIGHT * WIDTH * 2
    print(f"{'set':<28} {'workers':>8} {'hours':>10} {'core hours':>11} {'client GB':>10}")
    for name, items in (("500 images, 0.8 TB", 500), ("1,000,000 images, 1.6 PB", 10**6)):
        for workers in (1, 8, 64, 512):
            got = predicted(items, item, workers, 8, float("inf"), Machine())
            print(f"{name:<28} {workers:>8} {got['hours']:>10.3g} {got['core_hours']:>11.3g} "
                  f"{got['client_gb']:>10.2g}  client busy {got['client_share']:.0%}")  # fmt: skip


def _apart(name: str, *arguments: Any) -> dict[str, Any]:
    """Measure in a process of its own; print the row and return it."""
    call = (
        f"from benchmarks import scale; import json; print(json.dumps(scale.{name}{arguments!r}))"
    )
    ended = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
    row: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}),
          flush=True)  # fmt: skip
    return row


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the rows."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    groups: dict[str, Callable[[int], Any]] = {
        "client": lambda most: [
            _apart("client", items, family, states)
            for family in ("pavpu", "failure") for states in (False, True)
            for items in _powers(1000, most) if items <= 10**5 or not states
        ],
        "tasks": lambda most: [
            _apart("tasks", items, wait, 2)
            for items, wait in ((10, 1.0), (100, 0.1), (1000, 0.01), (10_000, 0.0)) if items <= most
        ],
        "throttled": lambda most: throttled(min(64, most), 8),
        "linear": lambda most: [_apart("linear", n) for n in _powers(10, min(most, 10_000))],
        "predicted": lambda most: predictions(),
    }  # fmt: skip
    parser.add_argument("--only", nargs="+", choices=groups, default=list(groups))
    parser.add_argument("--most", type=int, default=10**5, help="items of the largest set")
    options = parser.parse_args(arguments)
    for name in options.only:
        print(f"\n{name}", flush=True)
        groups[name](options.most)


def _powers(first: int, most: int) -> list[int]:
    return [n for n in (10**k for k in range(1, 8)) if first <= n <= most]


if __name__ == "__main__":
    main()
