"""`uqeval verify`: recompute a report from its predictions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli.declared import typed_options
from uqeval.cli.streams import console, tell
from uqeval.errors import UsageError, printable

if TYPE_CHECKING:
    from uqeval.usecases.verify.record import Verification


def verify(
    context: typer.Context,
    report: Annotated[str, typer.Argument(
        metavar="REPORT", show_default=False, help="A report, written by -o FILE.json.")],
    stores: Annotated[list[str] | None, typer.Argument(
        metavar="[STORE]...", show_default=False,
        help="The stores of the report: frames, predictions, labels or target, reference, mask of "
        "OUT pixels. Default: the paths in the report that are inside the working folder.")] = None,
    items: Annotated[int, typer.Option(
        metavar="K", min=1, help="Number of items to recompute, chosen by --seed.")] = 5,
    all_: Annotated[bool, typer.Option(
        "--all", help="Recompute all items, and the scores of the whole set.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed for the choice of items.")] = 0,
    output: Annotated[str | None, typer.Option(
        "-o", "--output", metavar="FILE", show_default=False,
        help="Write the result as JSON, with the values that were not verified; - is stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only problems.")] = False,
) -> None:  # fmt: skip
    """Recompute a report from its predictions with independent code in plain NumPy.

    Also checks the fingerprints of stores, labels and states. Status 0: all compared values agree;
    2: a value differs, or the report cannot be verified.

    Example: uqeval verify report.json preds.zarr labels/ --all -o verification.json
    """
    from uqeval.cli.finish import Output, check_outputs, deliver_json
    from uqeval.usecases.verify.verifying import verify as run

    if all_ and {"items", "seed"} & typed_options(context):
        raise UsageError(
            "--all takes all items, so --items and --seed have no effect; leave them out."
        )
    check_outputs(Output(output, kind="verification"), inputs=[report, *(stores or ())])
    verification = run(report, stores or (), items=items, everything=all_, seed=seed)
    show = None if quiet else partial(_show, verification)
    deliver_json(output, verification.to_json(), show)
    for text in verification.problems():
        tell(f"uqeval: {text}")
    for key, reason in verification.not_recomputed.items():
        tell(f"uqeval: not recomputed: {key}: {reason}.")
    if not verification.passed:
        raise typer.Exit(2)


def _show(verification: Verification) -> None:
    from rich.markup import escape

    stdout = console(120)

    def paragraph(title: str, lines: list[str]) -> None:
        if lines:
            stdout.print(f"[bold]{title}[/]")
        for line in lines:
            stdout.print(f"  {escape(printable(line))}", highlight=False, soft_wrap=True)

    paragraph("Opened", [f"{store['role']}: {store['path']}" for store in verification.stores])
    paragraph("Verified", verification.verified())
    paragraph(
        "Items",
        [", ".join(verification.items[:10]) + (" …" if len(verification.items) > 10 else "")],
    )
    paragraph(
        "Recomputed", [f"{key}: {', '.join(names)}" for key, names in verification.fields.items()]
    )
    paragraph("Not verified", verification.not_verified)
    color = "green" if verification.passed else "red"
    if verification.passed and verification.not_recomputed:
        color = "yellow"
    word = escape(printable(verification.conclusion()))
    stdout.print(f"[bold {color}]{word}[/]", highlight=False, soft_wrap=True)
