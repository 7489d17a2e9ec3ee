"""Recompute the records of a report, by the kind of its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uqeval.keys import Key
from uqeval.usecases.verify import video
from uqeval.usecases.verify.comparing import OF_THE_SET, Recomputed
from uqeval.usecases.verify.out_of_distribution import OutOfDistribution, item_of_sets
from uqeval.usecases.verify.pooled import compare_intervals
from uqeval.usecases.verify.recomputation import Recomputation
from uqeval.usecases.verify.recompute_classes import OfClasses
from uqeval.usecases.verify.recompute_numbers import OfNumbers
from uqeval.usecases.verify.regions import in_region

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.records.report import Report


class OfSets(Recomputation):
    """Recomputation of out-of-distribution scores, of two sets."""

    def _recompute(self, items: Sequence[int], pooled: bool) -> None:
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


class OfVideo(Recomputation):
    """Recomputation of temporal consistency, of pairs of frames."""

    def _recompute(self, items: Sequence[int], pooled: bool) -> None:
        inputs = self.opened
        assert inputs.video is not None
        keys = [key for key in self.keys if key not in self._item_scores]
        self.of_all_items |= self._item_scores.keys()
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
                place = {
                    "previous": inputs.video.before[item], "sequence": inputs.video.sequences[item],
                }  # fmt: skip
                self.hold(key, item, Recomputed(pair_scores | place))
        for key, pairs in pairs_by_key.items() if pooled else ():
            settings = self.settings[key]
            pooled_average = settings.get("average") == "pooled"
            if settings.get("drop_cuts") or pooled_average:
                option = "--average pooled" if pooled_average else "--drop-cuts"
                self.why_not[key + OF_THE_SET] = f"{option} is not supported by uqeval verify"
                continue
            self.hold(key, None, Recomputed(video.means(pairs)))
        if pooled:
            self._pooled_item_scores()


_BY_KIND: dict[str, type[Recomputation]] = {
    "classes": OfClasses, "regression": OfNumbers, "ood": OfSets, "video": OfVideo,
}  # fmt: skip


def recomputation_of(report: Report, inputs: Inputs) -> Recomputation:
    """Return the comparison of a report with values recomputed from the opened stores."""
    return _BY_KIND[inputs.source.kind](report, inputs)
