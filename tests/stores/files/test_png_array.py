"""PNGs of class ids: every kind is read as the ids it holds, colours are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from png_files import ALL, IDS, save

from uqeval.errors import StoreError
from uqeval.stores.files.png_array import PngArray


@pytest.mark.parametrize("mode", ["L", "P"])
def test_grey_and_palette(tmp_path: Path, mode: str) -> None:
    array = PngArray(save(tmp_path / "a.png", mode=mode))
    assert array.dtype == np.uint8
    assert array.shape == array.chunks == (2, 3)
    assert array.read(ALL).tolist() == IDS.tolist()
    assert array.read(np.s_[1:2, 0:2]).tolist() == [[3, 1]]


def test_16_bit(tmp_path: Path) -> None:
    ids = np.array([[0, 300], [65535, 255]], np.uint16)
    array = PngArray(save(tmp_path / "a.png", ids))
    assert array.dtype == np.uint16
    assert array.read(ALL).dtype == np.uint16
    assert array.read(ALL).tolist() == ids.tolist()


def test_1_bit(tmp_path: Path) -> None:
    array = PngArray(save(tmp_path / "a.png", np.array([[0, 255], [255, 0]], np.uint8), "1"))
    assert array.read(ALL).tolist() == [[0, 1], [1, 0]]
    assert array.read(ALL).dtype == np.uint8


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("palette", [False, True])
def test_ids_packed_into_few_bits_are_not_stretched(
    tmp_path: Path, bits: int, palette: bool
) -> None:
    ids = np.arange(2**bits, dtype=np.uint8)[None]
    if palette:
        save(tmp_path / "a.png", ids, "P", bits=bits)
    else:
        grey_png(tmp_path / "a.png", ids, bits)
    assert (tmp_path / "a.png").read_bytes()[24] == bits
    assert PngArray(tmp_path / "a.png").read(ALL).tolist() == ids.tolist()


def grey_png(path: Path, ids: np.ndarray, bits: int) -> None:
    """Pillow writes grey of 8 and 16 bits only, other tools pack small ids."""
    import struct
    import zlib

    def block(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    rows = b""
    for row in ids:
        text = "".join(f"{value:0{bits}b}" for value in row)
        text += "0" * (-len(text) % 8)
        rows += b"\0" + int(text, 2).to_bytes(len(text) // 8, "big")
    head = struct.pack(">IIBBBBB", ids.shape[1], ids.shape[0], bits, 0, 0, 0, 0)
    body = block(b"IHDR", head) + block(b"IDAT", zlib.compress(rows)) + block(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


@pytest.mark.parametrize(("mode", "words"), [("RGB", "RGB,"), ("RGBA", "RGBA,"), ("LA", "LA")])
def test_colours_are_refused(tmp_path: Path, mode: str, words: str) -> None:
    save(tmp_path / "a.png", mode=mode)
    with pytest.raises(StoreError, match=rf"a\.png is .*{words}.*palette PNG"):
        PngArray(tmp_path / "a.png")


@pytest.mark.parametrize("keep", [33, 60, 1000, -40])
def test_cut_short(tmp_path: Path, keep: int) -> None:
    file = save(tmp_path / "a.png", np.random.default_rng(0).integers(0, 19, (50, 60), np.uint8))
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(StoreError, match=r"a\.png is damaged or cut short"):
        PngArray(file).read(ALL)


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n", b"GIF89a" + bytes(40), bytes(40)])
def test_what_is_no_png(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(StoreError, match=r"a\.png is (cut short|not a PNG)"):
        PngArray(tmp_path / "a.png")


def test_damaged_pixels(tmp_path: Path) -> None:
    file = save(tmp_path / "a.png", np.random.default_rng(0).integers(0, 19, (50, 60), np.uint8))
    data = bytearray(file.read_bytes())
    data[200:220] = bytes(20)
    file.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        PngArray(file).read(ALL)


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    """Pillow compares no checksum of the pixels: every seventh flip gave other ids."""
    ids = np.random.default_rng(0).integers(0, 3, (20, 30), np.uint8)
    data = save(tmp_path / "a.png", ids).read_bytes()
    for at in range(len(data)):
        (tmp_path / "b.png").write_bytes(
            data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
        )
        with pytest.raises(StoreError):
            PngArray(tmp_path / "b.png").read(ALL)


def test_sizes_made_to_fill_the_memory(tmp_path: Path) -> None:
    file = save(tmp_path / "a.png")
    data = bytearray(file.read_bytes())
    data[16:24] = (100_000).to_bytes(4, "big") * 2
    file.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="100000 × 100000"):
        PngArray(file)


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    array = PngArray(save(tmp_path / "a.png"))
    save(tmp_path / "a.png", IDS.T.copy())
    with pytest.raises(StoreError, match="changed"):
        array.read(ALL)


def test_size_and_fingerprint(tmp_path: Path) -> None:
    one, two = PngArray(save(tmp_path / "a.png")), PngArray(save(tmp_path / "b.png"))
    other = PngArray(save(tmp_path / "c.png", IDS + 1))
    assert one.stored_bytes() == (tmp_path / "a.png").stat().st_size
    assert one.fingerprint() == two.fingerprint() != other.fingerprint()
