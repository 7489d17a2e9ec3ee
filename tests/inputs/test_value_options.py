"""Each input option either changes numbers, or is known not to."""

from __future__ import annotations

import json
from typing import Any

from uqeval.inputs.options import InputOptions
from uqeval.records.inputs import VALUE_OPTIONS
from uqeval.settings import default_of, options_of

#: Options that change no number of a result: the values that the first ones give are compared
#: themselves; the next choose items or regions, describe how arrays are stored, or check values.
#: Paths are not compared either; contents have fingerprints.
OTHERS = {
    "ignore_index", "classes", "class_names",
    "limit", "part", "fitted", "region", "kind", "axes", "sum_tolerance",
}  # fmt: skip


def test_every_option_is_one_or_the_other() -> None:
    options = options_of(InputOptions)
    paths = {name for name, option in options.items() if option.path}
    assert options.keys() - paths - OTHERS == VALUE_OPTIONS.keys()


def test_defaults_are_those_of_the_options() -> None:
    assert {name: default_of(InputOptions, name) for name in VALUE_OPTIONS} == VALUE_OPTIONS


def test_equal_values_are_recorded_as_equal() -> None:
    """Python may give a whole number for a number, and one text for a list."""
    given: dict[str, Any] = {"baseline_focal": 50, "region": "boundary:2", "invalid": 0}
    typed: dict[str, Any] = {"baseline_focal": 50.0, "region": ["boundary:2"], "invalid": ["0"]}
    records = [json.dumps(InputOptions(**options).record()) for options in (given, typed)]
    assert records[0] == records[1]
