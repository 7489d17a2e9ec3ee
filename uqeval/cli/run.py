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
        help="A file of settings (default: uqeval.yaml); or predictions and their labels or "
        "target, without a file: all that applies to them.")] = None,
    output: Annotated[str | None, typer.Option(
        "-o", "--output", metavar="DIR", show_default=False, rich_help_panel="Output",
        help="Folder of the reports (default: the file's, else uqeval-report).")] = None,
    gallery: Annotated[int | None, typer.Option(
        metavar="N", min=0, show_default=False, rich_help_panel="Output",
        help="Pictures of the N worst items on each page (default: 3, where that is cheap).")]
        = None,
    quiet: Annotated[bool, typer.Option(
        "-q", "--quiet", rich_help_panel="Output", help="No progress, no warnings, no tables.")]
        = False,
    store: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False, rich_help_panel=_CONFIG,
        help="Only this store of the file; again for more.")] = None,
    baseline: Annotated[str | None, typer.Option(
        metavar="REPORT", show_default=False, rich_help_panel=_GATE,
        help="Report or folder of reports that drops and rises are measured against.")] = None,
    gate: Annotated[bool, typer.Option(
        "--gate/--no-gate", show_default=False, rich_help_panel=_GATE,
        help="Whether the file's rules are judged (default: if it has any).")] = True,
    video: Annotated[str | None, typer.Option(
        metavar="VIDEO", show_default=False, rich_help_panel="Input",
        help="Without a file: frames, with or without PREDS, as `uqeval tc` takes them.")] = None,
    uncertainty: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False, rich_help_panel="Input",
        help="Without a file: the uncertainty of all metrics that have one, a map of any name in "
        "the store; again for more (default: each metric's own).")] = None,
    reference: Annotated[str | None, typer.Option(
        metavar="STORE", show_default=False, rich_help_panel="Input",
        help="Without a file: the divergence from these predictions too.")] = None,
    resume: Annotated[bool, typer.Option(
        "--resume", rich_help_panel="Running",
        help="Go on from what the same command had counted when it was stopped.")] = False,
    memory: Annotated[str | None, typer.Option(
        metavar="SIZE", show_default=False, rich_help_panel="Running",
        help="Bytes of tiles and maps, such as 2GiB (default: the file's, else 512MB).")] = None,
) -> None:  # fmt: skip
    """Evaluate everything, each store in one read: reports, one page, the gate's verdict.

    With a file: its stores, the metrics under evaluate:, and the rules under gate:, which decide
    the exit status. Without: all metrics that apply to the predictions.

    Example: uqeval run preds.zarr labels/ -o report/
    """
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
        baseline=baseline, gallery=gallery,
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
