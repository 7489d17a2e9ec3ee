"""What an `Evaluator` stores, from the first items that it gets, and the form of all later ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from uqeval.errors import DataError, UqevalError, number_of
from uqeval.inputs import Inputs, open_inputs
from uqeval.inputs.options import InputOptions
from uqeval.maps.names import is_annotations
from uqeval.stores.class_ids import refuse_other_numbers
from uqeval.stores.names import as_items, read_names_file

#: The path of the predictions in a report.
PATH = "uqeval.Evaluator"
#: The size of an item that a later update may add: no check of sizes refuses it.
_ANY_SIZE = (2**31 - 1, 2**31 - 1)


def planned_attributes(
    inputs: Inputs,
    metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None],
    folder: Path,
) -> dict[str, Any]:
    """Return the attributes of the store of maps; `maps` are those that the metrics read.

    Writes the first item to `folder` as a store of maps, and removes it again. Raises `UqevalError`
    for metrics that cannot evaluate such items.
    """
    from uqeval.usecases.plans import evaluations_of, everything, families_of
    from uqeval.usecases.reduce import reduce

    first = folder / "first"
    try:
        reduce(_first_item(inputs), first)
        with named_as_evaluator(first):
            families = {} if metrics == "all" else families_of(metrics)
            opened = _with_items_to_come(open_inputs(str(first), None, InputOptions()), families)
            families = everything(opened)[0] if metrics == "all" else families
            maps = evaluations_of(opened.info(), families, None)[1]  # `report` chooses regions
        document = json.loads((first / "zarr.json").read_text(encoding="utf-8"))
    finally:
        shutil.rmtree(first, ignore_errors=True)
    left_out = ("names", "reduced_from")
    attributes = {k: v for k, v in document["attributes"].items() if k not in left_out}
    attributes["uqeval"].pop("arrays", None)  # those of the evaluator are in groups of items
    # The labels of several annotators are stored in place of their majority.
    of_labels = {name for name in maps if is_annotations(name)} or {"label"}
    stored = maps - {"label"} | {"prediction"} | of_labels
    return attributes | {"maps": sorted(stored), "annotators": inputs.annotators}


def check_form(inputs: Inputs, attributes: Mapping[str, Any]) -> None:
    """Raise `DataError` if items differ from those before in the number of samples, classes or
    annotators, and `StoreError` if their names of classes are in another order."""
    declared = attributes["uqeval"]
    expected = declared["samples"], declared["classes"]
    form = inputs.record["samples"], inputs.record["classes"]
    if form != expected:
        raise DataError(
            "an update of {} samples and {} classes; the items before have {} and {}.".format(
                *form, *expected
            )
        )
    names = attributes["class_names"], inputs.class_names
    refuse_other_numbers(zip(("the items before", "the update"), names, strict=True))
    if inputs.annotators != attributes["annotators"]:
        given, before = map(_labels_in_words, (inputs.annotators, attributes["annotators"]))
        raise DataError(
            f"an update with {given}; the items before have {before}. Give the labels of all items "
            "the same axes, and fill the planes of those who did not label an item with the void "
            "id."
        )


def _labels_in_words(annotators: int) -> str:
    if not annotators:
        return "labels without annotators [N, H, W]"
    return f"labels of {number_of(annotators, 'annotator')} [N, {annotators}, H, W]"


@contextmanager
def named_as_evaluator(store: Path) -> Iterator[None]:
    """Raise errors about a store in the temporary folder with the name that reports have for it."""
    try:
        yield
    except UqevalError as error:
        error.args = tuple(str(text).replace(str(store), PATH) for text in error.args)
        raise


def _with_items_to_come(opened: Inputs, families: Mapping[str, Mapping[str, Any]]) -> Inputs:
    """Return the first item with those that later updates may add, as a shard has all items: the
    items that options name, and one without a known name, of any size."""
    given = [options["fit_on"] for options in families.values() if options.get("fit_on")]
    files = [path for one in given for path in (one if isinstance(one, list | tuple) else [one])]
    first = opened.info()
    sizes = dict(zip(first.names, first.sizes, strict=True))
    names = (name for path in files for name in read_names_file(path))
    for name in (*as_items(names, first.names), ""):
        sizes.setdefault(name, _ANY_SIZE)
    return replace(opened, all_names=tuple(sizes), all_sizes=tuple(sizes.values()))


def _first_item(inputs: Inputs) -> Inputs:
    """Return the same inputs with the first item alone."""
    recipe = inputs.recipe
    assert recipe is not None
    return open_inputs(recipe.predictions, recipe.truth, replace(recipe.options, limit=1))
