"""Claims of absurd sizes are refused before anything is built of them, in time and memory."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claims import CLAIMS
from command import run_script

import uqeval
from uqeval.errors import StoreError, UsageError
from uqeval.stores.array import Store
from uqeval.stores.class_ids import names_of_classes
from uqeval.stores.files.numpy_files import open_npy
from uqeval.stores.files.pfm_array import PfmArray
from uqeval.stores.files.png_array import PngArray
from uqeval.stores.store import open_store
from uqeval.stores.video.flow_files import FloArray


def test_claims_in_every_dimension_of_every_array(tmp_path: Path) -> None:
    program = f"import claims, pathlib; print(claims.limited(pathlib.Path({str(tmp_path)!r})))"
    done = run_script(program, cwd=tmp_path)
    assert done.status == 0, done.stderr[-3000:]
    count, megabytes = map(int, done.stdout.split())
    assert count > 380
    assert megabytes < 900  # libraries and kernels take 300


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
                open_store(path, role=role)


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
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match="70,000 classes, expected at most 65,535"):
            uqeval.evaluate(probs, np.zeros((1, 4, 4), np.int32), ["segmentation"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * 70_000 * 8  # far below a matrix of classes


class Name(str):
    """A name of a class that counts how often names are compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_names_of_many_classes_are_compared_in_one_go() -> None:
    def warnings(*stores: list[Any]) -> list[str]:
        given = [Store(str(i), {}, None, {"class_names": own}) for i, own in enumerate(stores)]
        return names_of_classes(None, given, len(stores[0]))[1]

    names = [Name(f"c{c}") for c in range(2000)]
    assert warnings(names, names) == []
    assert warnings([*names, names[0]])
    assert Name.compared < 4 * len(names)  # pairs would be two million
    (message,) = warnings(["a"] * 65_535)
    assert len(message) < 200


def test_counts_that_do_not_fit_the_memory_are_refused() -> None:
    classes = 40_000
    probs = np.full((1, 2, classes, 2, 2), 1 / classes, np.float32)
    labels = np.zeros((1, 2, 2), np.uint16)
    with pytest.raises(UsageError, match=r"memory=200MB.*counts of .*40,000 classes.*Give mem"):
        uqeval.evaluate(probs, labels, ["failure"], memory="200MB", workers=1)
