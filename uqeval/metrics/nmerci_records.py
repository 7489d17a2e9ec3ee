"""The tallies of n-MeRCI, and its results."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.nmerci_scores as ns
from uqeval.arrays import State, np
from uqeval.metrics.nmerci_settings import NmerciSettings

if TYPE_CHECKING:
    from uqeval.tallies import ErrorRanks, ItemErrors

#: The α of the curve, in percent.
CURVE = tuple(range(1, 101))


def tallies_of(settings: NmerciSettings) -> tuple[ItemErrors, ErrorRanks]:
    """Return sums of each item and its own percentiles, and λ and ε by the high bits of
    their keys.
    """
    from uqeval.tallies import ErrorRanks, ItemErrors

    over_kept = settings.over == "kept"
    return (
        ItemErrors(settings.alpha, settings.interpolation, over_kept, settings.sigma),
        ErrorRanks(settings.sigma),
    )


def results_of(parts: Mapping[float, ns.Parts], settings: NmerciSettings) -> dict[str, Any]:
    """Return the results of an n-MeRCI from its parts by α."""
    results = {"alpha": settings.alpha} | record_of(parts[settings.alpha], settings)
    scores = [ns.score(parts[float(a)], settings.over, settings.mae) for a in CURVE]
    results["curve"] = {"alpha": list(CURVE), "nmerci": [score[2] for score in scores]}
    if None in results["curve"]["nmerci"]:
        results["curve_reason"] = _gaps(
            [_curve_reason(*score[1:], settings.over) for score in scores]
        )
    return results


def _curve_reason(merci: float | None, nmerci: float | None, over: str) -> str | None:
    """Return why a point of the curve is undefined; None if it is defined."""
    if nmerci is not None:
        return None
    if over == "kept":
        return "no finite λ^α, or the largest error of the kept pixels is not above their MAE"
    return "λ^α is infinite" if merci is None else "max^α is not above the MAE"


def _gaps(reasons: Sequence[str | None]) -> str:
    """Return the reasons of the undefined points of the curve, each with the α that it
    holds for.
    """
    messages = []
    for reason, group in itertools.groupby(
        zip(reasons, CURVE, strict=True), key=lambda pair: pair[0]
    ):
        alphas = [alpha for _, alpha in group]
        if reason:
            ends = f" … {alphas[-1]}" if len(alphas) > 1 else ""
            messages.append(f"α = {alphas[0]}{ends}: {reason}")
    return "; ".join(messages)


def record_of(parts: ns.Parts, settings: NmerciSettings) -> dict[str, Any]:
    return ns.record(parts, settings.alpha, settings.over, settings.mae)


def sums_of(state: State) -> ns.Sums:
    """Return all pixels of a state of `ItemErrors`."""
    return ns.Sums(int(state["pixels"][0]), *state["totals"].tolist())


def running(state: State, group: int) -> Sequence[ns.Sums]:
    """Return sums of all pixels of a group at or below each limit, from a state of `SumsBelow`."""
    counts = np.cumsum(state["count"][group]).tolist()
    errors, sigmas = np.cumsum(state["sums"][group], axis=0).T.tolist()
    most = np.maximum.accumulate(state["most"][group]).tolist()
    return [ns.Sums(*four) for four in zip(counts, errors, sigmas, most, strict=True)]
