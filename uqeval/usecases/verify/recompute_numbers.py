"""Recompute scores of numbers with a standard deviation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.keys import family_of
from uqeval.usecases.verify import numbers, ranks, slice_ranks
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.conformal import Conformal
from uqeval.usecases.verify.count_scores import of_numbers
from uqeval.usecases.verify.image_failure import ImageFailure
from uqeval.usecases.verify.numbers import Numbers, mean_and_sigma, numbers_of, valid_pixels
from uqeval.usecases.verify.pooled import SlicePath, compare_intervals, compare_slices
from uqeval.usecases.verify.recomputation import Recomputation
from uqeval.usecases.verify.regions import of_place
from uqeval.usecases.verify.sparsification import of_groups


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
                    self.hold(key, item, _scores(key, item_numbers, settings[key]))
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
                self.hold(key, None, _scores(key, all_numbers, settings[key]))
        compare_intervals(self, settings, lambda key: of_numbers(key, parts, settings[key]))
        compare_slices(self, parts, settings, SlicePath(
            lambda key, own, _, in_bins: _scores(
                key, Numbers.concatenate(own), settings[key], in_bins=in_bins
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


def _scores(
    key: str, data: Numbers, settings: Mapping[str, Any], *, in_bins: bool = False
) -> Recomputed | str:
    """Return the scores of a key over some pixels with a target, or why there are none.

    `in_bins`: of a slice, whose ranks come from bins.
    """
    family = family_of(key)
    sigma = data.sigma_of(settings["uncertainty"])
    if sigma is None:
        return f"the store holds no {settings['uncertainty']} to recompute it from"
    if family == "regression":
        return Recomputed(numbers.regression(data, sigma, settings))
    if family == "nmerci":
        if in_bins:
            return "n-MeRCI from bins is not recomputed"
        return Recomputed(numbers.nmerci(data, sigma, settings))
    kind, score = settings["error"], sigma.astype(np.float32)
    error = data.error if kind == "mae" else data.error**2
    steps, rooted = settings["steps"], kind == "rmse"
    if in_bins:
        return slice_ranks.sparsified(score, data.error, error, None, steps, rooted)
    return Recomputed(of_groups(error, steps, rooted)(*ranks.grouped(score, error)))
