"""The family `calibration`: settings, presets, and the plan from tallies to the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.errors import DataError, UsageError, listed
from uqeval.metrics import calibration_columns, calibration_gaps, temperature
from uqeval.metrics import calibration_estimators as estimators
from uqeval.metrics import calibration_scores as cs
from uqeval.metrics._again import Again
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._plan import Counted, Plan, Section
from uqeval.metrics.calibration_edges import Edges, exact_edges, upper_ranks
from uqeval.metrics.calibration_records import ADAPTIVE as _ADAPTIVE
from uqeval.metrics.calibration_records import ESTIMATOR as _ESTIMATOR
from uqeval.metrics.calibration_records import results_of, scores_of
from uqeval.metrics.calibration_settings import CalibrationSettings

if TYPE_CHECKING:
    from uqeval.metrics._again import SetStates
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State

METRICS = (*cs.METRICS, *estimators.METRICS)


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, CalibrationSettings]:
    """The settings of every variant, checked against the data."""
    chosen = dict(options)
    if isinstance(chosen.get("fit_on"), Path):
        chosen["fit_on"] = str(chosen["fit_on"])
    found: dict[str, CalibrationSettings] = variants(
        "calibration", CalibrationSettings, chosen, ("definition",)
    )
    if "positive" in _listed(chosen.get("binary")) and facts.classes != 2:
        raise UsageError(
            f"--binary positive is for two classes; {facts.where} has {facts.classes}. "
            "Leave it out: more classes have the confidence of the top label."
        )
    for own in found.values():
        _fit_items(own, facts)
        if own.temperature_of == "samples" and facts.samples is None:
            raise UsageError(
                f"--temperature-of samples: {facts.where} is a maps store, whose samples are gone. "
                "Give the stores of the samples, or scale their mean (--temperature-of mean)."
            )
    return found


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _fit_items(settings: CalibrationSettings, facts: Facts) -> list[int] | None:
    """The places of the items that the temperature is fitted on; None for all."""
    if settings.fit_on is None:
        return None
    from uqeval.stores.names import read_names_file

    names = read_names_file(settings.fit_on)
    place = {name: i for i, name in enumerate(facts.names)}
    strange = [name for name in names if name not in place]
    if strange or not names:
        raise UsageError(
            f"--fit-on {settings.fit_on}: it names no item."
            if not names
            else f"--fit-on {settings.fit_on}: {len(strange)} of its {len(names)} names are no "
            f"items of the evaluated {len(place)}: {listed(strange)}."
        )
    return sorted({place[name] for name in names})


def _maps(settings: CalibrationSettings, facts: Facts) -> set[str]:
    return {"label", "prediction", "confidence", "label_probability", "brier", "mean_probs"}


def _plans(key: str, settings: CalibrationSettings, facts: Facts) -> dict[str, Plan]:
    plans = {key: plan(settings, facts.classes, facts.class_names)}
    if settings.temperature:
        fit = _fit_items(settings, facts)
        bins, classes = settings.binning(), facts.classes
        plans[f"{key}/temperature"] = temperature.plan(
            classes,
            bins,
            settings.at_one,
            settings.clip,
            fit,
            settings.fit_on,
            settings.temperature_of,
            settings.is_positive(classes),
        )
    return plans


def plan(settings: CalibrationSettings, classes: int, class_names: Sequence[str]) -> Plan:
    """Count bins and scores, then bins of equal mass between their edges; return the section."""
    from uqeval.tallies import AdaptiveReliability, ItemAdaptive

    top, each, scores = _tallies(settings, classes)
    alone = ItemAdaptive(classes, settings.bins)
    extra = _rank_tallies(settings, classes)
    counted = yield (top, each, scores, alone, *extra.values())
    _refuse_strange(counted, (top, each, scores))

    massed: dict[str, cs.Binned] = {}
    edges: Edges = {}
    if extra:
        states = {name: counted[tally].total for name, tally in extra.items()}
        wanted = _wanted_ranks(settings, states)
        edges = yield from exact_edges(classes, states["ranks"]["coarse"][0], wanted)
        asked = {name: AdaptiveReliability(classes, own) for name, (own, _) in edges.items()}
        binned = yield tuple(dict.fromkeys(asked.values()))
        massed = {name: cs.Binned.of(binned[tally].total) for name, tally in asked.items()}

    state = counted[top].total
    whole = [counted[tally].total for tally in (top, each, scores)]
    results = results_of(settings, whole, massed, class_names)
    items = []
    for own in zip(*(counted[t].items for t in (top, each, scores, alone)), strict=True):
        *states_of_item, mine = (
            t.unpack(d) for t, d in zip((top, each, scores, alone), own, strict=True)
        )
        items.append(scores_of(settings, states_of_item, cs.Binned.of(mine)))
    numerics = {
        "confidence_one": int(state["special"][0]),
        "on_bin_edge": int(state["special"][1]),
        **({"ties_at_adaptive_edges": edges[_ADAPTIVE][1]} if settings.adaptive else {}),
        "clipped": int(counted[scores].total["counts"][1]),
    }
    fitted = {name: list(own) for name, (own, _) in edges.items()}
    return Section(results, items, dataclasses.asdict(settings), numerics, fitted=fitted)


def _rank_tallies(settings: CalibrationSettings, classes: int) -> dict[str, Tally]:
    """Return what edges of bins of equal mass are found with, by name; nothing without any."""
    from uqeval.tallies import Ranks, RawMap

    if not settings.adaptive and settings.estimator == "plug-in":
        return {}
    found: dict[str, Tally] = {"ranks": Ranks(RawMap("confidence"), classes)}
    if settings.estimator == "roelofs-sweep":
        found["sweep"] = estimators.sweep_tally(classes)
    return found


def _wanted_ranks(
    settings: CalibrationSettings, states: Mapping[str, State]
) -> dict[str, Sequence[int]]:
    """Return the ranks of the edges of bins of equal mass, by the name of what they are for."""
    pixels = int(states["ranks"]["coarse"][0].sum())
    wanted: dict[str, Sequence[int]] = {}
    if settings.adaptive:
        wanted[_ADAPTIVE] = upper_ranks(pixels, settings.bins)
    if settings.estimator != "plug-in":
        wanted[_ESTIMATOR] = estimators.edge_ranks(
            settings.estimator, settings.bins, pixels, states.get("sweep")
        )
    return wanted


def _tallies(settings: CalibrationSettings, classes: int) -> tuple[Tally, Tally, Tally]:
    """What nothing has to be fitted for."""
    from uqeval.tallies import ClassReliability, ProperScores, Reliability

    bins = settings.binning()
    return (
        Reliability(classes, bins),
        ClassReliability(classes, bins),
        ProperScores(classes, settings.clip),
    )


def _again(
    key: str, settings: CalibrationSettings, facts: Facts, fitted: Mapping[str, Any]
) -> dict[str, Again]:
    """All scores, the edges of bins of equal mass held fixed: without them no `adaptive_ece`."""
    from uqeval.tallies import AdaptiveReliability

    simple = _tallies(settings, facts.classes)
    massed = {
        name: AdaptiveReliability(facts.classes, tuple(edges))
        for name, edges in fitted.get(key, {}).items()
        if name in (_ADAPTIVE, _ESTIMATOR)
    }

    def scores(states: Mapping[Tally, State]) -> dict[str, Any]:
        binned = {name: cs.Binned.of(states[tally]) for name, tally in massed.items()}
        own = [states[tally] for tally in simple]
        return results_of(settings, own, binned, facts.class_names)

    def columns(states: Mapping[Tally, SetStates], wanted: Collection[str]) -> Any:
        own = [states[tally] for tally in simple]
        binned = {name: states[tally] for name, tally in massed.items()}
        return calibration_columns.columns(settings, own, binned, wanted)

    adaptive = [tally for name, tally in massed.items() if name == _ADAPTIVE]
    gaps = calibration_gaps.of_set(simple[0], simple[1], adaptive, settings.at_one, facts.classes)
    needed = tuple(dict.fromkeys((*simple, *massed.values())))
    found = {key: Again(needed, scores, columns, gaps=gaps)}
    part = f"{key}/temperature"
    if settings.temperature and {"beta", "record"} <= fitted.get(part, {}).keys():
        found[part] = temperature.again(
            facts.classes, settings.binning(), settings.at_one, settings.clip,
            settings.temperature_of, fitted[part], settings.is_positive(facts.classes),
        )  # fmt: skip
    return found


def _refuse_strange(counted: Mapping[Tally, Counted], tallies: Sequence[Tally]) -> None:
    """Raise `DataError` for maps that hold no probabilities, as a user's own may."""
    held = ("special", "special", "counts")
    names = ("confidence", "mean_probs", "label_probability")
    for tally, field, name in zip(tallies, held, names, strict=True):
        strange = int(counted[tally].total[field][2])
        if strange:
            raise DataError(
                f"{strange} values of the map {name} are negative or above 2: they are no "
                "probabilities."
            )


_ABOUT = """Confidence vs accuracy: are 90 % of the pixels with confidence 0.9 correct?

Computes ECE, MCE, adaptive and class-wise ECE, Brier score, NLL and the reliability diagram.
Fits the temperature with the smallest NLL, and gives the scores after scaling.

Example: uqeval calibration preds.zarr labels/ -o report.json
"""

FAMILY = Family(
    "calibration", METRICS, _settings, _maps, _plans,
    again=_again, settings_type=CalibrationSettings, about=_ABOUT,
    label="Calibration",
    words={"sweep_bins": "bins of the sweep"},
)  # fmt: skip
