"""Other spellings of commands and options: accepted with a note, and not in help or docs."""

from __future__ import annotations

from collections.abc import Sequence

from uqeval.cli.messages import tell
from uqeval.keys import COMMANDS_BY_KEY

#: Other names of options, by command.
OPTION_ALIASES = {
    "compare": {"--metrics": "--metric", "--baseline": "--against"},
    "sweep": {"--metrics": "--metric"},
}


def replace_command(args: Sequence[str]) -> list[str]:
    """Return the arguments with the documented name of their command. Prints a note."""
    if not args or args[0] not in COMMANDS_BY_KEY:
        return list(args)
    name = COMMANDS_BY_KEY[args[0]]
    if not {"-q", "--quiet"} & set(args):
        tell(f"note: the command `uqeval {args[0]}` is called `uqeval {name}`; use that name.")
    return [name, *args[1:]]


def replace_options(command: str, args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments with the documented names of their options, and notes for the user."""
    aliases = OPTION_ALIASES.get(command, {})
    end = args.index("--") if "--" in args else len(args)
    replaced, notes = [], []
    for arg in args[:end]:
        name, equals, value = arg.partition("=")
        if name in aliases:
            notes.append(
                f"note: the option {name} of `uqeval {command}` is called {aliases[name]}; use "
                "that name."
            )
            name = aliases[name]
        replaced.append(f"{name}{equals}{value}")
    return [*replaced, *args[end:]], list(dict.fromkeys(notes))
