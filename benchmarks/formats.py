"""Forms of a store of class probabilities: bytes, objects, speed, and the errors of all headlines.

`python benchmarks/formats.py PREDS LABELS` writes the samples of a store in each form, reads them
with uqeval, and prints two tables. Times are CPU seconds of one thread, the least of `--repeats`.
Errors are differences from the same probabilities in float32, divided by their sum.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

FAMILIES = ("segmentation", "pavpu", "calibration", "failure", "sparsification")
#: Families that maps are enough for.
OF_MAPS = ("segmentation", "pavpu", "failure")
#: Codecs by the words of the tables: a compressor of Blosc with its level and filter, or of Zarr.
CODECS: dict[str, tuple[str, int, str] | None] = {
    "none": None,
    "lz4": ("lz4", 1, "shuffle"),
    "lz4 bitshuffle": ("lz4", 1, "bitshuffle"),
    "zstd 1": ("zstd", 1, "shuffle"),
    "zstd 4": ("zstd", 4, "shuffle"),
    "zstd 4 bitshuffle": ("zstd", 4, "bitshuffle"),
    "zstd 3 without Blosc": ("", 3, ""),
}
FORMS = (
    *(("float16", codec) for codec in CODECS),
    ("float32", "lz4"), ("float32", "zstd 4"),
    *(("uint16", codec) for codec in ("lz4", "lz4 bitshuffle", "zstd 1", "zstd 4",
                                      "zstd 4 bitshuffle")),
    *(("uint8", codec) for codec in ("lz4", "lz4 bitshuffle", "zstd 4")),
)  # fmt: skip


@dataclass
class Form:
    """One row: what is stored, and what it costs. `share` is that of float16 without compression.

    `writing`, `reading`: millions of values a second. `command`: seconds of `uqeval.evaluate`.
    """

    dtype: str
    codec: str
    megabytes: float = 0.0
    share: float = 0.0
    objects: int = 0
    writing: float | None = None
    reading: float | None = None
    command: float | None = None


def encoded(probs: np.ndarray, dtype: str) -> tuple[np.ndarray, dict[str, float]]:
    """Return probabilities [sample, class, y, x] as they are stored, and the attributes."""
    if dtype.startswith("float"):
        return probs.astype(dtype), {}
    most = np.iinfo(dtype).max
    return np.rint(probs * most).astype(dtype), {"scale": 1 / most}


def write_form(
    folder: Path, dtype: str, codec: str, items: Iterator[np.ndarray], count: int, shards: bool
) -> float:
    """Write a store, an item after the other; return the CPU seconds of Zarr."""
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec

    from uqeval.stores.zarr.writer import pixel_chunks

    compressors: list[Any] = [Crc32cCodec()]
    if (choice := CODECS[codec]) is not None:
        name, level, shuffle = choice
        blosc = BloscCodec(cname=name or "zstd", clevel=level, shuffle=shuffle or "noshuffle")
        compressors.insert(0, blosc if name else ZstdCodec(level=level))
    shutil.rmtree(folder, ignore_errors=True)
    group = zarr.create_group(str(folder))
    array, seconds = None, 0.0
    for index, probs in enumerate(items):
        values, attributes = encoded(probs, dtype)
        if array is None:
            pixel = values.itemsize * values.shape[0] * values.shape[1]
            chunk = (1, *values.shape[:2], *pixel_chunks(pixel, *values.shape[2:]))
            whole = (-(-n // c) * c for n, c in zip(values.shape, chunk[1:], strict=True))
            shard = (1, *whole) if shards else None
            array = group.create_array(
                "probs", shape=(count, *values.shape), dtype=values.dtype, chunks=chunk,
                compressors=compressors, attributes=attributes, shards=shard,
                dimension_names=["item", "sample", "class", "y", "x"],
            )  # fmt: skip
        began = time.process_time()
        array[index] = values
        seconds += time.process_time() - began
    return seconds


def read(folder: Path) -> int:
    """Decode all samples as a command does; return how many values."""
    from uqeval.stores.store import open_store

    count = 0
    for item in open_store(str(folder), role="predictions").arrays["probs"]:
        array = item.array
        assert item.index is not None  # `write_form` puts all items into one array
        rows = array.chunks[-2]
        for y in range(0, array.shape[-2], rows):
            region = tuple(slice(0, n) for n in array.shape)
            region = (
                slice(item.index, item.index + 1), *region[1:-2],
                slice(y, min(y + rows, array.shape[-2])), region[-1],
            )  # fmt: skip
            count += array.read(region).size
    return count


def least(call: Callable[[], Any], repeats: int) -> float:
    """Return the least CPU seconds of some calls."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def headlines(results: dict[str, Any]) -> dict[str, float]:
    """Return the headline scores of a report by address."""
    from uqeval.glossary import headlines as of_family

    return {
        f"{family}.{field}": results[family][field]
        for family in FAMILIES
        if family in results
        for field in of_family(family)
        if isinstance(results[family].get(field), float)
    }


def measure(
    preds: str, labels: str, folder: Path, repeats: int, forms: Sequence[tuple[str, str]] = FORMS
) -> tuple[list[Form], dict[str, dict[str, float]]]:
    """Return a row for each form, and the scores by dtype."""
    import numcodecs.blosc

    import uqeval
    from uqeval.stores.store import open_store

    numcodecs.blosc.use_threads = False
    store = open_store(preds, role="predictions")
    arrays = store.arrays["probs"]
    names = [str(name) for name in store.names or range(len(arrays))]
    samples = folder / "samples"
    shutil.rmtree(samples, ignore_errors=True)
    samples.mkdir(parents=True)
    for item in arrays:
        index = () if item.index is None else (slice(item.index, item.index + 1),)
        region = (*index, *(slice(0, n) for n in item.array.shape[len(index) :]))
        values = item.array.read(region)[0 if index else ...].astype(np.float64)
        values = values.reshape(-1, *values.shape[-3:])
        np.save(samples / f"{len(list(samples.iterdir())):06}.npy",
                (values / values.sum(axis=1, keepdims=True)).astype(np.float32))  # fmt: skip
    files = sorted(samples.iterdir())
    size = np.load(files[0], mmap_mode="r").size
    total = size * len(files)

    def items() -> Iterator[np.ndarray]:
        return map(np.load, files)

    def evaluate(path: Path) -> dict[str, Any]:
        if path.name == "maps.zarr":
            return uqeval.evaluate(str(path), labels, list(OF_MAPS), workers=1).results
        return uqeval.evaluate(str(path), labels, list(FAMILIES), names=names, workers=1).results

    rows, scores = [], {}
    for dtype, codec in forms:
        for shards in (False, True) if (dtype, codec) == ("uint16", "zstd 4") else (False,):
            path = folder / "form.zarr"
            seconds = write_form(path, dtype, codec, items(), len(files), shards)
            row = Form(dtype, codec + (", one shard an item" if shards else ""))
            fill(row, path, total)
            row.writing = total / seconds / 1e6
            row.reading = total / least(partial(read, path), repeats) / 1e6
            row.command = least(partial(evaluate, path), repeats)
            if dtype not in scores:
                scores[dtype] = headlines(evaluate(path))
            rows.append(row)
            show(row)
    for dtype in ("float16", "uint16") if find_spec("pcodec") else ():
        rows.append(by_pcodec(dtype, items(), repeats))
        show(rows[-1])
    path = folder / "maps.zarr"
    write_maps(path, names, items(), np.load(files[0], mmap_mode="r").shape)
    row = Form("maps", "lz4", command=least(lambda: evaluate(path), repeats))
    fill(row, path, total)
    rows.append(row)
    show(row)
    scores["maps"] = headlines(evaluate(path))
    shutil.rmtree(folder / "form.zarr")
    shutil.rmtree(samples)
    return rows, scores


def by_pcodec(dtype: str, items: Iterator[np.ndarray], repeats: int) -> Form:
    """Return what pcodec makes of each item: uqeval reads no such stores, for nothing limits what a
    chunk unpacks to."""
    from pcodec import ChunkConfig, standalone

    row, size, coding, values = Form(dtype, "pcodec 4 (not readable)"), 0, 0.0, 0
    chunks = []
    for probs in items:
        flat = encoded(probs, dtype)[0].ravel()
        began = time.process_time()
        chunks.append(standalone.simple_compress(flat, ChunkConfig(compression_level=4)))
        coding += time.process_time() - began
        size, values = size + len(chunks[-1]), values + flat.size
    seconds = least(lambda: [standalone.simple_decompress(chunk) for chunk in chunks], repeats)
    row.megabytes, row.share, row.objects = size / 1e6, size / (2 * values), len(chunks)
    row.writing, row.reading = values / coding / 1e6, values / seconds / 1e6
    return row


def fill(row: Form, path: Path, values: int) -> None:
    """Fill in bytes and objects of a store."""
    sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
    row.megabytes, row.objects = sum(sizes) / 1e6, len(sizes)
    row.share = sum(sizes) / (2 * values)


def write_maps(
    path: Path, names: Sequence[str], items: Iterator[np.ndarray], shape: tuple[int, ...]
) -> None:
    """Write the maps of `keep="maps"`."""
    import uqeval

    samples, classes, *size = shape
    with uqeval.PredictionWriter(
        path, names=names, samples=samples, classes=classes, size=(size[0], size[1]), keep="maps",
        overwrite=True,
    ) as writer:  # fmt: skip
        for name, probs in zip(names, items, strict=True):
            writer.add(name, probs)


def show(row: Form) -> None:
    """Print one row of the first table."""
    numbers = "".join(
        f"{'–' if value is None else format(value, form):>10}"
        for value, form in ((row.writing, ".0f"), (row.reading, ".0f"), (row.command, ".2f"))
    )
    print(
        f"{row.dtype + ' ' + row.codec:<36}{row.megabytes:>9.1f}{row.share:>9.1%}"
        f"{row.objects:>9}{numbers}", flush=True,
    )  # fmt: skip


def errors(scores: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return the difference of each score from that of float32, by dtype."""
    exact = scores["float32"]
    return {
        dtype: {name: abs(found[name] - exact[name]) for name in exact if name in found}
        for dtype, found in scores.items()
        if dtype != "float32"
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preds", metavar="PREDS", help="a store of samples of class probabilities")
    parser.add_argument("labels", metavar="LABELS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("build/bench/formats"))
    parser.add_argument("--json", type=Path, help="also write the numbers")
    options = parser.parse_args(arguments)
    print(
        f"{'':<36}{'MB':>9}{'of raw':>9}{'objects':>9}{'writing':>10}{'reading':>10}{'CPU s':>10}"
    )
    rows, scores = measure(options.preds, options.labels, options.folder, options.repeats)
    differences = errors(scores)
    print(f"\n{'error of':<44}{'float32':>12}" + "".join(f"{d:>12}" for d in differences))
    for name, exact in scores["float32"].items():
        own = (differences[dtype].get(name) for dtype in differences)
        cells = "".join(f"{'–' if error is None else format(error, '.1e'):>12}" for error in own)
        print(f"{name:<44}{exact:>12.6f}{cells}")
    if options.json:
        found = {"rows": [asdict(row) for row in rows], "scores": scores, "errors": differences}
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
