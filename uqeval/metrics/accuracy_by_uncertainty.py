"""Accuracy by predicted class and uncertainty percentile: Ma et al. 2024, §10.1.1, Figures 4, 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.arrays import State
from uqeval.metrics._evaluation import Part, Passes
from uqeval.metrics.pavpu_settings import PavpuSettings

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies._values import Uncertainty

#: Inner edges of ten bins of equal mass.
PERCENTILES = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0)


class AccuracyTable(Part[PavpuSettings]):
    """The table over the fitted deciles of the pixels' uncertainty."""

    name = "accuracy_by_uncertainty"

    @classmethod
    def is_requested(cls, settings: PavpuSettings) -> bool:
        return settings.deciles

    @property
    def can_score(self) -> bool:
        return "edges" in self.fitted  # else parts of a run fitted several

    @property
    def _uncertainty(self) -> Uncertainty:
        return self.settings.patches(self.info.classes).uncertainty

    def maps(self) -> set[str]:
        return {"label", "prediction", *self.settings.patches(self.info.classes).inputs}

    def fit(self) -> Passes:
        from uqeval.tallies.ranks import Ranks, bins_of, percentile

        ranks = Ranks(self._uncertainty, self.info.classes)
        coarse = (yield (ranks,))[ranks].total["coarse"]
        bins = bins_of(coarse, PERCENTILES)
        detail = Ranks(self._uncertainty, self.info.classes, bins=bins)
        fine: Any = (yield (detail,))[detail].total["fine"] if bins else []
        counts_by_bin = {b: fine[i] for i, (_, b) in enumerate(bins)}
        edges = [percentile(coarse[0], counts_by_bin, p) for p in PERCENTILES]
        self.fitted["edges"] = tuple(e for e in edges if e is not None)

    def tallies(self) -> tuple[Tally, ...]:
        from uqeval.tallies.accuracy_by_uncertainty import AccuracyByUncertainty

        if not self.can_score:
            return ()
        edges = tuple(self.fitted["edges"])
        return (AccuracyByUncertainty(self._uncertainty, self.info.classes, edges),)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        (tally,) = self.tallies()
        return table(states[tally], self.fitted["edges"], self.info.class_names)


def table(state: Any, edges: Sequence[float], class_names: Sequence[str]) -> dict[str, Any]:
    """Return accuracy and pixels of each predicted class in each bin; None where there are no
    pixels.
    """
    rows: list[dict[str, Any]] = []
    counts = zip(state["pixels"].tolist(), state["correct"].tolist(), strict=True)
    for c, (pixels, correct) in enumerate(counts):
        row: dict[str, Any] = {"class": c, "name": class_names[c]}
        row["accuracy"] = [k / n if n else None for k, n in zip(correct, pixels, strict=True)]
        if None in row["accuracy"]:
            row["accuracy_reason"] = "no pixel of that uncertainty is predicted as this class"
        rows.append(row | {"pixels": pixels})
    return {"percentiles": list(PERCENTILES), "thresholds": list(edges), "rows": rows}
