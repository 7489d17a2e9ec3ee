"""Open the user's inputs; check them against each other, and options against the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from uqeval.errors import StoreError, UsageError, cut, option_name
from uqeval.inputs.opened import Given, Inputs, Recipe
from uqeval.inputs.options import InputOptions
from uqeval.spelling import for_caller


def beside_reference(inputs: Inputs, reference: Given, options: InputOptions) -> Inputs:
    """Return opened predictions with those of a reference, to be compared item by item.

    Raises `StoreError` where the two are not of the same items, sizes, classes, kind and units, and
    `UsageError` for options that have an effect on neither.
    """
    from uqeval.inputs.common import open_once, open_predictions
    from uqeval.maps.reference import WithReference
    from uqeval.stores.class_ids import refuse_other_numbers
    from uqeval.stores.orders import refuse_other_order

    # Options of labels and samples may not apply to the reference.
    class_options = options
    options = dataclasses.replace(options, label_map=None, annotator_folders=False)
    reference = open_once(reference)
    stored_kinds = open_predictions(reference, options, "reference").stores[0].arrays
    if "samples" not in stored_kinds:
        options = dataclasses.replace(options, nan_samples="error")
    if "target" not in stored_kinds:
        options = dataclasses.replace(options, invalid=None)
    # It may not have all options of the predictions.
    reference_inputs = _open(reference, None, options, "reference")
    refuse_other_numbers((own.source.where, own.class_names) for own in (inputs, reference_inputs))
    _refuse_other_units(inputs, reference_inputs)
    if (own := inputs.store) is not None and (other := reference_inputs.store) is not None:
        by_name = options.names is None and own.names is not None and other.names is not None
        refuse_other_order(other, own, by_name=by_name)
    record = inputs.record | {"reference": reference_inputs.record["predictions"][0]}
    combined = dataclasses.replace(
        inputs, source=WithReference(inputs.source, reference_inputs.source),
        record=record, reference=True,
        warnings=[*inputs.warnings, *reference_inputs.warnings],
        watch=inputs.watch.and_of(reference_inputs.watch),
        recipe=inputs.recipe and dataclasses.replace(inputs.recipe, reference=reference),
    )  # fmt: skip
    refuse_without_effect(class_options, combined)
    return combined


def _refuse_other_units(inputs: Inputs, reference: Inputs) -> None:
    """Raise `StoreError` if predictions and reference declare different units."""
    from uqeval.records.units import is_same_unit

    units, other_units = (own.record.get("units") for own in (inputs, reference))
    if units and other_units and not is_same_unit(units, other_units):
        raise StoreError(
            f"mixed units: {inputs.source.where} is in {cut(units)}, the reference "
            f"{reference.source.where} in {cut(other_units)} (attribute units). Expected one unit: "
            "store both in it, or correct the attribute."
        )


def open_again(recipe: Recipe) -> Inputs:
    """Open inputs from a recipe with absolute paths. Raises `UqevalError`."""
    from uqeval.maps.subsets import subsets_of

    inputs = open_inputs(
        recipe.stores() or None, recipe.truth, recipe.options, reference_follows=True
    )
    if recipe.subsets is not None:
        inputs = dataclasses.replace(inputs, source=subsets_of(inputs.source, recipe.subsets))
    if recipe.reference is not None:
        inputs = beside_reference(inputs, recipe.reference, recipe.options)
    return inputs


def open_inputs(
    predictions: Given | Sequence[Given] | None, truth: Given | None, options: InputOptions,
    *, reference_follows: bool = False,
) -> Inputs:  # fmt: skip
    """Open and check everything that can be checked without reading data.

    With `reference_follows`, `beside_reference` checks later whether all options have an effect.
    Raises as `_open` does, and `UsageError` for options without effect on such data.
    """
    inputs = _open(predictions, truth, options)
    if not reference_follows:
        refuse_without_effect(options, inputs)
    return dataclasses.replace(inputs, recipe=Recipe(predictions, truth, options))


def _open(
    predictions: Given | Sequence[Given] | None, truth: Given | None, options: InputOptions,
    called: str = "predictions",
) -> Inputs:  # fmt: skip
    """Open and check everything that can be checked without reading data.

    The `predictions` determine the kind of data. Class probabilities or ids have labels as `truth`.
    A mean with a standard deviation, or samples, have a target. With `options.video` the
    predictions belong to its frames, and may be inside it. Raises `StoreError` or `UsageError` with
    the store, its content and what was expected.
    """
    from uqeval.inputs.common import as_store, is_regression, open_predictions, path_of

    options.check_caches(predictions, truth)
    truth = None if truth is None else as_store(truth, "labels or target")
    if options.video is not None:
        if options.map_cache is not None:
            raise UsageError("--map-cache has no effect for a video; use --flow-cache.")
        from uqeval.inputs.video import open_video

        options.refuse_invalid(path_of(options.video))
        if options.is_ood:
            raise UsageError(
                f"{'--out' if options.out else '--ood-mask'} is for out-of-distribution detection, "
                f"and {path_of(options.video)} is a video. Leave it out."
            )
        inputs = dataclasses.replace(
            open_video(predictions, truth, options), options=options.record()
        )
        video: Any = inputs.source
        return _with_regions(inputs, options, None, video.frame_names, len(video.frames))
    options.refuse_video()
    if predictions is None:
        raise UsageError("no predictions; give a store of predictions.")
    if options.is_ood:
        from uqeval.inputs.sets import open_sets

        inputs, of_items = open_sets(predictions, truth, options)
        inputs = dataclasses.replace(inputs, options=options.record(), map_cache=options.map_cache)
        return _with_regions(inputs, options, *of_items)
    predictions_opened = open_predictions(
        predictions, options, called, has_other_truth=truth is not None
    )
    if is_regression(predictions_opened):
        from uqeval.inputs.regression import open_regression

        inputs = open_regression(predictions_opened, truth, options)
    else:
        from uqeval.inputs.classes import open_classes

        options.refuse_invalid(predictions_opened.where)
        inputs = open_classes(predictions_opened, truth, options)
    joined, names = predictions_opened.joined, predictions_opened.names
    inputs = dataclasses.replace(
        inputs, options=options.record(), map_cache=options.map_cache, store=joined
    )
    return _with_regions(inputs, options, joined, names, inputs.record["items"])


def _with_regions(inputs: Inputs, options: InputOptions, *of_items: Any) -> Inputs:
    """Return inputs with the maps of the regions that are requested."""
    if not options.regions and options.depth_map is None:
        return inputs
    from uqeval.inputs.regions import with_regions

    return with_regions(inputs, options, *of_items)


def _arrays(inputs: Inputs) -> set[str]:
    stores = [*inputs.record["predictions"], inputs.record.get("reference") or {"arrays": ()}]
    return {name for store in stores for name in store["arrays"]}


def _paths(inputs: Inputs, *kinds: str) -> list[str]:
    """Return the paths of the stores of these kinds, as the record of the inputs has them."""
    records = (inputs.record.get(kind) or () for kind in kinds)
    return [
        str(store["path"])
        for stores in records
        for store in ([stores] if isinstance(stores, Mapping) else stores)
    ]


def _has_samples(inputs: Inputs) -> bool:
    regression = inputs.source.kind == "regression"
    return regression and "samples" in _arrays(inputs)


def _has_void(inputs: Inputs) -> bool:
    has_labels = inputs.source.kind == "video" or inputs.record.get("labels") is not None
    return has_labels or isinstance(inputs.record.get("ood_mask"), Mapping)


def _has_label_files(inputs: Inputs) -> bool:
    from uqeval.inputs.common import is_folder_of_files

    labels = inputs.record.get("labels")
    return labels is not None and is_folder_of_files(Path(labels["path"]))


def _has_chunks(inputs: Inputs) -> bool:
    from uqeval.stores.store import has_chunks

    paths = _paths(inputs, "predictions", "labels", "target", "reference", "frames", "flow")
    return any(map(has_chunks, paths))


def _has_bare_predictions(inputs: Inputs) -> bool:
    # For other kinds of data, opening checks the declaration.
    if inputs.source.kind != "video":
        return True
    from uqeval.stores.files.label_folder import png_files

    paths = _paths(inputs, "predictions")
    return any(not Path(path).is_dir() or not png_files(path) for path in paths)


#: The requirement of an option in words, and a function that checks it for opened inputs.
_NEEDS: Mapping[str, tuple[str, Callable[[Inputs], bool]]] = {
    "missing_chunks": (
        "a Zarr store or an HDF5 file: only their chunks can be missing",
        _has_chunks,
    ),
    "kind": ("predictions in a store, not in label PNGs", _has_bare_predictions),
    "axes": ("predictions in a store, not in label PNGs", _has_bare_predictions),
    "nan_samples": ("`samples` of a regression", _has_samples),
    "sum_tolerance": (
        "class probabilities, an array `probs` or `mean_probs`",
        lambda i: not _arrays(i).isdisjoint(("probs", "mean_probs")),
    ),
    "ignore_index": ("labels, or masks of ids", _has_void),
    "label_map": ("a folder of label PNGs", _has_label_files),
    "annotator_folders": ("a folder of label PNGs of images", lambda i: i.annotators > 0),
}


def refuse_without_effect(options: InputOptions, inputs: Inputs) -> None:
    """Raise one `UsageError` for all options that have no effect on these inputs."""
    messages = []
    for name, (needs, has_need) in _NEEDS.items():
        value: Any = getattr(options, name)
        if value != type(options).__dataclass_fields__[name].default and not has_need(inputs):
            messages.append(f"{option_name(name)} {value} needs {needs}")
    if messages:
        available = ", ".join(sorted(_arrays(inputs)))
        raise UsageError(
            f"{'; '.join(messages)}; {inputs.source.where} does not have that (it holds "
            f"{available}). The option would have no effect: leave it out, or give what it needs."
        )


def warned_of_flow(inputs: Inputs, families: Mapping[str, Mapping[str, Any]]) -> Inputs:
    """Return inputs with a warning if a store of a video has a flow, and no flow is chosen."""
    options = families.get("tc")
    flows = inputs.record.get("flow") or ()
    saved = [flow["path"] for flow in flows if flow["direction"] == "flow"]
    if options is None or "flow" in options or not saved:
        return inputs
    fix = for_caller("--flow file", "flow='file'", "`flow: file`")
    text = (
        f"{cut(saved[0])}: its saved flow is not read, because the default is to estimate the flow "
        f"(farneback). To use it, give {fix}."
    )
    return dataclasses.replace(inputs, warnings=[*inputs.warnings, text])


def refuse_flow_without_effect(inputs: Inputs, wanted_maps: Collection[str]) -> None:
    """Raise `UsageError` for saved or cached flow that no map reads."""
    from uqeval.maps.names import flows_of

    read_maps = flows_of(wanted_maps)
    of_path = "--flow file"
    if "flow_forward:file" in read_maps:
        of_path = (
            "--grid current, because --grid previous (which --definition vspw and etc set) reads "
            "only --flow-forward-path"
        )
    needs = {
        "flow_path": ("flow:file" in read_maps, of_path),
        "flow_forward_path": (
            "flow_forward:file" in read_maps,
            "--flow file with --occlusion fb, --tracks or --grid previous",
        ),
        "flow_cache": (
            any(not name.endswith(":file") for name in read_maps),
            "a flow that is estimated, such as --flow dis",
        ),
    }
    messages = [
        f"{option_name(name)} needs {need}"
        for name, (has_need, need) in needs.items()
        if inputs.options.get(name) is not None and not has_need
    ]
    if messages:
        raise UsageError(
            f"{'; '.join(messages)}. The option would have no effect: leave it out, or give what "
            "it needs."
        )
