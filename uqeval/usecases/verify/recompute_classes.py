"""Recompute scores of class probabilities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.errors import StoreError, cut
from uqeval.keys import Key, family_of
from uqeval.stores.names import as_items, read_names_file
from uqeval.usecases.verify import families as f
from uqeval.usecases.verify.annotators import Annotators
from uqeval.usecases.verify.classes import ClassMaps, class_maps
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.conformal import Conformal
from uqeval.usecases.verify.count_scores import of_classes
from uqeval.usecases.verify.image_failure import ImageFailure
from uqeval.usecases.verify.opening import is_inside
from uqeval.usecases.verify.pooled import SlicePath, compare_intervals, compare_slices
from uqeval.usecases.verify.recomputation import Recomputation
from uqeval.usecases.verify.regions import in_region
from uqeval.usecases.verify.resampled import CountedScores
from uqeval.usecases.verify.whole_set import of_set

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.records.report import Report


class OfClasses(Recomputation):
    """Recomputation of scores of class probabilities."""

    def __init__(self, report: Report, inputs: Inputs) -> None:
        super().__init__(report, inputs)
        #: By key, the items that a recomputed temperature is fitted on.
        self._temperatures: dict[str, Sequence[int]] = {}

    def _recompute(self, items: Sequence[int], pooled: bool) -> None:
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
        keys = [key for key in self.keys if self.settings[key].get("temperature")]
        why_not = self._why_too_large(64 * views + classes * (4 * views + 8))
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
            names_in_file = read_names_file(path)
        except StoreError as error:
            return f"the items of --fit-on are unknown: {error}"
        all_names = self.report.item_names
        names = set(as_items(names_in_file, all_names))
        items = [i for i, name in enumerate(all_names) if name in names]
        fitted = "\n".join(sorted(all_names[i] for i in items)).encode(errors="surrogatepass")
        record = self.report.results[key].get("temperature")
        digest = record.get("fitted_on_digest") if isinstance(record, Mapping) else None
        if digest is None:
            return f"the report does not give the items of --fit-on {cut(path)}; evaluate again"
        if digest != hashlib.sha256(fitted).hexdigest():
            return f"--fit-on {cut(path)} names other items than in the run"
        return items

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
            # The estimates of a slice that the run knew are those of a set.
            is_set = family_of(key) == "calibration" and not in_bins
            of_set = record if is_set else results[key]
            pixels = f.join_pixels(own)
            return f.of_classes(key, pixels, settings[key], of_set, record, in_bins)

        def rows_of_slice(
            key: str, own: list[f.Pixels], record: Mapping[str, Any], in_bins: bool
        ) -> Iterator[Recomputed]:  # fmt: skip
            threshold = results[key].get("uncertainty_threshold")
            record = {**record, "uncertainty_threshold": threshold}
            rows = f.rows_of_classes(key, f.join_pixels(own), settings[key], record, in_bins)
            return self._with_ids(rows)

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
            of_item = item is not None
            yield key, f.of_classes(key, pixels, settings, results, record, of_item=of_item)

    def _threshold(self, key: str, all_pixels: f.Pixels) -> None:
        """Compare a threshold that is the mean of all pixels, or in a region that of the image."""
        settings, of_image = self.settings[key], str(Key.parse(key).of(None))
        if of_image != key:
            threshold = self.report.results[of_image]["uncertainty_threshold"]
            self.hold(key, None, Recomputed({"uncertainty_threshold": threshold}))
        elif settings.get("threshold_from"):
            pass  # it is that of another report
        elif _is_number(settings.get("threshold")):
            number = float(settings["threshold"])
            self.hold(key, None, Recomputed({"uncertainty_threshold": number}))
        elif settings.get("threshold") == "mean" and all_pixels.label.size:
            mean = float(np.mean(all_pixels.maps[key], dtype=np.float64))
            limit = {"uncertainty_threshold": 1e-6 * max(1.0, abs(mean))}
            self.hold(key, None, Recomputed({"uncertainty_threshold": mean}, limit))


def _is_number(rule: Any) -> bool:
    """Return whether the rule of a threshold is the threshold itself."""
    try:
        return bool(np.isfinite(float(rule)))
    except (TypeError, ValueError):
        return False
