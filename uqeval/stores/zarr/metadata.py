"""Metadata of Zarr arrays, versions 2 and 3, checked before data are read or allocated.

This module reads the documents, not zarr-python: its versions 2 and 3 differ in what they accept,
warn about and hide.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqeval.disk.files import parse_json
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.bfloat16 import SOURCE, widened
from uqeval.stores.zarr.codecs import ChunkCodec, codec_v2, codec_v3, endian
from uqeval.stores.zarr.source import MOST_METADATA, Source, TooLong, array_place

_NUMBERS = frozenset(
    {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    | {"float16", "float32", "float64"}
)

#: Not a dtype of NumPy: the upper half of a float32, as tensorstore writes it.
_BFLOAT16 = "bfloat16"


#: The keys of a `zarr.json` that are read, or that have no effect on values.
_KEYS = frozenset(
    {"zarr_format", "node_type", "attributes", "shape", "data_type", "chunk_grid", "fill_value"}
    | {"chunk_key_encoding", "codecs", "dimension_names", "storage_transformers"}
    | {"consolidated_metadata"}
)

#: A JSON object, and its bytes.
Document = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class Shards:
    """The shards of an array: `shape` in values, `per_shard` in chunks, and the place of the
    index.
    """

    shape: tuple[int, ...]
    per_shard: tuple[int, ...]
    index_at_end: bool
    index_checked: bool
    #: "<" for little-endian numbers in the index, ">" for big-endian ones.
    index_endian: str = "<"

    @property
    def index_bytes(self) -> int:
        """Return the size of the index: offset and size of each chunk, and a checksum if there is
        one.
        """
        return 16 * math.prod(self.per_shard) + 4 * self.index_checked

    def holding(self, position: tuple[int, ...]) -> tuple[int, ...]:
        """Return the grid position of the shard with a chunk."""
        return tuple(map(int.__floordiv__, position, self.per_shard))


@dataclass(frozen=True)
class Layout:
    """A Zarr array's metadata. `chunks` are the smallest units that can be decoded alone."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    shards: Shards | None
    codec: ChunkCodec
    prefix: str
    separator: str
    fill_value: Any
    dimension_names: tuple[str | None, ...] | None
    attributes: dict[str, Any]
    document: bytes
    #: The metadata other than the shape, as one text.
    form: str
    #: Whether values of `dtype` are the bits of bfloat16.
    coarse: bool = False

    @property
    def files(self) -> tuple[int, ...]:
        """Return the shape of a stored object: a shard, or else a chunk."""
        return self.shards.shape if self.shards else self.chunks

    def grid(self, unit: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of units, such as chunks, along each axis."""
        return tuple(-(-size // step) for size, step in zip(self.shape, unit, strict=True))

    def key(self, position: tuple[int, ...]) -> str:
        """Return the key of the chunk or shard at a position on the grid of stored objects."""
        numbers = [str(index) for index in position]
        if self.prefix:
            return self.separator.join([self.prefix, *numbers])
        return self.separator.join(numbers) or "0"

    def position(self, key: str) -> tuple[int, ...] | None:
        """Return the grid position of the chunk `key`, or None if it is not a chunk of this
        array.
        """
        parts = key.split(self.separator) if key else []
        if self.prefix:
            if not parts or parts[0] != self.prefix:
                return None
            parts = parts[1:]
        elif not self.shape:
            parts = parts[1:] if parts == ["0"] else ["x"]
        if len(parts) != len(self.shape) or not all(p.isascii() and p.isdigit() for p in parts):
            return None
        return tuple(int(number) for number in parts)


def load_json(source: Source, key: str) -> Document | None:
    """Return the JSON object at `key` and its bytes; None if there is none.

    Raises `StoreError` for anything but a JSON object.
    """
    # Consolidated metadata repeat other documents, and only give names to look up.
    if key.rpartition("/")[2] != ".zmetadata":
        source.watch(key, key.rpartition("/")[0])
    try:
        data = source.get(key, most=MOST_METADATA)
    except TooLong as error:
        raise StoreError(
            f"{source.path}: {error} of metadata. Copy or write the store again."
        ) from None
    if data is None:
        source.note_document(key, None)
        return None
    raw = bytes(data)
    # Attributes may be empty.
    if not source.local and raw.strip() in (b"", b"{}") and not key.endswith(".zattrs"):
        raise _not_404(source, key, "nothing" if not raw.strip() else "{}")
    try:
        document = parse_json(raw, finite=False)  # attributes may be NaN
    except ValueError as error:
        if not source.local and raw.lstrip()[:1] == b"<":
            raise _not_404(source, key, "a page (HTML or XML)") from error
        raise StoreError(
            f"{source.path}: {key} is not valid JSON ({error}). Copy or write the store again."
        ) from error
    if not isinstance(document, dict):
        raise StoreError(f"{source.path}: {key} is not a JSON object. Write the store again.")
    attributes = document.get("attributes")
    if attributes is not None and not isinstance(attributes, dict):
        raise StoreError(
            f"{source.path}: attributes in {key} is {quoted(attributes)}, expected an object. "
            "Write the store again."
        )
    source.note_document(key, document)
    return document, raw


def _not_404(source: Source, key: str, answer: str) -> StoreError:
    return StoreError(
        f"{source.path}: the server answers with {answer} for {key}, which a store need not have. "
        "Expected status 404 for files that do not exist: change this setting of the server, or "
        "copy the store to a disk."
    )


def load_node(source: Source, name: str) -> Document | None:
    """Return the `zarr.json` of the array or group `name` (empty: the root); None in version 2.

    Raises `StoreError` as `load_json` does, for another version, and for extensions.
    """
    node = load_json(source, f"{name}/zarr.json" if name else "zarr.json")
    if node is not None:
        where = array_place(source, name)
        check_format(node[0], 3, where)
        for key, value in node[0].items():
            optional = isinstance(value, dict) and value.get("must_understand") is False
            if (key not in _KEYS and not optional) or (key == "storage_transformers" and value):
                raise StoreError(
                    f"{where}: its zarr.json has {quoted(key)}: {quoted(value)}, an extension that "
                    "is not read and may change the values. Write it again without."
                )
    return node


def check_format(document: dict[str, Any], version: int, where: str) -> None:
    """Raise `StoreError` unless `zarr_format` is `version`."""
    if (value := document.get("zarr_format")) != version:
        raise StoreError(
            f"{where}: zarr_format is {quoted(value)}, expected {version}. Write it again."
        )


def load_layout(source: Source, name: str, where: str, node: Document | None) -> Layout | None:
    """Return the metadata of the array `name` (empty: the root); None if there is no array.

    `node`: the result of `load_node`, so that each document is read once. Raises `StoreError` for
    damaged or unsupported metadata.
    """
    start = f"{name}/" if name else ""
    try:
        if node is not None:
            return _v3(*node, where) if node[0].get("node_type") == "array" else None
        if (array := load_json(source, f"{start}.zarray")) is not None:
            attributes = load_json(source, f"{start}.zattrs") or ({}, b"")
            return _v2(array[0], attributes[0], array[1] + attributes[1], where)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        problem = f"{type(error).__name__}: {cut(error)}"
        raise StoreError(
            f"{where}: its Zarr metadata are damaged or of an unknown form ({problem}). "
            "Write the array again."
        ) from error
    return None


def _v3(document: dict[str, Any], raw: bytes, where: str) -> Layout:
    shape = _sizes(document["shape"], 0, "shape", where)
    dtype, text = _dtype_v3(document["data_type"], where)
    coarse = document["data_type"] == _BFLOAT16
    grid = document["chunk_grid"]
    if grid["name"] != "regular":
        raise StoreError(
            f"{where}: a {quoted(grid['name'])} chunk grid is not read. Write the array "
            "again with a regular one."
        )
    chunks = _sizes(grid["configuration"]["chunk_shape"], 1, "chunk_shape", where, len(shape))
    encoding = document["chunk_key_encoding"]
    default = encoding["name"] == "default"
    if not default and encoding["name"] != "v2":
        raise StoreError(
            f"{where}: chunk keys of the kind {quoted(encoding['name'])} are not read. Write the "
            "array again with the kind 'default'."
        )
    settings = encoding.get("configuration") or {}
    separator = _separator(settings.get("separator", "/" if default else "."), where)
    codecs = document["codecs"]
    shards = None
    if any(codec["name"] == "sharding_indexed" for codec in codecs):
        if len(codecs) != 1:
            raise StoreError(
                f"{where}: codecs around sharding_indexed are not read; leave them out."
            )
        outer, config = chunks, codecs[0]["configuration"]
        chunks = _sizes(config["chunk_shape"], 1, "chunk_shape in a shard", where, len(shape))
        codecs = config["codecs"]
        shards = _shards(outer, chunks, config, where)
    names = document.get("dimension_names")
    return Layout(
        shape=shape,
        dtype=dtype.newbyteorder("="),
        chunks=chunks,
        shards=shards,
        codec=codec_v3(document, codecs, dtype, chunks, text, where),
        prefix="c" if default else "",
        separator=separator,
        fill_value=_fill(document.get("fill_value"), dtype, coarse),
        dimension_names=_dimension_names(names, len(shape), where),
        attributes=dict(document.get("attributes") or {}) | (dict(SOURCE) if coarse else {}),
        document=raw,
        form=_form(document),
        coarse=coarse,
    )


def _v2(document: dict[str, Any], attributes: dict[str, Any], raw: bytes, where: str) -> Layout:
    check_format(document, 2, where)
    shape = _sizes(document["shape"], 0, "shape", where)
    chunks = _sizes(document["chunks"], 1, "chunks", where, len(shape))
    spelled = document["dtype"]
    filters = [config.get("id") for config in document.get("filters") or ()]
    text = spelled == "|O" and "vlen-utf8" in filters
    coarse = spelled == _BFLOAT16
    numbers = np.dtype("<u2" if coarse else spelled) if isinstance(spelled, str) else None
    dtype = np.dtype(object) if text else numbers
    if dtype is None or (not text and dtype.kind not in "biufSU"):
        raise StoreError(
            f"{where} holds {quoted(spelled)}, neither numbers nor text. Store float, integer or "
            "bool values (names: fixed-length or vlen-utf8 text); pickled objects are never read."
        )
    if not text and not coarse and dtype.str[0] in "<>" and spelled[0] not in "<>":
        raise StoreError(
            f"{where}: dtype is {quoted(spelled)} in its .zarray, without an order of bytes; "
            "expected '<' or '>' before it. Write the array again."
        )
    names = attributes.get("_ARRAY_DIMENSIONS")
    return Layout(
        shape=shape,
        dtype=dtype.newbyteorder("="),
        chunks=chunks,
        shards=None,
        codec=codec_v2(document, dtype, chunks, text, where),
        prefix="",
        separator=_separator(document.get("dimension_separator", "."), where),
        fill_value=_fill(document.get("fill_value"), dtype, coarse),
        dimension_names=_dimension_names(names, len(shape), where),
        attributes=_attributes_v2(document, attributes, dtype) | (dict(SOURCE) if coarse else {}),
        document=raw,
        form=_form(document | {"attributes": attributes}),
        coarse=coarse,
    )


def _attributes_v2(
    document: Mapping[str, Any], attributes: Mapping[str, Any], dtype: np.dtype[Any]
) -> dict[str, Any]:
    """Return the attributes of an array of version 2, with the `_FillValue` that xarray and netCDF
    write as `fill_value` of arrays with dimension names.

    Other tools write a `fill_value` of 0 to all arrays, so 0 declares nothing.
    """
    known = {k: v for k, v in attributes.items() if k != "_ARRAY_DIMENSIONS"}
    fill = document.get("fill_value")
    if "_ARRAY_DIMENSIONS" not in attributes or dtype.kind not in "iuf" or not fill:
        return known
    return {"_FillValue": fill} | known


def _separator(separator: Any, where: str) -> str:
    """Return the separator of the numbers of a chunk's key."""
    if separator not in ("/", ".") or not isinstance(separator, str):
        raise StoreError(
            f"{where}: the separator of chunk keys is {quoted(separator)}; expected '/' or '.'. "
            "Write the array again."
        )
    return separator


def _dimension_names(names: Any, rank: int, where: str) -> tuple[str, ...] | None:
    """Return the names of an array's axes; None if it has none."""
    if not names:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str | None) for name in names):
        raise StoreError(f"{where}: dimension_names is {quoted(names)}; expected a list of names.")
    if len(names) != rank:
        raise StoreError(f"{where}: {len(names)} dimension_names for {rank} axes; name each.")
    return tuple(names)


def _form(document: Mapping[str, Any]) -> str:
    return json.dumps({k: v for k, v in document.items() if k != "shape"}, sort_keys=True)


def _sizes(
    values: Any, least: int, key: str, where: str, rank: int | None = None
) -> tuple[int, ...]:
    good = isinstance(values, list) and all(
        type(value) is int and least <= value < 2**63 for value in values
    )
    if not good or (rank is not None and len(values) != rank):
        raise StoreError(
            f"{where}: {key} is {quoted(values)} in its Zarr metadata. Write it again."
        )
    return tuple(values)


def _shards(
    outer: tuple[int, ...], inner: tuple[int, ...], config: Mapping[str, Any], where: str
) -> Shards:
    if any(big % small for big, small in zip(outer, inner, strict=True)):
        raise StoreError(
            f"{where}: shards of {outer} cannot hold whole chunks of {inner}. Write the array "
            "again."
        )
    if any(codec["name"] == "sharding_indexed" for codec in config["codecs"]):
        raise StoreError(f"{where}: shards inside shards are not read; write one level.")
    codecs = config["index_codecs"]
    index = [codec["name"] for codec in codecs]
    if index not in (["bytes"], ["bytes", "crc32c"]):
        raise StoreError(
            f"{where}: a shard index with the codecs {index} is not read; expected bytes, or bytes "
            "and crc32c. Write the array again."
        )
    per_shard = tuple(big // small for big, small in zip(outer, inner, strict=True))
    if math.prod(per_shard) > 2**22:
        raise StoreError(f"{where}: {math.prod(per_shard)} chunks in a shard; write larger chunks.")
    location = config.get("index_location", "end")
    if location not in ("start", "end"):
        raise StoreError(
            f"{where}: index_location is {quoted(location)}, expected 'start' or 'end'. Write the "
            "array again."
        )
    order = endian(codecs[0].get("configuration") or {}, True, f"{where}: index of the shards")
    return Shards(outer, per_shard, location == "end", len(index) == 2, order)


def _dtype_v3(spelled: Any, where: str) -> tuple[np.dtype[Any], bool]:
    if isinstance(spelled, str) and spelled in _NUMBERS:
        return np.dtype(spelled), False
    if spelled == _BFLOAT16:
        return np.dtype(np.uint16), False
    if spelled == "string" or (isinstance(spelled, dict) and spelled.get("name") == "string"):
        return np.dtype(object), True
    if isinstance(spelled, dict) and spelled.get("name") == "fixed_length_utf32":
        return np.dtype(f"<U{int(spelled['configuration']['length_bytes']) // 4}"), False
    if isinstance(spelled, dict) and spelled.get("name") == "null_terminated_bytes":
        return np.dtype(f"S{int(spelled['configuration']['length_bytes'])}"), False
    raise StoreError(
        f"{where} holds {quoted(spelled)}, neither numbers nor text. Store float, integer or bool "
        "values; names as text."
    )


def _fill(value: Any, dtype: np.dtype[Any], coarse: bool = False) -> Any:
    """Return the fill value, which is used only if missing chunks are allowed; None means zero."""
    if dtype.kind in "OU":
        return value if isinstance(value, str) else ""
    if dtype.kind == "S":  # base64, but no names are left out
        return b""
    if coarse:
        if isinstance(value, str) and value.startswith("0x"):
            return widened(np.array([int(value, 16)], np.uint16))[0]
        dtype = np.dtype(np.float32)
    if value is None:
        return dtype.type(0)
    if isinstance(value, str) and value.startswith("0x"):
        bits = int(value, 16).to_bytes(dtype.itemsize, "little")
        return np.frombuffer(bits, dtype.newbyteorder("<"))[0]
    return dtype.type(float(value)) if isinstance(value, str) else dtype.type(value)
