"""`uqeval schema`: print the JSON Schema of `uqeval.yaml`, or check files."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uqeval.cli.streams import printing, tell
from uqeval.disk.files import json_text
from uqeval.errors import UsageError, printable


def schema(
    files: Annotated[list[str] | None, typer.Argument(
        metavar="[FILE]...", show_default=False,
        help="Files to check: uqeval.yaml or rules. Opens no stores.")] = None,
) -> None:  # fmt: skip
    """Print the JSON Schema of uqeval.yaml, for completion and checks in editors; or check files.

    With files: prints one line per file. Status 0: all files are valid; 2: one is not.

    Example: uqeval schema > uqeval.schema.json
    """
    from uqeval.config import json_schema

    if files:
        valid = [_is_valid(path) for path in files]
        if not all(valid):
            raise typer.Exit(2)
        return
    sys.stdout.write(json_text(json_schema(), ensure_ascii=False))


def _is_valid(path: str) -> bool:
    """Return whether a settings file or a file of rules is valid; print that, or its error."""
    from uqeval.config import check_file

    try:
        check_file(path)
    except UsageError as error:
        tell(f"uqeval: {error}")
        return False
    with printing():
        sys.stdout.write(f"{printable(path)} is valid\n")
    return True
