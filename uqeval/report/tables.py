"""What a person is shown of a report: small tables, the same on a terminal and in Markdown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uqeval.keys import family_of
from uqeval.report.glossary import headings
from uqeval.report.headline_tables import interval_and_slice_tables
from uqeval.report.number_tables import nmerci_tables, regression_tables
from uqeval.report.rank_tables import failure_tables, sparsification_tables
from uqeval.report.schema import Report
from uqeval.report.table import Table, shown, text_table, values
from uqeval.report.temporal_tables import temporal_tables

#: Scores of the patch tables.
_SCORES = ("pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate", "surplus", "phi")


def tables_of(report: Report) -> list[Table]:
    """The tables of a report, in the order in which a reader asks for them."""
    found = []
    results = report.results
    patch_keys = [key for key in results if family_of(key) == "pavpu"]
    if segmentation_keys := [key for key in results if family_of(key) == "segmentation"]:
        found.append(_segmentation(results, segmentation_keys))
    if patch_keys:
        found.append(_scores(results, patch_keys))
        found.append(_counts(results, patch_keys))
        found.append(_per_class(results, patch_keys[0]))
    calibration_keys = [key for key in results if family_of(key) == "calibration"]
    if calibration_keys:
        found.append(_calibration(results, calibration_keys))
        found += _estimates(results, calibration_keys)
        found.append(_reliability(results[calibration_keys[0]], calibration_keys[0]))
    found += failure_tables(results)
    found += sparsification_tables(results)
    found += regression_tables(results)
    found += nmerci_tables(results)
    if keys := [key for key in results if family_of(key) == "divergence"]:
        found.append(_divergence(results, keys))
    found += temporal_tables(report)
    if "sweep" in results:
        found.append(_sweep(report))
    if report.intervals or report.slices:
        found += interval_and_slice_tables(report)
    return [_explained(table) for table in found]


def _explained(table: Table) -> Table:
    """The table with a word on its dashes, where it has any."""
    if not any(text == shown(None) for row in table.texts for text in row):
        return table
    return replace(table, note=f"{table.note} –: undefined; the report says why.".strip())


def _sweep(report: Report) -> Table:
    sweep = report.results["sweep"]
    ms = next(iter(sweep.values()))["m"] if sweep else []
    rows = []
    for name, record in sweep.items():
        if name in report.metrics:
            pairs = zip(record["mean"], record["std"], strict=True)
            rows.append([name, *(_plus_minus(mean, std) for mean, std in pairs)])
    repeats = next(iter(sweep.values()))["repeats"] if sweep else []
    return text_table(
        "Over the number of samples M",
        ["", *(f"M = {m}" for m in ms)],
        rows,
        f"mean ± std over {', '.join(map(str, repeats))} subset{'s' * (set(repeats) != {1})} "
        "of the samples.",
    )


def _divergence(results: dict[str, Any], keys: list[str]) -> Table:
    fields = ("kl", "pixels", "infinite")
    rows = [[key, *values(results[key], fields)] for key in keys]
    return text_table(
        "Divergence from the reference",
        ["", *headings("divergence", fields)],
        rows,
        "mean over the pixels where it is finite; infinite: the share of those where it is not.",
    )


def _plus_minus(mean: float | None, std: float | None) -> str:
    return shown(None) if mean is None or std is None else f"{shown(mean)} ± {std:.4f}"


def _segmentation(results: dict[str, Any], keys: list[str]) -> Table:
    fields = ("pixel_accuracy", "mean_accuracy", "miou", "pixels")
    columns = headings("segmentation", fields)
    if len(keys) == 1:
        return text_table(
            "Segmentation", columns, [values(results[keys[0]], fields)], left=frozenset()
        )
    rows = [[key, *values(results[key], fields)] for key in keys]
    return text_table("Segmentation", ["", *columns], rows)


def _scores(results: dict[str, Any], keys: list[str]) -> Table:
    fields = ("pavpu", "pavpu_chance", *_SCORES[1:], "surplus_auc")
    rows = []
    for key in keys:
        record = results[key]
        rows.append(
            [
                key, record["uncertainty"], f"{record['window']}/{record['stride']}",
                *values(record, ("uncertainty_threshold", *fields)),
            ]
        )  # fmt: skip
    return text_table(
        "Patch accuracy vs patch uncertainty",
        ["", "uncertainty", "window/stride", "threshold", *headings("pavpu", fields)],
        rows,
        "chance: the PAvPU of an uncertainty that knows nothing of the errors. "
        "Surplus > 0: it knows something; 0: nothing; < 0: less than nothing.",
        left=frozenset({0, 1}),
    )


def _counts(results: dict[str, Any], keys: list[str]) -> Table:
    fields = ("n_ac", "n_au", "n_ic", "n_iu", "p_accurate", "p_certain")
    rows = []
    for key in keys:
        record = results[key]
        peak = record["surplus_peak"]
        best = "–" if peak is None else f"{shown(peak['value'])} at t = {peak['t']:.2f}"
        rows.append([key, *values(record, fields), best])
    return text_table("Patches", ["", *headings("pavpu", (*fields, "surplus_peak.value"))], rows)


def _per_class(results: dict[str, Any], key: str) -> Table:
    segmentation = {row["class"]: row for row in results["segmentation"]["per_class"]}
    rows = []
    for row in results[key]["per_class"]:
        mine = segmentation.get(row["class"], {})
        counts = [row[name] for name in ("n_ac", "n_au", "n_ic", "n_iu")]
        patches = None if None in counts else sum(counts)
        rows.append(
            [
                str(row["name"]),
                shown(mine.get("iou")),
                shown(patches),
                *values(row, _SCORES),
            ]
        )
    return text_table(
        f"By class of patch ({key})",
        ["class", "IoU", "patches", *headings("pavpu", _SCORES)],
        rows,
        "mixed: patches with pixels of several classes.",
    )


def _calibration(results: dict[str, Any], keys: list[str]) -> Table:
    names = ("ece", "mce", "adaptive_ece", "classwise_ece", "brier", "nll")
    rows = []
    for key in keys:
        record = results[key]
        rows.append([key, *values(record, ("bins", *names))])
        after = record.get("temperature", {"value": None})
        if after["value"] is not None:
            title = f"  at T = {shown(after['value'])}"
            rows.append([title, "", *(shown(after[n]) if n in after else "" for n in names)])
    return text_table(
        "Calibration",
        ["", *headings("calibration", ("bins", *names))],
        rows,
        "0 is best. T: the temperature with the least NLL; above 1 the model is over-confident.",
    )


def _estimates(results: dict[str, Any], keys: list[str]) -> list[Table]:
    """Return the table of the published estimates of the calibration error, if there are any."""
    names = ("kumar_l2", "kumar_l1", "sweep_l1", "sweep_l2", "sweep_bins")
    found = [name for name in names if any(name in results[key] for key in keys)]
    rows = [
        [key, *(shown(results[key][name]) if name in results[key] else "" for name in found)]
        for key in keys
        if any(name in results[key] for name in found)
    ]
    columns = ["", *headings("calibration", found)]
    note = "With less bias than the ECE, which stays the plug-in value."
    return [text_table("Calibration error, estimated", columns, rows, note)] if rows else []


def _reliability(record: dict[str, Any], key: str) -> Table:
    columns = record["reliability"]
    rows = []
    for low, high, count, mean, accuracy in zip(*columns.values(), strict=True):
        gap = None if mean is None or accuracy is None else accuracy - mean
        rows.append(
            [f"{low:.3f} – {high:.3f}", *(shown(value) for value in (count, mean, accuracy, gap))]
        )
    return text_table(
        f"Reliability ({key})",
        ["confidence", "pixels", "mean confidence", "accuracy", "accuracy − confidence"],
        rows,
    )
