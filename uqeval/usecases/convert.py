"""The use case `convert`: files of other tools, and their labels, to a checked store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from uqeval.errors import UsageError, cut, listed, quoted
from uqeval.inputs import InputOptions
from uqeval.inputs.classes import labels_of
from uqeval.inputs.common import as_store
from uqeval.maps.labels import annotators_of, check_label_sizes
from uqeval.maps.names import OF_MEAN_AND_LABEL
from uqeval.stores.array import ItemArray, Store, arrays_of
from uqeval.stores.class_ids import (
    ASSUMED_VOID,
    check_number,
    names_of_classes,
    refuse_other_void,
    void_id_of,
)
from uqeval.stores.files.item_folder import kinds_in_folder
from uqeval.stores.files.label_folder import png_files
from uqeval.stores.kinds import CLASS_PREDICTIONS, SCALED
from uqeval.stores.planes import Planes, unit_of
from uqeval.stores.store import has_chunks
from uqeval.stores.writing.convert import Progress, write_converted
from uqeval.stores.writing.converted_numbers import Recoding
from uqeval.stores.writing.convertible import open_convertible
from uqeval.stores.writing.new_store import checked_target
from uqeval.stores.zarr.source import is_zarr
from uqeval.stores.zarr.writer import Compression


def convert(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    kind: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
    axes: str | None = None,
    key: str | None = None,
    class_names: Sequence[str] | None = None,
    ignore_index: int | None = None,
    compression: Compression = "lz4",
    fill_missing: bool = False,
    overwrite: bool = False,
    recoding: Recoding | None = None,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Write the content of `source` as a Zarr store at `destination`; return warnings.

    `source`: an `.npy` or `.npz` file, a folder of such files (one per item, [T, C, H, W] or [C, H,
    W], named by their stems), a folder of label PNGs, an HDF5 file, or a Zarr store, which gets
    new chunks.
    `axes`: order of the axes of an array without names, in letters of NTCHW; `kind`: its content
    (by default that of its name, else `probs` if it has a class axis or more than three axes, or if
    an evaluation with these labels reads it as such); `key`: the array to take from an `.npz` file
    or Zarr group. `labels`: a store or folder with labels for the items, which are matched as in an
    evaluation. `ignore_index`: the void id of labels, by default that of their store, else of
    `source`. With `fill_missing`, missing chunks of a Zarr store are written as the fill value.

    `recoding`: store probabilities as uint16; afterwards it has the loss. `progress` is called with
    the number of finished items and of all items, over all kinds. Nothing is guessed from values,
    and nothing is repaired: probabilities must pass the checks of an evaluation. Raises
    `UsageError` if an option is needed, `StoreError` and `DataError` for sources that are
    unreadable or not as declared, and `OutputError`; then nothing is left at `destination`.
    """
    # Checks the options as an evaluation does.
    InputOptions(names=names, class_names=class_names, ignore_index=ignore_index)
    for option, path in (("SRC", source), ("--labels", labels)):
        if path is not None and not os.fspath(path):
            raise UsageError(f"{option} ''; expected a path.")
    target = checked_target(destination, [source, labels], overwrite)
    _refuse_without_effect(os.fspath(source), kind, axes, key, fill_missing, labels)
    predictions = open_convertible(
        os.fspath(source), kind, names, axes, key, fill_missing, has_labels=labels is not None
    )
    stores, warnings = [predictions], list(predictions.warnings)
    arrays = dict(predictions.arrays)
    if labels is not None:
        options = InputOptions(names=names, missing_chunks="fill" if fill_missing else "error")
        given = as_store(labels, "labels")
        store, parts = labels_of(predictions, given, predictions.names, options)
        _check_labels(predictions, parts)
        stores, warnings = [predictions, store], [*warnings, *store.warnings]
        warnings += _leave_out_of_labels(arrays, predictions.path)
        arrays["labels"] = parts
    _check_scales(arrays)
    void = void_id_of(ignore_index, stores[1:], stores[:1])
    if ignore_index is None:
        refuse_other_void(arrays_of(arrays.get("labels", ())), void)
    known_names, of_names = _class_names(class_names, stores)
    attributes = predictions.attributes | known_names
    if void is not ASSUMED_VOID:
        attributes["ignore_index"] = void
    joined = replace(predictions, arrays=arrays, attributes=attributes)
    write_converted(joined, target, void, compression, recoding, progress)
    widened = [] if recoding is not None else _of_mixed_dtypes(arrays)
    return (*warnings, *of_names, *widened)


def _check_scales(arrays: Mapping[str, Sequence[ItemArray]]) -> None:
    """Raise `StoreError` for numbers of a regression that no evaluation takes, such as integers
    without a scale. Beside class arrays, they are not read."""
    if arrays.keys() & set(CLASS_PREDICTIONS):
        return
    for kind in sorted(arrays.keys() & SCALED):
        for array in arrays_of(arrays[kind]):
            unit_of(array, kind)


def _of_mixed_dtypes(arrays: Mapping[str, Sequence[ItemArray]]) -> list[str]:
    """Return a warning for each kind of numbers that the items have in several dtypes."""
    warnings = []
    for kind, parts in arrays.items():
        dtypes = sorted({part.array.dtype for part in parts}, key=lambda dtype: dtype.itemsize)
        if len(dtypes) > 1 and all(dtype.kind == "f" for dtype in dtypes):
            warnings.append(
                f"the items have {quoted(kind)} of {listed([dtype.name for dtype in dtypes])}; all "
                f"are stored as {dtypes[-1].name}."
            )
    return warnings


def _class_names(
    given: Sequence[str] | None, stores: Sequence[Store]
) -> tuple[dict[str, list[str]], list[str]]:
    """Return the attribute `class_names` of the new store, and warnings: the names that the user
    gives, else those of the predictions or labels.

    Raises `StoreError` if these number the classes differently, and for a wrong number of names.
    """
    own = next((names for s in stores if (names := s.attributes.get("class_names"))), None)
    if given is None and own is None:
        return {}, []
    predictions = stores[0]
    classes = _classes(predictions) or len(given or own or ())
    stored = None if given is not None else predictions.attributes.get("class_names")
    check_number(given, stored, classes, predictions.path)
    names, warnings = names_of_classes(given, stores, classes)
    return {"class_names": list(names)}, warnings


def _leave_out_of_labels(arrays: dict[str, Sequence[ItemArray]], where: str) -> list[str]:
    """Remove the maps that were computed with other labels; return a warning if there are any."""
    stale = sorted(arrays.keys() & OF_MEAN_AND_LABEL)
    for name in stale:
        del arrays[name]
    if not stale:
        return []
    return [f"left out {listed(stale)} of {where}: they were computed with its own labels."]


def _check_labels(predictions: Store, labels: Sequence[ItemArray]) -> None:
    """Raise `StoreError` for labels that no evaluation takes: of other sizes than the probabilities
    or logits, or of several numbers of annotators.
    """
    names = predictions.names or tuple(str(i) for i in range(predictions.items))
    planes = Planes(labels, annotators_of(labels, names) > 0, "annotator")
    if scores := _scores(predictions):
        of_scores = Planes(scores, channels=True)
        sizes, is_volume = [of_scores.size(i) for i in range(len(scores))], bool(predictions.groups)
        check_label_sizes(planes, names, _classes(predictions) or 0, sizes, volume=is_volume)


def _scores(predictions: Store) -> Sequence[ItemArray]:
    """Return the probabilities or logits of the items; empty if there are none."""
    kinds = ("probs", "logits", "mean_probs")
    return next((predictions.arrays[k] for k in kinds if k in predictions.arrays), ())


def _classes(predictions: Store) -> int | None:
    """Return the number of classes of probabilities or logits; None without them."""
    for part in _scores(predictions)[:1]:
        return max(part.array.length("class"), 2)
    return None


def _refuse_without_effect(
    source: str,
    kind: str | None,
    axes: str | None,
    key: str | None,
    fill_missing: bool,
    labels: str | os.PathLike[str] | None,
) -> None:
    """Raise `UsageError` for options without effect on this source."""
    paths = [source, *([] if labels is None else [os.fspath(labels)])]
    if fill_missing and not any(map(has_chunks, paths)):
        raise UsageError(
            f"--missing-chunks fill is for Zarr stores, and {cut(source)} is not one. Leave it out."
        )
    local = Path(source)
    images = local.is_dir() and not is_zarr(source) and not kinds_in_folder(source)
    if key is not None and (images or local.suffix == ".npy"):
        raise UsageError(
            f"--key {key} names an array of a .npz file or a Zarr group; {cut(source)} has no "
            "names. Leave it out."
        )
    if images and png_files(source):
        if kind not in (None, "labels", "predictions"):
            raise UsageError(
                f"--kind {kind}: {cut(source)} is a folder of PNGs of class ids; expected labels "
                "or predictions."
            )
        if axes is not None and kind != "predictions":
            raise UsageError(
                f"--axes {axes}: {cut(source)} is a folder of label PNGs, one [H, W] per item. "
                "Leave it out."
            )
