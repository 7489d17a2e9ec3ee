"""`uqeval run`: everything that a file asks for, or all that applies to a store; one verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.taking import taking
from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.config import Config

_GATE, _CONFIG = "Gate", "File"


@taking(*(name for name in o.INPUTS if name != "part"), *o.CUTS, "resume", *o.RUNNING)
def run(
    shared: o.Shared,
    paths: Annotated[list[str] | None, typer.Argument(
        metavar="[FILE.yaml | PREDS... [LABELS]]", show_default=False,
        help="A settings file (default: uqeval.yaml). Or predictions with their labels or "
        "target: evaluates all metrics that fit them.")] = None,
    output: Annotated[str | None, typer.Option(
        "-o", "--output", metavar="DIR", show_default=False, rich_help_panel="Output",
        help="Folder for the reports (default: from the file, else uqeval-report).")] = None,
    gallery: Annotated[int | None, typer.Option(
        metavar="N", min=0, show_default=False, rich_help_panel="Output",
        help="Show pictures of the N worst items on each page (default: 3 if that is cheap).")]
        = None,
    quiet: Annotated[bool, typer.Option(
        "-q", "--quiet", rich_help_panel="Output", help="Print no progress, no warnings and no "
        "tables.")]
        = False,
    store: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False, rich_help_panel=_CONFIG,
        help="Evaluate only this store of the file. Repeat for more.")] = None,
    baseline: Annotated[str | None, typer.Option(
        metavar="REPORT", show_default=False, rich_help_panel=_GATE,
        help="Report or folder of reports from which drops and rises are measured.")] = None,
    gate: Annotated[bool, typer.Option(
        "--gate/--no-gate", show_default=False, rich_help_panel=_GATE,
        help="Judge the rules of the file (default: if it has any).")] = True,
    today: Annotated[str | None, typer.Option(
        metavar="YYYY-MM-DD", show_default=False, rich_help_panel=_GATE,
        help="Check waivers against this day instead of today (UTC). To test rules, not to "
        "release.")]
        = None,
    video: Annotated[str | None, typer.Option(
        metavar="VIDEO", show_default=False, rich_help_panel="Input",
        help="Without a file: frames, with or without PREDS, as for `uqeval tc`.")] = None,
    uncertainty: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False, rich_help_panel="Input",
        help="Without a file: use this uncertainty map for all metrics that need one. Repeat "
        "for more (default: that of each metric).")] = None,
    reference: Annotated[str | None, typer.Option(
        metavar="STORE", show_default=False, rich_help_panel="Input",
        help="Without a file: also compute the divergence from these predictions.")] = None,
    resume: Annotated[bool, typer.Option(
        "--resume", rich_help_panel="Running",
        help="Continue the same command after an interruption.")] = False,
    memory: Annotated[str | None, typer.Option(
        metavar="SIZE", show_default=False, rich_help_panel="Running",
        help="Memory for tiles and maps, such as 2GiB (default: from the file, else 512MB).")]
        = None,
) -> None:  # fmt: skip
    """Evaluate everything, with one read per store: reports, one page, and the gate's verdict.

    With a file: evaluates its stores with the metrics under evaluate:. The rules under gate:
    decide the exit status. Without a file: evaluates all metrics that fit the predictions.

    Example: uqeval run preds.zarr labels/ -o report/
    """
    from uqeval.cli.gate import day_of
    from uqeval.cli.outcome import Shown, finish
    from uqeval.cli.progress import progress_for
    from uqeval.usecases.run import RunSettings, run_stores

    of_input = shared.given(
        *o.READING, "class_names", "nan_samples", "invalid", "map_cache"
    ) | o.given(video=video, reference=reference)
    for name in ("missing_chunks", "nan_samples"):  # their defaults are those of the file too
        if of_input[name] == "error":
            del of_input[name]
    cuts = shared.given("limit", *o.CUTS)
    for name in ("draws", "seed", "interval_method"):  # likewise
        if name not in shared.typed:
            del cuts[name]
    file, config = _config(paths or [], of_input, store or [])
    o.refuse_draws_without_level(shared.typed, config.ci if shared.ci is None else shared.ci)
    if uncertainty and file is not None:
        raise UsageError("--uncertainty is said in the file, under evaluate:, for each metric.")
    chosen = RunSettings(
        stores=store or [], uncertainty=uncertainty or [], output=output, gate=gate,
        baseline=baseline, gallery=gallery, today=day_of(today),
        workers=shared.workers, memory=memory, resume=resume, progress=progress_for(quiet),
        listener=Shown(quiet), **cuts,
    )  # fmt: skip
    outcome = run_stores(config, chosen, file)
    finish(outcome, quiet)
    if outcome.status:
        raise typer.Exit(outcome.status)


def _config(
    paths: list[str], of_input: dict[str, Any], stores: list[str]
) -> tuple[str | None, Config]:
    """The file and what it says; or no file, and the store that the paths are of."""
    from uqeval.config import FILE, load_config
    from uqeval.usecases.run import alone

    named = [path for path in paths if path.endswith((".yaml", ".yml"))]
    if not named and (paths or "video" in of_input):
        if stores:
            raise UsageError("--store is for the stores of a file; give paths or a file.")
        predictions, truth = o.split_paths(paths) if paths else ([], None)
        return None, alone(predictions, truth, **of_input)
    if len(paths) > 1:
        raise UsageError(f"{named[0]} says what to evaluate; give it alone, or paths without it.")
    if of_input:
        option = next(iter(of_input)).replace("_", "-")
        raise UsageError(f"--{option} is said in the file, under stores:, for each store.")
    file = named[0] if named else FILE
    if not named and not Path(FILE).is_file():
        raise UsageError(
            f"no paths given, and no {FILE} in this folder; give PREDS [LABELS], or a file."
        )
    return file, load_config(file)
