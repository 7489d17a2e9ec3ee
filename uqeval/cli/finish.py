"""Steps that every evaluating command does with its report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from uqeval.cli.streams import console, error_console, print_text, printing, tell
from uqeval.disk.files import path_without_suffix, stream_of
from uqeval.disk.locks import lock
from uqeval.disk.outputs import KINDS, check_writable, refuse_other_kind, refuse_overlap, write
from uqeval.disk.publishing import drop_older, settle_states, writing
from uqeval.errors import UsageError, cut
from uqeval.records.report import Report
from uqeval.stores.states.writer import partial_path

if TYPE_CHECKING:
    from uqeval.cli.declared import Shared


def states_path(shared: Shared) -> str | None:
    """Return the path of the states; warn about lost states of an interrupted run.

    Raises `UsageError` without a report file to put them next to.
    """
    path = _path_of_states(shared.output, shared.states)
    if shared.resume and path is None:
        raise UsageError("--resume needs the states that are saved with a report; give -o FILE.")
    if path is not None and not shared.resume and (partial := partial_path(path)).exists():
        tell(
            f"uqeval: replacing {partial} of an interrupted run; give --resume to continue that "
            "run instead."
        )
    return path


def _path_of_states(output: str | None, states: bool | None) -> str | None:
    has_neighbour = output not in (None, "", "-")
    if states and not has_neighbour:
        raise UsageError("--states saves the states next to a report; give -o FILE.")
    path = Path(output or "")
    if not has_neighbour or states is False or (states is None and not _lies_beside(path)):
        return None
    return f"{path_without_suffix(path)}.states.zip"


def _lies_beside(path: Path) -> bool:
    """Return whether a file can lie next to an output: not next to /dev/stdout or a named pipe."""
    return stream_of(path) is None and (path.is_file() or not path.exists())


def refuse_other_format(shared: Shared) -> None:
    """Raise `UsageError` for a --format that conflicts with an output on stdout."""
    for option, path, printed in (("-o", shared.output, "json"), ("--csv", shared.csv, "csv")):
        if path == "-" and "format" in shared.typed and shared.format != printed:
            raise UsageError(
                f"{option} - prints {printed.upper()} to stdout, where --format "
                f"{shared.format} has no effect; give a file to {option}, or leave out "
                "--format."
            )


@dataclass(frozen=True)
class Output:
    """A file to write: its path, the option that names it, and its kind (see `KINDS`).

    `path` is None without the option, and "-" for stdout.
    """

    path: str | None
    option: str = "-o"
    kind: str | None = None


#: Formats that -o does not write, by the ending of a file, and the command that does for a report
#: in JSON.
_OTHER_FORMATS = {
    ".csv": ("CSV", "--csv {path}"),
    ".html": ("a page", "-o {json}, then uqeval report {json} -o {path}"),
    ".md": ("Markdown", "--format markdown > {path}"),
    ".tex": ("LaTeX", "--format latex > {path}"),
}


def _refuse_ending(output: Output) -> None:
    """Raise `UsageError` for an output of JSON whose name has the ending of another format."""
    ending = Path(output.path or "").suffix.lower()
    if output.kind in (None, "states") or ending not in _OTHER_FORMATS:
        return
    assert output.path is not None and output.kind is not None
    noun, command = _OTHER_FORMATS[ending]
    json = output.path[: -len(ending)] + ".json"
    if output.kind != "report":
        command = f"{output.option} {{json}}"
    raise UsageError(
        f"{output.option} {cut(output.path)} writes {KINDS[output.kind]} as JSON, not {noun}. "
        f"Give {command.format(path=quote(output.path), json=quote(json))}"
    )


def report_outputs(shared: Shared, states_file: str | None) -> tuple[Output, ...]:
    """Return the outputs of a command that writes a report."""
    return (
        Output(shared.output, "-o", "report"), Output(shared.csv, "--csv"),
        Output(states_file, "-o", "states"),
    )  # fmt: skip


def check_outputs(*outputs: Output, inputs: Sequence[Any] = ()) -> None:
    """Reject outputs that cannot be written, are given twice, or overlap an input.

    Also reject an output over a file of another kind, such as saved states, and the ending of a
    format that the output does not have.
    """
    paths = [output.path for output in outputs]
    written: set[str] = set()
    for output in outputs:
        path = output.path
        if path is None:
            continue
        real = path if path == "-" else os.path.realpath(path)
        if real in written:
            destination = "stdout" if path == "-" else path
            raise UsageError(f"two outputs go to {destination}; give each its own file.")
        written.add(real)
        if path != "-":
            _refuse_ending(output)
            check_writable(path, output.option)
    refuse_overlap(paths, inputs)
    for output in outputs:
        if output.path is not None and output.path != "-":
            refuse_other_kind(output.path, output.option, output.kind)
    for path in paths:
        if (
            path is not None
            and path != "-"
            and not (Path(path).exists() and not Path(path).is_file())
        ):
            lock(path)  # until the command ends; not pipes and /dev/stdout


def tell_reused(report: Report) -> None:
    """Print how many items have results of an earlier run."""
    if reused := report.timing.get("items_reused"):
        tell(
            f"uqeval: {reused} of {len(report.items)} items unchanged; "
            "reusing their cached results."
        )


def _write_report(output: str, report: Report) -> None:
    """Write a report after its states; if that fails, restore the older states.

    Raises `OutputError`.
    """
    states = None if report.states is None else Path(report.states)
    try:
        report.save(output)
    except BaseException:  # an interrupt, too
        if states is not None:
            with suppress(OSError):
                settle_states(states, Path(output))
        raise
    if states is not None:
        with writing(states):
            drop_older(states)


def deliver(report: Report, shared: Shared) -> None:
    """Write the files, print the requested output, and warn on stderr."""
    output, csv = shared.output, shared.csv
    if output is not None and output != "-":
        _write_report(output, report)
    if csv is not None and csv != "-":
        write(csv, _text_of(report, "csv"))
    if not shared.quiet:
        from uqeval.report import terminal

        tell_reused(report)
        terminal.show_warnings(report, error_console())
    printed = "csv" if csv == "-" else "json" if output == "-" else shared.format
    with printing():
        if printed != "table":
            print_text(_text_of(report, printed))
        elif not shared.quiet:
            terminal.show(report, console(), output)


def deliver_json(output: str | None, text: str, show: Callable[[], None] | None) -> None:
    """Write a result as JSON to the output, if any; else `show` it, if that is requested."""
    if output is not None and output != "-":
        write(output, text)
    with printing():
        if output == "-":
            sys.stdout.write(text)
        elif show is not None:
            show()


def _text_of(report: Report, text_format: str) -> str:
    """Return the report as text; imports only the module that writes this format."""
    if text_format == "json":
        return report.to_json()
    report.refuse_not_finite()
    if text_format == "csv":
        from uqeval.report.csv import to_csv

        return to_csv(report)
    if text_format == "markdown":
        from uqeval.report.markdown import to_markdown

        return to_markdown(report)
    from uqeval.report.latex import report_to_latex

    return report_to_latex(report)
