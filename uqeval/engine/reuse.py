"""Reuse results of an earlier run: stamps of items, and the cache of their maps."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.records.input_options import VALUE_OPTIONS
from uqeval.stores.class_ids import stamp_of_void
from uqeval.threads import Threads

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.stores.map_cache import MapCache
    from uqeval.stores.watched_parts import Watched

#: Input options that the states of an item depend on: those that change numbers, and those that
#: decide how arrays are read and whether values are valid.
_OPTIONS = (*VALUE_OPTIONS, "kind", "axes", "sum_tolerance")

#: Computing stamps waits until the disk has written new files; several stamps share one wait.
_SYNCS = 8


def map_cache_of(inputs: Inputs, stamps: list[str | None]) -> MapCache | None:
    """Return the cache of maps for later runs, if requested."""
    from uqeval.maps.checks import has_valid_values
    from uqeval.maps.names import OF_CLASSES, form_of
    from uqeval.stores.map_cache import MapCache

    if inputs.map_cache is None:
        return None
    info = inputs.info()
    float32: Collection[str] = getattr(inputs.source, "float32", ())

    def classes_of(name: str) -> int:
        return info.inner_classes if name.startswith(OF_CLASSES) else info.classes

    def form(name: str, item: int) -> tuple[tuple[int, ...], str]:
        return form_of(name, classes_of(name), info.sizes[item], info.kind, float32)

    def is_valid(name: str, values: Array) -> bool:
        return has_valid_values(name, values, classes_of(name), info.kind)

    return MapCache(inputs.map_cache, info.names, stamps, form, is_valid)


def stamps_of(inputs: Inputs) -> list[str | None]:
    """Return a stamp per item, which changes when its states may change.

    It covers all that states depend on, except the parameters and versions of tallies. None if
    changes of the item's files cannot be detected.
    """
    from uqeval.maps import VERSION
    from uqeval.stores.states.saved import SCHEMA
    from uqeval.stores.watch import combining, one_look

    info = inputs.info()
    void = stamp_of_void(inputs.ignore_index, inputs.record.get("classes") or info.classes)
    context: dict[str, Any] = {
        "states": [SCHEMA, VERSION, np.__version__, zlib.ZLIB_RUNTIME_VERSION],
        "options": {name: inputs.options.get(name) for name in _OPTIONS},
        "data": [info.kind, info.classes, info.samples, info.reference, void],
        "flows": inputs.flows(),
        "paths": inputs.paths(),
        "last_digits": last_digits(),
    }
    if inputs.recipe is not None and inputs.recipe.subsets is not None:
        context["subsets"] = inputs.recipe.subsets
    combined = combining(json.dumps(context, sort_keys=True))

    def stamp(parts: Sequence[Watched]) -> str | None:
        return combined(item_array.stamp() for item_array in parts)

    def stamps(first: int) -> list[str | None]:
        with one_look():
            return [stamp(parts) for parts in all_parts[first : first + step]]

    all_parts = inputs.watch.parts
    step = -(-len(all_parts) // (4 * _SYNCS)) or 1
    with Threads(_SYNCS) as threads:
        blocks = threads.map(stamps, range(0, len(all_parts), step))
    return [item_stamp for block in blocks for item_stamp in block] or [None] * inputs.source.items


@cache
def last_digits() -> str:
    """Return a digest of NumPy's exp and log, whose last digits depend on the processor."""
    below = np.linspace(-20, 0, 4099)
    results = [
        function(values.astype(kind)).tobytes()
        for function, values in ((np.exp, below), (np.log, np.exp2(below)))
        for kind in (np.float64, np.float32)
    ]
    return hashlib.sha256(b"".join(results)).hexdigest()[:16]
