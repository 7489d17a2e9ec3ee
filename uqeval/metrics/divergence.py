"""The family `divergence`: KL(predictions ‖ reference), Gustafsson et al. 2020, §4.1."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics._numbers as numbers
from uqeval.errors import UsageError
from uqeval.metrics._columns import over
from uqeval.metrics._contract import Display, Metric, ScoreTable, set_value
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Evaluation, Run, TallyResult
from uqeval.metrics._family import Family, variants
from uqeval.settings import Settings, definition_of, documented, option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.tallies import Tally
    from uqeval.tallies._fields import State


@documented
@dataclass(frozen=True)
class DivergenceSettings(Settings):
    """Every choice behind a divergence."""

    # fmt: off
    clip: float = option(
        0.0, "Raise both probabilities to at least EPS and renormalise. With 0, the divergence "
        "is infinite where the reference is 0; such pixels are counted separately.",
        metavar="EPS", least=0, below=1, shown="0", common=True)
    definition: str = definition_of(Settings.definitions)
    # fmt: on


def kl(total: float, finite: int, infinite: int) -> float | None:
    """Return mean KL(predictions ‖ reference) over the pixels where it is finite, in nats.

    Gustafsson et al. 2020, §4.1. Undefined where it is finite nowhere; the `infinite` pixels are
    told beside it.
    """
    return total / finite if finite else None


METRICS = (
    Metric("divergence", "kl", "nats", "lower", (0.0, None), "Gustafsson et al. 2020, §4.1",
           "no pixel has a finite divergence", kl,
           label="KL divergence", headline=1, column="KL (nats)",
           meaning="How far the predictions are from the reference, in nats.",
           advice="Use more samples, or a method closer to the reference.",
           interval="draws"),
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
        from uqeval.tallies import Divergence

        return Divergence(self.info.kind, self.settings.clip)

    def maps(self) -> set[str]:
        return set(self._sums.inputs)

    def tallies(self) -> tuple[Tally, ...]:
        return (self._sums,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        return _scores(states[self._sums]) | {"clip": self.settings.clip}

    def columns(
        self, states: Mapping[Tally, SetStates], fields: Collection[str]
    ) -> dict[Place, NDArray[Any]]:
        total, finite, infinite = (
            states[self._sums][name][:, 0] for name in ("total", "finite", "infinite")
        )
        pixels = finite + infinite
        return {
            ("kl",): over(total, finite), ("infinite",): over(infinite, pixels),
            ("pixels",): pixels,
        }  # fmt: skip

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        tally = self._sums
        return [_scores(tally.unpack(data)) for data in results[tally].items]

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Raise `DataError` where no target is valid."""
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


def _scores(state: State) -> dict[str, Any]:
    total, finite, infinite = (state[n][0].item() for n in ("total", "finite", "infinite"))
    record: dict[str, Any] = {}
    (metric,) = METRICS
    reason = metric.undefined if infinite else _NONE
    set_value(record, "kl", metric.formula(total, finite, infinite), reason)
    pixels = record["pixels"] = finite + infinite
    set_value(record, "infinite", infinite / pixels if pixels else None, _NONE)
    return record


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
