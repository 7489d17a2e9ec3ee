"""Claims of absurd sizes are refused before anything is built of them, in time and memory."""

from __future__ import annotations

import json
import resource
import struct
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.errors import StoreError, UqevalError, UsageError
from uqeval.stores.flo_array import FloArray
from uqeval.stores.numpy_array import open_npy
from uqeval.stores.pfm_array import PfmArray
from uqeval.stores.png_array import PngArray

sys.path.append(str(Path(__file__).parents[1] / "cli"))
from command import run_script

#: Bytes of address space that a run over damaged stores may take; the libraries take most of it.
SPACE = 8 << 30
CLAIMS: list[Any] = [
    10**6, 10**9, 10**12, 2**63 - 1, 2**63, 0, -1, 1.5, True, "7", None,
]  # fmt: skip

#: Each kind of array that a store may hold, by the family that reads it.
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
        array[...] = np.array(list("abc")) if name == "names" else np.full(shape, 0.5).astype(dtype)


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
    """Refused, or evaluated as if nothing were wrong; in a few seconds."""
    began = time.perf_counter()
    try:
        run(folder, family, **options)
    except UqevalError as error:
        assert len(str(error)) < 2000, what
    except Exception as error:
        raise AssertionError(f"{what}: {error!r}") from error
    assert time.perf_counter() - began < 10, what


def all_claims(folder: Path) -> int:
    """Every claim in every place of every store; how many there were."""
    count = 0
    for number, (arrays, family) in enumerate(STORES):
        for form, shards in ((3, False), (2, False), (3, True)):
            store = folder / f"{number}{form}{shards}"
            write(store, arrays, form, shards)
            run(store, family)
            for k, what in enumerate(cases(store)):
                if k % 7 != number:  # a fixed seventh of them: all take a minute
                    continue
                # Every other one with holes allowed: nothing on disk bounds the shape then.
                fill = "fill" if k % 2 else "error"
                evaluate(store, family, f"{store.name} {what}", missing_chunks=fill)
                count += 1
    return count


def test_claims_in_every_dimension_of_every_array(tmp_path: Path) -> None:
    program = (
        f"import pathlib, sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import test_sizes; print(test_sizes.limited(pathlib.Path({str(tmp_path)!r})))"
    )
    done = run_script(program, cwd=tmp_path)
    assert done.status == 0, done.stderr[-3000:]
    count, megabytes = map(int, done.stdout.split())
    assert count > 380
    assert megabytes < 900  # libraries and kernels take 300


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


def npy(path: Path, shape: str, descr: str = "<f4", data: bytes = b"") -> Path:
    """A .npy file whose header is written as it is given."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
    return path


@pytest.mark.parametrize("claim", CLAIMS)
def test_claims_in_headers_of_npy(tmp_path: Path, claim: Any) -> None:
    for shape in (f"({claim!r},)", f"({claim!r}, 4)", f"(0, {claim!r})", f"(2, 2, {claim!r}, 4)"):
        path = npy(tmp_path / "a.npy", shape)
        for role in ("predictions", "labels", "target"):
            with pytest.raises(StoreError):
                uqeval.stores.store.open_store(path, role=role)  # type: ignore[attr-defined]


def test_text_of_no_letters_is_no_array(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no values"):
        open_npy(str(npy(tmp_path / "a.npy", f"({10**12},)", "<U0")))


def test_a_header_that_claims_to_be_long(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1))
    with pytest.raises(StoreError, match="header claims 4294967295 bytes"):
        open_npy(str(tmp_path / "a.npy"))


@pytest.mark.parametrize("size", [0, 10**6, 2**31 - 1, 2**32 - 1])
def test_claims_in_headers_of_images(tmp_path: Path, size: int) -> None:
    for width, height in ((size, 4), (4, size), (size, size)):
        sizes = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
        head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + sizes
        (tmp_path / "a.png").write_bytes(head + bytes(50))
        (tmp_path / "a.pfm").write_bytes(f"Pf\n{width} {height}\n-1.0\n".encode() + bytes(64))
        (tmp_path / "a.flo").write_bytes(b"PIEH" + struct.pack("<II", width, height) + bytes(128))
        for name, reader in (("a.png", PngArray), ("a.pfm", PfmArray), ("a.flo", FloArray)):
            with pytest.raises(StoreError):
                reader(tmp_path / name)  # type: ignore[operator]


def test_more_classes_than_can_be_told_apart_are_refused_at_once() -> None:
    probs = np.broadcast_to(np.float32(1 / 70_000), (1, 70_000, 4, 4))
    began = time.perf_counter()
    with pytest.raises(StoreError, match="70,000 classes, expected at most 65,535"):
        uqeval.evaluate(probs, np.zeros((1, 4, 4), np.int32), ["segmentation"])
    assert time.perf_counter() - began < 10


def test_names_of_many_classes_are_compared_in_one_go() -> None:
    from uqeval.inputs.classes import _shared_names

    began = time.perf_counter()
    assert _shared_names([str(c) for c in range(65_535)], "here") == []
    assert time.perf_counter() - began < 2  # it took minutes
    (told,) = _shared_names(["a"] * 65_535, "here")
    assert len(told) < 200


def test_counts_that_do_not_fit_the_memory_are_refused() -> None:
    classes = 40_000
    probs = np.full((1, 2, classes, 2, 2), 1 / classes, np.float32)
    labels = np.zeros((1, 2, 2), np.uint16)
    with pytest.raises(UsageError, match=r"--memory 200MB.*counts of .*40,000 classes.*Give --mem"):
        uqeval.evaluate(probs, labels, ["failure"], memory="200MB", workers=1)
