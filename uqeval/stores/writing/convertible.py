"""Open what can be converted: stores, and arrays without names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from uqeval.errors import StoreError, UsageError, cut
from uqeval.stores.array import Store, StoredArray
from uqeval.stores.attribute_arrays import OF_STORE
from uqeval.stores.axis_names import axis_called
from uqeval.stores.contents import (
    TRUTH,
    Contents,
    Opening,
    Role,
    as_one_item,
    assemble,
    hdf5_path,
)
from uqeval.stores.coordinates import COMPARED
from uqeval.stores.files.foreign import how_to_convert
from uqeval.stores.files.item_folder import kinds_in_folder, open_item_folder
from uqeval.stores.files.label_folder import open_predicted_ids, png_files
from uqeval.stores.files.numpy_store import NpzStore
from uqeval.stores.kinds import KNOWN, REGRESSION, Declared, kind_of_bare, known_alone
from uqeval.stores.orders import with_coordinates
from uqeval.stores.store import contents_of, open_store
from uqeval.stores.zarr.source import is_url, is_zarr

#: The sources that can be converted, for messages.
CONVERTIBLE = (
    "a .npy or .npz file, a folder of them (one per item), a folder of label PNGs, a Zarr store "
    "(folder, .zip or URL), or an HDF5 or netCDF-4 file (file.h5::/path)"
)


def open_convertible(
    source: str,
    kind: str | None,
    names: Sequence[str] | None,
    axes: str | None,
    key: str | None,
    fill_missing: bool,
    has_labels: bool,
) -> Store:
    """Open the store or the array at `source`; `usecases.convert` describes the parameters.
    `has_labels`: it has labels for the items.

    Raises `StoreError` for an unreadable source, `UsageError` if an option is needed.
    """
    path, declared = Path(source), Declared(kind, axes, key)
    if not is_url(source) and path.is_dir() and not is_zarr(source):
        if kinds_in_folder(source):
            role: Role = "labels" if kind == "labels" else "predictions"
            opening = Opening(role, names, declared=declared, has_other_truth=has_labels)
            return _one_sample(open_item_folder(source, opening))
        if png_files(source):
            if kind == "predictions":
                return open_predicted_ids(source, names, Declared(axes=axes))
            return _label_images(source, names)
    hdf5 = hdf5_path(source)
    if path.is_file() and hdf5 is None and path.suffix not in (".npy", ".npz", ".zip"):
        raise StoreError(
            f"{cut(source)} cannot be converted; expected {CONVERTIBLE}.{how_to_convert(source)}"
        )
    if hdf5 is not None and key is not None:
        source = f"{hdf5[0]}::{hdf5[1].rstrip('/')}/{key}"
    contents = contents_of(source)
    name = _alone(contents) if key is None and contents.unnamed is None else key
    array = contents.array(name, fill_missing=fill_missing)
    if array is None:
        if contents.kinds and (kind is not None or axes is not None):
            raise UsageError("--kind and --axes describe one array; give its name with --key NAME.")
        return _one_sample(open_store(
            contents, role="predictions", names=names, fill_missing=fill_missing,
            has_other_truth=has_labels,
        ))  # fmt: skip
    arrays, is_single = {_kind(array, name, declared, has_labels): array}, False
    if key is None:
        arrays, is_single = as_one_item(arrays)
    described = contents.described(name)
    store = assemble(
        source, arrays, names, described.names, described.attributes, described.warnings, is_single
    )
    return with_coordinates(store, *contents.beside())


def _alone(contents: Contents) -> str | None:
    """Return the name of the only array of a file or group, beside what describes it: names,
    attributes and coordinates; None if there is none, or if a store of this array is read."""
    arrays, _ = contents.beside()
    names = [
        name for name, array in arrays.items()
        if name not in OF_STORE | {"names"} and not (
            len(array.shape) == 1 and len(arrays) > 1 and axis_called(name) in COMPARED
        )
    ]  # fmt: skip
    # Links and arrays that cannot be read are among the kinds alone.
    if len(names) != 1 or len(contents.kinds) > len(arrays):
        return None
    is_read = names[0] in KNOWN - {"mean_probs"} and not isinstance(contents, NpzStore)
    return None if is_read else names[0]


def _one_sample(store: Store) -> Store:
    """Return a store whose only predictions are mean probabilities with these as one sample: no
    command reads `mean_probs` without `predictions`."""
    if "mean_probs" not in store.arrays or store.arrays.keys() - {"mean_probs", *TRUTH, "valid"}:
        return store
    arrays = {"probs" if k == "mean_probs" else k: parts for k, parts in store.arrays.items()}
    return replace(store, arrays=arrays)


def _kind(array: StoredArray, name: str | None, declared: Declared, has_labels: bool) -> str:
    """Return the kind of an array after naming its axes: the declared one, else that of its name,
    else `probs` if an evaluation reads it as such and it must have a class axis: that is named, or
    there are more than three axes, or labels beside two. With labels, three axes may be [N, T, C]
    or numbers [N, H, W], and arrays with a name of numbers may be without classes.
    """
    declared.name_axes(array)
    if kind := declared.kind or (name and known_alone(name, array, has_labels)):
        return kind
    rank, is_of_numbers = len(array.shape), name is not None and name in REGRESSION
    is_of_classes = "class" in array.named_axes or rank > 3
    is_of_classes |= has_labels and rank < 3 and not is_of_numbers
    if is_of_classes and kind_of_bare(array, "predictions", declared) == "probs":
        return "probs"
    raise UsageError(
        f"{array.where} has the shape {array.shape} of {array.dtype}, which may hold any of "
        "several kinds. Give --kind: probs, logits, labels or predictions. `mean` and `std` need "
        "no conversion: numpy.savez('preds.npz', mean=mean, std=std) is a store."
    )


def _label_images(source: str, names: Sequence[str] | None) -> Store:
    if names is None:
        files = png_files(source)
        stems = [Path(file).stem for file in files]
        # The name has the folders if several folders have the same file.
        has_duplicates = len(set(stems)) < len(stems)
        names = [file.removesuffix(".png") for file in files] if has_duplicates else stems
    return open_store(source, role="labels", names=names)
