"""Small images to test with: samples, labels, maps and stores of them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.arrays import Maps
from uqeval.maps.checks import SumCheck
from uqeval.maps.labels import Labels
from uqeval.maps.names import void_of
from uqeval.maps.reduction import Form, Reducer, kernel_view
from uqeval.maps.sources import Source
from uqeval.stores.array import ItemArray, Store, StoredArray
from uqeval.stores.planes import Planes
from uqeval.stores.stack import Stack

ALL_MAPS = (
    "prediction", "confidence", "entropy", "expected_entropy", "mutual_information",
    "variation_ratio", "std", "mean_probs",
)  # fmt: skip
#: Those that are defined for one sample.
SINGLE = ("prediction", "confidence", "entropy", "expected_entropy", "mean_probs")
LABEL_MAPS = ("label_probability", "label_rank", "brier")


def softmax(seed: int, *shape: int, dtype: Any = "f4", axis: int = -3, sharp: float = 2.0) -> Any:
    """Random probabilities [..., class, y, x]."""
    z = np.exp(sharp * np.random.default_rng(seed).normal(size=shape))
    return (z / z.sum(axis=axis, keepdims=True)).astype(dtype)


def quantized(p: Any, dtype: str) -> Any:
    """Probabilities as uint8 or uint16, in units of 1 / the largest integer."""
    return np.round(np.asarray(p, np.float64) * np.iinfo(dtype).max).astype(dtype)


def labels(seed: int, *shape: int, classes: int, void: float = 0.1, ignore: int = 255) -> Any:
    """Labels [..., y, x] in blocks of 3×3 pixels, so that some patches are of one class."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, classes, shape)
    ids = np.repeat(np.repeat(ids, 3, -2), 3, -1)[..., : shape[-2], : shape[-1]]
    return np.where(rng.random(shape) < void, ignore, ids).astype(
        np.uint16 if ignore > 255 else "u1"
    )


def reduced(
    values: Any,
    *,
    unit: float = 1.0,
    label: Any = None,
    wanted: Any = ALL_MAPS,
    cuts: tuple[list[int], list[int]] | None = None,
    tolerance: float = 0.05,
) -> Maps:
    """Maps [pixel] of a stack [t, c, y, x]; with `cuts`, from tiles cut there."""
    t, c = values.shape[:2]
    tile = kernel_view(values)
    form = Form(t, c, tile.dtype, unit, frozenset(wanted))
    check = SumCheck(c, tolerance, form.sum_unit, form.total_dtype, "here", values.shape[3])
    pixels = tile.shape[2]
    if cuts is None:
        return Reducer(form, pixels, is_whole=True, splits_classes=False, check=check).reduce(
            tile, label
        )
    ts, cs = ([0, *cut, n] for cut, n in zip(cuts, (t, c), strict=True))
    reducer = Reducer(form, pixels, is_whole=False, splits_classes=len(cs) > 2, check=check)
    for t0, t1 in itertools.pairwise(ts):
        for c0, c1 in itertools.pairwise(cs):
            reducer.add(np.ascontiguousarray(tile[t0:t1, c0:c1]), t0, c0)
    return reducer.finish(label)


def same(a: Maps, b: Maps) -> None:
    """Asserts the same maps, bit for bit."""
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert a[name].tobytes() == b[name].tobytes(), name


def item_maps(seed: int, height: int, width: int, classes: int, void: float = 0.15) -> Maps:
    """Maps of one item as tallies get them, with values that fall on each other."""
    rng = np.random.default_rng(seed)
    label = labels(seed, height, width, classes=classes, void=void, ignore=void_of(classes))
    guess = rng.integers(0, classes, label.shape)
    prediction = np.where((rng.random(label.shape) < 0.6) & (label < classes), label, guess)
    ids = np.uint8 if classes <= 255 else np.uint16
    grid = rng.integers(0, 40, label.shape) / 64
    rank = np.where(prediction == label, 0, rng.integers(1, classes, label.shape))
    return {
        "label": label.astype(ids),
        "prediction": prediction.astype(ids),
        "entropy": grid.astype(np.float32),
        "confidence": (1 - rng.integers(0, 30, label.shape) / 64).astype(np.float32),
        "anything": rng.normal(size=label.shape).astype(np.float32),
        "label_rank": rank.astype(np.uint16),
        **_probabilities(rng, label, classes),
        "tempered_nll": _likelihoods(seed, label),
        "reference/mean_probs": _probabilities(rng, label, classes)["mean_probs"],
    }


def _likelihoods(seed: int, label: Any) -> Any:
    """NLLs of the labels at three temperatures, some infinite at all of them."""
    rng = np.random.default_rng(seed)
    nll = rng.exponential(size=(3, *label.shape))
    nll[:, rng.random(label.shape) < 0.1] = np.inf
    return nll.astype(np.float32)


def _probabilities(rng: np.random.Generator, label: Any, classes: int) -> Maps:
    """`mean_probs`, with zeros and saturated pixels, and what labels say of it."""
    p = np.exp(2 * rng.normal(size=(classes, *label.shape)))
    p[rng.random(p.shape) < 0.1] = 0
    p[0][rng.random(label.shape) < 0.1] = 1e30
    p[0][p.sum(axis=0) == 0] = 1
    mean = (p / p.sum(axis=0)).astype(np.float32)
    known = label < classes
    mine = np.take_along_axis(mean, np.where(known, label, 0)[None].astype(int), 0)[0]
    brier = (mean.astype(float) ** 2).sum(axis=0) - 2 * mine + 1
    return {
        "mean_probs": mean,
        "label_probability": np.where(known, mine, 0).astype(np.float32),
        "brier": np.where(known, brier, 0).astype(np.float32),
    }


def zarr_array(path: Path, data: Any, chunks: Any = None, **options: Any) -> Path:
    """A bare Zarr array; every chunk is stored."""
    import zarr

    array = zarr.create_array(
        str(path), shape=data.shape, dtype=data.dtype, chunks=chunks or data.shape,
        config={"write_empty_chunks": True}, **options,
    )  # fmt: skip
    array[...] = data
    return path


def zarr_group(path: Path, arrays: dict[str, Any], **attributes: Any) -> Path:
    """A Zarr group of arrays, each values or (values, options of `zarr_array`)."""
    import zarr

    zarr.create_group(str(path), attributes=attributes)
    for name, value in arrays.items():
        data, options = value if isinstance(value, tuple) else (value, {})
        zarr_array(path / name, data, **options)
    return path


def opened(predictions: Any, truth: Any = None, **options: Any) -> Any:
    """The source of maps for the inputs of a user."""
    from uqeval.inputs import InputOptions, open_inputs

    return open_inputs(predictions, truth, InputOptions(**options)).source


def read_maps(
    predictions: Any, truth: Any = None, wanted: Any = None, **options: Any
) -> list[Maps]:
    """The maps of all items; by default all that are defined."""
    source = opened(predictions, truth, **options)
    if wanted is None:
        wanted = [n for n in ALL_MAPS if source.samples != 1 or n in SINGLE]
        wanted += [*LABEL_MAPS, "label"] if truth is not None else []
    source.want(wanted)
    return [maps for batch in source.batches() for maps in source.read(batch)]


def all_same(found: list[Maps], expected: list[Maps]) -> None:
    """Asserts the same maps of all items, bit for bit."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        same({k: a[k] for k in sorted(a)}, {k: b[k] for k in sorted(b)})


class Chunked(StoredArray):
    """An array in memory with chunks, which counts how often each is read."""

    def __init__(self, data: Any, chunks: Any = None, axes: Any = None, scale: Any = None) -> None:
        self.where = "chunked array"
        self.data = data
        self.shape = data.shape
        self.dtype = data.dtype
        self.chunks = tuple(chunks or data.shape)
        self.axes = tuple(axes or ("item", "sample", "class", "y", "x"))
        self.attributes = {} if scale is None else {"scale": scale}
        self.reads: Counter[tuple[int, ...]] = Counter()

    def read(self, region: tuple[slice, ...]) -> Any:
        grid = [
            range(part.start // step, -(-part.stop // step))
            for part, step in zip(region, self.chunks, strict=True)
        ]
        self.reads.update(itertools.product(*grid))
        view = self.data[region]
        view.flags.writeable = False
        return view

    def stored_bytes(self) -> int:
        return int(self.data.nbytes)

    def fingerprint(self) -> str:
        return "chunked"

    def every_chunk_once(self) -> bool:
        """Whether each chunk was read, and once."""
        count = math.prod(-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True))
        return len(self.reads) == count and set(self.reads.values()) == {1}


def stack_of(*members: Any, kind: str = "probs") -> Stack:
    """A stack of `Chunked` members (or lists of them, one an item)."""
    stores = []
    for i, member in enumerate(members):
        if isinstance(member, list):
            parts = tuple(ItemArray(array, None) for array in member)
        else:
            count = member.shape[member.axes.index("item")]
            parts = tuple(ItemArray(member, k) for k in range(count))
        stores.append(Store(f"store {i}", {kind: parts}))
    return Stack(stores, kind)


def chunked_source(*members: Any, kind: str = "probs", truth: Any = None, **options: Any) -> Source:
    """A source of all maps of a stack of `Chunked` members."""
    stack = stack_of(*members, kind=kind)
    found = None
    if truth is not None:
        array = Chunked(truth, axes=("item", "y", "x"))
        found = Labels(Planes([ItemArray(array, i) for i in range(stack.items)]), 255)
    names = [str(i) for i in range(stack.items)]
    source = Source(
        names, max(stack.classes, 2), stack=stack, stored={}, labels=found, where="here", **options
    )
    wanted = [n for n in ALL_MAPS if stack.samples > 1 or n in SINGLE]
    source.want([*wanted, *((*LABEL_MAPS, "label") if truth is not None else ())])
    return source


def read_stack(*members: Any, **options: Any) -> list[Maps]:
    """All maps of a stack of `Chunked` members."""
    source = chunked_source(*members, **options)
    return [maps for batch in source.batches() for maps in source.read(batch)]
