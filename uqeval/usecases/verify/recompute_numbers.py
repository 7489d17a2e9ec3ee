"""Recompute scores of numbers with a standard deviation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.keys import family_of
from uqeval.usecases.verify import number_families as n
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.conformal import Conformal
from uqeval.usecases.verify.count_scores import of_numbers
from uqeval.usecases.verify.image_failure import ImageFailure
from uqeval.usecases.verify.numbers import Numbers, mean_and_sigma, numbers_of, valid_pixels
from uqeval.usecases.verify.pooled import SlicePath, compare_intervals, compare_slices
from uqeval.usecases.verify.recomputation import Recomputation
from uqeval.usecases.verify.regions import of_place


class OfNumbers(Recomputation):
    """Recomputation of scores of numbers with a standard deviation."""

    def _recompute(self, items: Sequence[int], pooled: bool) -> None:
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
