"""Options in messages: as on the command line, or as keywords of Python."""

from __future__ import annotations

import re

#: Words after an option that are its value, in messages; other words are part of the sentence.
_VALUES = {"both", "dis", "file", "fill", "nearest", "samples", "skip"}
#: A command, which stays as it is; `-o`; or an option and its value, if the next word is one.
_OPTION = re.compile(
    r"""(uqeval\ [a-z]+\ (?:(?![;.,:]\s|`|$).)+ | `[a-z]+\ [^`]*`)
    | (?<![\w-])(?: -(o)\b | --(no-)?([a-z][a-z-]*) )
    (?:\ ( '[^']*' | "[^"]*"
    | (?: [+-]?\.?\d | nan | inf | True | [A-Z][A-Z0-9]*(?![a-z]) )\S*?(?=[.,;:)]*(?:\s|$))
    | [a-z][a-z-]*(?![\w:]) ))?""",
    re.VERBOSE,
)
_is_command = False


def spell_as_flags() -> None:
    """Spell options as on the command line from now on, in this process."""
    global _is_command
    _is_command = True


def spelled(text: str) -> str:
    """Return a message for the caller: with keywords in place of flags, unless it is a command.

    `--missing-chunks fill` becomes `missing_chunks="fill"`, `--no-temperature` `temperature=False`.
    """
    return text if _is_command else _OPTION.sub(_keyword, text)


def _keyword(match: re.Match[str]) -> str:
    command, output, off, name, value = match.groups()
    if command:
        return command
    keyword = "states" if output else name.replace("-", "_")
    if off:
        return f"{keyword}=False" + match[0].removeprefix(f"--no-{name}")
    if value is None:
        return keyword
    if re.fullmatch("[a-z-]+", value) and value not in ("nan", "inf"):
        return f'{keyword}="{value}"' if value in _VALUES else f"{keyword} {value}"
    return f"{keyword}={value}"
