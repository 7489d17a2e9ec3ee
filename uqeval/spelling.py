"""How messages spell options: flags of a command, keywords of Python, or keys of `uqeval.yaml`.

The library writes flags in messages. They are spelled for the caller where a message leaves it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

from uqeval.errors import UqevalError

_T = TypeVar("_T")

#: A command, which stays as it is; `-o`; or an option, with the number, quoted text or capital word
#: after it, or the word after =.
_OPTION = re.compile(
    r"""(uqeval\ [a-z]+\ (?:(?![;.,:]\s|`|$).)+ | `[a-z]+\ [^`]*`)
    | (?<![\w-])(?: -(o)\b | --(no-)?([a-z][a-z-]*) )
    (?:=([a-z]\w*)
    | \ ( '[^']*' | "[^"]*"
    | (?: [+-]?\.?\d | nan | inf | True | [A-Z][A-Z0-9]*(?![a-z]) )\S*?(?=[.,;:)]*(?:\s|$)) ))?""",
    re.VERBOSE,
)
_is_command = False
#: Options that the caller sets in a file, by their keys.
_keys: ContextVar[Collection[str]] = ContextVar("_keys", default=())
#: Options that the running command lacks, with a command that has them.
_owners: ContextVar[Mapping[str, str] | None] = ContextVar("_owners", default=None)


@contextmanager
def as_flags() -> Iterator[None]:
    """Spell options as on the command line."""
    global _is_command
    before, _is_command = _is_command, True
    try:
        yield
    finally:
        _is_command = before


def as_keys(keys: Collection[str]) -> AbstractContextManager[None]:
    """Spell the options `keys` as keys of `uqeval.yaml`, also in errors that leave this context."""
    return _spelling(_keys, keys)


def as_commands(owners: Mapping[str, str]) -> AbstractContextManager[None]:
    """Spell the options `owners` with their commands, also in errors that leave this context:
    `--fit-on FILE` becomes `uqeval calibration --fit-on FILE`."""
    return _spelling(_owners, owners)


@contextmanager
def _spelling(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    except UqevalError as error:
        spell(error, "output")
        raise
    finally:
        variable.reset(token)


def for_caller(command: str, python: str, file: str | None = None) -> str:
    """Return the part of a message that differs between commands, Python and `uqeval.yaml`."""
    if file is not None and _keys.get():
        return file
    return command if _is_command else python


def spelled(text: str, output: str = "states") -> str:
    """Return a message for the caller: with keys, keywords or commands in place of flags.

    `output`: the keyword for `-o`.
    """
    if keys := _keys.get():
        text = _OPTION.sub(lambda match: _key(match, keys), text)
    if owners := _owners.get():
        text = _OPTION.sub(lambda match: _with_command(match, owners), text)
    return text if _is_command else as_keywords(text, output)


def spell(error: UqevalError, output: str = "states") -> None:
    """Spell the options in the message of an error for the caller, as `spelled` does."""
    error.args = tuple(spelled(a, output) if isinstance(a, str) else a for a in error.args)


def as_keywords(text: str, output: str = "states") -> str:
    """Return a text with keywords in place of flags.

    `--ci 0.95` becomes `ci=0.95`, `--kind=logits` `kind='logits'`, `--missing-chunks fill`
    `missing_chunks fill`, and `--no-temperature` `temperature=False`.
    """
    return _OPTION.sub(lambda match: _keyword(match, output), text)


def _keyword(match: re.Match[str], output: str) -> str:
    command, is_output, off, name, word, value = match.groups()
    if command:
        return command
    keyword = output if is_output else name.replace("-", "_")
    if off:
        return f"{keyword}=False" + match[0].removeprefix(f"--no-{name}")
    if word is not None:
        return f"{keyword}={word!r}"
    return keyword if value is None else f"{keyword}={value}"


def _key(match: re.Match[str], keys: Collection[str]) -> str:
    """Return an option as a key of YAML: `ci: 0.95`, `kind: logits`, `temperature: false`."""
    command, is_output, off, name, word, value = match.groups()
    key = "" if command or is_output else name.replace("-", "_")
    if key not in keys:
        return match[0]
    if off:
        return f"`{key}: false`" + match[0].removeprefix(f"--no-{name}")
    given = word or value
    return f"`{key}:`" if given is None else f"`{key}: {given}`"


def _with_command(match: re.Match[str], owners: Mapping[str, str]) -> str:
    """Return an option with the command that has it."""
    name = (match[4] or "").replace("-", "_")
    return f"uqeval {owners[name]} {match[0]}" if name in owners else match[0]
