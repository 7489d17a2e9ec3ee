"""Open the user's inputs and check them against each other: predictions, ground truth, names."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uqeval.errors import UsageError
from uqeval.inputs.opened import Given, Inputs
from uqeval.inputs.options import InputOptions


def beside_reference(inputs: Inputs, reference: Given, options: InputOptions) -> Inputs:
    """Opened predictions with those of a reference beside them, to be compared item by item.

    Raises `StoreError` where the two are not of the same items, sizes, classes and kind, and
    `UsageError` for options that have an effect on neither.
    """
    from uqeval.inputs.common import open_once, open_predictions
    from uqeval.inputs.effects import refuse_without_effect
    from uqeval.maps.reference import WithReference

    # What is said of labels, or of samples, need not hold for the reference.
    class_options, options = options, dataclasses.replace(options, label_map=None)
    reference = open_once(reference)
    stored_kinds = open_predictions(reference, options).stores[0].arrays
    if "samples" not in stored_kinds:
        options = dataclasses.replace(options, nan_samples="error")
    if "target" not in stored_kinds:
        options = dataclasses.replace(options, invalid=None)
    reference_inputs = _open(
        reference, None, options
    )  # options of the predictions may be none of its own
    record = inputs.record | {"reference": reference_inputs.record["predictions"][0]}
    combined = dataclasses.replace(
        inputs, source=WithReference(inputs.source, reference_inputs.source),
        record=record, reference=True,
        warnings=[*inputs.warnings, *reference_inputs.warnings],
        watch=inputs.watch.and_of(reference_inputs.watch),
    )  # fmt: skip
    refuse_without_effect(class_options, combined)
    return combined


def open_inputs(
    predictions: Given | Sequence[Given] | None, truth: Given | None, options: InputOptions,
    *, reference_follows: bool = False,
) -> Inputs:  # fmt: skip
    """Open and check everything that can be checked without reading data.

    With `reference_follows`, `beside_reference` checks later whether all options have an effect.
    Raises as `_open` does, and `UsageError` for options without effect on such data.
    """
    from uqeval.inputs.effects import refuse_without_effect

    inputs = _open(predictions, truth, options)
    if not reference_follows:
        refuse_without_effect(options, inputs)
    return inputs


def _open(
    predictions: Given | Sequence[Given] | None, truth: Given | None, options: InputOptions
) -> Inputs:
    """Open and check everything that can be checked without reading data.

    The `predictions` determine the kind of data. Class probabilities or ids have labels as `truth`.
    A mean with a standard deviation, or samples, have a target. With `options.video` the
    predictions belong to its frames, and may be inside it. Raises `StoreError` or `UsageError` with
    the store, its content and what was expected.
    """
    from uqeval.inputs.classes import open_classes
    from uqeval.inputs.common import as_store, open_predictions
    from uqeval.inputs.regression import is_regression, open_regression

    options.check_caches(predictions, truth)
    truth = None if truth is None else as_store(truth, "labels or target")
    if options.video is not None:
        if options.map_cache is not None:
            raise UsageError("--map-cache has no effect for a video; use --flow-cache.")
        from uqeval.inputs.video import open_video

        options.refuse_invalid(str(options.video))
        return dataclasses.replace(
            open_video(predictions, truth, options),
            options=options.record(),
            regions=options.regions,
        )
    options.refuse_video()
    if predictions is None:
        raise UsageError("no predictions; give a store of predictions.")
    predictions_opened = open_predictions(predictions, options)
    regression = is_regression(predictions_opened)
    if not regression:
        options.refuse_invalid(predictions_opened.where)
    inputs = (open_regression if regression else open_classes)(predictions_opened, truth, options)
    return dataclasses.replace(
        inputs, options=options.record(), map_cache=options.map_cache, regions=options.regions
    )
