"""Which scores of a report the plain path recomputes, and how: by item, and pooled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.keys import Key, family_of
from uqeval.usecases.verify import class_scores as cs
from uqeval.usecases.verify import ranks, regions, slice_ranks, video
from uqeval.usecases.verify.class_scores import estimates, smooth_ece
from uqeval.usecases.verify.classes import ClassMaps, rounding_of, uncertainty_of
from uqeval.usecases.verify.comparing import Recomputed, is_not_held
from uqeval.usecases.verify.options import not_supported
from uqeval.usecases.verify.rank_bounds import add_bounds
from uqeval.usecases.verify.sparsification import of_groups, slack_of_errors

COVERED = (
    "segmentation", "pavpu", "calibration", "failure", "sparsification", "regression", "nmerci",
    "temporal", "divergence", "ood", "image_failure", "conformal", "annotators",
)  # fmt: skip


def not_covered(key: str, settings: Mapping[str, Any], kind: str) -> str | None:
    """Return why the scores under a key are not recomputed from this kind of data, although a run
    may give them; None if they are."""
    family, region = family_of(key), Key.parse(key).region
    if family not in COVERED or (family == "annotators" and region is not None):
        return f"{family} is not recomputed in plain NumPy"
    if region is not None and (reason := regions.not_covered(region, kind)):
        return reason
    reason = not_supported(family, settings)
    return reason or (video.not_covered(settings) if family == "temporal" else None)


def no_region(key: str, kind: str, class_names: Sequence[str], source: Any) -> str | None:
    """Return why the region of a key is none of these stores; None if it is one, or without."""
    region = Key.parse(key).region
    return None if region is None else regions.unknown(region, kind, class_names, source)


@dataclass
class Pixels:
    """What the scores of classes take of some items: flat arrays of the pixels that count."""

    label: Array
    prediction: Array
    maps: dict[str, Array]
    classes: int
    #: By key, the `ClassMaps.rounding` of its uncertainty, [pixel, draw].
    rounding: dict[str, Array] = field(default_factory=dict)
    patches: dict[str, cs.Patches] = field(default_factory=dict)
    #: By number of bins: the bins of each class, and the pixels near their edges.
    by_class: dict[int, tuple[Array, int]] = field(default_factory=dict)
    #: Mean probabilities float32 [class, i], where a temperature is recomputed.
    probs: Array | None = None

    @property
    def wrong(self) -> Array:
        """Whether the prediction is not the label."""
        return self.label != self.prediction


def pixels_of(maps: ClassMaps, settings: Mapping[str, Mapping[str, Any]], classes: int) -> Pixels:
    """Return the pixels of an item, with the patches and class bins that settings ask for."""
    assert maps.label is not None
    named_values = {name: values for name, values in (
        ("confidence", maps.confidence), ("brier", maps.brier),
        ("label_probability", maps.label_probability)) if values is not None}  # fmt: skip
    pixels = Pixels(
        maps.valid(maps.label), maps.valid(maps.prediction),
        {name: maps.valid(values) for name, values in named_values.items()}, classes,
    )  # fmt: skip
    for key, variant in settings.items():
        family = family_of(key)
        if family in ("pavpu", "failure", "sparsification"):
            values = uncertainty_of(maps, variant, classes)
            if values is not None:
                pixels.maps[key] = maps.valid(values)
                pixels.rounding[key] = rounding_of(maps, variant)
            if values is not None and family == "pavpu":
                right = (maps.prediction == maps.label) & ~maps.void
                pixels.patches[key] = cs.patches(
                    maps.label, right, values, maps.void, variant, maps.void_of_image
                )
        if family == "calibration" and maps.probs is not None:
            _add_class_bins(pixels, maps, variant["bins"])
    return pixels


def _add_class_bins(pixels: Pixels, maps: ClassMaps, bins: int) -> None:
    assert maps.probs is not None
    found = [
        cs.equal_width(p, pixels.label == c, bins) for c, p in enumerate(maps.valid(maps.probs))
    ]
    pixels.by_class[bins] = np.stack([rows for rows, _ in found]), sum(near for _, near in found)


def join_pixels(parts: list[Pixels]) -> Pixels:
    """Return the pixels of several items as one."""
    first = parts[0]
    pixels = Pixels(
        np.concatenate([p.label for p in parts]), np.concatenate([p.prediction for p in parts]),
        {name: np.concatenate([p.maps[name] for p in parts]) for name in first.maps},
        first.classes,
        {key: np.concatenate([p.rounding[key] for p in parts]) for key in first.rounding},
    )  # fmt: skip
    for key in first.patches:
        pixels.patches[key] = cs.joined([p.patches[key] for p in parts])
    for bins in first.by_class:
        found = [p.by_class[bins] for p in parts]
        rows: Array = np.sum([rows for rows, _ in found], axis=0)
        pixels.by_class[bins] = rows, sum(near for _, near in found)
    return pixels


def of_classes(
    key: str, pixels: Pixels, settings: Mapping[str, Any], results: Mapping[str, Any],
    reported: Mapping[str, Any], in_bins: bool = False, of_item: bool = False,
) -> Recomputed | str:  # fmt: skip
    """Return the scores of a key over some pixels of class data, or why there are none.

    `in_bins`: with ranks from bins, as those of a slice. `of_item`: of an item, which has neither
    ties nor bounds.
    """
    family = family_of(key)
    if family == "segmentation":
        matrix = cs.confusion(pixels.label, pixels.prediction, pixels.classes)
        return Recomputed(cs.segmentation(matrix))
    if family == "calibration":
        of_set = results if reported is results else None
        return _calibration(pixels, settings, of_set, of_item)
    if key not in pixels.maps:
        return f"the store holds no map {settings['uncertainty']} to recompute it from"
    if family == "pavpu":
        return _pavpu(pixels.patches[key], settings, results, reported, with_ties=not of_item)
    if family == "failure":
        all_pixels = np.ones(pixels.label.shape, bool)
        bounds_of = None if of_item else reported
        return _failure(key, pixels, all_pixels, results, bounds_of, in_bins)
    error = error_of(pixels, settings)
    if error is None:
        return "the store holds neither brier nor mean_probs to recompute it from"
    score, rounding = pixels.maps[key], pixels.rounding[key]
    if in_bins:
        recomputed = slice_ranks.sparsified(score, error, error, rounding, settings["steps"], False)
    else:
        recomputed = _sparsified(score, error, rounding, settings["steps"], reported)
    if settings["error"] == "brier":
        for name, own in slack_of_errors(recomputed.values, pixels.classes).items():
            recomputed.slack[name] = recomputed.slack.get(name, 0.0) + own
    return recomputed


def _sparsified(
    score: Array, error: Array, rounding: Array, steps: int, reported: Mapping[str, Any]
) -> Recomputed:
    of_all = of_groups(error, steps, False)

    def scores(number: Array, sums: Array) -> dict[str, Any]:
        # Items have no curves, of which every number would be compared in every draw.
        return {name: own for name, own in of_all(number, sums).items() if name in reported}

    slack = ranks.slack_of_order(scores, score, error, rounding)
    return Recomputed(of_all(*ranks.grouped(score, error)), slack)


def error_of(pixels: Pixels, settings: Mapping[str, Any]) -> Array | None:
    """Return the error of each pixel that sparsification takes; None without its map."""
    is_brier = settings["error"] == "brier"
    return pixels.maps.get("brier") if is_brier else pixels.wrong.astype(np.float64)


def rows_of_classes(
    key: str, pixels: Pixels, settings: Mapping[str, Any], results: Mapping[str, Any],
    in_bins: bool = False,
) -> Iterator[Recomputed]:  # fmt: skip
    """Yield the scores of each row of classes under a key whose scores are recomputed.

    `in_bins`: those of a slice, without the scores that need ranks.
    """
    family = family_of(key)
    if family == "segmentation":
        matrix = cs.confusion(pixels.label, pixels.prediction, pixels.classes)
        yield from map(Recomputed, cs.segmentation_rows(matrix))
    all_reported = dict(enumerate(results.get("per_class", ())))
    for row in range(pixels.classes + (family == "pavpu")):  # the last one is `mixed`
        reported = all_reported.get(row, {})
        if family == "calibration" and settings["bins"] in pixels.by_class:
            class_bins, uncertain = pixels.by_class[settings["bins"]]
            labelled = int((pixels.label == row).sum())
            slack = {"ece": 2 * uncertain / max(pixels.label.size, 1)}
            yield Recomputed({"ece": cs.gaps(class_bins[row])[0], "pixels": labelled}, slack)
        elif family == "failure":
            of = pixels.label if results.get("per_class_by") == "label" else pixels.prediction
            own = of == row
            if in_bins:
                errors = int(pixels.wrong[own].sum())
                counts = Recomputed({"pixels": int(own.sum()), "errors": errors})
                yield _with_undetected(counts, key, pixels, own, results)
            else:
                yield _failure(key, pixels, own, results, reported)
        elif family == "pavpu":
            shared = row if row < pixels.classes else -1
            scores = _pavpu(pixels.patches[key].of(shared), settings, results, reported)
            if isinstance(scores, Recomputed):
                yield scores


def _failure(
    key: str, pixels: Pixels, own: Array, results: Mapping[str, Any],
    reported: Mapping[str, Any] | None, in_bins: bool = False,
) -> Recomputed:  # fmt: skip
    """`reported`: the record with bounds; None without bounds."""
    score, wrong, rounding = pixels.maps[key][own], pixels.wrong[own], pixels.rounding[key][own]
    if in_bins:
        recomputed = slice_ranks.failure(score, wrong, rounding)
    else:
        slack = ranks.slack_of_order(ranks.failure_of_groups, score, wrong, rounding)
        recomputed = Recomputed(ranks.failure(score, wrong), slack)
        if reported is not None:
            add_bounds(recomputed.values, slack, reported, (score, wrong, rounding))
    return _with_undetected(recomputed, key, pixels, own, results)


def _with_undetected(
    recomputed: Recomputed, key: str, pixels: Pixels, own: Array, results: Mapping[str, Any]
) -> Recomputed:
    score, threshold = pixels.maps[key][own], results.get("uncertainty_threshold")
    share, near = ranks.undetected(score, pixels.wrong[own], threshold)
    recomputed.values["undetected_error_rate"] = share
    recomputed.slack["undetected_error_rate"] = near / max(score.size, 1)
    return recomputed


def _pavpu(
    patches: cs.Patches, settings: Mapping[str, Any], results: Mapping[str, Any],
    reported: Mapping[str, Any], *, with_ties: bool = False,
) -> Recomputed | str:  # fmt: skip
    threshold = results.get("uncertainty_threshold")
    if threshold is None:
        accurate = cs.is_accurate(patches, settings, settings["accuracy_threshold"])
        # The rule max-surplus needs patches of both kinds.
        is_fitted = settings["threshold"] != "max-surplus" or accurate.all() != accurate.any()
        if reported is results and accurate.size and is_fitted:
            return "its uncertainty threshold is null, although the patches have one"
        return Recomputed(cs.without_threshold(accurate))
    counts = cs.patch_counts(patches, settings, threshold)
    uncertain = float(counts.pop("near"))
    slack = dict.fromkeys((*counts, "ties.uncertainty"), uncertain)
    # What follows from the counts is held against the report's own, which may differ by `near`.
    reported_counts = {name: int(reported.get(name) or 0) for name in counts}
    ties = {}
    if with_ties:
        ties = {"ties": cs.ties(patches, settings, threshold)}
        of_report = reported.get("ties")
        if isinstance(of_report, Mapping) and is_not_held(of_report, "uncertainty"):
            del ties["ties"]["uncertainty"]
    return Recomputed(counts | cs.patch_scores(reported_counts) | ties, slack)


def _calibration(
    pixels: Pixels, settings: Mapping[str, Any], of_set: Mapping[str, Any] | None, of_item: bool
) -> Recomputed | str:  # fmt: skip
    """`of_set`: the results of the set; None for an item, and a slice from bins, which have no
    published estimates. Items have their number of pixels, and no smooth ECE."""
    scores: dict[str, Any] = {}
    right = ~pixels.wrong
    slack: dict[str, float] = {}
    n = max(pixels.label.size, 1)
    if "confidence" in pixels.maps:
        conf = pixels.maps["confidence"]
        bins, uncertain = cs.equal_width(conf, right, settings["bins"])
        scores["ece"], scores["mce"], scores["ace"] = cs.gaps(bins)
        scores["reliability"] = cs.reliability(bins)
        slack = {"ece": 2 * uncertain / n} | dict.fromkeys(("mce", "ace"), float(uncertain > 0))
        for k in range(settings["bins"]):
            slack[f"reliability.count.{k}"] = uncertain
            slack[f"reliability.confidence.{k}"] = slack[f"reliability.accuracy.{k}"] = slack["mce"]
        if settings["adaptive"]:
            scores["adaptive_ece"] = cs.adaptive_ece(conf, right, settings["bins"])
        if of_set is not None:
            scores |= estimates(conf, right, settings, of_set)
        if not of_item and (recomputed := smooth_ece(conf, right)) is not None:
            scores["smooth_ece"], slack["smooth_ece"] = recomputed
    if settings["bins"] in pixels.by_class:
        class_bins, uncertain = pixels.by_class[settings["bins"]]
        of_each = [cs.gaps(rows)[0] for rows in class_bins]
        defined = [v for v in of_each if v is not None]
        scores["classwise_ece"] = float(np.mean(defined)) if defined else None
        slack["classwise_ece"] = 2 * uncertain / n / pixels.classes
    if "brier" in pixels.maps:
        scores["brier"] = (
            float(np.mean(pixels.maps["brier"], dtype=np.float64)) if pixels.label.size else None
        )
        if settings["bins"] in pixels.by_class:
            scores["brier_decomposition"] = cs.brier_decomposition(class_bins, scores["brier"])
            slack |= {
                f"brier_decomposition.{term}": 8 * uncertain / n
                for term in ("reliability", "resolution", "remainder")
            }
    if "label_probability" in pixels.maps:
        scores["nll"] = cs.nll(pixels.maps["label_probability"], settings["clip"])
    if not scores:
        return "the store holds no probabilities to recompute it from"
    if of_item:
        scores["pixels"] = int(pixels.label.size)
    return Recomputed(scores, slack)
