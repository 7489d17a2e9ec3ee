"""The family `conformal`: sets of classes, or intervals, that contain the truth with a guarantee.

Calibrates a threshold of a nonconformity score on named items, so that the expected risk of a new
item is at most α (conformal risk control). Evaluates the sets of the other items.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import uqeval.metrics.conformal_scores as cs
from uqeval.arrays import State, np
from uqeval.errors import DataError, number_of
from uqeval.metrics._columns import SetColumns, SetStates, class_rows, of_rows, over, records_of
from uqeval.metrics._contract import (
    NO_LABEL,
    ClassBars,
    Column,
    Display,
    Panel,
    RowTable,
    ScoreTable,
    set_value,
)
from uqeval.metrics._dataset_info import fitted_on
from uqeval.metrics._evaluation import Evaluation, Passes, Run, TallyResult
from uqeval.metrics._family import Family
from uqeval.metrics._items import score_items
from uqeval.metrics._score_kinds import OfFields, OverItems
from uqeval.metrics.conformal_settings import (
    MISCOVERAGE,
    ConformalSettings,
    calibration_items,
    settings_of,
)

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

DISPLAY = Display(
    tables=(
        ScoreTable(
            "Conformal prediction",
            (
                "method", "risk", Column("alpha", "α", form="g"),
                Column("calibration_items", "calibrated on"),
                Column("evaluated_items", "evaluated on"), Column("threshold", "threshold", 5),
                "mean_loss", "coverage", "size", "width", "singletons", "empty",
            ),
            "If the images are exchangeable, the mean loss of new images is at most α in "
            "expectation. Single images, classes and pixels have no guarantee. The items that the "
            "sets are calibrated on are not evaluated; other metrics are of all items.",
        ),
        ScoreTable(
            "Coverage of single images",
            (
                "items_above", Column("items.least", "lowest"), "items.p05",
                Column("items.p25", "25 %"), Column("items.median", "median"),
                Column("items.p95", "95 %"), Column("items.mean", "mean"),
                Column("items.std", "std"),
            ),
            "Coverage counts the pixels that the risk is about: all, or those of one class. above "
            "alpha: images whose own loss exceeds α.",
        ),
        RowTable("Sets by class", "per_class", ("coverage", "size", "pixels")),
        RowTable(
            "Coverage by size of the set", "by_size", ("pixels", "coverage"),
            corner="classes in the set", row=lambda row: str(row["size"]), most=20,
        ),
    ),
    bars=ClassBars(
        "Conformal sets", (Panel("coverage", "coverage"), Panel("size", "mean classes in a set"))
    ),
    figures=("conformal",),
)  # fmt: skip


Record = dict[str, Any]
_CALIBRATES = "the item is used for calibration"


class Conformal(Evaluation[ConformalSettings]):
    """Coverage and size of the sets of all items except the calibration items.

    `fitted`: `cut`, the threshold (of classes 1 - score, None if infinite), the number of
    calibration items, their mean loss, and the record of their names; with an infinite threshold
    also `infinite`, the calibration pixels with an infinite score (σ = 0, σ > 0).
    """

    needs_fitted = ("cut",)

    def maps(self) -> set[str]:
        settings = self.settings
        if settings.is_of_numbers:
            return {"label", settings.ratio, settings.sigma}
        return {"label", "mean_probs"}

    def fit(self) -> Passes:
        from uqeval.metrics.conformal_fit import calibrate
        from uqeval.tallies.prediction_sets import Nonconformity

        settings, info = self.settings, self.info
        score = settings.ratio if settings.is_of_numbers else settings.method
        tally = Nonconformity(score, info.classes, self._of_class)
        found = yield from calibrate(settings, info, tally)
        self.fitted |= {
            "cut": found.cut if math.isfinite(found.cut) else None,
            "calibration_items": found.items,
            "calibration_loss": found.loss,
            "fitted_on": fitted_on(settings.fit_on, info),
        }
        if found.infinite is not None:
            self.fitted["infinite"] = list(found.infinite)

    def tallies(self) -> tuple[Tally, ...]:
        from uqeval.tallies.prediction_sets import PredictionIntervals, PredictionSets

        if not self.can_score:
            return ()
        settings, cut = self.settings, self.fitted["cut"]
        if settings.is_of_numbers:
            return (PredictionIntervals(settings.ratio, settings.sigma, cut),)
        return (PredictionSets(settings.method, self.info.classes, cut),)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> Record:
        settings, fitted = self.settings, self.fitted
        (tally,) = self.tallies()
        record: Record = {
            "method": settings.method, "risk": settings.risk, "alpha": settings.alpha,
            "guarantee": self._guarantee, "calibration_items": fitted["calibration_items"],
            "calibration_loss": fitted["calibration_loss"],
        } | fitted.get("fitted_on", {})  # fmt: skip
        if settings.is_of_numbers:
            set_value(record, "threshold", fitted["cut"], self._why_infinite)
        else:  # all digits of 1 - cut may be 9
            record |= {"threshold": 1 - fitted["cut"], "one_minus_threshold": fitted["cut"]}
        return record | self._pooled(states[tally])

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        (tally,) = self.tallies()
        state = states[tally]
        total = {name: state[name].sum(axis=1) for name in ("pixels", "covered")}
        columns = {
            ("coverage",): over(total["covered"], total["pixels"]),
            ("pixels",): total["pixels"],
        }
        if self.settings.is_of_numbers:
            cut = math.nan if self.fitted["cut"] is None else self.fitted["cut"]
            return columns | {("width",): cs.width(cut, state["sigma"][:, 0], total["pixels"])}
        rows = {
            "coverage": over(state["covered"], state["pixels"]),
            "size": over(state["sizes"], state["pixels"]),
            "pixels": state["pixels"],
        }
        sizes = {("size",): over(state["sizes"].sum(axis=1), total["pixels"])}
        for place, size in (("empty", 0), ("singletons", 1)):
            sizes[place,] = over(state["by_size"][:, size], total["pixels"])
        return columns | sizes | of_rows(rows, np.arange(self.info.classes).tolist())

    def over_items(self) -> OverItems:
        (tally, *_) = self.tallies() or (None,)
        return OverItems(
            {"mean_loss": "loss", "items_above": "above"},
            {name: OfFields(("loss",), score) for name, score in cs.DISTRIBUTION.items()},
            leaves_out="calibration",
            kept_only=frozenset() if tally is None else frozenset([tally]),
            kept="evaluated_items",
            none_kept="all these items are used for calibration",
            fitted=frozenset({"threshold"}),
        )

    def records(self, results: Mapping[Tally, TallyResult]) -> list[Record]:
        records = score_items(self.tallies(), results, self._of_items)
        calibrates = set(calibration_items(self.settings, self.info))
        names = [name for name in records[0] if not name.endswith("_reason")]
        left_out: Record = {}
        for name in names:
            set_value(left_out, name, None, _CALIBRATES)
        return [
            (left_out if i in calibrates else record) | {"calibration": i in calibrates}
            for i, record in enumerate(records)
        ]

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Compute the scores of all items except the calibration items."""
        (tally,) = self.tallies()
        items = self.records(results)
        evaluated = [i for i, item in enumerate(items) if not item["calibration"]]
        record = self.scores({tally: results[tally].of_items(tally, evaluated)}, exact)
        record["evaluated_items"] = len(evaluated)
        kept = [items[i] for i in evaluated if items[i]["loss"] is not None]
        over = self.over_items()
        for name, field in over.means.items():
            metric = cs.BY_FIELD[name]
            value = metric.formula([float(item[field]) for item in kept])
            set_value(record, name, value, metric.undefined)
        losses = np.array([item["loss"] for item in kept], np.float64)
        record["items"] = {}
        for name, of_fields in over.of_fields.items():
            value = of_fields.of_all(losses)
            set_value(record["items"], name.removeprefix("items."), value, cs.NO_ITEM)
        return Run(results, exact, record, items)

    def check(self, results: Mapping[Tally, TallyResult]) -> None:
        """Raise `DataError` if no evaluated item has a valid pixel."""
        (tally,) = self.tallies()
        items = set(range(len(self.info.names)))
        evaluated = sorted(items - set(calibration_items(self.settings, self.info)))
        if not results[tally].of_items(tally, evaluated)["pixels"].any():
            raise DataError(
                f"{self.info.where}: nothing is left to evaluate: the "
                f"{number_of(len(evaluated), 'item')} that --fit-on {self.settings.fit_on} does "
                "not name have no valid pixel. Name other items."
            )

    def numerics(self, run: Run) -> dict[str, int]:
        void = sum(item["loss"] is None and not item["calibration"] for item in run.items)
        return {"undefined": void}

    def warnings(self, run: Run) -> list[str]:
        messages = []
        if self.info.groups is not None and len(set(self.info.groups)) < len(self.info.groups):
            messages.append(
                "items of one case are not exchangeable with those of others: name whole cases in "
                "--fit-on, and read the guarantee for cases."
            )
        few = self.settings.few_items(self.fitted["calibration_items"])
        messages += filter(None, (few, self.settings.empty_sets(run.results)))
        if self.fitted["cut"] is None:
            messages.append(f"{self._why_infinite}. The intervals contain every number.")
        return messages

    @cached_property
    def _of_class(self) -> int | None:
        return self.settings.of_class(self.info)

    @property
    def _why_infinite(self) -> str:
        # Runs before this version do not have the pixels.
        return cs.infinite(self.fitted.get("infinite"))

    @property
    def _guarantee(self) -> str:
        """Return the guarantee as a sentence."""
        count = self.fitted["calibration_items"]
        images, pixels = "images", "pixels"
        if self._of_class is not None:
            name = self.info.class_names[self._of_class]
            images, pixels = f"images with {name}", f"pixels of {name}"
        inside = "interval contains" if self.settings.is_of_numbers else "set contains"
        truth = "target" if self.settings.is_of_numbers else "label"
        return (
            f"If the {images} are exchangeable, the expected share of the {pixels} of a new image "
            f"whose {inside} the {truth} is at least {float(1 - self.settings.level):g}, "
            f"averaged over images and over the choice of the {count} calibration images. It "
            "does not hold for each image, class, region or pixel."
        )

    def _undefined(self, columns: SetColumns, *fields: str) -> dict[str, str]:
        """Return those of the fields that there are, with the reason where one is undefined."""
        undefined = {field: NO_LABEL for field in fields if (field,) in columns}
        if "width" in undefined and self.fitted["cut"] is None:
            undefined["width"] = self._why_infinite
        return undefined

    def _pooled(self, state: State) -> Record:
        """Return the scores of a state, with rows."""
        (tally,) = self.tallies()
        columns = self.columns({tally: SetStates.of_one(state)}, ())
        fields = ("coverage", "pixels", "width", "size", "singletons", "empty")
        (record,) = records_of(columns, self._undefined(columns, *fields))
        if self.settings.is_of_numbers:
            return record
        absent = "the class is in no label"
        undefined = {"coverage": absent, "size": absent, "pixels": ""}
        record["per_class"] = class_rows(columns, self.info.class_names, undefined)
        by_size = zip(state["by_size"].tolist(), state["covered_by_size"].tolist(), strict=True)
        record["by_size"] = [
            {"size": size, "pixels": n, "coverage": hits / n}
            for size, (n, hits) in enumerate(by_size)
            if n
        ]
        return record

    def _of_items(self, states: SetStates) -> list[Record]:
        """Return the scores of each item."""
        (tally,) = self.tallies()
        columns, c = self.columns({tally: states}, ()), self._of_class
        pixels, covered = (
            states[name].sum(axis=1) if c is None else states[name][:, c]
            for name in ("pixels", "covered")
        )
        columns["loss",] = over(pixels - covered, pixels)
        why = NO_LABEL if c is None else "no pixel of the class"
        undefined = self._undefined(columns, "coverage", "width", "size") | {"loss": why}
        records = records_of(columns, undefined)
        for record in records:
            loss = record["loss"]
            above = None if loss is None else loss > self.settings.alpha
            set_value(record, "above", above, why)
        return records


_ABOUT = f"""Conformal prediction: sets of classes, or intervals, that contain the truth.

Calibrates a threshold on the items that --fit-on names: the expected risk of a new image is then at
most --alpha. Evaluates the sets of all other items: coverage and size (width of the intervals),
overall, per class and per image. The guarantee is an average over images, and needs exchangeable
images. Risks: {MISCOVERAGE}, or the false negative rate of a class.

Example: uqeval conformal preds.zarr labels/ --fit-on calibration.txt --alpha 0.1
"""

FAMILY = Family(
    "conformal",
    cs.METRICS,
    settings_of,
    Conformal,
    ConformalSettings,
    kinds=("classes", "regression"),
    about=_ABOUT,
    display=DISPLAY,
    label="Conformal prediction",
    words={"items": "coverage of single images"},
    on_request=True,
)
