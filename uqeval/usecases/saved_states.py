"""Save the states of a run's items, and find the states that a later run can reuse.

A later run at the same path does not read items with the same stamp again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval import version

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.metrics._dataset_info import DatasetInfo
    from uqeval.records.report import Report
    from uqeval.stores.map_cache import MapCache
    from uqeval.stores.states.writer import StatesWriter
    from uqeval.stores.watch import Watched

#: Input options that the states of an item depend on.
_OPTIONS = (
    "kind", "axes", "label_map", "sum_tolerance", "nan_samples", "missing_chunks", "resize",
    "invalid",
)  # fmt: skip

#: Computing stamps waits until the disk has written new files; several stamps share one wait.
_SYNCS = 8


def states_of_run(
    inputs: Inputs,
    families: Mapping[str, Any],
    path: str | Path,
    resume: bool,
    stamps: list[str | None],
) -> StatesWriter:
    """Return the file for a run's states, and the reusable states at its path.

    Reuses the states of a finished earlier run, and with `resume` those of an interrupted one.
    """
    from uqeval.stores.states.blocks import ItemBlocks
    from uqeval.stores.states.earlier import EarlierStates
    from uqeval.stores.states.writer import StatesWriter

    run = {
        "uqeval_version": version.VERSION,
        "fingerprint": inputs.fingerprint,
        "items": list(inputs.source.names),
        "options": {name: str(value) for name, value in inputs.options.items()},
        "metrics": {name: repr(dict(options)) for name, options in families.items()},
        "stamps": stamps,
    }
    info = inputs.info()
    before = EarlierStates(path, info.names, stamps) if Path(path).is_file() else None
    return StatesWriter(path, run, resume, before, ItemBlocks(info.sizes, info.classes))


def map_cache_of(inputs: Inputs, stamps: list[str | None]) -> MapCache | None:
    """Return the cache of maps for later runs, if requested."""
    from uqeval.maps.names import form_of
    from uqeval.stores.map_cache import MapCache

    if inputs.map_cache is None:
        return None
    info = inputs.info()
    float32: Collection[str] = getattr(inputs.source, "float32", ())

    def form(name: str, item: int) -> tuple[tuple[int, ...], str]:
        return form_of(name, info.classes, info.sizes[item], info.kind, float32)

    return MapCache(inputs.map_cache, info.names, stamps, form)


def stamps_of(inputs: Inputs) -> list[str | None]:
    """Return a stamp per item, which changes when its states may change.

    It covers all that states depend on, except the parameters and versions of tallies. None if
    changes of the item's files cannot be detected.
    """
    import numpy as np

    from uqeval.maps import VERSION
    from uqeval.stores.states.saved import ITEMS_SCHEMA
    from uqeval.stores.watch import combined_stamp

    info = inputs.info()
    context = {
        "states": [ITEMS_SCHEMA, VERSION, np.__version__, zlib.ZLIB_RUNTIME_VERSION],
        "options": {name: inputs.options.get(name) for name in _OPTIONS},
        "data": [info.kind, info.classes, info.samples, info.reference, inputs.ignore_index],
        "flows": inputs.flows(),
        "paths": inputs.paths(),
        "exponential": _exponential(),
    }
    context_text = json.dumps(context, sort_keys=True)

    def stamp(parts: Sequence[Watched]) -> str | None:
        return combined_stamp([item_array.stamp() for item_array in parts], context_text)

    with ThreadPoolExecutor(_SYNCS) as threads:
        stamps = list(threads.map(stamp, inputs.watch.parts))
    return stamps or [None] * inputs.source.items


def _exponential() -> str:
    """Return a digest of NumPy's exp, whose last bit depends on the processor."""
    import numpy as np

    values = np.linspace(-20, 0, 4099)
    results = (np.exp(values).tobytes(), np.exp(values.astype(np.float32)).tobytes())
    return hashlib.sha256(b"".join(results)).hexdigest()[:16]


def states_index(
    report: Report, info: DatasetInfo, fitted: Mapping[str, Any], fingerprint: str
) -> dict[str, Any]:
    """Return the index of a states file: all that scoring the states again requires."""
    info_record = dataclasses.asdict(dataclasses.replace(info, video=None))
    del info_record["command"]  # of the run's messages only
    if info.video is not None:
        video = dataclasses.replace(info.video, flow_record=lambda method: {})
        flows = [record["flow"] for record in report.results.values() if record.get("flow")]
        info_record["video"] = dataclasses.asdict(video) | {
            "flow_record": {flow["id"]: flow for flow in flows}
        }
    return {
        "uqeval_version": report.uqeval_version,
        "fingerprint": fingerprint,
        "items": list(info.names),
        "records": report.items,
        "results": report.results,
        "numerics": report.numerics,
        "facts": info_record,
        "inputs": report.inputs,
        "settings": report.settings,
        "fitted": dict(fitted),
        "metrics": report.metrics,
        "partial": report.partial,
    }
