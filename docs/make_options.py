"""Writes `docs/options.md` from the settings of the families; `tests/test_docs.py` compares."""

from __future__ import annotations

from pathlib import Path

from uqeval.metrics import FAMILIES
from uqeval.metrics._settings import Option, default_of, option_name, options_of, types_of

PAGE = Path(__file__).with_name("options.md")
HEAD = """# Options of the metrics

Each command has these options beside those of `uqeval COMMAND --help-all` that say what is read
and where the report goes. In `uqeval.yaml` an option stands under `evaluate: STORE: COMMAND:`, by
its name with underscores; in Python in `metrics={"COMMAND": {…}}`. A list of values makes variants,
unless `one` is said. `python docs/make_options.py` writes this page from the settings.
"""


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for name, family in FAMILIES.items():
        own = options_of(family.settings_type)
        if not own:
            continue
        rows = [_row(family.settings_type, option, known) for option, known in own.items()]
        table = ["| option | values | default | |", "|---|---|---|---|", *rows]
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
