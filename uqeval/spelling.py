"""Options in messages: as on the command line, or as keywords of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

#: A command, which stays as it is; `-o`; or an option, with the number, quoted text or capital word
#: after it.
_OPTION = re.compile(
    r"""(uqeval\ [a-z]+\ (?:(?![;.,:]\s|`|$).)+ | `[a-z]+\ [^`]*`)
    | (?<![\w-])(?: -(o)\b | --(no-)?([a-z][a-z-]*) )
    (?:\ ( '[^']*' | "[^"]*"
    | (?: [+-]?\.?\d | nan | inf | True | [A-Z][A-Z0-9]*(?![a-z]) )\S*?(?=[.,;:)]*(?:\s|$)) ))?""",
    re.VERBOSE,
)
_is_command = False


@contextmanager
def as_flags() -> Iterator[None]:
    """Spell options as on the command line."""
    global _is_command
    before, _is_command = _is_command, True
    try:
        yield
    finally:
        _is_command = before


def spelled(text: str) -> str:
    """Return a message for the caller: with keywords in place of flags, unless it is a command.

    `--ci 0.95` becomes `ci=0.95`, `--missing-chunks fill` `missing_chunks fill`, and
    `--no-temperature` `temperature=False`.
    """
    return text if _is_command else _OPTION.sub(_keyword, text)


def _keyword(match: re.Match[str]) -> str:
    command, output, off, name, value = match.groups()
    if command:
        return command
    keyword = "states" if output else name.replace("-", "_")
    if off:
        return f"{keyword}=False" + match[0].removeprefix(f"--no-{name}")
    return keyword if value is None else f"{keyword}={value}"
