"""URLs of object stores in place of local reports, states and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from uqeval.disk.objects import is_object_url, refuse_overlap_of_urls
from uqeval.errors import UsageError, cut, option_name

#: Options that name a file to write.
_OUTPUTS = ("output", "csv", "junit", "markdown")
#: Commands whose output is a store, a growing file or a folder that is replaced at once.
_LOCAL = frozenset({"convert", "evidence", "observe", "reduce"})
#: Arguments and options that name reports, states, rules or verdicts, by command.
_INPUTS = {
    "compare": ("reports", "replicates"), "gate": ("report", "rules", "baseline"),
    "merge": ("parts",), "observe": ("alarm_from",), "report": ("paths", "verdicts"),
    "run": ("baseline",), "select": ("report",), "verify": ("report",),
}  # fmt: skip
#: Those of all commands that evaluate, and the table of `--slices`, which also `merge` has.
_OF_EVALUATIONS = ("fitted", "threshold_from", "slices")
#: Options that name tables, lists or folders: reports and states record their paths, and workers of
#: a cluster read them. For some commands, flags have the same name.
_ON_DISK = ("fit_on", "images", "item_table", "label_map", "names")
#: Separates the paths of one --replicates.
_BETWEEN = "\0"


@contextmanager
def remote_files(command: str, values: dict[str, Any]) -> Iterator[None]:
    """Replace URLs among the arguments of a command by local files; upload its outputs at the end.

    Uploads nothing if the command fails, unless only a rule or some stores of a run failed.
    """
    _refuse_unread(command, values)
    names = (*_INPUTS.get(command, ()), *_OF_EVALUATIONS)
    possible = () if command in _LOCAL else _OUTPUTS
    outputs = [name for name in possible if is_object_url(values.get(name))]
    inputs = [name for name in names if any(map(is_object_url, _texts(values.get(name))))]
    if not (outputs or inputs):
        yield
        return
    from uqeval.disk.staging import staging

    if values.get("resume") and outputs:
        raise UsageError(
            f"--resume: {cut(values[outputs[0]])} is a URL, and the states of an interrupted run "
            "are saved only next to a local report. Give a local -o, or leave out --resume."
        )
    if command == "run" and values.get("fitted") and outputs:
        raise UsageError(
            f"--fitted: {cut(values[outputs[0]])} is a URL, and the states of the previous round "
            "are read from a disk only. Copy the folder of that round to a disk, and give it as -o."
        )
    sources = [text for name in values if name not in outputs for text in _texts(values[name])]
    refuse_overlap_of_urls([values[name] for name in outputs], sources)
    with staging() as staged:
        for name in outputs:
            stage = staged.output_folder if command == "run" else staged.output
            url, values[name] = values[name], stage(values[name])
            if name == "output" and values.get("fitted"):
                staged.earlier_states(url)
        for name in inputs:
            values[name] = _mapped(values[name], partial(staged.input, kind=_kind(name)))
        try:
            yield
        except typer.Exit:  # a failed gate has written verdicts, a run the stores that worked
            staged.put()
            raise
        staged.put()


def _refuse_unread(command: str, values: dict[str, Any]) -> None:
    """Raise `UsageError` for a URL that a command does not read."""
    for name in (*_INPUTS.get(command, ()), *_OF_EVALUATIONS):
        for text in _texts(values.get(name)):
            if "://" in text and not is_object_url(text) and not Path(text).exists():
                raise UsageError(
                    f"{cut(text)}: {_kind(name)} are read from a disk, and from s3://, gs:// and "
                    "az://. Download the file, and give its path."
                )
    settings = [("files", text) for text in _texts(values.get("files")) if command == "schema"]
    if command == "run":
        suffixes = (".yaml", ".yml")
        paths = _texts(values.get("paths"))
        settings = [("paths", text) for text in paths if text.lower().endswith(suffixes)]
    others = [(name, text) for name in _ON_DISK for text in _texts(values.get(name))]
    for name, text in settings + others:
        if "://" in text and not Path(text).exists():
            where = f"{option_name(name)} {cut(text)}" if name in _ON_DISK else cut(text)
            raise UsageError(f"{where} is read from a disk only; download it, and give its path.")


def _kind(name: str) -> str:
    """Return what an argument or option names."""
    if name == "slices":
        return "tables of items"
    return name if name in ("rules", "verdicts") else "reports"


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
