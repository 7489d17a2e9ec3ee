"""URLs of object stores in place of local reports and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from uqeval.disk.objects import is_object_url, refuse_overlap_of_urls
from uqeval.errors import UsageError, cut

#: Options that name a file to write.
_OUTPUTS = ("output", "csv", "junit", "markdown")
#: Commands whose output is a store, a growing file or a folder that is replaced at once.
_LOCAL = frozenset({"convert", "evidence", "observe", "reduce"})
#: Arguments and options that name reports or states, by command.
_INPUTS = {
    "compare": ("reports", "replicates"), "gate": ("report", "baseline"), "merge": ("parts",),
    "report": ("paths",), "select": ("report",),
}  # fmt: skip
#: Separates the paths of one --replicates.
_BETWEEN = "\0"


@contextmanager
def remote_files(command: str, values: dict[str, Any]) -> Iterator[None]:
    """Replace URLs among the arguments of a command by local files; upload its outputs at the end.

    Uploads nothing if the command fails, unless only a rule or some stores of a run failed.
    """
    for name in _INPUTS.get(command, ()):
        for text in _texts(values.get(name)):
            if "://" in text and not is_object_url(text) and not Path(text).exists():
                raise UsageError(
                    f"{cut(text)}: reports are read from a disk, and from s3://, gs:// and az://. "
                    "Download the file, and give its path."
                )
    outputs = [name for name in _OUTPUTS if is_object_url(values.get(name))]
    inputs = [
        name
        for name in _INPUTS.get(command, ())
        if any(map(is_object_url, _texts(values.get(name))))
    ]
    if command in _LOCAL or not (outputs or inputs):
        yield
        return
    from uqeval.disk.staging import staging

    if values.get("resume") and outputs:
        raise UsageError(
            f"--resume: {cut(values[outputs[0]])} is a URL, and the states of an interrupted run "
            "are saved only next to a local report. Give a local -o, or leave out --resume."
        )
    sources = [text for name in values if name not in outputs for text in _texts(values[name])]
    refuse_overlap_of_urls([values[name] for name in outputs], sources)
    with staging() as staged:
        for name in outputs:
            stage = staged.output_folder if command == "run" else staged.output
            values[name] = stage(values[name])
        for name in inputs:
            values[name] = _mapped(values[name], staged.input)
        try:
            yield
        except typer.Exit:  # a failed gate has written verdicts, a run the stores that worked
            staged.put()
            raise
        staged.put()


def _texts(value: Any) -> list[str]:
    """Return the texts of a value: itself, or the members of a list."""
    values = value if isinstance(value, list | tuple) else [value]
    return [part for text in values if isinstance(text, str) for part in text.split(_BETWEEN)]


def _mapped(value: Any, fetch: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_mapped(part, fetch) for part in value]
    if not isinstance(value, str):
        return value
    parts = value.split(_BETWEEN)
    return _BETWEEN.join(fetch(part) if is_object_url(part) else part for part in parts)
