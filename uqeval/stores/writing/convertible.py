"""Open what can be converted: stores, and arrays without names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uqeval.errors import StoreError, UsageError, cut, listed, quoted
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.attribute_arrays import own_names
from uqeval.stores.contents import Opening, Role, assemble, hdf5_path
from uqeval.stores.files.foreign import how_to_convert
from uqeval.stores.files.hdf5_array import Hdf5Array
from uqeval.stores.files.item_folder import kinds_in_folder, open_item_folder
from uqeval.stores.files.label_folder import open_predicted_ids, png_files
from uqeval.stores.files.numpy_store import NpyStore, NpzStore
from uqeval.stores.kinds import ALIASES, KINDS, Declared, kind_called, with_scale
from uqeval.stores.orders import with_coordinates
from uqeval.stores.store import contents_of, open_store
from uqeval.stores.zarr.source import is_url, is_zarr
from uqeval.stores.zarr.store import ZarrStore

#: The sources that can be converted, for messages.
CONVERTIBLE = (
    "a .npy or .npz file, a folder of them (one per item), a folder of label PNGs, a Zarr store "
    "(folder, .zip or URL), or an HDF5 file (file.h5::/path)"
)


def open_convertible(
    source: str,
    kind: str | None,
    names: Sequence[str] | None,
    axes: str | None,
    key: str | None,
    fill_missing: bool = False,
    has_labels: bool = False,
) -> Store:
    """Open the store or the array at `source`; `usecases.convert` describes the parameters.
    `has_labels`: it has labels for the items.

    Raises `StoreError` for an unreadable source, `UsageError` if an option is needed.
    """
    path = Path(source)
    if not is_url(source) and path.is_dir():
        if is_zarr(source):
            pass
        elif kinds_in_folder(source):
            return _item_folder(source, kind, names, axes, key)
        elif png_files(source):
            if kind == "predictions":
                return open_predicted_ids(source, names, Declared(axes=axes))
            return _label_images(source, names)
    hdf5 = hdf5_path(source)
    if path.is_file() and hdf5 is None and path.suffix not in (".npy", ".npz", ".zip"):
        raise StoreError(
            f"{cut(source)}: cannot be converted; expected {CONVERTIBLE}.{how_to_convert(source)}"
        )
    if hdf5 is not None and key is not None:
        source = f"{hdf5[0]}::{hdf5[1].rstrip('/')}/{key}"
    contents = contents_of(source)
    if hdf5 is not None or isinstance(contents, NpyStore | NpzStore | ZarrStore):
        array, described, name = contents.unnamed, Store(source, {}), key
        if isinstance(array, Hdf5Array):
            array.fill_missing = fill_missing
        if isinstance(contents, ZarrStore):
            array = contents.array(key, fill_missing=fill_missing)
            described = described if array is None else contents.described(key)
        if isinstance(contents, NpzStore) and _takes_member(
            contents.members, kind, axes, key, has_labels
        ):
            name, array = _member(source, contents.members, key)
            described = Store(source, {}, own_names(contents.members, {}, source))
        if array is not None:
            if kind is None and name is not None:
                named = kind_called(name.rpartition("/")[2])
                # Labels of classes are no target, and mean probabilities alone are a sample.
                is_of_classes = named in ("probs", "logits", "predictions")
                kind = named if is_of_classes or not (has_labels or named == "mean_probs") else None
            if kind is axes is None and has_labels and _are_scores(array):
                kind = "probs"
            kind = _kind(array, kind, axes)
            store = assemble(
                source, {kind: array}, names, described.names, described.attributes,
                described.warnings,
            )  # fmt: skip
            return with_coordinates(store, *contents.beside())
        _needs_key(kind, axes)
    return open_store(
        contents, role="predictions", names=names, fill_missing=fill_missing,
        has_other_truth=has_labels,
    )  # fmt: skip


def item_axes(kind: str, axes: Sequence[str]) -> tuple[str, ...]:
    """Return the axes of one item's `kind` in the order in which they are stored."""
    present = set(axes) - {"item"}
    forms = [form[1:] for form in KINDS.get(kind, (("item", "y", "x"),))]
    return next(form for form in forms if set(form) == present)


def _needs_key(kind: str | None, axes: str | None) -> None:
    if kind is not None or axes is not None:
        raise UsageError("--kind and --axes describe one array; give its name with --key NAME.")


def _takes_member(
    members: Mapping[str, Any],
    kind: str | None,
    axes: str | None,
    key: str | None,
    has_labels: bool,
) -> bool:
    """Return whether one member of an .npz is converted, not the store that they are: that of
    `key`, or a single one unless only its name describes it."""
    is_named = (
        kind is axes is None
        and not has_labels
        and any(kind_called(name) not in (None, "mean_probs") for name in members)
    )
    return key is not None or (len(members) == 1 and not is_named)


def _member(source: str, members: dict[str, Any], key: str | None) -> tuple[str, StoredArray]:
    """Return the name and the array of the member to convert."""
    score_names = [name for name in members if ALIASES.get(name, name) in ("probs", "logits")]
    if key is None:
        key = (
            next(iter(members))
            if len(members) == 1
            else score_names[0]
            if len(score_names) == 1
            else None
        )
    if key is None or key not in members:
        problem = "uqeval cannot choose one" if key is None else f"no {quoted(key)}"
        raise StoreError(
            f"{cut(source)}: holds {listed(sorted(members))}; {problem}. Give --key NAME."
        )
    return key, with_scale(members).get(key, members[key])


def _are_scores(array: StoredArray) -> bool:
    """Return whether an array of items with labels must have class probabilities [item, class]: ids
    are integers, and maps have height and width as well.
    """
    return len(array.shape) == 2 and array.dtype.kind == "f" and not array.named_axes


def _kind(array: StoredArray, kind: str | None, axes: str | None) -> str:
    """Return the kind of an array after naming its axes; if `kind` is None, from its axes."""
    Declared(kind, axes).name_axes(array)
    if kind is None:
        axes_of_array = array.named_axes
        if "class" in axes_of_array if axes_of_array else len(array.shape) > 3:
            kind = "probs"
        else:
            raise UsageError(
                f"{array.where}: has the shape {array.shape} of {array.dtype}, which may hold any "
                "of several kinds. Give --kind: probs, logits, labels or predictions. `mean` and "
                "`std` need no conversion: numpy.savez('preds.npz', mean=mean, std=std) is a store."
            )
    return kind


def _item_folder(
    source: str, kind: str | None, names: Sequence[str] | None, axes: str | None, key: str | None
) -> Store:
    role: Role = "labels" if kind == "labels" else "predictions"
    return open_item_folder(source, Opening(role, names, declared=Declared(kind, axes, key)))


def _label_images(source: str, names: Sequence[str] | None) -> Store:
    if names is None:
        files = png_files(source)
        stems = [Path(file).stem for file in files]
        # The name has the folders if several folders have the same file.
        has_duplicates = len(set(stems)) < len(stems)
        names = [file.removesuffix(".png") for file in files] if has_duplicates else stems
    return open_store(source, role="labels", names=names)
