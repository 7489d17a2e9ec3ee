"""Every option of every command: names, default and choices, as the command line has them.

`python tests/helpers/pinned_options.py` writes `options.json`; do that when an option was added. No
option may be removed, because scripts of users have them.
"""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import typer.main

from uqeval.cli.entry import COMMANDS, app
from uqeval.cli.parsing import OPTION_ALIASES

PINS = Path(__file__).parents[1] / "golden" / "options.json"


def options() -> dict[str, dict[str, Any]]:
    """Return the options and arguments of each command by their documented name."""
    commands: Any = typer.main.get_command(app)
    return {name: _of(commands.get_command(None, name), _aliases(name)) for name in COMMANDS}


def _aliases(command: str) -> dict[str, list[str]]:
    """The other names of a command's options, by the documented name."""
    found: dict[str, list[str]] = {}
    for alias, name in OPTION_ALIASES.get(command, {}).items():
        found.setdefault(name, []).append(alias)
    return found


def _of(command: Any, aliases: dict[str, list[str]]) -> dict[str, Any]:
    found = {}
    for one in command.params:
        names = [*one.opts, *one.secondary_opts]
        names += [alias for name in names for alias in aliases.get(name, ())]
        default = one.default() if callable(one.default) else one.default
        found[names[0]] = {
            "names": names,
            "default": default if isinstance(default, int | float | str | None) else str(default),
            "choices": _choices(one),
            "several": bool(one.multiple or one.nargs != 1),
            "required": bool(one.required),
        }
    return found


def _choices(one: Any) -> list[str]:
    """Texts that an option takes: newer versions of Typer hold a type, older ones click's."""
    if not hasattr(one, "type_descriptor"):
        return [str(getattr(c, "value", c)) for c in getattr(one.type, "choices", ())]
    annotation = one.type_descriptor.annotation
    kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
    members = [kind for kind in kinds if issubclass(kind, Enum)]
    return [str(choice.value) for kind in members for choice in kind]


def main() -> None:
    """Write the pins of the commands as they are."""
    lines = [
        f"{json.dumps(command)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in own.items())
        + "\n}"
        for command, own in options().items()
    ]
    PINS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
