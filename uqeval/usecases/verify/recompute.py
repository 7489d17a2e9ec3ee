"""Recompute the records of chosen items, and of all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from uqeval.keys import family_of
from uqeval.usecases.verify import families as f
from uqeval.usecases.verify import video
from uqeval.usecases.verify.classes import class_maps
from uqeval.usecases.verify.compared import Tally, compare
from uqeval.usecases.verify.counted import of_classes, of_numbers
from uqeval.usecases.verify.numbers import Numbers, mean_and_sigma, numbers_of
from uqeval.usecases.verify.resampled import Counted, Resampled

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.report.schema import Report

#: Pixels of an item: of classes or of numbers.
Part = TypeVar("Part")

#: Bytes of pixels that are kept for pooled scores.
MOST_BYTES = 2 * 10**9
#: Means over pairs that a temporal consistency reports, by the field of the pairs.
_MEANS = {
    "mtc": "tc", "mtc_no_warp": "tc_no_warp", "mtc_frequency_weighted": "frequency_weighted",
    "pixel_agreement": "pixel_agreement", "coverage": "coverage", "out_of_frame": "out_of_frame",
    "mse_warp": "mse_warp", "mse_identity": "mse_identity",
}  # fmt: skip


class Recomputation:
    """Records of a report against the plain path; `why_not`: what is not recomputed, by key."""

    def __init__(self, report: Report, opened: Inputs) -> None:
        self.report = report
        self.opened = opened
        self.kind = opened.source.kind
        self.settings: dict[str, Mapping[str, Any]] = {
            key: own for key, own in report.settings.items() if key in report.results
        }
        for key in report.results:  # a family without choices may have no settings
            self.settings.setdefault(key, {})
        self.why_not: dict[str, str] = {}
        for key, own in self.settings.items():
            if why := f.not_covered(key, own):
                self.why_not[key] = why
        self.tallies = {name: Tally(0, []) for name in ("items", "set", "intervals", "slices")}
        self.intervals: set[str] = set()
        self.slices: set[str] = set()
        self.fields: dict[str, set[str]] = {}

    @property
    def keys(self) -> list[str]:
        """The keys that are recomputed."""
        return [key for key in self.settings if key not in self.why_not]

    def run(self, items: Sequence[int], pooled: bool) -> None:
        """Recompute the chosen items; with `pooled`, which takes all of them, the set as well."""
        ways: dict[str, Callable[[Sequence[int], bool], None]] = {
            "classes": self._classes, "regression": self._regression, "video": self._video,
        }  # fmt: skip
        with self.opened.session():
            ways[self.kind](items, pooled)

    def _held(self, key: str, item: int | None, found: f.Found | str) -> None:
        if isinstance(found, str):
            self.why_not[key] = found
            return
        record = self.report.results[key] if item is None else self.report.items[item].get(key, {})
        where = "the set" if item is None else f"item {self.report.items[item]['name']}"
        tally = self.tallies["set" if item is None else "items"]
        compare(where, key, record, found.values, found.slack, tally)
        self.fields.setdefault(key, set()).update(set(found.values) & set(record))

    def _source(self) -> Any:
        source = self.opened.source
        return source.source if self.opened.reference else source  # type: ignore[attr-defined]

    def _too_much(self, bytes_a_pixel: int) -> bool:
        source = self.opened.source
        pixels = sum(h * w for h, w in map(source.size, range(source.items)))
        if pixels * bytes_a_pixel <= MOST_BYTES:
            return False
        for key in self.keys:
            self.why_not[f"{key} of the set"] = (
                f"{pixels:,} pixels are more than the plain path holds in memory"
            )
        return True

    def _classes(self, items: Sequence[int], pooled: bool) -> None:
        source, classes = self._source(), self.opened.source.classes
        own = {key: self.settings[key] for key in self.keys if family_of(key) != "divergence"}
        parts = []
        pooled = pooled and not self._too_much(64)
        kl: dict[str, list[Any]] = {}
        for item in items:
            maps = class_maps(source, item)
            self._divergence(item, kl, lambda s, i: class_maps(s, i), maps)
            if not own:
                continue
            pixels = f.pixels_of(maps, own, classes)
            for key, found in self._scores(own, pixels, item):
                self._held(key, item, found)
            if pooled:
                parts.append(pixels)
        if parts:
            whole = f.joined(parts)
            for key, found in self._scores(own, whole, None):
                if self._by_item(key):
                    continue
                if not isinstance(found, str) and family_of(key) in ("pavpu", "failure"):
                    self._threshold(key, whole)
                self._held(key, None, found)
            self._resample(lambda key: of_classes(key, parts, own[key], self.report.results[key]))
            self._slices(parts, own, classes_of)
        self._pooled_divergence(kl, pooled)

    def _resample(self, counted: Callable[[str], Mapping[str, Counted]]) -> None:
        """Compare intervals and debiased values of the set, from counts of all items."""
        settings = self.report.settings.get("intervals") or {}
        if settings.get("unit") not in ("item", "group"):
            return
        own = Resampled.of([str(item["name"]) for item in self.report.items], settings)
        for key in self.keys:
            if self.settings[key].get("scope") == "item":
                continue
            results = self.report.results[key]
            for name, counts in counted(key).items():
                record = self.report.intervals.get(f"{key}.{name}") or {}
                about = self.report.metrics.get(f"{family_of(key)}.{name}") or {}
                slack = 3 * counts.slack
                ends = None
                if record.get("low") is not None:
                    low, high = about.get("range") or (None, None)
                    ends = own.interval(counts, record, (low, high))
                if ends is not None:
                    self._extra(f"interval of {key}.{name}", key, record, dict(zip(
                        ("low", "high"), ends, strict=True)), slack)  # fmt: skip
                    self.intervals.add(f"{key}.{name}")
                if f"{name}_debiased" in results:
                    found = {f"{name}_debiased": own.debiased(counts)}
                    self._extra("the set", key, results, found, slack)
                    self.intervals.add(f"{key}.{name}_debiased")

    def _extra(
        self, where: str, key: str, record: Mapping[str, Any], found: Mapping[str, Any],
        slack: float,
    ) -> None:  # fmt: skip
        limits = dict.fromkeys(found, slack)
        compare(where, key, record, found, limits, self.tallies["intervals"])

    def _slices(
        self,
        parts: Sequence[Part],
        keys: Iterable[str],
        scores: Callable[[Recomputation, str, list[Part], Mapping[str, Any]], f.Found | str],
    ) -> None:
        """Compare the scores of slices that need no ranks, from the pixels of their items."""
        place = {str(item["name"]): i for i, item in enumerate(self.report.items)}
        exact = ("segmentation", "pavpu", "calibration", "regression")
        for name, part in self.report.slices.items():
            own = [parts[place[item]] for item in part.get("names", ()) if item in place]
            for key in keys if own else ():
                record = part.get("results", {}).get(key)
                if family_of(key) not in exact or key in self.why_not or not record:
                    continue
                found = scores(self, key, own, record)
                if isinstance(found, str):
                    continue
                found.values.pop("adaptive_ece", None)  # its edges are those of the set
                where = f"slice {name}"
                compare(where, key, record, found.values, found.slack, self.tallies["slices"])
                self.slices.add(key)

    def _scores(
        self, own: Mapping[str, Mapping[str, Any]], pixels: f.Pixels, item: int | None
    ) -> Iterator[tuple[str, f.Found | str]]:
        for key, settings in own.items():
            results = self.report.results[key]
            record = results if item is None else self.report.items[item].get(key, {})
            yield key, f.of_classes(key, pixels, settings, results, record)

    def _by_item(self, key: str) -> bool:
        """Whether the score of the set is the mean over items, which is not recomputed."""
        mean = self.settings[key].get("scope") == "item"
        if mean:
            self.why_not[f"{key} of the set"] = "--scope item is not in the plain path"
        return mean

    def _threshold(self, key: str, whole: f.Pixels) -> None:
        """Compare a threshold that is the mean of all pixels."""
        own = self.settings[key]
        if own.get("threshold") == "mean" and not own.get("threshold_from") and whole.label.size:
            mean = float(np.mean(whole.maps[key], dtype=np.float64))
            limit = {"uncertainty_threshold": 1e-6 * max(1.0, abs(mean))}
            self._held(key, None, f.Found({"uncertainty_threshold": mean}, limit))

    def _divergence(self, item: int, kl: dict[str, list[Any]], read: Any, mine: Any) -> None:
        for key in self.keys:
            if family_of(key) != "divergence":
                continue
            other = read(self.opened.source.reference, item)  # type: ignore[attr-defined]
            if isinstance(mine, tuple):
                found = f.divergence_of_numbers(mine, other)
            elif mine.probs is None or other.probs is None:
                self.why_not[key] = "the store holds no mean_probs to recompute it from"
                continue
            else:
                p, q = (maps.probs.reshape(len(maps.probs), -1) for maps in (mine, other))
                found = f.divergence_of_classes(p, q, self.settings[key]["clip"])
            kl.setdefault(key, []).append(found)
            self._held(key, item, f.divergence(*found))

    def _pooled_divergence(self, kl: Mapping[str, list[Any]], pooled: bool) -> None:
        for key, parts in kl.items() if pooled else ():
            value, infinite = (np.concatenate(own) for own in zip(*parts, strict=True))
            self._held(key, None, f.divergence(value, infinite))

    def _regression(self, items: Sequence[int], pooled: bool) -> None:
        source = self._source()
        invalid = self._invalid()
        parts: list[Numbers] = []
        pooled = pooled and not self._too_much(48)
        kl: dict[str, list[Any]] = {}
        of_target = [key for key in self.keys if family_of(key) != "divergence"]
        for item in items:
            if len(of_target) < len(self.keys):
                self._divergence(
                    item, kl, self._gaussians(invalid), self._gaussians(invalid)(source, item)
                )
            if not of_target:
                continue
            own = numbers_of(source, item, invalid)
            for key in of_target:
                self._held(key, item, f.of_numbers(key, own, self.settings[key]))
            if pooled:
                parts.append(own)
        if parts:
            whole = Numbers.joined(parts)
            for key in of_target:
                if key not in self.why_not and not self._by_item(key):
                    self._held(key, None, f.of_numbers(key, whole, self.settings[key]))
            self._resample(lambda key: of_numbers(key, parts, self.settings[key]))
            self._slices(parts, of_target, numbers_of_slice)
        self._pooled_divergence(kl, pooled)

    def _gaussians(self, invalid: Sequence[float]) -> Callable[[Any, int], Any]:
        source, reference = self._source(), self.opened.source.reference  # type: ignore[attr-defined]

        def of(one: Any, item: int) -> Any:
            known = np.ones(source.size(item), bool)
            for other in (source, reference):
                for mask in other.valid:
                    values = mask.read(item)
                    known &= (values != 0) & (values == values)
                if other.target is not None:
                    known &= np.isfinite(other.target.read(item).astype(np.float64))
            mean, sigma = mean_and_sigma(one, item, known)
            return mean[known], np.zeros(int(known.sum())) if sigma is None else sigma[known]

        return of

    def _invalid(self) -> list[float]:
        given = (self.report.inputs.get("options") or {}).get("invalid")
        several = given if isinstance(given, list) else [] if given is None else [given]
        return [float(value) for value in several]

    def _video(self, items: Sequence[int], pooled: bool) -> None:
        opened = self.opened
        assert opened.video is not None
        found: dict[str, list[dict[str, Any]]] = {key: [] for key in self.keys}
        for item in items:
            for key in self.keys:
                settings = self.settings[key]
                models = opened.video.models
                model = str(settings.get("model", models[0]))
                info = {
                    "void": opened.ignore_index, "class_names": opened.class_names,
                    "model": models.index(model) if model in models else 0,
                }  # fmt: skip
                own = video.pair(opened.source, item, settings, info)
                found[key].append(own)
                self._held(key, item, f.Found(own))
        for key, pairs in found.items() if pooled else ():
            means = {} if self.settings[key].get("drop_cuts") else _means(pairs)
            self._held(key, None, f.Found(means))


def classes_of(
    run: Recomputation, key: str, parts: list[f.Pixels], record: Mapping[str, Any]
) -> f.Found | str:
    """Return the scores of the items of a slice, at the thresholds of the set."""
    settings, results = run.settings[key], run.report.results[key]
    return f.of_classes(key, f.joined(parts), settings, results, record)


def numbers_of_slice(
    run: Recomputation, key: str, parts: list[Numbers], record: Mapping[str, Any]
) -> f.Found | str:
    """Return the scores of the items of a slice."""
    return f.of_numbers(key, Numbers.joined(parts), run.settings[key])


def _means(pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means over pairs of the fields that all pairs have."""
    found: dict[str, Any] = {"pairs": len(pairs)}
    for field, own in _MEANS.items():
        known = [pair[own] for pair in pairs if pair[own] is not None]
        found[field] = float(np.mean(known)) if known else None
    return found
