"""States of every tally, and maps of a small stack: what raises a version when it changes.

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

from uqeval.maps import VERSION, reduce_array

PINS = Path(__file__).parents[1] / "golden" / "states.json"


def states() -> dict[str, Any]:
    """Of each example of a tally: its version, and the state of a few items."""
    found = {}
    for tally in laws.EXAMPLES:
        parameters = {k: v for k, v in tally.parameters().items() if k != "version"}
        key = json.dumps(parameters, sort_keys=True).encode()
        state = laws.fold(tally, laws.items_for(tally))
        found[f"{tally.id} {hashlib.sha256(key).hexdigest()[:12]}"] = {
            "version": tally.version,
            "arrays": {field: shown(state[field]) for field in tally.fields},
        }
    return found


def maps() -> dict[str, Any]:
    """The version of the maps, and those of one item from each dtype."""
    found: dict[str, Any] = {}
    for dtype in ("f2", "f4", "f8"):
        own = reduce_array(probabilities()[0].astype(dtype), tolerance=0.01)
        found |= {f"{dtype} {name}": shown(values) for name, values in own.items()}
    return {"version": VERSION, "arrays": found}


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
    lines += [f"{json.dumps(name)}: {json.dumps(own)}" for name, own in states().items()]
    PINS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
