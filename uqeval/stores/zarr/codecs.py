"""Decode the bytes of a chunk to its values, and refuse damaged chunks.

Decoding uses numcodecs or the standard library directly. The size of each chunk is known from the
metadata; each codec must give this size, which is checked before memory is allocated
(`stores/compression.py`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.files import MOST_BYTES
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.compression import DamagedChunk, check_length, decompress
from uqeval.stores.zarr.source import Buffer

#: The codecs of numcodecs that give bytes or numbers. Others, such as `pickle`, run code from the
#: data.
SAFE = frozenset(
    {"adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta", "zlib", "zstd"}
    | {"fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits"}
    | {"quantize", "shuffle"}
)
_COMPRESSORS = frozenset({"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"})
_CHECKSUMS = frozenset({"adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"})
#: Codecs with the dtypes of their input and output as options.
_DTYPES = ("dtype", "astype", "encode_dtype", "decode_dtype")
#: The largest number of bytes of all names in an array.
_TEXT = 1 << 12
#: Filters after which values may have another dtype.
_RETYPES = frozenset({"astype", "delta", "fixedscaleoffset", "quantize"})
#: Zarr v3 filters that work on values one by one, so that decoding them may ignore the axes.
_FLAT_FILTERS = frozenset({"astype", "bitround", "fixedscaleoffset", "quantize", "transpose"})
_ARRAY_FILTERS = _FLAT_FILTERS | {"delta", "packbits"}


@dataclass(frozen=True)
class Size:
    """The bytes of a chunk between two codecs: `exact` if it is known, and at most `most`."""

    exact: int | None
    most: int


@dataclass(frozen=True)
class Step:
    """One codec; `size` is the required size of its output."""

    id: str
    size: Size
    codec: Any

    def decode(self, data: Any) -> Any:
        """Return the bytes before this codec; raises `DamagedChunk`."""
        if self.codec is None and self.id == "crc32c":
            return checked_crc32c(data)
        exact = self.size.exact
        decoded = decompress(self.id, self.codec, data, exact, self.size.most)
        size = memoryview(decoded).nbytes
        if exact is not None and size != exact:
            raise DamagedChunk(f"unpacks to {size} bytes where the shape needs {exact}")
        check_length(size, self.size.most)
        return decoded


@dataclass(frozen=True)
class ChunkCodec:
    """The decoder of the chunks of an array.

    `stored`: the bytes of a chunk on disk. `raw`: the bytes are the values in this machine's
    format, perhaps with a checksum after them, so a mapped file needs no decoding.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    steps: tuple[Step, ...]
    order: tuple[int, ...]
    stored: Size
    text: bool = False
    rest: Mapping[str, Any] | None = None

    @property
    def raw(self) -> bool:
        """Return whether the bytes are the values; see the class."""
        return (
            all(step.id == "crc32c" for step in self.steps)
            and self.order == tuple(range(len(self.shape)))
            and self.dtype.isnative
            and self.rest is None
            and not self.text
        )

    @property
    def checksum_last(self) -> bool:
        """Return whether the last four bytes of a chunk are a checksum of the others."""
        return bool(self.steps) and self.steps[-1].id == "crc32c"

    def check_length(self, length: int, head: Callable[[int], Buffer | None] | None) -> None:
        """Reject a chunk of `length` bytes as stored: `DamagedChunk`.

        The length is known without compression, and from the header of Blosc if that is the last
        compressor. Of other chunks, only empty ones are detected. `head` returns the first bytes of
        the chunk; None if reading them takes too long.
        """
        if length == 0:
            raise DamagedChunk("is empty")
        steps = list(self.steps)
        body = length
        while steps and steps[-1].id == "crc32c" and steps[-1].codec is None:
            steps.pop()
            body -= 4
        required = None
        if not steps and not self.text and self.rest is None:
            required = math.prod(self.shape) * self.dtype.itemsize
        elif steps and steps[-1].id == "blosc" and head is not None:
            first = memoryview(head(16) or b"")
            required = int.from_bytes(first[12:16], "little") if len(first) == 16 else 16
        if body != required and (required is not None or body <= 0):
            expected = f"expected {length - body + required}" if required else "too few"
            raise DamagedChunk(f"has {length} bytes, {expected}")

    def decode(self, data: Buffer) -> Array:
        """Return the values of one chunk, in native byte order; they may be read-only.

        Raises `DamagedChunk` for damaged bytes.
        """
        for step in reversed(self.steps):
            data = step.decode(data)
        if self.rest is not None:
            return _decode_with_zarr(self.rest, data)
        if self.text:
            return _decode_text(data, math.prod(self.shape)).reshape(self.shape)
        flat = np.frombuffer(memoryview(data), np.uint8)
        expected = math.prod(self.shape) * self.dtype.itemsize
        if flat.size != expected:
            word = "cut short" if flat.size < expected else "too long"
            raise DamagedChunk(f"{word}: {flat.size} of {expected} bytes")
        values: Array = flat.view(self.dtype)
        if not self.dtype.isnative:
            values = values.astype(self.dtype.newbyteorder("="))
        stored = tuple(self.shape[axis] for axis in self.order)
        return values.reshape(stored).transpose(np.argsort(self.order))


def checked_crc32c(data: Buffer) -> memoryview:
    """Return `data` without its trailing CRC-32C. Raises `DamagedChunk` if the checksum does not
    match.
    """
    import google_crc32c

    view = memoryview(data).cast("B")
    if len(view) < 4:
        raise DamagedChunk(f"cut short: {len(view)} of at least 4 bytes")
    body = view[:-4]
    # `asarray` gives the C function the contiguous buffer of bytes that it needs.
    if google_crc32c.value(np.frombuffer(body, np.uint8)) != int.from_bytes(view[-4:], "little"):
        raise DamagedChunk("checksum does not match (bits changed, or the chunk is cut short)")
    return body


def _decode_text(data: Buffer, expected: int) -> Array:
    """Decode variable-length UTF-8: a count, then each string's length and bytes."""
    view = memoryview(data).cast("B")
    texts: list[str] = []
    position = 4
    if (count := int.from_bytes(view[:4], "little")) != expected:
        raise DamagedChunk(f"holds {count} of {expected} strings")
    try:
        for _ in range(count):
            length = int.from_bytes(view[position : position + 4], "little")
            text = bytes(view[position + 4 : position + 4 + length])
            if len(text) != length or position + 4 > len(view):
                raise DamagedChunk("cut short: its strings end early")
            texts.append(text.decode("utf-8"))
            position += 4 + length
    except UnicodeDecodeError as error:
        raise DamagedChunk(f"its strings are not UTF-8 ({cut(error)})") from error
    return np.array(texts, dtype=object)


def _decode_with_zarr(metadata: Mapping[str, Any], data: Buffer) -> Array:
    """Decode a chunk with a codec that only Zarr supports, as a one-chunk array in memory.

    The other codecs of the chunk check its bytes as far as they can.
    """
    import zarr
    from zarr.core.buffer import default_buffer_prototype
    from zarr.storage import MemoryStore

    buffers = default_buffer_prototype().buffer
    key = "/".join(["c", *("0" for _ in metadata["shape"])])
    document = json.dumps(dict(metadata)).encode()
    try:
        store = MemoryStore(
            {"zarr.json": buffers.from_bytes(document), key: buffers.from_bytes(bytes(data))},
            read_only=True,
        )
        values: Array = np.asarray(zarr.open_array(store, mode="r")[...])
    except Exception as error:  # an unknown codec may raise anything
        raise DamagedChunk(f"cannot be unpacked ({cut(error)})") from error
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def codec_v2(
    document: Mapping[str, Any],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    text: bool,
    where: str,
) -> ChunkCodec:
    """Return the decoder that a `.zarray` names; raises `StoreError` for an unknown codec."""
    configs = [dict(config) for config in document.get("filters") or ()]
    if text:
        configs = [config for config in configs if config.get("id") != "vlen-utf8"]
    if compressor := document.get("compressor"):
        configs.append(dict(compressor))
    named = [(str(config.pop("id", "")), config) for config in configs]
    steps, stored = _chain(named, shape, _decoded(shape, dtype, text), where)
    axes = tuple(range(len(shape)))
    if (order := document.get("order")) not in ("C", "F"):
        raise StoreError(
            f"{where}: order is {quoted(order)} in its .zarray, expected 'C' or 'F'. Write the "
            "array again."
        )
    return ChunkCodec(shape, dtype, steps, axes[::-1] if order == "F" else axes, stored, text)


def codec_v3(
    document: Mapping[str, Any],
    codecs: Sequence[Mapping[str, Any]],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    text: bool,
    where: str,
) -> ChunkCodec:
    """Return the decoder for a chain of Zarr v3 codecs; raises `StoreError` for an unknown one."""
    named = [
        (str(codec.get("name")).removeprefix("numcodecs."), dict(codec.get("configuration") or {}))
        for codec in codecs
    ]
    at = next((i for i, (name, _) in enumerate(named) if name in ("bytes", "vlen-utf8")), -1)
    if text and (at < 0 or named[at][0] != "vlen-utf8"):
        raise StoreError(f"{where}: text stored as {named} is not read; use the vlen-utf8 codec.")
    filters, compressors = named[: max(at, 0)], named[at + 1 :]
    for name, _ in filters if at >= 0 else named:
        if at < 0 or name not in _ARRAY_FILTERS:
            raise _unknown(name, where)
    order = _order([config for name, config in filters if name == "transpose"], len(shape), where)
    filters = [step for step in filters if step[0] != "transpose"]
    filter_steps, inner = _chain(filters, shape, _decoded(shape, dtype, text), where)
    steps, stored = _chain(compressors, shape, inner, where)
    has_order = dtype.kind != "S" and (inner.exact or 0) > math.prod(shape)
    big = not text and endian(named[at][1], has_order, where) == ">"
    if big and (retypes := [name for name, _ in filters if name in _RETYPES]):
        raise StoreError(
            f"{where}: big-endian values after the filter {quoted(retypes[0])} are not read. Write "
            "the array again with endian 'little'."
        )
    if all(name in _FLAT_FILTERS for name, _ in filters):
        dtype = dtype.newbyteorder(">") if big else dtype
        return ChunkCodec(shape, dtype, filter_steps + steps, order, stored, text)
    # Filters that combine neighbours are left to Zarr, as are codecs from values to bytes.
    order = tuple(range(len(shape)))
    grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
    keys = {"name": "default", "configuration": {"separator": "/"}}
    array_document = dict(document) | {
        "shape": shape, "chunk_grid": grid, "chunk_key_encoding": keys,
        "codecs": list(codecs[: at + 1]), "attributes": {},
    }  # fmt: skip
    return ChunkCodec(shape, dtype, steps, order, stored, text, array_document)


def _order(configs: Sequence[Mapping[str, Any]], rank: int, where: str) -> tuple[int, ...]:
    """Return the order of the axes after the codecs `transpose`. Raises `StoreError`."""
    order = list(range(rank))
    for config in configs:
        axes = config["order"]
        if not isinstance(axes, list) or sorted(axes) != list(range(rank)):
            raise StoreError(
                f"{where}: the codec transpose has the order {quoted(axes)}, expected each axis "
                f"from 0 to {rank - 1} once. Write the array again."
            )
        order = [order[axis] for axis in axes]
    return tuple(order)


def endian(config: Mapping[str, Any], needed: bool, where: str) -> str:
    """Return "<" or ">" for the configuration of the codec `bytes`; `needed`: values have several
    bytes. Raises `StoreError`.
    """
    order = config.get("endian")
    if order in ("little", "big") or (order is None and not needed):
        return ">" if order == "big" else "<"
    raise StoreError(
        f"{where}: the codec bytes has endian {quoted(order)}, expected 'little' or 'big'. Write "
        "the array again."
    )


def _decoded(shape: tuple[int, ...], dtype: np.dtype[Any], text: bool) -> Size:
    """Return the size of a chunk's values; for texts, only the largest size is known."""
    count = math.prod(shape)
    if text:
        return Size(None, min(4 + count * (4 + _TEXT), MOST_BYTES))
    return Size(count * dtype.itemsize, count * dtype.itemsize)


def _chain(
    named: Sequence[tuple[str, Mapping[str, Any]]], shape: tuple[int, ...], size: Size, where: str
) -> tuple[tuple[Step, ...], Size]:
    """Return the steps of a chain of codecs for bytes of `size`, and the size of their output."""
    steps = []
    for name, config in named:
        steps.append(_step(name, config, size, where))
        size = _encoded(name, config, math.prod(shape), size)
    return tuple(steps), size


def _encoded(name: str, config: Mapping[str, Any], count: int, size: Size) -> Size:
    """Return the possible sizes of `count` values of `size` bytes after a codec."""
    if name in _COMPRESSORS:
        return Size(None, 2 * size.most + 2**16)  # incompressible data grow a little
    exact = size.exact
    if name in _CHECKSUMS:
        return Size(None if exact is None else exact + 4, size.most + 4)
    if name == "packbits":
        exact = None if exact is None else 1 + -(-count // 8)
    elif name in _RETYPES:
        kind = config.get("astype") or config.get("encode_dtype") or config.get("dtype")
        exact = None if exact is None else count * np.dtype(kind).itemsize
    return Size(exact, 16 * size.most + 16 if exact is None else exact)


def _step(name: str, config: Mapping[str, Any], size: Size, where: str) -> Step:
    if name not in SAFE:
        raise _unknown(name, where)
    if name == "gzip" or (name == "crc32c" and config.get("location", "end") == "end"):
        return Step(name, size, None)
    import numcodecs

    if name == "blosc":
        return Step(name, size, numcodecs.Blosc())
    if name == "zstd":
        return Step(name, size, numcodecs.Zstd())
    try:
        for key in _DTYPES:
            if config.get(key) is not None and np.dtype(config[key]).kind not in "biufc":
                raise ValueError(f"{key} is not of numbers")
        width = config.get("elementsize", 1)
        if type(width) is not int or not 1 <= width <= 2**10:
            raise ValueError(f"elementsize {quoted(width)}, expected 1 to 1024")
        return Step(name, size, numcodecs.get_codec({"id": name, **config}))
    except Exception as error:  # numcodecs raises the errors of the codec's constructor
        raise StoreError(
            f"{where}: the codec {quoted(name)} cannot be set up ({cut(error)})."
        ) from error


def _unknown(name: str, where: str) -> StoreError:
    return StoreError(
        f"{where} is stored with the codec {quoted(name)}, which is not read: it may run code, or "
        f"its unpacked size has no bound. Write the array again with zstd, blosc or no "
        "compression."
    )
