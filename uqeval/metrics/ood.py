"""The family `ood`: is the uncertainty higher out of distribution?

The sets of pixels are classes: 0 is in-distribution, k the k-th other set, and all pixels are
predicted to be in-distribution, so OUT pixels are the errors. Pixels are ranked as in failure
detection, over all sets, and over IN and each single OUT set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import uqeval.metrics.ood_scores as ood_scores
from uqeval.arrays import Array, State, np
from uqeval.errors import DataError, number_of, printable
from uqeval.maps.contract import WHOLE, View
from uqeval.maps.views import OneOfSets
from uqeval.metrics._aggregation import VOID, Aggregation
from uqeval.metrics._columns import SetColumns, SetStates
from uqeval.metrics._contract import Column, Display, ScoreTable, set_value
from uqeval.metrics._driver import renamed, run_jointly
from uqeval.metrics._evaluation import Evaluation, Passes, Run, TallyResult
from uqeval.metrics._family import Family
from uqeval.metrics._rank_bins import BIN_WIDTH, RankBins
from uqeval.metrics._ranked_items import of_items, without_noise
from uqeval.metrics._ranks_without import WITHOUT, of_two_kinds, without_each
from uqeval.metrics._score_kinds import OfFields, OverItems
from uqeval.metrics.bravo import METRICS, Bravo
from uqeval.metrics.failure_columns import SCORES, SetRankBins
from uqeval.metrics.failure_ranks import rank_pixels
from uqeval.metrics.ood_settings import OodSettings, settings_of
from uqeval.records.addresses import joined_fields

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.ranked_errors import RankedErrors

#: Images with fewer pixels may have the same mean uncertainty by chance.
_LEAST_PIXELS = 64


def _of_both_kinds(score: Any, weights: Array, out: Array, value: Array) -> Array:
    """Return a score of items; NaN if a set has only items of one kind."""
    is_defined = np.isfinite(value)
    has_out, has_in = (
        (weights.compress(is_defined & is_kind, axis=1) > 0).any(axis=1)
        for is_kind in (out > 0, out == 0)
    )
    both = has_out & has_in
    return np.where(both, score(weights, out, without_noise(value)), np.nan)


def _of_both_other_kinds(without: Any, is_counted: Array, out: Array, value: Array) -> Array:
    """Return a score without each item; NaN if the others are of one kind."""
    is_defined = is_counted & np.isfinite(value)
    kinds = (is_defined & (out > 0), is_defined & (out == 0))
    has_out, has_in = (kind.sum() - kind > 0 for kind in kinds)
    scores = without(is_counted, out, without_noise(value))
    return np.where(has_out & has_in, scores, np.nan)


#: Scores by rank, by their field.
_RANKED = {field: SCORES[name] for field, name in ood_scores.OF_FAILURE.items()}
_RANKED["detection_error"] = ood_scores.detection_error
#: The same without each item.
_WITHOUT = {field: WITHOUT[name] for field, name in ood_scores.OF_FAILURE.items()}
_WITHOUT["detection_error"] = partial(
    of_two_kinds, lambda bins: ood_scores.errors_at_bins(bins)[0], np.minimum,
    lambda error, bins: np.minimum(error, 0.5),
)  # fmt: skip


def _of_items(field: str) -> OfFields:
    """Return a score of items from whether an item is out, and its score."""
    score = partial(_of_both_kinds, of_items(_RANKED[field]))
    without = without_each(score, _WITHOUT[field])
    return OfFields(
        ("out", "score"), score, by_order=frozenset({"score"}),
        without=partial(_of_both_other_kinds, without),
    )  # fmt: skip


#: Scores of items by their field.
_OF_ITEMS = {field: _of_items(field) for field in _RANKED}


class OutOfDistribution(Evaluation[OodSettings]):
    """Scores by rank of the pixels, and of the items by their aggregated uncertainty.

    The exact ranks are `RankBins` by set: "" for all, and the name of each OUT set if there are
    several.
    """

    approximate = frozenset(
        {*ood_scores.OF_FAILURE, "fpr95", "detection_error", "per_set", "bravo"}
    )
    bound = BIN_WIDTH

    @property
    def _views(self) -> dict[str, View]:
        """Return the views of all sets, and of IN with each OUT set if there are several."""
        names = self.info.class_names[1:]
        single = {name: OneOfSets(k) for k, name in enumerate(names, 1)} if len(names) > 1 else {}
        return {"": WHOLE, **single}

    def _ranks(self, view: View) -> RankedErrors:
        from uqeval.tallies._errors import Error
        from uqeval.tallies.ranked_errors import RankedErrors

        uncertainty, error = self.settings.ranked, Error("zero-one")
        return RankedErrors(uncertainty, error, self.info.classes).in_view(view)

    @property
    def _has_items(self) -> bool:
        """Return whether whole items are in-distribution or out of it."""
        return bool(self.info.sets)

    @property
    def _aggregation(self) -> Aggregation:
        return Aggregation.parse(self.settings.aggregation)

    @property
    def _scores_of_items(self) -> Tally:
        return self._aggregation.tally(
            self.settings.ranked, self.info.classes, self.settings.patch, None
        )

    @property
    def _pixels(self) -> Tally:
        from uqeval.tallies.segmentation import ClassCounts

        return ClassCounts(self.info.classes)

    def maps(self) -> set[str]:
        return {"label", "prediction", self.settings.uncertainty}

    def exact(self) -> Passes:
        ranked, classes = self.settings.ranked, self.info.classes
        views = self._views
        passes = [
            renamed(
                rank_pixels(ranked, classes, ood_scores.bins_to_split, by_class=False),
                lambda tally, view=view: tally.in_view(view),  # type: ignore[misc]
            )
            for view in views.values()
        ]
        results = yield from run_jointly(*passes)
        return {
            name: by_group.get(None, RankBins.nothing())
            for name, by_group in zip(views, results, strict=True)
        }

    def tallies(self) -> tuple[Tally, ...]:
        return tuple(self._ranks(view) for view in self._views.values())

    def tallies_of(self, fields: Collection[str]) -> tuple[Tally, ...]:
        """Return that of the set, which may be another one of several sets in another run."""
        names = self._views.keys() & fields if "per_set" in fields else {""}
        return tuple(self._ranks(view) for name, view in self._views.items() if name in names)

    def extra_tallies(self) -> tuple[Tally, ...]:
        return (self._pixels, self._scores_of_items) if self._has_items else (self._pixels,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        by_set = exact
        if by_set is None:
            tallies = {name: self._ranks(view) for name, view in self._views.items()}
            by_set = {name: RankBins.from_state(t, states[t]) for name, t in tallies.items()}
        record: dict[str, Any] = {"uncertainty": self.settings.uncertainty}
        record |= ood_scores.scores(by_set[""])
        if len(by_set) > 1:
            record["per_set"] = {n: ood_scores.scores(b) for n, b in by_set.items() if n}
        if self._has_items:
            record["images"] = {"aggregation": self.settings.aggregation}
            for row in record.get("per_set", {}).values():
                row["images"] = {}
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        results: SetColumns = {}
        for name, view in self._views.items():
            place, tally = ("per_set", name) if name else (), self._ranks(view)
            if tally not in states or (name and "per_set" not in fields):
                continue
            bins = SetRankBins(states[tally])
            results |= {(*place, field): v for field, v in _columns(bins, fields, bool(name))}
        return results

    def over_items(self) -> OverItems:
        if not self._has_items:
            return OverItems()
        inside, *_ = self.info.class_names
        of_fields = {}
        for set_name in self._views:
            only = ("set", frozenset({inside, set_name})) if set_name else None
            row = ("per_set", set_name, "images") if set_name else ("images",)
            for name, own in _OF_ITEMS.items():
                of_fields[joined_fields((*row, name))] = replace(own, only=only)
        return OverItems(of_fields=of_fields)

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        pixels = self._pixels
        counts = [pixels.unpack(data)["labelled"] for data in results[pixels].items]
        records: list[dict[str, Any]] = [
            {"pixels": int(n.sum()), "pixels_in": int(n[0]), "pixels_out": int(n[1:].sum())}
            for n in counts
        ]
        if self._has_items:
            tally = self._scores_of_items
            for record, k, data in zip(records, self.info.sets, results[tally].items, strict=True):
                record |= {"set": self.info.class_names[k], "out": int(k > 0)}
                set_value(record, "score", self._aggregation.value(tally.unpack(data)), VOID)
        return records

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Add the scores of items."""
        run = super().run_of(results, exact)
        if self._has_items:
            run.results["images"] |= _of_images(run.items)
            inside, *_ = self.info.class_names
            for name, row in run.results.get("per_set", {}).items():
                own = [item for item in run.items if item["set"] in (inside, name)]
                row["images"] |= _of_images(own)
        return run

    def numerics(self, run: Run) -> dict[str, int]:
        return {"void": int(run.total(self._pixels)["void"][0])}

    def warnings(self, run: Run) -> list[str]:
        void = 0 if self._has_items else int(run.total(self._pixels)["void"][0])
        messages = _warnings(run.results, void)
        if self._has_items and self._aggregation.name == "mean":
            messages += _same_images(run.items, self.info.names)
        return messages

    def check(self, results: Mapping[Tally, TallyResult]) -> None:
        """Raise `DataError` without pixels of both kinds, unless parts of the items are read."""
        counts = results[self._pixels].total["labelled"]
        if not counts.any():
            raise DataError(f"{self.info.where}: nothing is left to evaluate: all pixels are void.")


def _columns(
    bins: SetRankBins, fields: Collection[str], every: bool
) -> Sequence[tuple[str, Array]]:
    """Return the scores of one view: those of `fields`, or all scores of a single set."""
    total, out = bins.total, bins.wrong
    both = (out > 0) & (out < total)
    columns = [("pixels", np.where(total > 0, total, np.nan))]
    columns += [("pixels_in", total - out), ("pixels_out", out)]
    for field, score in _RANKED.items():
        if every or field in fields:
            found = bins.without_each(ood_scores.OF_FAILURE.get(field, field))
            values = score(bins) if found is None else found
            columns.append((field, np.where(both, values, np.nan)))
    return columns


def _of_images(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the scores of some items by their records."""
    record: dict[str, Any] = {}
    fields = [[item[name] for item in items] for name in ("out", "score")]
    out, score = (np.array(values, np.float64) for values in fields)
    for name, of_fields in _OF_ITEMS.items():
        metric = ood_scores.BY_FIELD[f"images.{name}"]
        set_value(record, name, of_fields.of_all(out, score), metric.undefined)
    is_out = [item["out"] for item in items if item["score"] is not None]
    return record | {"items_in": is_out.count(0), "items_out": is_out.count(1)}


def _warnings(results: Mapping[str, Any], void: int) -> list[str]:
    """Return warnings about the scores. `void`: the void pixels of images with a mask."""
    if results["pixels_out"] and results["pixels_in"]:
        if results["auroc"] < 0.5:
            return [
                f"AUROC is {results['auroc']:.3f}, below 0.5: out-of-distribution pixels are more "
                "certain than the others."
            ]
        return []
    missing = "out-of-distribution" if results["pixels_in"] else "in-distribution"
    hint = ""
    if void and not results["pixels_out"]:
        hint = (
            f" {void} pixels are void: in a mask, the void id (255 unless its store has another "
            "ignore_index) does not count. Mark OUT pixels with 1, not 255."
        )
    return [f"there is no {missing} pixel, so the scores are undefined.{hint}"]


def _same_images(items: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Return a warning about images of OUT with the mean uncertainty of one of IN, to the bit.

    Stores without names, or with other names, can hold the same images. Small images, and those of
    one set with equal means, may be equal by chance.
    """
    places: dict[tuple[int, float], list[int]] = {}
    for i, item in enumerate(items):
        if item["score"] is not None and item["pixels"] >= _LEAST_PIXELS:
            places.setdefault((item["pixels"], item["score"]), []).append(i)
    found = []
    for equal in places.values():
        of_sets = [items[i]["set"] for i in equal]
        is_out = [items[i]["out"] for i in equal]
        if 0 in is_out and 1 in is_out and len(set(of_sets)) == len(of_sets):
            found += [(equal[0], i) for i in equal[1:]]
    if not found:
        return []
    first, second = (repr(printable(names[i])) for i in found[0])
    total = sum(item["out"] for item in items)
    return [
        f"{len(found)} of {number_of(total, 'OUT image')} have exactly the mean uncertainty of an "
        f"image of IN, first {second} that of {first}: the sets may hold the same images. Remove "
        "them from one of the sets."
    ]


_SCORES = ("auroc", "aupr_in", "aupr_out", "fpr95", "detection_error")
_ABOUT = """Out-of-distribution detection: is the model less certain about what it does not know?

Computes AUROC, AUPR, FPR at 95 % TPR and detection error by pixel and by image, for each OUT set.

Example: uqeval ood cityscapes.zarr fog.zarr animals.zarr --uncertainty mutual_information
"""


def _rows_of_sets(record: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows of IN with each OUT set, if there are several."""
    return [(f"in / {name}", dict(own)) for name, own in (record.get("per_set") or {}).items()]


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Out-of-distribution detection",
            ("uncertainty", *_SCORES, "pixels_in", "pixels_out"),
            "Pixels. OUT pixels are the positives; AUROC 0.5: chance.",
            below=_rows_of_sets,
        ),
        ScoreTable(
            "Out-of-distribution images",
            (
                Column("images.aggregation", "score of an image"),
                *(Column(f"images.{n}", ood_scores.BY_FIELD[n].heading) for n in _SCORES),
                Column("images.items_in", "IN images"), Column("images.items_out", "OUT images"),
            ),
            "An image is scored by the aggregated uncertainty of its pixels.",
            below=_rows_of_sets,
        ),
        ScoreTable(
            "BRAVO",
            (
                Column("bravo.bravo_index", "BRAVO index"), Column("bravo.semantic", "semantic"),
                Column("bravo.ood", "OOD"),
                *(Column(f"bravo.{name}", heading) for name, heading in (
                    ("miou", "mIoU"), ("ece", "ECE"), ("auroc", "AUROC"),
                    ("aupr_success", "AUPR success"), ("aupr_error", "AUPR error"),
                    ("fpr95", "FPR95"))),
            ),
            "Semantic scores: pixels that the mask does not mark. Higher means are better.",
        ),
    ),
    ranks_items=False,
)  # fmt: skip

FAMILY = Family(
    "ood",
    (*ood_scores.METRICS, *METRICS),
    settings_of,
    OutOfDistribution,
    OodSettings,
    parts=(Bravo,),
    kinds=("ood",),
    about=_ABOUT,
    display=DISPLAY,
    label="Out-of-distribution detection",
    words={
        "per_set": "by set", "images": "images", "pixels_in": "IN pixels",
        "pixels_out": "OUT pixels", "items_in": "IN images", "items_out": "OUT images",
    },
)  # fmt: skip
