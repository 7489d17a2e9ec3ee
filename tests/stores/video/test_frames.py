"""Frames of videos: images in a folder, stored arrays, and other files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from group_files import group
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from scenes import Chunked

from uqeval.errors import StoreError
from uqeval.stores.array import ItemArray, Store
from uqeval.stores.video.frames import Frames, StoredFrames, open_frames

RGB = np.random.default_rng(0).integers(0, 256, (5, 6, 7, 3), np.uint8)


def save(path: Path, values: Any = RGB[0], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = values if isinstance(values, Image.Image) else Image.fromarray(values)
    image.save(path, **options)
    return path


def frames_refused(path: Any, *words: str, act: Callable[[Frames], object] = len) -> None:
    refused(lambda: act(open_frames(path)), *words, error=StoreError)


def first(frames: Frames) -> object:
    return frames.read(0)


def is_video(frames: Frames, names: tuple[str, ...] | None) -> None:
    assert len(frames) == 5 and frames.names == names
    for i in range(5):
        found = frames.read(i)
        assert found.dtype == np.uint8 and found.flags.c_contiguous
        np.testing.assert_array_equal(found, RGB[i])
        assert frames.size(i) == (6, 7)
    assert not frames.sequential
    assert frames.fingerprint() == frames.fingerprint()


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".TIFF", ".ppm"])
def test_images_in_natural_order(tmp_path: Path, suffix: str) -> None:
    for i in reversed(range(5)):
        save(tmp_path / f"b/f{i + 8}{suffix}", RGB[i])
    frames = open_frames(tmp_path)
    is_video(frames, tuple(f"b/f{i + 8}" for i in range(5)))
    assert frames.where_of(0) == str(tmp_path / f"b/f8{suffix}")
    assert frames.where == str(tmp_path)
    assert not frames.arrays


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg", ".webp"])
def test_lossy_images(tmp_path: Path, suffix: str) -> None:
    even = np.full((16, 16, 3), (200, 100, 50), np.uint8)
    save(tmp_path / f"a1{suffix}", even)
    found = open_frames(tmp_path).read(0)
    assert found.shape == (16, 16, 3)
    assert np.abs(found.astype(int) - even).max() < 6


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_modes_become_rgb(tmp_path: Path, mode: str) -> None:
    image = Image.fromarray(RGB[0]).convert(mode)
    save(tmp_path / ("a1.tif" if mode == "CMYK" else "a1.png"), image)
    np.testing.assert_array_equal(open_frames(tmp_path).read(0), np.asarray(image.convert("RGB")))


def test_alpha_is_dropped_and_hides_nothing(tmp_path: Path) -> None:
    rgba = np.concatenate([RGB[0], np.zeros((6, 7, 1), np.uint8)], axis=-1)
    save(tmp_path / "a1.png", rgba)
    np.testing.assert_array_equal(open_frames(tmp_path).read(0), RGB[0])


def test_a_palette_with_transparent_colours(tmp_path: Path) -> None:
    image = Image.fromarray(RGB[0]).quantize(8)
    save(tmp_path / "a1.png", image, transparency=bytes([0, 128, 255]))
    found = open_frames(tmp_path).read(0)  # warnings are errors here
    np.testing.assert_array_equal(found, np.asarray(image.convert("RGB")))


def test_exif_does_not_rotate(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    save(tmp_path / "a1.jpg", RGB[0], exif=exif)
    frames = open_frames(tmp_path)
    assert frames.size(0) == (6, 7) and frames.read(0).shape == (6, 7, 3)


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_deep_images_are_refused(tmp_path: Path, dtype: Any) -> None:
    save(tmp_path / "a1.tif", np.ones((6, 7), dtype))
    frames_refused(tmp_path, "a1.tif", "more than 8 bits", "0 … 255", act=first)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".tif", ".webp", ".ppm"])
def test_files_cut_short_or_of_nothing(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"f/a1{suffix}", np.tile(RGB[0], (20, 20, 1)))
    data = path.read_bytes()
    for n in (0, 1, 20, len(data) // 2, len(data) - len(data) // 20):
        path.write_bytes(data[:n])
        frames_refused(tmp_path / "f", f"a1{suffix}", "cut short", "Copy it again", act=first)
    path.write_bytes(b"no image at all, but text" * 9)
    frames_refused(tmp_path / "f", f"a1{suffix}", act=first)
    frames_refused(tmp_path / "f", f"a1{suffix}", act=lambda f: f.size(0))


@given(st.data())
def test_a_damaged_png_never_reads_as_other_pixels(data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = save(Path(folder) / "a1.png")
        good = bytearray(path.read_bytes())
        at = data.draw(st.integers(0, len(good) - 13))  # IEND says nothing
        good[at] ^= data.draw(st.integers(1, 255))
        path.write_bytes(bytes(good))
        try:
            found = open_frames(folder).read(0)
        except StoreError:
            return
        np.testing.assert_array_equal(found, RGB[0])


def test_files_without_an_image(tmp_path: Path) -> None:
    """Pillow's message of unknown bytes names an object in memory."""
    for content, reason in ((b"", "is empty"), (b"GIF8 no image", "of no known image format")):
        (tmp_path / "a1.png").write_bytes(content)
        frames = open_frames(tmp_path)
        with pytest.raises(StoreError, match=reason) as caught:
            frames.read(0)
        assert "a1.png" in str(caught.value) and "object at" not in str(caught.value)


def test_huge_images(tmp_path: Path) -> None:
    path = save(tmp_path / "a1.bmp")
    data = bytearray(path.read_bytes())
    data[18:26] = (30_000).to_bytes(4, "little") * 2
    path.write_bytes(bytes(data))
    frames_refused(tmp_path, "a1.bmp", act=first)


def test_files_that_go_away(tmp_path: Path) -> None:
    path = save(tmp_path / "a1.png")
    frames = open_frames(tmp_path)
    path.unlink()
    for act in (frames.read, frames.size, lambda _: frames.fingerprint()):
        with pytest.raises(StoreError, match=r"a1\.png"):
            act(0)


def test_fingerprints_tell_a_change(tmp_path: Path) -> None:
    path = save(tmp_path / "a1.png")
    one = open_frames(tmp_path).fingerprint()
    os.utime(path, ns=(0, 0))
    two = open_frames(tmp_path).fingerprint()
    path.rename(tmp_path / "a2.png")
    assert len({one, two, open_frames(tmp_path).fingerprint()}) == 3


def test_folders_that_are_no_video(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    frames_refused(tmp_path / "f", "holds no images", ".png")
    (tmp_path / "f/notes.txt").write_text("a")
    frames_refused(tmp_path / "f", "holds no images")
    save(tmp_path / "f/1.png")
    save(tmp_path / "f/1.bmp")
    frames_refused(tmp_path / "f", "1.bmp and 1.png are both the frame '1'")
    frames_refused(tmp_path / "none", "there is nothing here", "video file")
    frames_refused(tmp_path / "f/notes.txt", "notes.txt has an unknown format", ".mp4")
    frames_refused(tmp_path / "none.npy", "there is nothing here")


@pytest.mark.parametrize("chunks", [(1, 6, 7, 3), (2, 3, 7, 3), (5, 6, 7, 1)])
@pytest.mark.parametrize("form", [2, 3])
def test_zarr(tmp_path: Path, chunks: tuple[int, ...], form: int) -> None:
    names = ["f1", "f2", "f3", "f4", "f5"]
    path = group(tmp_path / "v.zarr", {"frames": (RGB, {"chunks": chunks})}, form=form, names=names)
    frames = open_frames(path)
    is_video(frames, tuple(names))
    assert "frames, frame f3" in frames.where_of(2)
    assert [a.where for a in frames.arrays] == [str(path / "frames")]


def test_zarr_axes_by_name(tmp_path: Path) -> None:
    for k, last in enumerate(["channel", "rgb", "c"]):
        options = {"dimension_names": ("time", last, "y", "x")}
        path = group(tmp_path / f"{k}.zarr", {"frames": (RGB.transpose(0, 3, 1, 2), options)})
        is_video(open_frames(path), None)
    path = group(
        tmp_path / "bad.zarr", {"frames": (RGB, {"dimension_names": ("time", "t", "y", "x")})}
    )
    frames_refused(path, "frames", "[item, y, x, channel]")


def test_numpy_files_and_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", RGB)
    np.savez(tmp_path / "v.npz", frames=RGB, predictions=RGB[..., 0])
    np.savez_compressed(tmp_path / "bare.npz", RGB)
    for given_as in (tmp_path / "v.npy", tmp_path / "v.npz", str(tmp_path / "bare.npz"), RGB):
        is_video(open_frames(given_as), None)
    assert open_frames(RGB).where_of(3).endswith("frame 3")


def test_items_of_their_own_groups(tmp_path: Path) -> None:
    import zarr

    root = zarr.create_group(str(tmp_path / "v.zarr"))
    for name, size in {"a1": 4, "a2": 6}.items():
        array = root.create_array(f"items/{name}/frames", shape=(size, 5, 3), dtype="u1")
        array[...] = size
    frames = open_frames(tmp_path / "v.zarr")
    assert frames.names == ("a1", "a2")
    assert [frames.size(i) for i in range(2)] == [(4, 5), (6, 5)]
    assert (frames.read(1) == 6).all() and len(frames.arrays) == 2


def test_a_chunk_of_several_frames_is_decoded_once() -> None:
    array = Chunked(RGB, (2, 6, 7, 3), ("item", "y", "x", "class"))
    store = Store("here", {"frames": tuple(ItemArray(array, i) for i in range(5))})
    frames = StoredFrames(store)
    is_video(frames, None)
    assert array.every_chunk_once()
    assert frames.kept_bytes() == 2 * 2 * 6 * 7 * 3


def test_missing_chunks(tmp_path: Path) -> None:
    values = RGB.copy()
    values[2] = 0
    path = group(tmp_path / "v.zarr", {"frames": (values, {"chunks": (1, 6, 7, 3)})})
    frames = open_frames(path)
    assert [a.missing() for a in frames.arrays] == [[(2, 0, 0, 0)]]
    with pytest.raises(StoreError):
        frames.read(2)
    assert not open_frames(path, fill_missing=True).read(2).any()


def test_stores_that_are_no_video(tmp_path: Path) -> None:
    path = group(tmp_path / "p.zarr", {"predictions": RGB[..., 0]})
    frames_refused(path, "holds predictions, but no array `frames`", "video file")
    frames_refused(RGB.transpose(0, 3, 1, 2), "7 channels", "red, green and blue last")
    frames_refused(RGB[..., :2], "2 channels")
    frames_refused(RGB.astype("f4"), "float32", "uint8")
    frames_refused(RGB.astype("i8"), "int64", "uint8")
    frames_refused(RGB[0], "(6, 7, 3)", "[N, H, W, 3]")
    frames_refused(RGB[:0], "no items")
    frames_refused(group(tmp_path / "g.zarr", {"frames": RGB[..., 0]}), "[item, y, x, channel]")


@given(arrays(np.uint8, st.tuples(*[st.integers(1, 5)] * 2, st.just(3))))
def test_pixels_come_back(values: np.ndarray) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "f1.png", values)
        np.testing.assert_array_equal(open_frames(folder).read(0), values)
