"""States of every tally, maps of a small stack, and regions: what changes must raise its version.

`python tests/helpers/pinned_states.py` writes `states.json`; do that when a version was raised, or
a tally was added.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import laws
import numpy as np
from pinned import machine, probabilities

from uqeval.maps import VERSION, names
from uqeval.maps.reduction import reduce_array
from uqeval.maps.region_maps import squared_distances
from uqeval.maps.region_text import Labelled, region_of
from uqeval.tallies._contract import Tally

PINS = Path(__file__).parents[1] / "golden" / "states.json"


def name_of(tally: Tally) -> str:
    """The name of a tally with its parameters; the version is no part of it."""
    parameters = {k: v for k, v in tally.parameters().items() if k != "version"}
    key = json.dumps(parameters, sort_keys=True).encode()
    return f"{tally.id} {hashlib.sha256(key).hexdigest()[:12]}"


REGIONS = ("boundary:1.5", "interior:1.5", "class:b", "map:m:2", "depth:3-9", "box:0:0.5,0.2:1")
TALLIES = {name_of(tally): tally for tally in laws.EXAMPLES}


def state(tally: Tally) -> dict[str, Any]:
    """The version of a tally, and the state of a few items."""
    arrays = laws.fold(tally, laws.items_for(tally))
    return {
        "version": tally.version,
        "arrays": {field: shown(arrays[field]) for field in tally.fields},
    }


def maps() -> dict[str, Any]:
    """The version of the maps, and those of one item from each dtype."""
    found: dict[str, Any] = {}
    for dtype in ("f2", "f4", "f8"):
        own = reduce_array(probabilities()[0].astype(dtype), tolerance=0.01)
        found |= {f"{dtype} {name}": shown(values) for name, values in own.items()}
    return {"version": VERSION, "arrays": found}


def region(text: str) -> dict[str, Any]:
    """The version of a region, and its pixels in an image with void labels."""
    label = np.array([[0, 0, 1, 1, 255, 255], [0, 0, 1, 255, 255, 2], [0, 0, 0, 2, 2, 2]], np.uint8)
    maps = {
        "label": label, names.BOUNDARY: squared_distances(label),
        names.DEPTH: np.arange(18.0).reshape(label.shape), names.ids_of_map("m"): label % 3,
    }  # fmt: skip
    own = region_of(text, Labelled("classes", ("a", "b", "c"), "here"))
    return {"version": own.version, "arrays": {"inside": shown(own.inside(maps))}}


def shown(values: Any) -> dict[str, Any]:
    """An array: a digest of its bits, its shape and dtype, and its sum."""
    values = np.ascontiguousarray(values)
    total = values.sum(dtype="f8" if values.dtype.kind == "f" else "i8")
    return {
        "digest": hashlib.sha256(values.tobytes()).hexdigest()[:16],
        "form": [values.dtype.str, *values.shape],
        "sum": repr(total.item()),
    }


def main() -> None:
    """Write the pins of the tallies and maps as they are."""
    lines = [f'"machine": {json.dumps(machine())}', f'"maps": {json.dumps(maps())}']
    lines += [f"{json.dumps(name)}: {json.dumps(state(own))}" for name, own in TALLIES.items()]
    lines += [f"{json.dumps(text)}: {json.dumps(region(text))}" for text in REGIONS]
    PINS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
