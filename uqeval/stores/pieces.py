"""What is to be converted, of whatever form: for each kind of array one piece an item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from uqeval.errors import StoreError, UsageError, listed
from uqeval.stores.array import ItemArray, StoredArray
from uqeval.stores.kinds import ALIASES, KINDS, resolve
from uqeval.stores.label_folder import png_files
from uqeval.stores.names import checked_names
from uqeval.stores.numpy_array import open_npy, open_npz
from uqeval.stores.sources import is_url
from uqeval.stores.store import open_store

_LETTERS = {"N": "item", "T": "sample", "C": "class", "H": "y", "W": "x"}

#: The sources that there are.
CONVERTIBLE = (
    "a .npy or .npz file, a folder of them (one an item), a folder of label PNGs, or a Zarr store "
    "(folder, .zip or URL)"
)

#: Opens a piece anew each time, so that no more than one file need be open or unpacked.
Piece = Callable[[], ItemArray]


@dataclass
class Pieces:
    """The pieces of each kind, in the order of the items; names and attributes of the store."""

    kinds: dict[str, list[Piece]]
    names: tuple[str, ...] | None
    attributes: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def items(self) -> int:
        """How many items there are; flow lies between them."""
        return max(len(pieces) for pieces in self.kinds.values())


def find_pieces(
    source: str,
    kind: str | None,
    names: Sequence[str] | None,
    axes: str | None,
    key: str | None,
    fill_missing: bool = False,
) -> Pieces:
    """What is at `source`; see `uqeval.stores.convert.convert` for the rest.

    Raises `StoreError` for what cannot be read, `UsageError` where something must be said.
    """
    path = Path(source)
    if not is_url(source) and path.is_dir():
        files = sorted(f for f in path.iterdir() if f.suffix in (".npy", ".npz") and f.is_file())
        if files and not (path / "zarr.json").exists():
            return _item_files(files, kind, names, axes, key)
        if not files and png_files(source):
            return _label_images(source, names)
    if path.suffix == ".npy" and path.is_file():
        return _bare(open_npy(source), kind, names, axes)
    if path.suffix == ".npz" and path.is_file():
        members = open_npz(source)
        if key is not None or len(members) == 1:
            return _bare(_member(source, members, key), kind, names, axes)
        _needs_key(kind, axes)
    elif path.is_file() and path.suffix != ".zip":
        raise StoreError(f"{source}: is none of what can be converted: {CONVERTIBLE}.")
    elif (array := _zarr_array(source, key, fill_missing)) is not None:
        return _bare(array, kind, names, axes)
    else:
        _needs_key(kind, axes)
    store = open_store(source, role="predictions", names=names, fill_missing=fill_missing)
    kinds: dict[str, list[Piece]] = {
        kind: [partial(_given, part) for part in parts] for kind, parts in store.arrays.items()
    }
    return Pieces(kinds, store.names, dict(store.attributes), store.warnings)


def item_axes(kind: str, axes: Sequence[str]) -> tuple[str, ...]:
    """The axes of one item's `kind` in the order in which they are stored."""
    present = set(axes) - {"item"}
    forms = [form[1:] for form in KINDS.get(kind, (("item", "y", "x"),))]
    return next(form for form in forms if set(form) == present)


def _given(part: ItemArray) -> ItemArray:
    return part


def _needs_key(kind: str | None, axes: str | None) -> None:
    if kind is not None or axes is not None:
        raise UsageError("kind and axes describe a single array: say which one with key.")


def _zarr_array(source: str, key: str | None, fill_missing: bool) -> StoredArray | None:
    """The Zarr array at `source`, or called `key` in the group there; None for a whole group."""
    from uqeval.stores.zarr_array import ZarrArray
    from uqeval.stores.zarr_group import open_zarr

    opened = open_zarr(source, key or "", fill_missing=fill_missing)
    if isinstance(opened, ZarrArray):
        return opened
    if key is not None:
        raise StoreError(f"{source}: holds no array called {key!r}.")
    return None


def _member(source: str, members: dict[str, Any], key: str | None) -> StoredArray:
    known = [name for name in members if ALIASES.get(name, name) in ("probs", "logits")]
    if key is None:
        key = next(iter(members)) if len(members) == 1 else known[0] if len(known) == 1 else None
    if key is None or key not in members:
        what = "no one array that is known" if key is None else f"no {key!r}"
        raise StoreError(f"{source}: holds {listed(sorted(members))}; {what}. Say key=NAME.")
    array: StoredArray = members[key]
    return array


def _resolved(
    array: StoredArray, kind: str | None, axes: str | None, *, single: bool
) -> tuple[StoredArray, str]:
    """The array with its axes set, and its kind; nothing but rank and dtype decide."""
    if axes is not None:
        letters = axes.upper()
        if set(letters) - set(_LETTERS) or len(set(letters)) != len(letters):
            raise UsageError(f"axes {axes!r}: expected letters of NTCHW, each at most once.")
        if len(letters) != len(array.shape):
            raise UsageError(
                f"axes {axes!r} are {len(letters)}, but {array.where} has the shape {array.shape}."
            )
        array.dimension_names = tuple(_LETTERS[letter] for letter in letters)
    if kind is None:
        named = array.dimension_names
        if "class" in named if named else len(array.shape) > (2 if single else 3):
            kind = "probs"
        else:
            raise UsageError(
                f"{array.where}: has the shape {array.shape} of {array.dtype}, which may be one of "
                "several things. Say kind='labels', 'predictions' or the name of a map (on the "
                "command line --kind probs, logits, labels or predictions). `mean` and `std` need "
                "no conversion: numpy.savez('preds.npz', mean=mean, std=std) is a store."
            )
    resolve(array, kind, single=single)
    return array, kind


def _bare(
    array: StoredArray, kind: str | None, names: Sequence[str] | None, axes: str | None
) -> Pieces:
    array, kind = _resolved(array, kind, axes, single=False)
    if "item" in array.axes:
        count = array.shape[array.axes.index("item")]
        parts = [ItemArray(array, index) for index in range(count)]
    else:
        parts = [ItemArray(array, None)]
    if not parts:
        raise StoreError(f"{array.where}: has no items. Was anything written?")
    if names is not None:
        names = checked_names(list(names), "names", len(parts))
    pieces: list[Piece] = [partial(_given, part) for part in parts]
    return Pieces({kind: pieces}, None if names is None else tuple(names))


def _item_files(
    files: list[Path],
    kind: str | None,
    names: Sequence[str] | None,
    axes: str | None,
    key: str | None,
) -> Pieces:
    def part(file: Path) -> ItemArray:
        path = str(file)
        array = open_npy(path) if file.suffix == ".npy" else _member(path, open_npz(path), key)
        return ItemArray(_resolved(array, kind, axes, single=True)[0], None)

    by_name = {file.stem: file for file in files}
    if len(by_name) != len(files):
        raise StoreError(f"{files[0].parent}: an item is there as .npy and .npz. Keep one of them.")
    order = checked_names(list(by_name if names is None else names), str(files[0].parent))
    if absent := [name for name in order if name not in by_name]:
        raise StoreError(f"{files[0].parent}: no .npy or .npz file for: {listed(absent)}.")
    if "N" in (axes or "").upper():
        raise UsageError(f"axes {axes!r}: each file is one item, so there is no N.")
    pieces: list[Piece] = [partial(part, by_name[name]) for name in order]
    return Pieces({kind or "probs": pieces}, order)


def _label_images(source: str, names: Sequence[str] | None) -> Pieces:
    if names is None:
        files = png_files(source)
        stems = [Path(file).stem for file in files]
        # Folders belong to the name where the same file is in several.
        alike = len(set(stems)) < len(stems)
        names = [file.removesuffix(".png") for file in files] if alike else stems
    store = open_store(source, role="labels", names=names)
    pieces: list[Piece] = [partial(_given, part) for part in store.arrays["labels"]]
    return Pieces({"labels": pieces}, store.names, {}, store.warnings)
