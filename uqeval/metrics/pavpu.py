"""The family `pavpu`: patch accuracy against patch uncertainty."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import uqeval.metrics._warnings as float16
import uqeval.metrics.patch_scores as patch_scores
from uqeval.arrays import State
from uqeval.errors import UsageError
from uqeval.metrics._columns import SetColumns, SetStates
from uqeval.metrics._contract import ClassBars, Column, Display, Panel, Record, RowTable, ScoreTable
from uqeval.metrics._evaluation import Evaluation, Passes, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets
from uqeval.metrics._items import score_items
from uqeval.metrics._warnings import sign_warnings
from uqeval.metrics.patch_scores import METRICS
from uqeval.metrics.pavpu_results import AccuracyTable, columns_of, items_of, results_of
from uqeval.metrics.pavpu_settings import PavpuSettings, settings_of
from uqeval.metrics.thresholds import (
    Fitted,
    Rule,
    best,
    fit,
    is_same,
    refuse_not_held,
    step_of,
    undefined_warnings,
)

if TYPE_CHECKING:
    from uqeval.records.report import Report
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.patches import ItemPatchCounts, PatchCounts, Patches

_SCORES = ("p_accurate_given_certain", "p_uncertain_given_inaccurate", "surplus", "phi")


def _iou(row: Record, report: Report) -> float | None:
    """Return the IoU of the class of a row."""
    rows = report.results.get("segmentation", {}).get("per_class", ())
    return next((own["iou"] for own in rows if own["class"] == row["class"]), None)


def _patches(row: Record, report: Report) -> int | None:
    counts = [row[name] for name in patch_scores.COUNTS]
    return None if None in counts else sum(counts)


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Patch accuracy vs patch uncertainty",
            (
                "uncertainty",
                Column("window", "window/stride",
                       value=lambda record, report: f"{record['window']}/{record['stride']}"),
                Column("uncertainty_threshold", "threshold"),
                "pavpu", "pavpu_chance", *_SCORES, "surplus_auc",
            ),
            "chance: the PAvPU of an uncertainty that is independent of the errors. Surplus: above "
            "0 the uncertainty finds errors; at 0 it is independent of them; below 0 it is worse "
            "than chance.",
        ),
        ScoreTable(
            "Patches",
            (*patch_scores.COUNTS, "p_accurate", "p_certain", "surplus_peak.value",
             Column("surplus_peak.t", "at t", form=".2f")),
        ),
        RowTable(
            "By class of patch", "per_class",
            (Column("class", "IoU", value=_iou), Column("n_ac", "patches", value=_patches),
             "pavpu", *_SCORES),
            "mixed: patches with pixels of several classes.",
        ),
    ),
    bars=ClassBars(
        "Patch scores",
        (Panel("pavpu", "PAvPU"), Panel("surplus", "Surplus", (0.0, "chance"))),
    ),
    figures=("pavpu", "accuracy_by_uncertainty"),
)  # fmt: skip


class Pavpu(Evaluation[PavpuSettings]):
    """Patches counted at fitted thresholds, or at a threshold of each item."""

    fits_threshold = refits = True

    @property
    def shares_fit(self) -> bool:
        return self.settings.threshold_scope != "region"

    @property
    def can_score(self) -> bool:
        return bool(self.fitted) or self.settings.threshold_scope == "item"

    @property
    def _rule(self) -> Rule:
        return Rule.parse(self.settings.threshold)

    @property
    def _patches(self) -> Patches:
        return self.settings.patches(self.info.classes)

    @property
    def _thresholds(self) -> Fitted | None:
        """Return the thresholds of the results; None where each item has one, and before `fit`."""
        return Fitted.from_record(self.fitted) if self.fitted else None

    @property
    def _counted_at(self) -> Fitted | None:
        """Return the thresholds at which patches are counted: those of the run, after
        `refit` too.
        """
        thresholds = self._thresholds
        if thresholds is None or "counted_at" not in self.fitted:
            return thresholds
        return dataclasses.replace(thresholds, threshold=tuple(self.fitted["counted_at"]))

    @property
    def _step(self) -> int | None:
        """Return the step of the curve that has the threshold; None at the threshold of the run."""
        thresholds = self._thresholds
        if thresholds is None or "counted_at" not in self.fitted:
            return None
        return step_of(thresholds, thresholds.threshold[0])

    def maps(self) -> set[str]:
        return {"label", "prediction", *self._patches.inputs}

    def fit(self) -> Passes:
        scope = self.settings.threshold_scope
        if scope == "item":
            return
        rule, ends = self._rule, self.settings.ends()
        if rule.kind == "value" and scope == "set" and ends is not None:  # counted in this pass
            self.fitted |= dataclasses.asdict(Fitted((rule.value,), (ends,)))
        fitted = yield from fit(
            self.info, rule, self._patches, scope == "class", ends, self.region, **self._operators
        )
        self.fitted |= dataclasses.asdict(fitted)

    def tallies(self) -> tuple[Tally, ...]:
        return (self._counts(self._counted_at),) if self.can_score else ()

    def extra_tallies(self) -> tuple[Tally, ...]:
        if self._patches.uncertainty.name not in self.info.halves:
            return ()
        return tuple(band_tally for tally in self.tallies() for band_tally in float16.band(tally))  # type: ignore[arg-type]

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        (tally,) = self.tallies()
        return results_of(
            self.settings, self._thresholds, states[tally], self.info.class_names, self._step
        )

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        (tally,) = self.tallies()
        return columns_of(self._thresholds, states[tally], fields, self._step)

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        score = partial(items_of, self.settings, self._thresholds, self.info.class_names)
        return score_items(self.tallies(), results, score)

    def numerics(self, run: Run) -> dict[str, int]:
        return {f"ties_{k}": v for k, v in run.results["ties"].items() if isinstance(v, int)}

    def warnings(self, run: Run) -> list[str]:
        fitted = self._thresholds
        messages = []
        if fitted and fitted.is_single:
            messages = undefined_warnings(self._rule, fitted.threshold[0])
        messages += sign_warnings("pavpu", run.results)
        if self._step is not None:  # the band of rounding is that of the threshold of the run
            return messages
        band = [run.total(tally) for tally in self.extra_tallies()]
        return messages + float16.warnings(self.settings.uncertainty, fitted, band)

    def options(self) -> dict[str, str | None] | None:
        if self.settings.threshold_scope != "set":
            return {}
        fitted = self._thresholds
        if fitted is None:
            return None
        if fitted.threshold[0] is None:
            return {"threshold": None}
        low, high = fitted.ends[0]
        numbers: dict[str, str | None] = {"threshold": repr(fitted.threshold[0])}
        if low < high:  # each set of one uncertainty has these ends by default
            numbers["curve_range"] = f"{low!r}:{high!r}"
        return numbers

    def refit(self, rule: str) -> Passes:
        """Return the threshold of the run, or one of its curve."""
        if self.settings.threshold_scope != "set":
            raise UsageError(
                f"--threshold {rule}: the run fitted a threshold for each "
                f"{self.settings.threshold_scope} (--threshold-scope). One for all needs the "
                "pixels: evaluate again."
            )
        threshold_rule, counted_tally = Rule.parse(rule), self._counted_at
        assert counted_tally is not None
        value: float | None = threshold_rule.value
        if threshold_rule.kind == "max-surplus":
            tally = self._counts(counted_tally)
            value = best((yield (tally,))[tally].total["by_threshold"], *counted_tally.ends[0])
        elif threshold_rule.kind != "value":
            value = (yield from fit(self.info, threshold_rule, self._patches, False)).threshold[0]
        thresholds, ends = list(counted_tally.threshold), self.fitted["ends"]
        if is_same(value, thresholds[0]) or (value is None and thresholds[0] is None):
            return {"threshold": thresholds, "ends": ends}
        if value is not None and step_of(counted_tally, value) is None:
            refuse_not_held(rule, value, counted_tally)
        return {"threshold": [value], "ends": ends, "counted_at": thresholds}

    @property
    def _operators(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "accuracy_threshold": settings.accuracy_threshold,
            "accuracy_op": settings.accuracy_op,
            "uncertainty_op": settings.uncertainty_op,
        }

    def _counts(self, fitted: Fitted | None) -> PatchCounts | ItemPatchCounts:
        """Return the tally of patches at fitted thresholds, or at a threshold of each item."""
        from uqeval.tallies.patches import ItemPatchCounts, PatchCounts

        if fitted is None:
            rule = self._rule
            return ItemPatchCounts(self._patches, rule.kind, rule.value, **self._operators)
        return PatchCounts(self._patches, fitted.threshold, fitted.ends, **self._operators)


_ABOUT = """Patch accuracy vs patch uncertainty: are the wrong patches the uncertain ones?

Computes PAvPU, p(accurate | certain), p(uncertain | inaccurate), phi, the PAvPU Surplus and
their curves, per class and for mixed patches, and the segmentation scores.

Example: uqeval pavpu preds.zarr labels/ -o report.json
"""

FAMILY = Family(
    "pavpu", (*METRICS, *patch_scores.OF_CURVES, *patch_scores.PER_CLASS),
    settings_of, Pavpu, PavpuSettings, parts=(AccuracyTable,), about=_ABOUT,
    display=DISPLAY, on_subsets=OnSubsets(default=("classes",), fixed={"deciles": False}),
    label="Patch accuracy vs patch uncertainty",
    one_pass="--threshold NUMBER --curve-range LOW:HIGH --no-deciles",
    words={
        "n_ac": "accurate, certain", "n_au": "accurate, uncertain", "n_ic": "inaccurate, certain",
        "n_iu": "inaccurate, uncertain",
    },
)  # fmt: skip
