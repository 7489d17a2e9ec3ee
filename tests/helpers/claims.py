"""Write absurd sizes into the metadata of small stores, and evaluate these stores."""

from __future__ import annotations

import json
import resource
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import uqeval
from uqeval.errors import UqevalError

#: The limit of address space of a run over damaged stores; libraries take most of it.
SPACE = 8 << 30
CLAIMS: list[Any] = [
    10**6, 10**9, 10**12, 2**63 - 1, 2**63, 0, -1, 1.5, True, "7", None,
]  # fmt: skip

#: The kinds of arrays of a store, by the family that reads them.
CLASSES = {
    "probs": ((3, 2, 2, 4, 4), "f4"), "labels": ((3, 4, 4), "u1"), "names": ((3,), "<U2"),
}  # fmt: skip
LOGITS = {"logits": CLASSES["probs"], "labels": CLASSES["labels"]}
MAPS = {"predictions": ((3, 4, 4), "u1"), "entropy": ((3, 4, 4), "f4")} | LOGITS
del MAPS["logits"]
NUMBERS = dict.fromkeys(("mean", "std", "target"), ((3, 4, 4), "f4")) | {"valid": ((3, 4, 4), "?")}
VIDEO = {
    "frames": ((3, 16, 16, 3), "u1"), "flow": ((2, 16, 16, 2), "f4"),
    "predictions": ((3, 16, 16), "u1"),
}  # fmt: skip
STORES: list[tuple[dict[str, Any], str]] = [
    (CLASSES, "segmentation"), (LOGITS, "segmentation"), (MAPS, "segmentation"),
    (NUMBERS, "regression"), (VIDEO, "tc"),
]  # fmt: skip


def write(folder: Path, arrays: dict[str, Any], form: int, shards: bool) -> None:
    """A small store with every array in one chunk an item."""
    import zarr

    group = zarr.open_group(folder, mode="w", zarr_format=form)
    group.attrs["class_names"] = ["a", "b"]
    for name, (shape, dtype) in arrays.items():
        chunks = (1, *shape[1:])
        array = group.create_array(
            name, shape=shape, dtype=dtype, chunks=chunks,
            config={"write_empty_chunks": True},
            shards=(3, *shape[1:]) if shards and form == 3 and "U" not in dtype else None,
        )  # fmt: skip
        value = 1.5 if name == "logits" else 0.5
        array[...] = np.array(list("abc")) if name == "names" else np.full(shape, value, dtype)


def lists_of_sizes(node: Any) -> Iterator[list[Any]]:
    """Every list of numbers in metadata: shape, chunks, shards."""
    for value in node.values() if isinstance(node, dict) else node:
        if isinstance(value, list) and value and all(type(v) is int for v in value):
            yield value
        elif isinstance(value, dict | list):
            yield from lists_of_sizes(value)


def cases(folder: Path) -> Iterator[str]:
    """Write each claim into each place of the metadata of a store, one after the other."""
    for file in sorted(folder.rglob("zarr.json")) + sorted(folder.rglob(".zarray")):
        text = file.read_text()
        for number, sizes in enumerate(list(lists_of_sizes(json.loads(text)))):
            for axis in range(len(sizes)):
                for claim in CLAIMS:
                    document = json.loads(text)
                    list(lists_of_sizes(document))[number][axis] = claim
                    file.write_text(json.dumps(document))
                    yield f"{file.relative_to(folder)} {number}[{axis}] = {claim!r}"
        file.write_text(text)


def run(folder: Path, family: str, **options: Any) -> None:
    """Evaluate a store whole, by one family."""
    if family == "tc":
        uqeval.evaluate(None, None, {"tc": {"flow": "file"}}, video=folder, workers=1, **options)
    else:
        uqeval.evaluate(folder, None, [family], workers=1, **options)


def evaluate(folder: Path, family: str, what: str, **options: Any) -> None:
    """Evaluate a store, or assert that it is refused with a short message."""
    try:
        run(folder, family, **options)
    except UqevalError as error:
        assert len(str(error)) < 2000, what
    except Exception as error:
        raise AssertionError(f"{what}: {error!r}") from error


def all_claims(folder: Path) -> int:
    """Every claim in every place of every store; how many there were."""
    count = 0
    for number, (arrays, family) in enumerate(STORES):
        for form, shards in ((3, False), (2, False), (3, True)):
            store = folder / f"{number}{form}{shards}"
            write(store, arrays, form, shards)
            run(store, family)
            for k, what in enumerate(cases(store)):
                if k % 7 != number:  # every seventh of them, because all take a minute
                    continue
                # Every other one with holes allowed: nothing on disk bounds the shape then.
                fill = "fill" if k % 2 else "error"
                evaluate(store, family, f"{store.name} {what}", missing_chunks=fill)
                count += 1
    return count


def limited(folder: Path) -> str:
    """Run `all_claims` with an address space that no absurd claim fits."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    count = all_claims(folder)
    return f"{count} {peak_megabytes()}"


def peak_megabytes() -> int:
    """The peak memory of this process alone: `ru_maxrss` also counts the parent's until exec."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    (line,) = [own for own in status.read_text().splitlines() if own.startswith("VmHWM")]
    return int(line.split()[1]) // 1024
