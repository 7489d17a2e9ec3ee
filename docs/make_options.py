"""Write `docs/options.md` from the declared options; `tests/test_docs.py` compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uqeval.cli.declared import OutputOptions
from uqeval.engine.options import MachineOptions
from uqeval.errors import option_name
from uqeval.inputs.options import InputOptions
from uqeval.metrics import FAMILIES
from uqeval.settings import Option, default_of, options_of, plain_type, types_of
from uqeval.statistics.options import CutOptions

PAGE = Path(__file__).with_name("options.md")
HEAD = """# Options

The first tables list the options that several commands share, then each metric has a table.
`uqeval COMMAND --help-all` shows which command has which. You can set an option in three places:

- on the command line, as below
- in `uqeval.yaml`, with underscores for hyphens: options of a metric under `evaluate: STORE:
  COMMAND:`, options of inputs under `stores: STORE:`, all else at the top
  ([table](run.md#with-a-file))
- in Python, as a keyword of `uqeval.evaluate`; options of a metric in `metrics={"COMMAND": {…}}`

For metrics, a list of values makes variants, except where the table says `one`.
`python docs/make_options.py` generates this page from the code.
"""
#: The options that commands share, with the heading of their table.
SHARED = {
    "Inputs": InputOptions,
    "Intervals and slices": CutOptions,
    "Threads and memory": MachineOptions,
    "Output": OutputOptions,
}


def page() -> str:
    """Return the text of the page."""
    metrics = {name: family.settings_type for name, family in FAMILIES.items()}
    tables = [_table(title, settings) for title, settings in (SHARED | metrics).items()]
    return "\n".join([HEAD, *filter(None, tables)])


def _table(title: str, settings: Any) -> str:
    rows = [_row(settings, option, known) for option, known in options_of(settings).items()]
    if not rows:
        return ""
    lines = ["| option | values | default | meaning |", "|---|---|---|---|", *rows]
    return f"## {title}\n\n" + "\n".join(lines) + "\n"


def _row(settings: Any, name: str, known: Option) -> str:
    shown = known.in_words(default_of(settings, name))
    kinds = types_of(settings)[name]
    values = ", ".join(f"`{choice}`" for choice in known.choices)
    if not values:
        noun = {int: "whole number", float: "number", bool: "yes or no", str: "text"}
        values = f"{noun[plain_type(known, kinds)]} {known.range()}".strip()
        values = "path" if known.path else values
        values += {"": "", "repeat": "; repeat", "commas": ", with commas"}[known.list_by]
    one = "" if known.several or bool in kinds or settings in SHARED.values() else "; one"
    named = next((one for one in known.flags if one.startswith("--")), option_name(name))
    cells = [f"`{named}`", values + one, shown, known.help]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page())
