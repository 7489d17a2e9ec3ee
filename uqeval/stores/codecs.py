"""One chunk's bytes to one chunk's values, checked on the way: a damaged chunk never gets through.

Decoding goes to numcodecs directly. numcodecs' Blosc reads past the end of a chunk that was cut
short and ends the process, so its header is checked first; chunks are small and known in size, so
every other codec is held to the size that must come out.
"""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError
from uqeval.stores.sources import Buffer

#: numcodecs' codecs that give bytes or numbers. `pickle` and its like run what they read.
SAFE = frozenset(
    {"adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta", "zlib", "zstd"}
    | {"fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits"}
    | {"pcodec", "quantize", "shuffle", "zfpy"}
)
#: Zarr v3 filters that work on values one by one, so that decoding them may ignore the axes.
_FLAT_FILTERS = frozenset({"bitround", "fixedscaleoffset", "quantize", "astype"})


class DamagedChunk(Exception):
    """What is wrong with a chunk's bytes, said without the chunk's name."""


@dataclass(frozen=True)
class Step:
    """One codec; `size` is what must come out of it where that is known."""

    id: str
    config: Mapping[str, Any]
    size: int | None
    codec: Any

    def decode(self, data: Any) -> Any:
        """The bytes before this codec; raises `DamagedChunk`."""
        if self.codec is None:
            return checked_crc32c(data) if self.id == "crc32c" else _gunzip(data, self.size)
        if self.id == "blosc":
            _check_blosc(data, self.size)
        try:
            decoded = self.codec.decode(data)
        except Exception as error:  # each compressor has its own
            raise DamagedChunk(f"its {self.id} data cannot be unpacked ({error})") from error
        if self.size is not None and (size := memoryview(decoded).nbytes) != self.size:
            raise DamagedChunk(f"unpacks to {size} bytes where the shape needs {self.size}")
        return decoded


@dataclass(frozen=True)
class ChunkCodec:
    """How every chunk of an array is decoded.

    `raw`: the bytes are the values as this machine has them in memory, perhaps with a checksum
    behind, so that a mapped file needs no decoding.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    steps: tuple[Step, ...]
    order: tuple[int, ...]
    text: bool = False
    rest: Mapping[str, Any] | None = None

    @property
    def raw(self) -> bool:
        """Whether nothing has to be decoded; see the class."""
        return (
            all(step.id == "crc32c" for step in self.steps)
            and self.order == tuple(range(len(self.shape)))
            and self.dtype.isnative
            and self.rest is None
            and not self.text
        )

    @property
    def checksum_last(self) -> bool:
        """Whether the last four bytes of a chunk are a checksum of the others."""
        return bool(self.steps) and self.steps[-1].id == "crc32c"

    def check_length(self, length: int, head: Callable[[int], Buffer | None] | None) -> None:
        """Reject a chunk of `length` bytes as stored: `DamagedChunk`.

        The length is known without compression, and with Blosc as the last compressor, whose header
        says it; of other chunks only empty ones are found. `head` returns the first bytes of the
        chunk; None where to read them costs too much.
        """
        if length == 0:
            raise DamagedChunk("is empty")
        steps = list(self.steps)
        body = length
        while steps and steps[-1].id == "crc32c" and steps[-1].codec is None:
            steps.pop()
            body -= 4
        needed = None
        if not steps and not self.text and self.rest is None:
            needed = math.prod(self.shape) * self.dtype.itemsize
        elif steps and steps[-1].id == "blosc" and head is not None:
            first = memoryview(head(16) or b"")
            needed = int.from_bytes(first[12:16], "little") if len(first) == 16 else 16
        if body != needed and (needed is not None or body <= 0):
            expected = f"expected {length - body + needed}" if needed else "too few"
            raise DamagedChunk(f"has {length} bytes, {expected}")

    def decode(self, data: Buffer) -> NDArray[Any]:
        """The values of one chunk, in native byte order, perhaps read-only.

        Raises `DamagedChunk` where the bytes cannot be what was written.
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
        values: NDArray[Any] = flat.view(self.dtype)
        if not self.dtype.isnative:
            values = values.astype(self.dtype.newbyteorder("="))
        stored = tuple(self.shape[axis] for axis in self.order)
        return values.reshape(stored).transpose(np.argsort(self.order))


def checked_crc32c(data: Buffer) -> memoryview:
    """`data` less its trailing CRC-32C; raises `DamagedChunk` if they do not belong together."""
    import google_crc32c

    view = memoryview(data).cast("B")
    if len(view) < 4:
        raise DamagedChunk(f"cut short: {len(view)} bytes, too few for a checksum")
    body = view[:-4]
    # The C function takes any buffer; asarray because it insists on a contiguous one of bytes.
    if google_crc32c.value(np.frombuffer(body, np.uint8)) != int.from_bytes(view[-4:], "little"):
        raise DamagedChunk("checksum does not match (bits changed, or the chunk is cut short)")
    return body


def _check_blosc(data: Buffer, size: int | None) -> None:
    view = memoryview(data).cast("B")
    if len(view) < 16:
        raise DamagedChunk(f"cut short: {len(view)} bytes, too few for a blosc header")
    unpacked, block, packed = (int.from_bytes(view[i : i + 4], "little") for i in (4, 8, 12))
    if packed != len(view):
        word = "cut short" if len(view) < packed else "too long"
        raise DamagedChunk(f"{word}: {len(view)} of {packed} bytes")
    if size is not None and unpacked != size:
        raise DamagedChunk(f"unpacks to {unpacked} bytes where the shape needs {size}")
    if unpacked and not 0 < block <= max(unpacked, 128):
        raise DamagedChunk("its blosc header is damaged")


def _gunzip(data: Buffer, size: int | None) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            # One byte more than should be there: a longer stream is refused without unpacking it.
            unpacked = stream.read(-1 if size is None else size + 1)
    except Exception as error:  # zlib.error, BadGzipFile and EOFError share no base
        raise DamagedChunk(f"its gzip data cannot be unpacked ({error})") from error
    if size is not None and len(unpacked) != size:
        raise DamagedChunk(f"unpacks to {len(unpacked)} bytes where the shape needs {size}")
    return unpacked


def _decode_text(data: Buffer, expected: int) -> NDArray[Any]:
    """Variable-length UTF-8: a count, then each string's length and bytes."""
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
        raise DamagedChunk(f"its strings are not UTF-8 ({error})") from error
    return np.array(texts, dtype=object)


def _decode_with_zarr(metadata: Mapping[str, Any], data: Buffer) -> NDArray[Any]:
    """For codecs that only Zarr knows: the chunk as a one-chunk array in memory, its bytes checked
    by the steps around it so far as these can."""
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
        values: NDArray[Any] = np.asarray(zarr.open_array(store, mode="r")[...])
    except Exception as error:  # whatever a codec that nobody here knows may raise
        raise DamagedChunk(f"cannot be unpacked ({error})") from error
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def codec_v2(
    document: Mapping[str, Any],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    text: bool,
    where: str,
) -> ChunkCodec:
    """The decoder that a `.zarray` asks for; raises `StoreError` for a codec that is not known."""
    filters = [dict(config) for config in document.get("filters") or ()]
    if text:
        filters = [config for config in filters if config.get("id") != "vlen-utf8"]
    compressor = document.get("compressor")
    configs = [*filters, *([dict(compressor)] if compressor else [])]
    # A filter may change the size, so only a chain without any has a known one.
    size = None if filters or text else math.prod(shape) * dtype.itemsize
    steps = tuple(
        _step(str(config.pop("id", "")), config, size if i == 0 else None, where)
        for i, config in enumerate(configs)
    )
    axes = tuple(range(len(shape)))
    return ChunkCodec(
        shape, dtype, steps, axes[::-1] if document.get("order") == "F" else axes, text
    )


def codec_v3(
    document: Mapping[str, Any],
    codecs: Sequence[Mapping[str, Any]],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    text: bool,
    where: str,
) -> ChunkCodec:
    """The decoder for a chain of Zarr v3 codecs; raises `StoreError` for one that is not known."""
    size: int | None = math.prod(shape) * dtype.itemsize
    order = tuple(range(len(shape)))
    steps: list[Step] = []
    named = [(str(codec.get("name")), dict(codec.get("configuration") or {})) for codec in codecs]
    serializers = [i for i, (name, _) in enumerate(named) if name in ("bytes", "vlen-utf8")]
    at = serializers[0] if serializers else -1
    if text and (at < 0 or named[at][0] != "vlen-utf8"):
        raise StoreError(f"{where}: text stored as {named} is not read; use the vlen-utf8 codec.")
    plain = at >= 0 and all(
        name == "transpose" or name.removeprefix("numcodecs.") in _FLAT_FILTERS
        for name, _ in named[:at]
    )
    # What stands before the first codec known here is left to Zarr, together with that codec.
    first = at + 1 if plain else len(named)
    while not plain and first > 0 and _bytes_codec(named[first - 1][0]):
        first -= 1
    if plain:
        for name, config in named[:at]:
            if name == "transpose":
                order = tuple(order[axis] for axis in config["order"])
            else:
                size = None
                steps.append(_step(name.removeprefix("numcodecs."), config, None, where))
        if named[at][1].get("endian") == "big":
            dtype = dtype.newbyteorder(">")
    if text or not plain:
        size = None
    for name, config in named[first:]:
        steps.append(_step(name.removeprefix("numcodecs."), config, size, where))
        size = size + 4 if size is not None and name == "crc32c" else None
    rest = None
    if not plain:
        grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
        keys = {"name": "default", "configuration": {"separator": "/"}}
        chain = list(codecs[:first])
        rest = dict(document) | {"shape": shape, "chunk_grid": grid, "chunk_key_encoding": keys}
        rest |= {"codecs": chain, "attributes": {}}
    return ChunkCodec(shape, dtype, tuple(steps), order, text, rest)


def _bytes_codec(name: str) -> bool:
    known = {"blosc", "zstd", "gzip", "crc32c", "zlib", "lz4", "bz2", "lzma", "shuffle"}
    return name.removeprefix("numcodecs.") in known


def _step(name: str, config: Mapping[str, Any], size: int | None, where: str) -> Step:
    import numcodecs

    if name not in SAFE:
        raise StoreError(
            f"{where}: is stored with the codec {name!r}, which is not read here (it may run code, "
            "or is not known). Write the array again with zstd, blosc or no compression."
        )
    if name == "gzip" or (name == "crc32c" and config.get("location", "end") == "end"):
        return Step(name, config, size, None)
    if name == "blosc":
        return Step(name, config, size, numcodecs.Blosc())
    if name == "zstd":
        return Step(name, config, size, numcodecs.Zstd())
    try:
        return Step(name, config, size, numcodecs.get_codec({"id": name, **config}))
    except Exception as error:  # numcodecs raises whatever the codec's constructor raises
        raise StoreError(f"{where}: the codec {name!r} cannot be set up ({error}).") from error
