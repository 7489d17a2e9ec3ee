"""Recompute the records of chosen items, and of all of them together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.errors import StoreError, cut
from uqeval.keys import Key, family_of
from uqeval.stores.names import read_names_file
from uqeval.usecases.verify import divergence, video
from uqeval.usecases.verify import families as f
from uqeval.usecases.verify import number_families as n
from uqeval.usecases.verify.annotators import Annotators
from uqeval.usecases.verify.classes import ClassMaps, class_maps
from uqeval.usecases.verify.comparing import Comparison, Recomputed
from uqeval.usecases.verify.conformal import Conformal
from uqeval.usecases.verify.count_scores import of_classes, of_numbers
from uqeval.usecases.verify.image_failure import ImageFailure
from uqeval.usecases.verify.numbers import Numbers, mean_and_sigma, numbers_of, valid_pixels
from uqeval.usecases.verify.opening import is_inside
from uqeval.usecases.verify.out_of_distribution import OutOfDistribution, item_of_sets
from uqeval.usecases.verify.pooled import (
    SlicePath,
    compare_intervals,
    compare_levels,
    compare_presence,
    compare_slices,
)
from uqeval.usecases.verify.regions import in_region, of_place
from uqeval.usecases.verify.resampled import CountedScores
from uqeval.usecases.verify.slice_columns import compare_division
from uqeval.usecases.verify.whole_set import of_set

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.records.report import Report

#: Bytes of pixels that stay in memory for pooled scores.
MOST_BYTES = 2 * 10**9

#: Families that are recomputed item by item, with what the set needs kept from each item.
ByItem = Annotators | Conformal | ImageFailure | OutOfDistribution
_BY_ITEM: dict[str, type[ByItem]] = {
    "annotators": Annotators, "conformal": Conformal, "image_failure": ImageFailure,
    "ood": OutOfDistribution,
}  # fmt: skip


class Recomputation(Comparison):
    """Comparison of a report with values recomputed from the opened stores."""

    def __init__(self, report: Report, inputs: Inputs) -> None:
        super().__init__(report)
        self.opened = inputs
        self.kind = inputs.source.kind
        options, names = report.inputs.get("options") or {}, inputs.class_names
        for key, settings in self.settings.items():
            reason = f.not_covered(key, settings, self.kind, names, self._source())
            if reason := reason or f.converted(options):
                self.why_not[key] = reason
        self._item_scores: dict[str, Any] = {
            key: _BY_ITEM[family_of(key)](key, report)
            for key in self.keys if family_of(key) in _BY_ITEM
        }  # fmt: skip

        #: By key, the items that a recomputed temperature is fitted on.
        self._temperatures: dict[str, Sequence[int]] = {}

    def run(self, items: Sequence[int], pooled: bool) -> None:
        """Recompute the chosen items; with `pooled` also the set, which takes all items."""
        ways: dict[str, Callable[[Sequence[int], bool], None]] = {
            "classes": self._classes, "regression": self._regression, "video": self._video,
            "ood": self._sets,
        }  # fmt: skip
        self.compare_keys()
        compare_division(self.report, self.tallies["slices"])
        with self.opened.session():
            ways[self.kind](items, pooled)
        if pooled:
            compare_levels(self)
            compare_presence(self)

    @property
    def _named(self) -> set[str]:
        """Return the maps that settings name."""
        return {str(own["uncertainty"]) for own in self.settings.values() if "uncertainty" in own}

    def _source(self) -> Any:
        source = self.opened.source
        return source.source if self.opened.reference else source  # type: ignore[attr-defined]

    @property
    def _pixels(self) -> int:
        source = self.opened.source
        return sum(h * w for h, w in map(source.size, range(source.items)))

    def _too_much(self, bytes_a_pixel: int) -> bool:
        pixels = self._pixels
        if pixels * bytes_a_pixel <= MOST_BYTES:
            return False
        for key in self.keys:
            self.why_not[f"{key} of the set"] = (
                f"{pixels:,} pixels are too many to recompute in memory"
            )
        return True

    def _classes(self, items: Sequence[int], pooled: bool) -> None:
        source, classes = self._source(), self.opened.source.classes
        views = self._by_region()
        parts: dict[str | None, list[f.Pixels]] = {region: [] for region in views}
        pooled = pooled and not self._too_much(64 * max(len(views), 1))
        self._keep_pixels(pooled)
        with_probs = pooled and self._keeps_probabilities(len(views), classes)
        kl: dict[str, list[Any]] = {}
        for item in items:
            maps = class_maps(source, item, self._named)
            self._divergence(item, kl, lambda s, i: class_maps(s, i), maps)
            for region, settings in views.items():
                view = in_region(maps, region, self.opened.class_names, source, item)
                for key in self._keys_by_item(settings):
                    self.hold(key, item, self._item_of_classes(key, item, view, source))
                settings = self._of_pixels(settings)
                pixels = f.pixels_of(view, settings, classes)
                for key, scores in self._scores(settings, pixels, item):
                    self.hold(key, item, scores)
                if pooled:
                    if with_probs and view.probs is not None:
                        pixels.probs = view.valid(view.probs)
                    parts[region].append(pixels)
        if pooled:
            for region, settings in views.items():
                self._pooled_classes(parts, self._of_pixels(settings), region)
            self._pooled_item_scores()
        self._pooled_divergence(kl, pooled)

    def _keeps_probabilities(self, views: int, classes: int) -> bool:
        """Return whether a temperature is recomputed, which needs all probabilities of pixels."""
        keys = [key for key in self.keys if "temperature" in self.report.results[key]]
        why_not = None
        if self._pixels * (64 * views + classes * (4 * views + 8)) > MOST_BYTES:
            why_not = f"{self._pixels:,} pixels are too many to recompute in memory"
        for key in keys:
            settings = self.settings[key]
            reason, fitted_on = why_not, self._fitted_on(key, settings["fit_on"])
            if settings["temperature_of"] != "mean":
                reason = "--temperature-of samples is not supported by uqeval verify"
            elif isinstance(fitted_on, str):
                reason = fitted_on
            if reason:
                self.why_not[f"{key}.temperature"] = reason
            elif not isinstance(fitted_on, str):
                self._temperatures[key] = fitted_on
        return bool(self._temperatures)

    def _fitted_on(self, key: str, path: str | None) -> Sequence[int] | str:
        """Return the items that a temperature is fitted on, or why they are unknown."""
        if path is None:
            return range(len(self.report.items))
        if not is_inside(path):
            return f"--fit-on {cut(path)} is outside the working folder"
        try:
            names = set(read_names_file(path))
        except StoreError as error:
            return f"the items of --fit-on are unknown: {error}"
        all_names = self.report.item_names
        items = [i for i, name in enumerate(all_names) if name in names]
        fitted = "\n".join(sorted(all_names[i] for i in items)).encode()
        record = self.report.results[key].get("temperature")
        digest = record.get("fitted_on_digest") if isinstance(record, Mapping) else None
        if digest is None:
            return f"the report does not tell the items of --fit-on {cut(path)}; evaluate again"
        if digest != hashlib.sha256(fitted).hexdigest():
            return f"--fit-on {cut(path)} names other items than in the run"
        return items

    def _keep_pixels(self, pooled: bool) -> None:
        """Let the scores of the set be computed later, or not."""
        for own in self._item_scores.values():
            if isinstance(own, Conformal | OutOfDistribution):
                own.keeps_pixels = pooled

    def _keys_by_item(self, keys: Iterable[str]) -> list[str]:
        """Return the keys that are recomputed item by item."""
        return [key for key in keys if key in self._item_scores and key not in self.why_not]

    def _of_pixels(self, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """Return the settings of the keys that are recomputed from the pixels of any items."""
        return {key: own for key, own in settings.items() if key not in self._item_scores}

    def _item_of_classes(
        self, key: str, item: int, view: ClassMaps, source: Any
    ) -> Recomputed | str:
        """Return the scores of an item under a key that is recomputed item by item."""
        own, classes = self._item_scores[key], self.opened.source.classes
        if isinstance(own, Conformal):
            return own.of_classes(item, view, list(self.opened.class_names))
        if isinstance(own, ImageFailure):
            return own.of_classes(view, classes)
        assert isinstance(own, Annotators)
        return own.add(view, source, item)

    def _pooled_item_scores(self) -> None:
        """Compare the scores of the set under the keys that are recomputed item by item."""
        for key in self._keys_by_item(self._item_scores):
            self.hold(key, None, self._item_scores[key].of_set())

    def _sets(self, items: Sequence[int], pooled: bool) -> None:
        """Recompute out-of-distribution scores."""
        with_classes = sum("bravo" in self.report.results[key] for key in self._item_scores)
        bytes_a_pixel = 8 * max(len(self._item_scores), 1) + 24 * with_classes
        pooled = pooled and not self._too_much(bytes_a_pixel)
        self._keep_pixels(pooled)
        for item in items:
            maps, classes, sets = item_of_sets(self.opened.source, item, self._named)
            for region, settings in self._by_region().items():
                view = in_region(maps, region, (), self.opened.source, item)
                for key in self._keys_by_item(settings):
                    self.hold(key, item, self._item_scores[key].add(view, classes, sets))
        if pooled:
            self._pooled_item_scores()
            for key in self._keys_by_item(self._item_scores):
                scores = self._item_scores[key]
                if isinstance(scores, OutOfDistribution):
                    compare_intervals(self, [key], scores.counted)

    def _by_region(self) -> dict[str | None, dict[str, Mapping[str, Any]]]:
        """Return the settings of the recomputed keys, without divergence, by their region."""
        views: dict[str | None, dict[str, Mapping[str, Any]]] = {}
        for key in self.keys:
            if family_of(key) != "divergence":
                views.setdefault(Key.parse(key).region, {})[key] = self.settings[key]
        return views

    def _pooled_classes(
        self, parts_by_region: Mapping[str | None, list[f.Pixels]],
        settings: Mapping[str, Mapping[str, Any]], region: str | None,
    ) -> None:  # fmt: skip
        """Compare the scores of the set, its intervals and slices, in one region."""
        parts = parts_by_region[region]
        if not parts:
            return
        all_pixels = f.join_pixels(parts)
        for key, scores in self._scores(settings, all_pixels, None):
            if self._is_mean_of_items(key):
                continue
            if family_of(key) in ("pavpu", "failure") and not isinstance(scores, str):
                self._threshold(key, all_pixels)
            self.hold(key, None, scores)
            if not isinstance(scores, str):
                results = self.report.results[key]
                rows = f.rows_of_classes(key, all_pixels, settings[key], results)
                self.hold_rows(key, self._with_ids(rows))
                of_image = str(Key.parse(key).of(None)), parts_by_region[None]
                fitted_on = self._temperatures.get(key, ())
                for extra in of_set(
                    key, parts, all_pixels, of_image, fitted_on, settings[key], results,
                    self.opened.class_names,
                ):  # fmt: skip
                    self.hold(key, None, extra)
        results = self.report.results
        compare_intervals(
            self, settings, lambda key: of_classes(key, parts, settings[key], results[key])
        )

        def of_slice(
            key: str, own: list[f.Pixels], record: Mapping[str, Any], in_bins: bool
        ) -> Recomputed | str:  # fmt: skip
            scores = f.scores_in_bins if in_bins else f.of_classes
            # The estimates of a slice that the run knew are those of a set.
            is_set = family_of(key) == "calibration" and not in_bins
            of_set = record if is_set else results[key]
            return scores(key, f.join_pixels(own), settings[key], of_set, record)

        def rows_of_slice(
            key: str, own: list[f.Pixels], record: Mapping[str, Any], in_bins: bool
        ) -> Iterator[Recomputed]:  # fmt: skip
            threshold = results[key].get("uncertainty_threshold")
            record = {**record, "uncertainty_threshold": threshold}
            rows = f.rows_without_ranks if in_bins else f.rows_of_classes
            return self._with_ids(rows(key, f.join_pixels(own), settings[key], record))

        def counted(key: str, own: list[f.Pixels]) -> CountedScores:
            return of_classes(key, own, settings[key], results[key])

        compare_slices(self, parts, settings, SlicePath(of_slice, counted, rows_of_slice))

    def _with_ids(self, rows: Iterable[Recomputed]) -> Iterator[Recomputed]:
        """Yield the rows of classes with the id and the name of each; the last may be `mixed`."""
        ids = [(c, name) for c, name in enumerate(self.opened.class_names)]
        for (id_, name), row in zip([*ids, ("mixed", "mixed")], rows, strict=False):
            yield Recomputed({"class": id_, "name": name} | row.values, row.slack)

    def _scores(
        self, settings_of_keys: Mapping[str, Mapping[str, Any]], pixels: f.Pixels, item: int | None
    ) -> Iterator[tuple[str, Recomputed | str]]:
        for key, settings in settings_of_keys.items():
            results = self.report.results[key]
            record = results if item is None else self.report.items[item].get(key, {})
            yield key, f.of_classes(key, pixels, settings, results, record)

    def _is_mean_of_items(self, key: str) -> bool:
        """Whether the score of the set is the mean over items, which is not recomputed."""
        mean = self.settings[key].get("scope") == "item"
        if mean:
            self.why_not[f"{key} of the set"] = "--scope item is not supported by uqeval verify"
        return mean

    def _threshold(self, key: str, all_pixels: f.Pixels) -> None:
        """Compare a threshold that is the mean of all pixels, or in a region that of the image."""
        settings, of_image = self.settings[key], str(Key.parse(key).of(None))
        if of_image != key:
            threshold = self.report.results[of_image]["uncertainty_threshold"]
            self.hold(key, None, Recomputed({"uncertainty_threshold": threshold}))
        elif (
            settings.get("threshold") == "mean"
            and not settings.get("threshold_from")
            and all_pixels.label.size
        ):
            mean = float(np.mean(all_pixels.maps[key], dtype=np.float64))
            limit = {"uncertainty_threshold": 1e-6 * max(1.0, abs(mean))}
            self.hold(key, None, Recomputed({"uncertainty_threshold": mean}, limit))

    def _divergence(
        self, item: int, kl: dict[str, list[Any]], read_item: Any, item_maps: Any
    ) -> None:
        for key in self.keys:
            if family_of(key) != "divergence":
                continue
            reference_maps = read_item(self.opened.source.reference, item)  # type: ignore[attr-defined]
            if isinstance(item_maps, tuple):
                values = divergence.of_numbers(item_maps, reference_maps)
            elif item_maps.probs is None or reference_maps.probs is None:
                self.why_not[key] = "the store holds no mean_probs to recompute it from"
                continue
            else:
                p, q = (
                    maps.probs.reshape(len(maps.probs), -1) for maps in (item_maps, reference_maps)
                )
                values = divergence.of_classes(p, q, self.settings[key]["clip"])
            kl.setdefault(key, []).append(values)
            self.hold(key, item, divergence.pooled(*values))

    def _pooled_divergence(self, kl: Mapping[str, list[Any]], pooled: bool) -> None:
        for key, parts in kl.items() if pooled else ():
            value, infinite = (
                np.concatenate(part_values) for part_values in zip(*parts, strict=True)
            )
            self.hold(key, None, divergence.pooled(value, infinite))

    def _regression(self, items: Sequence[int], pooled: bool) -> None:
        source = self._source()
        invalid = self._invalid()
        views = self._by_region()
        parts: dict[str | None, list[Numbers]] = {region: [] for region in views}
        pooled = pooled and not self._too_much(48 * max(len(views), 1))
        self._keep_pixels(pooled)
        kl: dict[str, list[Any]] = {}
        for item in items:
            if any(family_of(key) == "divergence" for key in self.keys):
                gaussians = self._gaussians(invalid)
                self._divergence(item, kl, gaussians, gaussians(source, item))
            is_valid = valid_pixels(source, item, invalid)
            of_image = numbers_of(source, item, is_valid)
            for region, settings in views.items():
                item_numbers = of_image
                if region is not None:
                    inside = of_place(region, source, item, is_valid.shape)
                    assert inside is not None
                    item_numbers = of_image.only(inside[is_valid])
                for key in self._keys_by_item(settings):
                    self.hold(key, item, self._item_of_numbers(key, item, item_numbers))
                for key in self._of_pixels(settings):
                    self.hold(key, item, n.of_numbers(key, item_numbers, settings[key]))
                if pooled:
                    parts[region].append(item_numbers)
        if pooled:
            for region, settings in views.items():
                self._pooled_numbers(parts[region], self._of_pixels(settings))
            self._pooled_item_scores()
        self._pooled_divergence(kl, pooled)

    def _item_of_numbers(self, key: str, item: int, data: Numbers) -> Recomputed | str:
        own = self._item_scores[key]
        if isinstance(own, Conformal):
            return own.of_numbers(item, data)
        assert isinstance(own, ImageFailure)
        return own.of_numbers(data)

    def _pooled_numbers(
        self, parts: list[Numbers], settings: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Compare the scores of the set, its intervals and slices, in one region."""
        if not parts:
            return
        all_numbers = Numbers.concatenate(parts)
        for key in settings:
            if key not in self.why_not and not self._is_mean_of_items(key):
                self.hold(key, None, n.of_numbers(key, all_numbers, settings[key]))
        compare_intervals(self, settings, lambda key: of_numbers(key, parts, settings[key]))
        compare_slices(self, parts, settings, SlicePath(
            lambda key, own, _, in_bins: (n.numbers_in_bins if in_bins else n.of_numbers)(
                key, Numbers.concatenate(own), settings[key]
            ),
            lambda key, own: of_numbers(key, own, settings[key]),
        ))  # fmt: skip

    def _gaussians(self, invalid: Sequence[float]) -> Callable[[Any, int], Any]:
        source, reference = self._source(), self.opened.source.reference  # type: ignore[attr-defined]

        def of(numbers_source: Any, item: int) -> Any:
            is_valid = valid_pixels(source, item, invalid) & valid_pixels(reference, item, invalid)
            mean, sigma = mean_and_sigma(numbers_source, item, is_valid)
            sigma = np.zeros_like(mean) if sigma is None else sigma
            return mean[is_valid], sigma[is_valid]

        return of

    def _invalid(self) -> list[float]:
        option = (self.report.inputs.get("options") or {}).get("invalid")
        invalid_values = option if isinstance(option, list) else [] if option is None else [option]
        return [float(value) for value in invalid_values]

    def _video(self, items: Sequence[int], pooled: bool) -> None:
        inputs = self.opened
        assert inputs.video is not None
        keys = [key for key in self.keys if key not in self._item_scores]
        pairs_by_key: dict[str, list[dict[str, Any]]] = {key: [] for key in keys}
        for item in items:
            for key in keys:
                settings = self.settings[key]
                models = inputs.video.models
                model = str(settings.get("model", models[0]))
                info = {
                    "class_names": inputs.class_names,
                    "model": models.index(model) if model in models else 0,
                }  # fmt: skip
                region = Key.parse(key).region
                inside = video.frame_in_region(inputs.source, item, region, info)
                pair_scores = video.pair(inputs.source, item, settings, info, inside)
                pairs_by_key[key].append(pair_scores)
                self.hold(key, item, Recomputed(pair_scores))
        for key, pairs in pairs_by_key.items() if pooled else ():
            means = {} if self.settings[key].get("drop_cuts") else video.means(pairs)
            self.hold(key, None, Recomputed(means))
        if pooled:
            self._pooled_item_scores()
