"""`uqeval run`: evaluate all that a file requests, or the metrics that fit a store; one verdict.

Shows each store's headline scores, the verdict, and the files.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options, without_absent
from uqeval.cli.finish import tell_reused
from uqeval.cli.streams import console, error_console, printing, progress_for, tell, warn
from uqeval.config import FILE, Config, load_config, no_file
from uqeval.config.options import commands
from uqeval.errors import UsageError, cut, listed, option_name
from uqeval.inputs.options import InputOptions
from uqeval.records.report import Report
from uqeval.settings import options_of
from uqeval.spelling import as_commands, as_keys, spelled
from uqeval.stores.contents import Contents
from uqeval.usecases.run.outcome import OF_ITEMS, Listener, Outcome, RunSettings, keys_of_file

if TYPE_CHECKING:
    from uqeval.gate import Judgement
    from uqeval.report.findings.scores import Finding


@with_options(
    "quiet", "video", *o.INPUTS, *o.CUTS, "workers", "dask", of=RunSettings,
)  # fmt: skip
def run(
    shared: Shared,
    settings: RunSettings,
    paths: Annotated[list[str] | None, typer.Argument(
        metavar="[FILE.yaml | PREDS... [LABELS]]", show_default=False,
        help="A settings file (default: uqeval.yaml). Or predictions with their labels or "
        "target: evaluates the metrics that fit them.")] = None,
    reference: Annotated[str | None, typer.Option(
        metavar="STORE", show_default=False, rich_help_panel="Input",
        help="Without a file: also compute the divergence from these predictions.")] = None,
) -> None:  # fmt: skip
    """Evaluate everything, with one read per store: reports, one page, and the gate's verdict.

    With a file: evaluates its stores with the metrics under evaluate:, and judges the rules under
    gate:. Without a file: evaluates the metrics that fit the predictions, except sweep, conformal,
    ood and failure --images. Status 0: done; 1: a rule fails; 2: something could not be evaluated.

    Example: uqeval run preds.zarr labels/ -o report/
    """
    from uqeval.usecases.run.running import run_stores

    of_input = shared.values_of(
        *(name for name in (*o.INPUTS, "video") if name not in OF_ITEMS)
    ) | without_absent(reference=reference)
    defaults = InputOptions()  # a default value does not override the file
    of_input = {
        name: value for name, value in of_input.items()
        if name == "reference" or value != getattr(defaults, name)
    }  # fmt: skip
    over_file = shared.values_of(*OF_ITEMS, *o.CUTS, "workers", "dask")
    for name in ("draws", "seed", "interval_method"):  # neither do these defaults
        if name not in shared.typed:
            del over_file[name]
    stores = list(settings.stores)
    file, config, opened = _config(paths or [], of_input, stores)
    warn(config.notes, shared.quiet)
    o.refuse_draws_without_level(shared.typed, config.ci if shared.ci is None else shared.ci)
    if settings.uncertainty and file is not None:
        raise UsageError("--uncertainty has no effect with a file; set it there, under evaluate:.")
    quiet = shared.quiet
    run_settings = replace(
        settings, shared=over_file, progress=progress_for(quiet), listener=OutcomePrinter(quiet)
    )
    with as_commands({} if file is not None else _commands_with_options(shared)):
        outcome = run_stores(config, run_settings, file, opened)
        with as_keys(keys_of_file() if file is not None else ()):
            finish(outcome, quiet)
    if outcome.status:
        raise typer.Exit(outcome.status)


def _commands_with_options(shared: Shared) -> dict[str, str]:
    """Return the options that `uqeval run` lacks, each with a command that has it."""
    of_input = {
        name: "tc" if option.data == "video" else "ood"
        for name, option in options_of(InputOptions).items()
        if option.data in ("video", "ood")
    }
    of_metrics = {
        name: {"image_failure": "failure --images"}.get(command, command)
        for command, options in reversed(commands().items())
        for name in options
    }
    own = shared.option_names | options_of(RunSettings).keys() | {"reference"}
    return {name: c for name, c in (of_input | of_metrics).items() if name not in own}


def _config(
    paths: list[str], of_input: dict[str, Any], stores: list[str]
) -> tuple[str | None, Config, dict[str, Contents]]:
    """Return the path and content of the file; or None, a configuration for the given paths, and
    the inputs that were opened to distinguish predictions from labels."""
    from uqeval.usecases.run.running import config_of_store

    yaml_paths = [path for path in paths if path.endswith((".yaml", ".yml"))]
    if not yaml_paths and (paths or "video" in of_input):
        if stores:
            raise UsageError(
                "--store chooses a store of a settings file, and paths are given; leave one of "
                "them out."
            )
        video = of_input.get("video")
        alone = video is not None
        predictions, truth = o.split_paths(paths, labels_alone=alone) if paths else ([], None)
        if video is not None and truth is None and len(predictions) == 1:
            _refuse_ambiguous(predictions[0], video)
        labels = None if truth is None else str(truth)
        config = config_of_store([str(store) for store in predictions], labels, **of_input)
        stores_opened = [*predictions, *([] if truth is None else [truth])]
        return None, config, {str(store): store for store in stores_opened}
    if len(paths) > 1:
        raise UsageError(
            f"{yaml_paths[0]} already lists what to evaluate; give only the file, or only paths."
        )
    if of_input:
        raise UsageError(
            f"{option_name(next(iter(of_input)))} has no effect with a file; set it there, under "
            "stores:, for each store."
        )
    file = yaml_paths[0] if yaml_paths else FILE
    if not yaml_paths and not Path(FILE).is_file():
        raise UsageError(f"no paths given, and {no_file()}; give PREDS [LABELS], or a file.")
    return file, load_config(file), {}


def _refuse_ambiguous(store: Contents, video: str) -> None:
    """Raise `UsageError` for ids that may be predictions, or labels of those inside the video."""
    from uqeval.inputs.video_stores import has_predictions

    if store.is_truth() and has_predictions(video):
        place, given = quote(video), quote(str(store))
        raise UsageError(
            f"{store} may be labels or predictions, and {cut(video)} has predictions, too. If they "
            f"are labels: uqeval tc {place} --labels {given}. If they are predictions: "
            f"uqeval tc {place} {given}"
        )


class OutcomePrinter(Listener):
    """Printer of each store's headline scores on stdout, and of errors on stderr."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._gate_follows = False

    def gate_follows(self) -> None:
        """Leave the next step to `finish`: it depends on the verdicts."""
        self._gate_follows = True

    def done(self, name: str, report: Report, path: Path) -> None:
        """Print the cost of a store and its scores."""
        from uqeval.report.page.overview import cost
        from uqeval.report.tables.of_report import headline_table
        from uqeval.report.terminal import fitted, print_table, show_findings, show_warnings

        if self._quiet:
            return
        tell_reused(report)
        warnings = [f"{name}: {spelled(text)}" for text in report.warnings]
        show_warnings(dataclasses.replace(report, warnings=warnings), error_console())
        table = headline_table(
            report,
            f"{name}: {_members(report)}{cost(report)}{_read_off(report)}{_labels_of(report)}",
        )
        with printing():
            stdout = console()
            for part in fitted(table, stdout.width):
                print_table(part, stdout)
            findings, next_steps = _findings(report, path)
            show_findings([*findings, *([] if self._gate_follows else next_steps)], stdout)

    def failed(self, name: str, reason: str) -> None:
        """Print the error of a store, even with -q."""
        tell(f"uqeval: {name}: {reason}")

    def warned(self, text: str) -> None:
        """Print which rule cannot be judged, even with -q."""
        tell(f"uqeval: {text}")


def _findings(
    report: Report, path: Path, judgement: Judgement | None = None
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings on the report of a store; the next step, if there is one, apart."""
    from uqeval.report.findings import NEXT, findings_of

    # A shard has no page.
    page = None if "part" in report.inputs else str(path.with_suffix(".html"))
    findings = findings_of(report, judgement, str(path), page)
    findings = [replace(found, text=spelled(found.text)) for found in findings]
    return (
        [found for found in findings if found.title != NEXT],
        [found for found in findings if found.title == NEXT],
    )


def _show_next_steps(outcome: Outcome) -> None:
    """Print the next step of each store, which depends on the verdicts."""
    from uqeval.gate.saved_verdicts import of_stores
    from uqeval.report.terminal import show_findings

    steps = []
    for name, report in outcome.reports.items():
        judgement = of_stores(outcome.judgement, {name}) if outcome.judgement else None
        _, next_steps = _findings(report, outcome.folder / f"{name}.json", judgement)
        of_store = "" if len(outcome.reports) == 1 else f", {name}"
        steps += [replace(found, title=found.title + of_store) for found in next_steps]
    show_findings(steps, console())


def _members(report: Report) -> str:
    """Return how many stores were joined as the members of one ensemble; empty for one store."""
    stores = report.inputs.get("predictions", ())
    if len(stores) < 2 or "sets" in report.inputs or "temporal" in report.results:
        return ""
    return f"{len(stores)} stores as members of one ensemble, "


def _labels_of(report: Report) -> str:
    """Return the labels of a video: two folders of ids may be predictions and labels, or two
    models, which `uqeval tc` compares."""
    labels = report.inputs.get("labels") if "temporal" in report.results else None
    return "" if labels is None else f"; labels: {cut(labels['path'])}"


def _read_off(report: Report) -> str:
    """Return the times of intervals and slices as text; empty if there are none."""
    parts = {step: report.timing.get(f"{step}_seconds") for step in ("intervals", "slices")}
    return "".join(f", {step} {took:.1f} s" for step, took in parts.items() if took is not None)


def finish(outcome: Outcome, quiet: bool) -> None:
    """Print the verdict, the errors, and in the last line the written files."""
    if outcome.judgement is not None and not quiet:
        from uqeval.cli.gate import show

        warn(outcome.judgement.warnings, quiet)
        lost = len(outcome.judgement.not_evaluated)
        show(outcome.judgement, lost if outcome.failed else outcome.announced)
    if (outcome.judgement is not None or outcome.ungated is not None) and not quiet:
        _show_next_steps(outcome)
    if outcome.judgement is not None and not outcome.failed:
        from uqeval.cli.gate import tell_not_evaluated

        tell_not_evaluated(outcome.judgement.not_evaluated[outcome.announced :])
    if outcome.ungated is not None:
        tell(f"uqeval: {outcome.ungated}")
    if outcome.failed:
        total = len(outcome.failed.keys() | outcome.reports.keys())
        tell(
            f"uqeval: {len(outcome.failed)} of {total} stores could not be evaluated: "
            f"{', '.join(outcome.failed)}."
        )
    if outcome.counted and not quiet:
        tell(
            f"uqeval: all passes of {listed(outcome.counted)} are counted; the shards have no work "
            "left there. Join the states of all shards with uqeval merge."
        )
    if outcome.leftovers:
        warn([_leftover_text(outcome)], quiet)
    if outcome.files and not quiet:
        typer.echo(f"wrote {', '.join(map(str, reversed(outcome.files)))}")


def _leftover_text(outcome: Outcome) -> str:
    """Return the text on reports that an earlier run left in the folder."""
    reports = [path for path in outcome.leftovers if path.suffix == ".json"]
    them = "it" if len(reports) == 1 else "them"
    command = f"rm -r {' '.join(quote(str(path)) for path in outcome.leftovers)}"
    return (
        f"an earlier run left {listed(reports)}, of another store. Commands that read the whole "
        f"folder {cut(outcome.folder)}, such as gate and compare, read {them} too. If you do not "
        f"need {them}: {command}"
    )
