"""`uqeval evidence`: collect the files for a safety case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from uqeval.cli.streams import tell
from uqeval.disk.files import content_of
from uqeval.errors import UsageError, cut


def evidence(
    reports: Annotated[list[str], typer.Argument(
        metavar="REPORT...", show_default=False,
        help="Reports with their saved states, or folders of reports.")],
    output: Annotated[str, typer.Option(
        "-o", "--output", metavar="DIR", show_default=False, help="Folder to write.")],
    verdicts: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False,
        help="Verdicts on these reports, from `uqeval gate -o FILE`.")] = None,
    rules: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False, help="The rules file of the verdicts.")] = None,
    selftest: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False,
        help="A self-test, from `uqeval selftest -o FILE` (default: run one).")] = None,
    verify: Annotated[list[str] | None, typer.Option(
        metavar="FILE", show_default=False,
        help="A verification of one of the reports, from `uqeval verify -o FILE`. Repeat for "
        "more (default: run one on its stores).")] = None,
    items: Annotated[int | None, typer.Option(
        metavar="K", min=1, show_default=False,
        help="Number of items that a verification recomputes (default: 5).")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing.")] = False,
) -> None:  # fmt: skip
    """Collect the files for a safety case: a statement to sign, results, environment, README.

    Refuses files that do not belong together. Writes all files of DIR, or none. The statement
    says whether the tests passed; sign it with the command in the README.

    Example: uqeval evidence report.json --verdicts verdicts.json --rules gate.yaml -o evidence/
    """
    from uqeval.usecases.evidence.collecting import collect
    from uqeval.usecases.evidence.results import add_selftest, add_verifications
    from uqeval.usecases.evidence.statement import result_of, sorted_tests
    from uqeval.usecases.evidence.writing import check_folder, check_library, write_evidence

    check_library()
    _refuse_urls([*reports, verdicts, rules, selftest, *(verify or ())])
    with content_of(" + ".join(reports)):
        content = collect(reports, verdicts, rules)
    attachments = [path for path in (selftest, *(verify or ())) if path is not None]
    check_folder(output, [*content.inputs(), *attachments])
    add_verifications(content, verify or (), items)
    add_selftest(content, selftest)
    with content_of(" + ".join([*reports, *attachments, *([verdicts] if verdicts else [])])):
        tests = sorted_tests(content)
        names = write_evidence(content, output)
    if quiet:
        return
    for text in content.statements:
        tell(f"warning: {text}")
    if verdicts is None and (left_out := _verdicts_beside(reports)) is not None:
        tell(
            f"warning: the evidence has no verdicts, and {cut(left_out)} is next to the reports. "
            f"To include it, give --verdicts {quote(str(left_out))} --rules FILE."
        )
    typer.echo(f"{result_of(tests)}: {', '.join(f'{len(v)} {k}' for k, v in tests.items())}")
    for title in tests["failed"]:
        typer.echo(f"failed: {title}")
    typer.echo(f"wrote {output}: {', '.join(names)}")


def _verdicts_beside(reports: Sequence[str]) -> Path | None:
    """Return the verdicts that `uqeval run` wrote next to a report, if any."""
    from uqeval.usecases.run.folder import VERDICTS

    folders = (Path(path) if Path(path).is_dir() else Path(path).parent for path in reports)
    return next((f / VERDICTS for f in folders if (f / VERDICTS).is_file()), None)


def _refuse_urls(paths: Sequence[str | None]) -> None:
    """Raise `UsageError` for a URL among the files to collect."""
    for path in paths:
        if path is not None and "://" in path:
            raise UsageError(
                f"{cut(path)} is a URL, and evidence collects local files. Copy the file to a "
                "local folder, and give that path."
            )
