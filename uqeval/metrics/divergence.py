"""The family `divergence`: KL(predictions ‖ reference), Gustafsson et al. 2020, §4.1."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics._numbers as numbers
from uqeval.arrays import Array, State
from uqeval.errors import UsageError
from uqeval.metrics._columns import SetColumns, SetStates, as_numbers, at_least_0, over
from uqeval.metrics._contract import Display, Metric, ScoreTable, set_value
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Evaluation, Run, TallyResult
from uqeval.metrics._family import Family, variants
from uqeval.metrics._items import score_items
from uqeval.settings import Settings, definition_of, documented, option

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally


@documented
@dataclass(frozen=True)
class DivergenceSettings(Settings):
    """All settings of the divergence."""

    # fmt: off
    clip: float = option(
        0.0, "Raise both probabilities to at least EPS and renormalise. With 0, the divergence "
        "is infinite where the reference is 0; such pixels are counted separately.",
        metavar="EPS", least=0, below=1, shown="0", common=True)
    definition: str = definition_of(Settings.definitions)
    # fmt: on


def kl(total: Array, finite: Array) -> Array:
    """Return the mean KL(predictions ‖ reference) over the `finite` pixels [set], in nats.

    Gustafsson et al. 2020, §4.1. NaN where it is finite nowhere.
    """
    return at_least_0(over(total, finite))


METRICS = (
    Metric("divergence", "kl", "nats", "lower", (0.0, None), "Gustafsson et al. 2020, §4.1",
           "no pixel has a finite divergence", kl,
           label="KL divergence", headline=1, column="KL (nats)", of_part="error",
           meaning="How far the predictions are from the reference, in nats.",
           advice="Use more samples, or a method closer to the reference.",
           interval="positive"),
)  # fmt: skip


_NONE = "no pixel is compared"


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, DivergenceSettings]:
    if not info.reference:
        raise UsageError(f"{info.where}: a divergence needs a reference to compare with; give one.")
    settings: dict[str, DivergenceSettings] = variants("divergence", DivergenceSettings, options)
    if info.kind == "regression" and any(variant.clip for variant in settings.values()):
        raise UsageError("--clip is for class probabilities; these are Gaussians.")
    return settings


class DivergenceFromReference(Evaluation[DivergenceSettings]):
    """The mean divergence of all pixels."""

    @property
    def _sums(self) -> Tally:
        from uqeval.tallies.divergence import Divergence

        return Divergence(self.info.kind, self.settings.clip)

    def tallies(self) -> tuple[Tally, ...]:
        return (self._sums,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        (record,) = _records(SetStates.of_one(states[self._sums]))
        return record | {"clip": self.settings.clip}

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        return _columns(states[self._sums])

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        return score_items([self._sums], results, _records)

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Raise `DataError` if no target is valid."""
        run = super().run_of(results, exact)
        if self.info.kind == "regression":
            numbers.refuse_nothing(run.results["pixels"], self.info)
        return run

    def numerics(self, run: Run) -> dict[str, int]:
        counts = {"infinite": int(run.total(self._sums)["infinite"][0])}
        if self.info.kind == "regression":
            counts["invalid"] = sum(h * w for h, w in self.info.sizes) - run.results["pixels"]
        return counts

    def warnings(self, run: Run) -> list[str]:
        messages = []
        if run.results["infinite"]:
            remedy = "; --clip makes them finite" if self.info.kind == "classes" else ""
            messages.append(
                f"{run.results['infinite']:.2%} of the pixels have an infinite divergence and are "
                f"left out of the mean{remedy}."
            )
        if self.info.kind == "regression":
            messages += numbers.void_items(self.info.names, [item["pixels"] for item in run.items])
        return messages


def _columns(states: SetStates) -> SetColumns:
    """Return the scores of states of `Divergence`, and the share of the `infinite` pixels."""
    total, finite, infinite = (states[n][:, 0] for n in ("total", "finite", "infinite"))
    (metric,) = METRICS
    pixels = finite + infinite
    return {
        ("kl",): metric.formula(total, finite), ("infinite",): over(infinite, pixels),
        ("pixels",): pixels,
    }  # fmt: skip


def _records(states: SetStates) -> list[dict[str, Any]]:
    """Return the scores of each set, or of each item."""
    (metric,) = METRICS
    values = {place: as_numbers(column) for place, column in _columns(states).items()}
    records: list[dict[str, Any]] = []
    for kl_value, share, pixels in zip(*values.values(), strict=True):
        record: dict[str, Any] = {}
        set_value(record, "kl", kl_value, metric.undefined if pixels else _NONE)
        record["pixels"] = pixels
        set_value(record, "infinite", share, _NONE)
        records.append(record)
    return records


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Divergence from the reference",
            ("kl", "pixels", "infinite"),
            "Mean over the pixels where it is finite. infinite: the share of the other pixels.",
        ),
    )
)

FAMILY = Family(
    "divergence",
    METRICS,
    _settings,
    DivergenceFromReference,
    DivergenceSettings,
    kinds=("classes", "regression"),
    display=DISPLAY,
    label="Divergence from a reference",
    needs_reference=True,
)
