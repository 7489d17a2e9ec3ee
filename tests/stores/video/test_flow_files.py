"""Optical flow from files and arrays: every format the same numbers, everything else refused."""

from __future__ import annotations

import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from command import refused
from group_files import group
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from png_files import save

from uqeval.errors import StoreError
from uqeval.stores.video.flow_files import Flows, open_flows
from uqeval.stores.video.sequences import sequences_of

NAMES = ("s_1", "s_2", "s_3")
FLOW = np.random.default_rng(0).integers(-2000, 2000, (2, 4, 5, 2)).astype("f4") / 64


def flo(path: Path, flow: np.ndarray, head: bytes = b"PIEH") -> None:
    h, w = flow.shape[:2]
    path.write_bytes(head + struct.pack("<ii", w, h) + flow.astype("<f4").tobytes())


def kitti(path: Path, flow: np.ndarray) -> None:
    known = np.isfinite(flow).all(-1)
    values = np.where(known[..., None], flow * 64 + 2**15, 0)
    image = np.concatenate([known[..., None], values[..., ::-1]], -1).astype(np.uint16)
    assert cv2.imwrite(str(path), image)


def pfm(path: Path, flow: np.ndarray, scale: str = "-1", magic: str = "PF") -> None:
    h, w = flow.shape[:2]
    order = "<f4" if scale.startswith("-") else ">f4"
    values = np.concatenate([flow, np.full((h, w, 1), 7)], -1)[::-1].astype(order)
    path.write_bytes(f"{magic}\n{w} {h}\n{scale}\n".encode() + values.tobytes())


def npy(path: Path, flow: np.ndarray) -> None:
    np.save(path, flow)


WRITERS = {".flo": flo, ".png": kitti, ".pfm": pfm, ".npy": npy}


def flows(path: Any, names: Any = NAMES, frames: int = 3, **options: Any) -> Flows:
    pairs = sequences_of(names, frames, "here").pairs
    return open_flows(path, pairs, names, frames, **options)


def is_flow(found: Flows, expected: Any = FLOW) -> None:
    assert len(found) == len(expected)
    for i, flow in enumerate(expected):
        got = found.read(i)
        assert got.dtype in (np.float32, np.float64)
        assert got.flags.c_contiguous and got.flags.writeable
        np.testing.assert_array_equal(got, flow)
        assert found.size(i) == flow.shape[:2]
    assert found.fingerprint() == found.fingerprint()


def flow_refused(path: Any, *words: str, read: bool = False, **options: Any) -> None:
    def open_it() -> None:
        found = flows(path, **options)
        if read:
            found.read(0)

    refused(open_it, *words, error=StoreError)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("ending", ["", "_flow"])
def test_files_are_those_of_the_later_frame(tmp_path: Path, suffix: str, ending: str) -> None:
    for name, flow in zip(NAMES, [FLOW[0] + 1, *FLOW], strict=True):
        WRITERS[suffix](tmp_path / f"{name}{ending}{suffix}", flow)
    found = flows(tmp_path)
    is_flow(found)
    assert found.where == str(tmp_path)
    assert found.where_of(0) == str(tmp_path / f"s_2{ending}{suffix}")
    assert len(found.arrays) == 2 and all(part.index is None for part in found.parts)
    assert found.arrays[0].stored_bytes() > 0


@pytest.mark.parametrize(
    ("names", "file"),
    [
        (("a/s_1.png", "a/s_2.png"), "s_2.flo"),
        (("a/1", "a/2", "b/1", "b/2"), "{}/2.flo"),
        (("x_1_leftImg8bit.png", "x_2_leftImg8bit.png"), "x_2_leftImg8bit_flow.flo"),
        (("x_1_leftImg8bit", "x_2_leftImg8bit"), "deep/x_2.flo"),
        (("1_flow", "2_flow"), "2_flow.flo"),
    ],
)
def test_names_and_files_that_match(tmp_path: Path, names: tuple[str, ...], file: str) -> None:
    expected = FLOW[: len(names) // 2]
    for folder, flow in zip("ab", expected, strict=False):
        path = tmp_path / file.format(folder)
        path.parent.mkdir(exist_ok=True)
        flo(path, flow)
    is_flow(flows(tmp_path, names, len(names)), expected)


def test_flow_of_another_sequence(tmp_path: Path) -> None:
    """Nothing tells whether one folder on either side is another sequence: a warning names both."""
    names = tuple(f"seq2/cam0/{i}" for i in (1, 2, 3))
    for sequence, count in (("seq1", 1), ("seq2", 0)):
        for name, flow in zip(names[1:], FLOW, strict=True):
            path = (tmp_path / name.replace("seq2", sequence)).with_suffix(".flo")
            path.parent.mkdir(parents=True, exist_ok=True)
            flo(path, flow)
        found = flows(tmp_path, names)
        is_flow(found)
        assert len(found.warnings) == count
        assert all("2 items and their optical flow files" in text for text in found.warnings)


def test_frames_without_names_take_files_in_order(tmp_path: Path) -> None:
    for i, flow in zip((9, 10), FLOW, strict=True):
        flo(tmp_path / f"{i}.flo", flow)
    is_flow(flows(tmp_path, None))
    pairs = sequences_of(None, 3, "here").pairs[1:]
    is_flow(open_flows(tmp_path, pairs, None, 3), FLOW[1:])
    flow_refused(
        tmp_path, "has 2 files", "expected 3 for 4 frames", "--names", names=None, frames=4
    )


def test_files_are_never_guessed(tmp_path: Path) -> None:
    flow_refused(tmp_path, "holds no optical flow", ".flo")
    flo(tmp_path / "s_2.flo", FLOW[0])
    flo(tmp_path / "other_3.flo", FLOW[1])
    flow_refused(tmp_path, "1 of 2 items have no optical flow: s_3")
    flo(tmp_path / "s_3.flo", FLOW[1])
    is_flow(flows(tmp_path))
    npy(tmp_path / "s_3_flow.npy", FLOW[1])
    flow_refused(tmp_path, "'s_3' could have the optical flow")


def test_unknown_flow(tmp_path: Path) -> None:
    flow = np.zeros((2, 3, 2), "f4")
    flow[0] = [[1e10, 0], [3, -2e9], [np.nan, 1]]
    flow[1] = [[np.inf, 1], [1e9, -1e9], [1, 2]]
    expected = flow.copy()
    expected[0], expected[1, 0] = np.nan, np.nan
    for suffix in (".flo", ".pfm", ".npy"):
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        WRITERS[suffix](folder / f"2{suffix}", flow)
        is_flow(flows(folder, ("1", "2"), 2), [expected])
    is_flow(flows(flow.astype("f8")[None] * 1.0, None, 2), [expected])
    huge = np.full((1, 2, 3, 2), 1e300)
    assert np.isnan(flows(huge, None, 2).read(0)).all()
    flow[np.isnan(expected)] = np.inf
    flow[1, 1] = 2
    half = flows(flow.astype("f2")[None], None, 2).read(0)
    assert np.isnan(half[0]).all() and half[1, 2].tolist() == [1, 2]


def test_kitti_where_it_is_unknown(tmp_path: Path) -> None:
    flow = FLOW[0].copy()
    flow[1, 2] = np.nan
    kitti(tmp_path / "2.png", flow)
    is_flow(flows(tmp_path, ("1", "2"), 2), [flow])


def test_kitti_keeps_all_16_bits(tmp_path: Path) -> None:
    stored = np.array([[[1, 0, 65535], [0, 5, 5], [65535, 32768, 32769]]], np.uint16)
    assert cv2.imwrite(str(tmp_path / "2.png"), stored)
    found = flows(tmp_path, ("1", "2"), 2).read(0)
    np.testing.assert_array_equal(found, [[[32767 / 64, -512], [np.nan] * 2, [1 / 64, 0]]])


@pytest.mark.parametrize("scale", ["-1", "1.0", "-0.5"])
def test_pfm_scale_and_order(tmp_path: Path, scale: str) -> None:
    pfm(tmp_path / "2.pfm", FLOW[0], scale)
    is_flow(flows(tmp_path, ("1", "2"), 2), FLOW[:1])


FLO = b"PIEH" + struct.pack("<ii", 5, 4)


@pytest.mark.parametrize(
    ("file", "data", "words"),
    [
        ("2.flo", b"", "cut short"),
        ("2.flo", FLO[:11], "cut short"),
        ("2.flo", b"PI", "cut short"),
        ("2.flo", b"HEIP" + FLO[4:] + bytes(160), "not a .flo file"),
        ("2.flo", FLO + bytes(159), "171 bytes, but the flow of 5 × 4 pixels takes 172"),
        ("2.flo", FLO + bytes(161), "173 bytes"),
        ("2.flo", b"PIEH" + struct.pack("<ii", 0, 4), "0 × 4"),
        ("2.flo", b"PIEH" + struct.pack("<ii", -5, -4) + bytes(160), "-5 × -4"),
        ("2.flo", b"PIEH" + struct.pack("<ii", 2**31 - 1, 2**31 - 1), "Copy it again"),
        ("2.pfm", b"Pf\n5 4\n-1\n" + bytes(80), "is a grey PFM"),
        ("2.pfm", b"PF\n5 4\n-1\n" + bytes(239), "make 250"),
        ("2.pfm", b"PF\n5 4\n0\n" + bytes(240), "scale 0"),
        ("2.pfm", b"P6\n5 4\n255\n" + bytes(60), "not a PFM file"),
        ("2.png", b"text", "not a PNG file"),
        ("2.png", b"\x89PNG\r\n\x1a\n", "cut short"),
        ("2.npy", b"\x93NUMPY", "not a NumPy file"),
    ],
)
def test_bad_files(tmp_path: Path, file: str, data: bytes, words: str) -> None:
    (tmp_path / file).write_bytes(data)
    flow_refused(tmp_path, file, words, names=("1", "2"), frames=2)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (FLOW[0].transpose(2, 0, 1), "dx and dy seem to come first"),
        (FLOW[0][..., :1], "dx and dy last"),
        (np.zeros((4, 5, 3)), "(4, 5, 3)"),
        (FLOW[:1], "(1, 4, 5, 2)"),
        (FLOW[0, ..., 0], "(4, 5)"),
        (FLOW[0].astype("i4"), "int32"),
        (FLOW[0].astype("u2"), "uint16"),
        (FLOW[0] > 0, "bool"),
        (FLOW[0].astype("c8"), "complex64"),
    ],
)
def test_bad_arrays_in_files(tmp_path: Path, values: Any, words: str) -> None:
    np.save(tmp_path / "2.npy", values)
    flow_refused(tmp_path, "2.npy", words, names=("1", "2"), frames=2)


def test_pictures_of_flow_are_refused(tmp_path: Path) -> None:
    for k, ids in enumerate([np.zeros((4, 5, 3), "u1"), np.zeros((4, 5), "u1")]):
        save(tmp_path / f"{k}/2.png", ids)
        flow_refused(tmp_path / str(k), "8-bit", "16-bit RGB", names=("1", "2"), frames=2)
    save(tmp_path / "16/2.png", np.zeros((4, 5), "u2"))
    flow_refused(tmp_path / "16", "16-bit grey", names=("1", "2"), frames=2)


@given(st.data())
def test_a_damaged_kitti_png_never_reads_as_other_flow(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "2.png"
        kitti(path, FLOW[0])
        good = path.read_bytes()
        if data.draw(st.booleans()):
            path.write_bytes(good[: data.draw(st.integers(0, len(good) - 1))])
        else:
            at = data.draw(st.integers(0, len(good) - 1))
            flipped = bytes([good[at] ^ data.draw(st.integers(1, 255))])
            path.write_bytes(good[:at] + flipped + good[at + 1 :])
        flow_refused(folder, "2.png", read=True, names=("1", "2"), frames=2)


def test_a_kitti_png_of_too_few_rows(tmp_path: Path) -> None:
    def block(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    header = struct.pack(">IIBBBBB", 5, 4, 16, 2, 0, 0, 0)
    rows = zlib.compress(bytes(31 * 2))
    data = block(b"IHDR", header) + block(b"IDAT", rows) + block(b"IEND", b"")
    (tmp_path / "2.png").write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    flow_refused(tmp_path, "damaged", read=True, names=("1", "2"), frames=2)


@pytest.mark.parametrize("suffix", WRITERS)
def test_files_that_change_or_go(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"2{suffix}"
    WRITERS[suffix](path, FLOW[0])
    changed = flows(tmp_path, ("1", "2"), 2)
    WRITERS[suffix](path, FLOW[0, :3])
    gone = flows(tmp_path, ("1", "2"), 2)
    with pytest.raises(StoreError, match=f"2{suffix}"):
        changed.read(0)
    path.unlink()
    with pytest.raises(StoreError, match=f"2{suffix}"):
        gone.read(0)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("chunks", [(1, 4, 5, 2), (2, 4, 5, 2), (2, 2, 2, 1)])
def test_zarr(tmp_path: Path, dtype: str, chunks: tuple[int, ...]) -> None:
    flow = FLOW.astype(dtype)
    rgb = np.ones((3, 4, 5, 3), "u1")
    arrays = {"flow": (flow, {"chunks": chunks}), "flow_forward": flow + 1, "frames": rgb}
    path = group(tmp_path / "v.zarr", arrays, names=list(NAMES))
    is_flow(flows(path), flow.astype("f4"))
    is_flow(flows(path, kind="flow_forward"), (flow + 1).astype("f4"))
    assert flows(path).where_of(1) == f"{path / 'flow'}, row 1"


def test_zarr_axes_by_name(tmp_path: Path) -> None:
    for k, dims in enumerate([("pair", "uv", "y", "x"), ("n", "component", "h", "w")]):
        value = (FLOW.transpose(0, 3, 1, 2), {"dimension_names": dims})
        is_flow(flows(group(tmp_path / f"{k}.zarr", {"flow": value})))


def test_numpy_files_and_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", FLOW)
    np.savez(tmp_path / "f.npz", flow=FLOW, flow_forward=FLOW + 1)
    for path in (tmp_path / "f.npy", str(tmp_path / "f.npz"), FLOW):
        is_flow(flows(path))
    is_flow(flows(tmp_path / "f.npz", kind="flow_forward"), FLOW + 1)
    is_flow(flows(tmp_path / "f.npy", kind="flow_forward"))  # a bare array is what is asked for


def test_rows_are_those_of_neighbours_in_the_store() -> None:
    flow = np.concatenate([FLOW, FLOW + 1])[:3]
    found = flows(flow, ("a_1", "a_2", "b_1", "b_2"), 4)
    is_flow(found, flow[[0, 2]])  # row 1 lies between two sequences
    pairs = sequences_of(NAMES, 3, "here").pairs
    is_flow(open_flows(FLOW, pairs[1:], NAMES, 3), FLOW[1:])
    flow_refused(FLOW, "frame 0 follows frame 1", "in the order of their numbers",
            names=("s_2", "s_1", "s_3"))  # fmt: skip
    flow_refused(FLOW, "the flow of 2 pairs, but 4 frames make 3", names=None, frames=4)
    flow_refused(np.concatenate([FLOW, FLOW])[:3], "3 pairs, but 3 frames make 2", names=None)


def test_stores_that_hold_no_flow(tmp_path: Path) -> None:
    path = group(tmp_path / "v.zarr", {"frames": np.ones((3, 4, 5, 3), "u1")})
    flow_refused(path, "holds frames, but no array `flow`", "--flow-path")
    flow_refused(group(tmp_path / "f.zarr", {"flow": FLOW}), "`flow_forward`", kind="flow_forward")
    flow_refused(FLOW.transpose(0, 3, 1, 2), "dx and dy seem to come first")
    flow_refused(FLOW.astype("i2"), "int16", "pixels")
    flow_refused(FLOW[0], "[N-1, H, W, 2]")
    flow_refused(tmp_path / "none", "there is nothing here")
    (tmp_path / "f.flo5").write_bytes(b"HDF")
    flow_refused(tmp_path / "f.flo5", "f.flo5 has an unknown format")


def test_missing_chunks(tmp_path: Path) -> None:
    flow = FLOW.copy()
    flow[1] = 0
    path = group(tmp_path / "f.zarr", {"flow": (flow, {"chunks": (1, 4, 5, 2)})})
    found = flows(path)
    assert [a.missing() for a in found.arrays] == [[(1, 0, 0, 0)]]
    with pytest.raises(StoreError):
        found.read(1)
    assert not flows(path, fill_missing=True).read(1).any()


FINITE = st.floats(-512, 511.984375, width=32).map(lambda v: round(v * 64) / 64)


@given(arrays(np.float32, st.tuples(*[st.integers(1, 6)] * 2, st.just(2)), elements=FINITE))
def test_all_formats_hold_the_same_numbers(flow: np.ndarray) -> None:
    for suffix, write in WRITERS.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / f"2{suffix}", flow)
            is_flow(flows(folder, ("1", "2"), 2), [flow])


def test_opencv_writes_what_we_read(tmp_path: Path) -> None:
    assert cv2.writeOpticalFlow(str(tmp_path / "2.flo"), FLOW[0])
    is_flow(flows(tmp_path, ("1", "2"), 2), FLOW[:1])
