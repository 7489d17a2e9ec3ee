"""The family `calibration`: is the confidence the share of correct pixels?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_estimators as estimators
import uqeval.metrics.calibration_of_images as calibration_of_images
import uqeval.metrics.calibration_results as calibration_results
import uqeval.metrics.calibration_scores as cs
from uqeval.arrays import State
from uqeval.errors import DataError, UsageError
from uqeval.metrics._columns import Place, SetColumns, SetStates
from uqeval.metrics._contract import ClassBars, Column, Display, Panel, Record, RowTable, ScoreTable
from uqeval.metrics._dataset_info import DatasetInfo, read_fit_on
from uqeval.metrics._evaluation import Evaluation, Passes, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets, variants
from uqeval.metrics._items import score_items
from uqeval.metrics._score_kinds import Gaps, OverItems
from uqeval.metrics.brier_decomposition import BrierDecomposition
from uqeval.metrics.calibration_estimators import exact_edges, upper_ranks
from uqeval.metrics.calibration_results import ADAPTIVE as _ADAPTIVE
from uqeval.metrics.calibration_results import ESTIMATOR as _ESTIMATOR
from uqeval.metrics.calibration_settings import CalibrationSettings
from uqeval.metrics.recalibration import MOST_CLASSES, IsotonicRegression, VectorScaling
from uqeval.metrics.smooth_ece import SmoothEce
from uqeval.metrics.temperature import Temperature

if TYPE_CHECKING:
    from uqeval.records.report import Report
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.reliability import AdaptiveReliability, ItemAdaptive


def _scaled(record: Record) -> Iterator[tuple[str, Record]]:
    """Yield the scores at the fitted temperature and after other recalibration; then those of the
    held-out items, before and after.
    """
    fits: list[tuple[str, Record]] = []
    after = record.get("temperature") or {}
    if (temperature := after.get("value")) is not None:
        fits.append((f"at T = {temperature:.4f}", after))
    for name, heading in (("isotonic", "isotonic regression"), ("vector", "vector scaling")):
        if (own := record.get(name)) and own["ece"] is not None:
            fits.append((f"after {heading}", own))
    for heading, fit in fits:
        yield f"  {heading}", fit
    held_out = [(heading, fit["held_out"]) for heading, fit in fits if fit.get("held_out")]
    if held_out:
        # The last fit has the most scores; all have the same items.
        yield "  held out, before", held_out[-1][1]["before"]
    for heading, scores in held_out:
        yield f"  held out, {heading}", scores["after"]


def _gap(row: Record, report: Report) -> float | None:
    if row["accuracy"] is None or row["confidence"] is None:
        return None
    return float(row["accuracy"] - row["confidence"])


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Calibration",
            (
                "bins", "ece", "mce", "adaptive_ece", "classwise_ece", "smooth_ece", "ace", "brier",
                "nll",
            ),
            "0 is best. T: the temperature with the least NLL; above 1 the model is "
            "over-confident.",
            below=_scaled,
        ),
        ScoreTable(
            "Calibration error, estimated",
            ("kumar_l2", "kumar_l1", "sweep_l1", "sweep_l2", "sweep_bins"),
            "These estimates have less bias than the ECE, which is the plug-in value.",
        ),
        ScoreTable(
            "Calibration of single images",
            (
                Column("per_image.mean", "mean ECE"), Column("per_image.median", "median"),
                Column("per_image.p90", "p90"), Column("per_image.worst", "worst"),
                Column("per_image.ace", "mean ACE"),
            ),
            "ECE within each image: a set can be calibrated while its images are not.",
        ),
        ScoreTable(
            "Brier score, decomposed",
            (
                "brier", "brier_decomposition.reliability", "brier_decomposition.resolution",
                "brier_decomposition.uncertainty",
                Column("brier_decomposition.remainder", "remainder"),
            ),
            "Brier = reliability - resolution + uncertainty + remainder.",
        ),
        RowTable(
            "Reliability", "reliability",
            (Column("count", "pixels"), Column("confidence", "mean confidence"),
             Column("accuracy", "accuracy"),
             Column("accuracy", "accuracy − confidence", value=_gap)),
            corner="confidence",
            row=lambda bin: f"{bin['lower']:.3f} – {bin['upper']:.3f}",
        ),
    ),
    bars=ClassBars("Class-wise calibration error", (Panel("ece", "ECE of the class"),)),
    figures=("reliability",),
)  # fmt: skip


#: Parts with their own tallies.
PARTS = (Temperature, IsotonicRegression, VectorScaling, SmoothEce, BrierDecomposition)
METRICS = (
    *cs.METRICS, *estimators.METRICS, *(metric for part in PARTS for metric in part.metrics),
    *calibration_of_images.METRICS,
)  # fmt: skip


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, CalibrationSettings]:
    """Return the settings of every variant, checked against the data."""
    choices = dict(options)
    if isinstance(choices.get("fit_on"), Path):
        choices["fit_on"] = str(choices["fit_on"])
    settings: dict[str, CalibrationSettings] = variants(
        "calibration", CalibrationSettings, choices, ("definition",)
    )
    if "positive" in _listed(choices.get("binary")) and info.classes != 2:
        raise UsageError(
            f"--binary positive is for two classes; {info.where} has {info.classes}. Leave it "
            "out: the confidence is then that of the top label."
        )
    for variant in settings.values():
        read_fit_on(variant.fit_on, info)
        if variant.vector and info.classes > MOST_CLASSES:
            raise UsageError(
                f"--vector: {info.where} has {info.classes} classes; expected at most "
                f"{MOST_CLASSES}, because it computes a second derivative for each pair of "
                "classes. Leave --vector out; the temperature has no such limit."
            )
        if variant.temperature_of == "samples" and info.samples is None:
            raise UsageError(
                f"--temperature-of samples: {info.where} is a maps store, which has no samples. "
                "Give the stores of the samples, or scale their mean (--temperature-of mean)."
            )
    return settings


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


class Calibration(Evaluation[CalibrationSettings]):
    """Bins of confidence and proper scores; bins of equal mass between fitted edges.

    The edges are fitted for adaptive ECE, and for an estimator that needs them.
    """

    # A region has bins of equal mass of its own, and so has a slice that the run knows.
    shares_fit = False

    @property
    def equal_mass(self) -> frozenset[str]:
        return frozenset[str]().union(*self._fields_massed.values())

    @property
    def _fields_massed(self) -> dict[str, set[str]]:
        """Return the fields that read the bins between fitted edges, by purpose."""
        fields = {_ADAPTIVE: {"adaptive_ece"}} if self.settings.adaptive else {}
        if self.settings.estimator != "plug-in":
            metrics = estimators.metrics_of(self.settings.estimator)
            fields[_ESTIMATOR] = {metric.field for metric in metrics}
        return fields

    @property
    def slices_at_once(self) -> int:
        if self.settings.estimator == "roelofs-sweep":
            return 1  # it ranks all pixels
        return estimators.sets_at_once(self.settings.bins)

    @property
    def _bins(self) -> tuple[Tally, Tally, Tally]:
        """Return the tallies that need no fitted numbers."""
        from uqeval.tallies.reliability import ClassReliability, ProperScores, Reliability

        classes, bins = self.info.classes, self.settings.binning()
        scores = ProperScores(classes, self.settings.clip)
        return Reliability(classes, bins), ClassReliability(classes, bins), scores

    @property
    def _items(self) -> ItemAdaptive:
        from uqeval.tallies.reliability import ItemAdaptive

        return ItemAdaptive(self.info.classes, self.settings.bins)

    @property
    def _massed(self) -> dict[str, AdaptiveReliability]:
        """Return the bins between fitted edges, by purpose."""
        from uqeval.tallies.reliability import AdaptiveReliability

        return {
            name: AdaptiveReliability(self.info.classes, tuple(edges))
            for name, edges in self.fitted.items()
            if name in (_ADAPTIVE, _ESTIMATOR)
        }

    @property
    def of_one_run(self) -> frozenset[str]:
        # Edges of the adaptive ECE that several runs share are those of all items: ranks are
        # rounded up. Published estimators round otherwise, and have fewer bins for few pixels.
        return frozenset({_ESTIMATOR})

    def maps(self) -> set[str]:
        return {"label", "prediction", "confidence", "label_probability", "brier", "mean_probs"}

    def fit(self) -> Passes:
        bin_tallies = self._bins
        ranking = _rank_tallies(self.settings, self.info.classes)
        results = yield (*bin_tallies, *ranking.values())
        _refuse_strange(results, bin_tallies)
        if ranking:
            yield from self._fit_edges({name: results[t].total for name, t in ranking.items()})

    def _fit_edges(self, ranks: Mapping[str, State]) -> Passes:
        """Find the edges of bins of equal mass, from the totals of the tallies that rank."""
        required_ranks = _wanted_ranks(self.settings, ranks)
        coarse = ranks["ranks"]["coarse"][0]
        edges = yield from exact_edges(self.info.classes, coarse, required_ranks)
        self._ties = {name: ties for name, (_, ties) in edges.items()}
        self._together = estimators.kept_together(ranks["sweep"]) if "sweep" in ranks else 0
        self.fitted |= {name: list(values) for name, (values, _) in edges.items()}

    def of_slice(self) -> Passes:
        """Return the bins of equal mass of the slice, between edges of its own, by purpose."""
        from uqeval.tallies.reliability import PooledAdaptive

        own = Calibration(self.settings, self.info)
        ranking = _rank_tallies(self.settings, self.info.classes)
        results = yield tuple(ranking.values())
        yield from own._fit_edges({name: results[t].total for name, t in ranking.items()})
        tallies = {name: PooledAdaptive(t.classes, t.edges) for name, t in own._massed.items()}
        results = yield tuple(dict.fromkeys(tallies.values()))
        return {name: results[tally].total for name, tally in tallies.items()}

    def tallies(self) -> tuple[Tally, ...]:
        return tuple(dict.fromkeys((*self._bins, *self._massed.values())))

    def tallies_of(self, fields: Collection[str]) -> tuple[Tally, ...]:
        names = {name for name, own in self._fields_massed.items() if not own.isdisjoint(fields)}
        massed = [tally for name, tally in self._massed.items() if name in names]
        return tuple(dict.fromkeys((*self._bins, *massed)))

    def extra_tallies(self) -> tuple[Tally, ...]:
        return (self._items,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        of_edges = exact or {name: states[tally] for name, tally in self._massed.items()}
        massed = {name: SetStates.of_one(state) for name, state in of_edges.items()}
        bin_states = [SetStates.of_one(states[tally]) for tally in self._bins]
        return calibration_results.results_of(
            self.settings, bin_states, massed, self.info.class_names
        )

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        bin_states = [states[tally] for tally in self._bins]
        massed = {name: states[tally] for name, tally in self._massed.items() if tally in states}
        return calibration_results.columns(self.settings, bin_states, massed, fields)

    def gaps(self) -> dict[Place, Gaps]:
        top, per_class, _ = self._bins
        massed = [tally for name, tally in self._massed.items() if name == _ADAPTIVE]
        return cs.of_set(top, per_class, massed, self.settings.at_one, self.info.classes)

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        def score(*states: SetStates) -> list[dict[str, Any]]:
            *bins, massed = states
            columns = calibration_results.columns(self.settings, bins, {_ADAPTIVE: massed})
            counts = bins[0]["count"].sum(axis=-1).tolist()
            scored = calibration_results.records(self.settings, columns)
            return [record | {"pixels": n} for n, record in zip(counts, scored, strict=True)]

        return score_items((*self._bins, self._items), results, score)

    def over_items(self) -> OverItems:
        return calibration_of_images.over_items()

    def run_of(self, results: Mapping[Tally, TallyResult], exact: Any) -> Run:
        """Add the distribution over items."""
        run = super().run_of(results, exact)
        run.results["per_image"] = calibration_of_images.results_of_items(run.items)
        return run

    def numerics(self, run: Run) -> dict[str, int]:
        top, _, scores = self._bins
        special = run.total(top)["special"]
        counts = {"confidence_one": int(special[0]), "on_bin_edge": int(special[1])}
        if self.settings.adaptive:
            counts["ties_at_adaptive_edges"] = self._ties[_ADAPTIVE]
        if self.settings.estimator == "roelofs-sweep":
            counts["together_in_sweep"] = self._together
        return counts | {"clipped": int(run.total(scores)["counts"][1])}


def _rank_tallies(settings: CalibrationSettings, classes: int) -> dict[str, Tally]:
    """Return the tallies that find the edges of bins of equal mass, by name; empty if none are
    needed.
    """
    from uqeval.tallies._values import RawMap
    from uqeval.tallies.ranks import Ranks

    if not settings.adaptive and settings.estimator == "plug-in":
        return {}
    tallies: dict[str, Tally] = {"ranks": Ranks(RawMap("confidence"), classes)}
    if settings.estimator == "roelofs-sweep":
        tallies["sweep"] = estimators.sweep_tally(classes)
    return tallies


def _wanted_ranks(
    settings: CalibrationSettings, states: Mapping[str, State]
) -> dict[str, Sequence[int]]:
    """Return the ranks of the edges of bins of equal mass, by the name of what they are for."""
    pixels = int(states["ranks"]["coarse"][0].sum())
    ranks_by_field: dict[str, Sequence[int]] = {}
    if settings.adaptive:
        ranks_by_field[_ADAPTIVE] = upper_ranks(pixels, settings.bins)
    if settings.estimator != "plug-in":
        ranks_by_field[_ESTIMATOR] = estimators.edge_ranks(
            settings.bins, pixels, states.get("sweep")
        )
    return ranks_by_field


def _refuse_strange(results: Mapping[Tally, TallyResult], tallies: Sequence[Tally]) -> None:
    """Raise `DataError` for maps of a user that are not probabilities."""
    kinds = ("special", "special", "counts")
    names = ("confidence", "mean_probs", "label_probability")
    for tally, field, name in zip(tallies, kinds, names, strict=True):
        strange = int(results[tally].total[field][2])
        if strange:
            raise DataError(
                f"{strange} values of the map {name} are negative or above 2, so they are not "
                "probabilities. Check the map."
            )


_ABOUT = """Confidence vs accuracy: are 90 % of the pixels with confidence 0.9 correct?

Computes ECE, MCE, adaptive and class-wise ECE, Brier score, NLL and the reliability diagram.
Fits the temperature with the smallest NLL, and gives the scores after scaling.

Example: uqeval calibration preds.zarr labels/ -o report.json
"""

FAMILY = Family(
    "calibration",
    METRICS,
    _settings,
    Calibration,
    CalibrationSettings,
    parts=PARTS,
    about=_ABOUT,
    one_pass="--no-adaptive --no-temperature",
    display=DISPLAY,
    label="Calibration",
    words={"sweep_bins": "bins of the sweep"},
    on_subsets=OnSubsets(fixed={"temperature": False, "isotonic": False, "vector": False}),
)
