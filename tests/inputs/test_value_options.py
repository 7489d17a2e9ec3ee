"""Each input option either changes numbers, or is known not to."""

from __future__ import annotations

from uqeval.inputs.options import InputOptions
from uqeval.records.input_options import VALUE_OPTIONS
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
