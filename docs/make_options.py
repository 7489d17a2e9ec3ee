"""Write `docs/options.md` from the settings of the metrics; `tests/test_docs.py` compares."""

from __future__ import annotations

from pathlib import Path

from uqeval.metrics import FAMILIES
from uqeval.settings import Option, default_of, option_name, options_of, types_of

PAGE = Path(__file__).with_name("options.md")
HEAD = """# Options of the metrics

This page lists the options of each metric command. Every command also has options for its input
and output (`uqeval COMMAND --help-all`). You can set an option in three places:

- on the command line, as below
- in `uqeval.yaml`, under `evaluate: STORE: COMMAND:`, with underscores for hyphens
- in Python, in `metrics={"COMMAND": {…}}`

A list of values makes variants, except where the table says `one`. `python docs/make_options.py`
generates this page from the code.
"""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for name, family in FAMILIES.items():
        own = options_of(family.settings_type)
        if not own:
            continue
        rows = [_row(family.settings_type, option, known) for option, known in own.items()]
        table = ["| option | values | default | meaning |", "|---|---|---|---|", *rows]
        parts.append(f"## {name}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def _row(settings: type, name: str, known: Option) -> str:
    shown = known.in_words(default_of(settings, name))
    kinds = types_of(settings)[name]  # type: ignore[arg-type]
    values = ", ".join(f"`{choice}`" for choice in known.choices)
    if not values:
        noun = {int: "whole number", float: "number", bool: "yes or no", str: "text"}
        values = f"{noun[str if str in kinds else kinds[0]]} {known.range()}".strip()
    one = "" if known.several or bool in kinds else "; one"
    cells = [f"`{option_name(name)}`", values + one, shown, known.help]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page())
