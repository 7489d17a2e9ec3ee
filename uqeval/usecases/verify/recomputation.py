"""Recompute the records of items, and of all of them together: what all kinds of data share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.keys import Key, family_of
from uqeval.usecases.verify import divergence
from uqeval.usecases.verify import families as f
from uqeval.usecases.verify.annotators import Annotators
from uqeval.usecases.verify.comparing import OF_THE_SET, Comparison
from uqeval.usecases.verify.conformal import Conformal
from uqeval.usecases.verify.image_failure import ImageFailure
from uqeval.usecases.verify.options import converted
from uqeval.usecases.verify.out_of_distribution import OutOfDistribution
from uqeval.usecases.verify.pooled import compare_levels
from uqeval.usecases.verify.presence import compare_presence
from uqeval.usecases.verify.records import compare_records
from uqeval.usecases.verify.slice_columns import compare_division

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


class Recomputation(Comparison, ABC):
    """Comparison of a report with values recomputed from the opened stores, of one kind of data."""

    def __init__(self, report: Report, inputs: Inputs) -> None:
        super().__init__(report)
        self.opened = inputs
        self.kind = inputs.source.kind
        options, names = report.inputs.get("options") or {}, inputs.class_names
        for key, settings in self.settings.items():
            if reason := f.not_covered(key, settings, self.kind) or converted(options):
                self.why_not[key] = reason
            elif reason := f.no_region(key, self.kind, names, self._source()):
                self.refuse(key, reason)
        self._item_scores: dict[str, Any] = {
            key: _BY_ITEM[family_of(key)](key, report, self.settings[key])
            for key in self.keys if family_of(key) in _BY_ITEM
        }  # fmt: skip

    def run(self, items: Sequence[int], pooled: bool) -> None:
        """Recompute the chosen items; with `pooled` also the set, which takes all items."""
        self.compare_keys()
        compare_records(self, self.opened)
        compare_division(self.report, self.tallies["slices"])
        with self.opened.session():
            self._recompute(items, pooled)
        if pooled:
            compare_levels(self)
            compare_presence(self)

    @abstractmethod
    def _recompute(self, items: Sequence[int], pooled: bool) -> None:
        """Compare the records of items, and with `pooled` those of all of them together."""

    @property
    def _named(self) -> set[str]:
        """Return the maps that settings name."""
        settings = self.report.settings.values()  # a name alone is no use of the setting
        return {str(own["uncertainty"]) for own in settings if "uncertainty" in own}

    def _source(self) -> Any:
        source = self.opened.source
        return source.source if self.opened.reference else source  # type: ignore[attr-defined]

    def _why_too_large(self, bytes_a_pixel: int) -> str | None:
        """Return why the pixels of all items are not kept in memory; None if they are."""
        source = self.opened.source
        pixels = sum(h * w for h, w in map(source.size, range(source.items)))
        too_large = pixels * bytes_a_pixel > MOST_BYTES
        return f"{pixels:,} pixels are too many to recompute in memory" if too_large else None

    def _too_much(self, bytes_a_pixel: int) -> bool:
        """Return whether the set is not recomputed, because it is too large, and note it."""
        reason = self._why_too_large(bytes_a_pixel)
        if reason:
            self.why_not |= {key + OF_THE_SET: reason for key in self.keys}
        return bool(reason)

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

    def _pooled_item_scores(self) -> None:
        """Compare the scores of the set under the keys that are recomputed item by item."""
        for key in self._keys_by_item(self._item_scores):
            self.hold(key, None, self._item_scores[key].of_set())

    def _by_region(self) -> dict[str | None, dict[str, Mapping[str, Any]]]:
        """Return the settings of the recomputed keys, without divergence, by their region."""
        views: dict[str | None, dict[str, Mapping[str, Any]]] = {}
        for key in self.keys:
            if family_of(key) != "divergence":
                views.setdefault(Key.parse(key).region, {})[key] = self.settings[key]
        return views

    def _is_mean_of_items(self, key: str) -> bool:
        """Whether the score of the set is the mean over items, which is not recomputed."""
        mean = self.settings[key].get("scope") == "item"
        if mean:
            self.why_not[key + OF_THE_SET] = "--scope item is not supported by uqeval verify"
        return mean

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
                self.refuse(key, "the store holds no mean_probs to recompute it from")
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
