"""A tally whose state changes, a region and maps that change have raised their version.

Saved states are found by it. On another machine than the one that wrote the pins, the last bits of
a logarithm may differ: there forms and versions are held, and sums to 1e-9.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pinned
import pinned_states
import pytest

PINS: dict[str, Any] = json.loads(pinned_states.PINS.read_text())
SAME_MACHINE = PINS.pop("machine") == pinned.machine()
WRITE = "raise `version`, then run: python tests/helpers/pinned_states.py"


@pytest.mark.parametrize("name", PINS)
def test_what_changes_has_raised_its_version(name: str) -> None:
    if name == "maps":
        now = pinned_states.maps()
    elif name in pinned_states.REGIONS:
        now = pinned_states.region(name)
    else:
        now = pinned_states.state(pinned_states.TALLIES[name])
    then = PINS[name]
    if now["version"] == then["version"]:
        assert set(now["arrays"]) >= set(then["arrays"])
        for field, own in then["arrays"].items():
            assert _same(own, now["arrays"][field]), f"{name}: {field} is another; {WRITE}"


def test_all_are_pinned() -> None:
    now = {name: tally.version for name, tally in pinned_states.TALLIES.items()}
    now["maps"] = pinned_states.VERSION
    now |= {text: pinned_states.region(text)["version"] for text in pinned_states.REGIONS}
    assert now == {name: own["version"] for name, own in PINS.items()}, WRITE


def _same(then: dict[str, Any], now: dict[str, Any]) -> bool:
    if SAME_MACHINE:
        return then == now
    close = math.isclose(float(then["sum"]), float(now["sum"]), rel_tol=1e-9)
    return then["form"] == now["form"] and (close or then["sum"] == now["sum"])
