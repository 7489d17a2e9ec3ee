"""`uqeval selftest`: check that this installation computes known answers."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli.streams import console, tell

if TYPE_CHECKING:
    from uqeval.usecases.selftest.record import Selftest

#: Number of failed checks in the table; the JSON has all.
_SHOWN = 20


def selftest(
    output: Annotated[str | None, typer.Option(
        "-o", "--output", metavar="FILE", show_default=False,
        help="Write all checks and the versions as JSON; - is stdout.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only failed checks.")] = False,
) -> None:  # fmt: skip
    """Check that this installation computes known answers on this machine.

    Compares kernels with plain NumPy, repeats worked examples of the papers and videos with a known
    answer, reads back written files, and evaluates golden reports. Takes less than a minute; the
    first run after an installation also compiles. Status 0: all checks pass; 3: a check fails.

    Example: uqeval selftest -o selftest.json
    """
    from uqeval.cli.finish import Output, check_outputs, deliver_json
    from uqeval.usecases.selftest.record import selftest as run

    check_outputs(Output(output, kind="selftest"))
    result = run(begin=lambda title: None if quiet else _progress(title))
    deliver_json(output, result.to_json(), None if quiet else partial(_show, result))
    failed = [check for check in result.checks if not check.passed]
    for check in failed[:_SHOWN]:
        tell(f"uqeval: selftest: {check.group}: {check.name}: {check.detail}")
    if failed:
        tell(
            f"uqeval: {len(failed)} of {len(result.checks)} checks failed; do not trust results of "
            "this installation. Install the versions that the project tests, or report this with "
            "the output of uqeval selftest -o selftest.json."
        )
        raise typer.Exit(3)


def _progress(title: str) -> None:
    if sys.stderr.isatty():
        tell(f"{title} …")


def _show(result: Selftest) -> None:
    from uqeval.report.tables.table import text_table
    from uqeval.report.terminal import print_table

    rows = [
        [group, f"{len(checks):,}", f"{sum(check.values for check in checks):,}",
         f"{sum(not check.passed for check in checks):,}",
         f"{result.seconds_by_group[group]:.1f} s"]
        for group, checks in result.groups()
    ]  # fmt: skip
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    title = f"Self-test of uqeval {result.versions['uqeval']}"
    stdout = console()
    print_table(text_table(title, ["", "checks", "values", "failed", "time"], rows), stdout)
    stdout.print(versions, highlight=False)
    stdout.print("[bold green]passed[/]" if result.passed else "[bold red]failed[/]")
