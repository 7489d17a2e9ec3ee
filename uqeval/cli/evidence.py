"""`uqeval evidence`: the files that a safety case needs."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli.messages import tell


def evidence(
    reports: Annotated[list[str], typer.Argument(
        metavar="REPORT...", show_default=False,
        help="Reports with their states beside them, or folders of reports.")],
    output: Annotated[str, typer.Option(
        "-o", "--output", metavar="DIR", show_default=False, help="Folder to write.")],
    verdicts: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False,
        help="Verdicts on these reports, as uqeval gate -o FILE writes them.")] = None,
    rules: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False, help="The rules of the verdicts.")] = None,
    selftest: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False,
        help="A self-test, as uqeval selftest -o FILE writes it (default: run one).")] = None,
    verify: Annotated[list[str] | None, typer.Option(
        metavar="FILE", show_default=False,
        help="A verification of one of the reports, as uqeval verify -o FILE writes it; again for "
        "more (default: run one on its stores).")] = None,
    items: Annotated[int | None, typer.Option(
        metavar="K", min=1, show_default=False,
        help="Items that a verification recomputes (default: 5).")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing.")] = False,
) -> None:  # fmt: skip
    """The files that a safety case needs: one statement to sign, results, environment, README.

    Refuses files that do not belong together. Writes DIR whole or not at all; whether the tests
    passed is in the statement. Signing stays outside: the README has the command.

    Example: uqeval evidence report.json --verdicts verdicts.json --rules gate.yaml -o evidence/
    """
    from uqeval.disk.json import content_of
    from uqeval.usecases.evidence import collect, write_evidence
    from uqeval.usecases.evidence.environment import check_library
    from uqeval.usecases.evidence.results import add_selftest, add_verifications
    from uqeval.usecases.evidence.statement import result_of, sorted_tests
    from uqeval.usecases.evidence.writing import check_folder

    check_library()
    with content_of(" + ".join(reports)):
        found = collect(reports, verdicts, rules)
    given = [path for path in (selftest, *(verify or ())) if path is not None]
    check_folder(output, [*found.inputs(), *given])
    add_verifications(found, verify or (), items)
    add_selftest(found, selftest)
    with content_of(" + ".join([*reports, *given, *([verdicts] if verdicts else [])])):
        tests = sorted_tests(found)
        names = write_evidence(found, output)
    if quiet:
        return
    for text in found.statements:
        tell(f"warning: {text}")
    typer.echo(f"{result_of(tests)}: {', '.join(f'{len(v)} {k}' for k, v in tests.items())}")
    for title in tests["failed"]:
        typer.echo(f"failed: {title}")
    typer.echo(f"wrote {output}: {', '.join(names)}")
