"""Options of inputs as the words of a command that can be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from uqeval.errors import option_name
from uqeval.inputs.options import InputOptions
from uqeval.settings import default_of

#: Options that say what class predictions and their labels hold.
_OF_CONTENT = (
    "names", "kind", "axes", "classes", "class_names", "ignore_index", "label_map",
    "annotator_folders", "sum_tolerance", "missing_chunks",
)  # fmt: skip


def with_options_of_content(command: str, options: InputOptions) -> str:
    """Return a command for class predictions with the options that say what these hold. Leaves out
    a list of names of items, which a command cannot have."""
    words: list[str] = []
    for name in _OF_CONTENT:
        value = getattr(options, name)
        if value is None or value == default_of(InputOptions, name):
            continue
        if value is True:
            words.append(option_name(name))
        elif isinstance(value, str | int | float | Path):
            words += [option_name(name), str(value)]
        elif name == "class_names" and isinstance(value, Sequence):
            words += [option_name(name), ",".join(value)]
    return f"{command} {shlex.join(words)}".rstrip()
