"""Accuracy by predicted class and uncertainty percentile: Ma et al. 2024, §10.1.1, Figures 4, 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.metrics._again import Again
from uqeval.metrics._plan import Plan, Section

if TYPE_CHECKING:
    from uqeval.tallies import Uncertainty

#: Inner edges of ten bins of equal mass.
PERCENTILES = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0)


def plan(uncertainty: Uncertainty, classes: int, class_names: Sequence[str]) -> Plan:
    """Fit the deciles of the pixels' uncertainty, count, and return the table as `results`."""
    from uqeval.tallies import AccuracyByUncertainty, Ranks
    from uqeval.tallies.ranks import bins_of, percentile

    ranks = Ranks(uncertainty, classes)
    coarse = (yield (ranks,))[ranks].total["coarse"]
    bins = bins_of(coarse, PERCENTILES)
    detail = Ranks(uncertainty, classes, bins=bins)
    fine: Any = (yield (detail,))[detail].total["fine"] if bins else []
    found = {b: fine[i] for i, (_, b) in enumerate(bins)}
    edges = [percentile(coarse[0], found, p) for p in PERCENTILES]
    tally = AccuracyByUncertainty(uncertainty, classes, tuple(e for e in edges if e is not None))
    state = (yield (tally,))[tally].total
    return Section(table(state, tally.edges, class_names), [], fitted={"edges": tally.edges})


def again(
    uncertainty: Uncertainty, classes: int, class_names: Sequence[str], fitted: Mapping[str, Any]
) -> Again:
    """The table again, at the same deciles."""
    from uqeval.tallies import AccuracyByUncertainty

    tally = AccuracyByUncertainty(uncertainty, classes, tuple(fitted["edges"]))

    return Again((tally,), lambda states: table(states[tally], tally.edges, class_names))


def table(state: Any, edges: Sequence[float], class_names: Sequence[str]) -> dict[str, Any]:
    """Accuracy and pixels of each predicted class in each bin; None where there are no pixels."""
    rows: list[dict[str, Any]] = []
    counts = zip(state["pixels"].tolist(), state["correct"].tolist(), strict=True)
    for c, (pixels, correct) in enumerate(counts):
        row: dict[str, Any] = {"class": c, "name": class_names[c]}
        row["accuracy"] = [k / n if n else None for k, n in zip(correct, pixels, strict=True)]
        if None in row["accuracy"]:
            row["accuracy_reason"] = "no pixel of that uncertainty is predicted as this class"
        rows.append(row | {"pixels": pixels})
    return {"percentiles": list(PERCENTILES), "thresholds": list(edges), "rows": rows}
