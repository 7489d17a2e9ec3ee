"""The fields that results will have, known before any data are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uqeval.errors import DataError, UsageError
from uqeval.keys import Key
from uqeval.metrics._driver import replay
from uqeval.metrics._evaluation import Evaluation, TallyResult, put_part
from uqeval.metrics._view import InView

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally


def results_without_pixels(
    evaluations: Mapping[str, Evaluation[Any]],
) -> dict[str, dict[str, Any]]:
    """Return the results of evaluations of which no pixel is evaluated, by the keys of a report.

    They have the fields of every result, with undefined scores; which rows and points of curves
    there are may depend on the data. Families that refuse to be evaluated without pixels, such as
    conformal sets, whose calibration needs some, are left out. `evaluations` are not changed.
    """
    fresh = {key: _as_of_a_region(evaluation) for key, evaluation in evaluations.items()}
    for evaluation in fresh.values():
        evaluation.use_evaluations(fresh)
    results: dict[str, dict[str, Any]] = {}
    refused = set()
    for key, evaluation in fresh.items():
        parsed = Key.parse(key)
        try:
            record = _results(evaluation)
        except (DataError, UsageError):
            refused.add(parsed.whole)
            continue
        if parsed.part:
            put_part(results.setdefault(parsed.whole, {}), parsed.part, record, evaluation.flat)
        else:
            results[key] = record
    return {key: record for key, record in results.items() if key not in refused}


def _as_of_a_region(evaluation: Evaluation[Any]) -> Evaluation[Any]:
    """Return the same evaluation before `fit`, as one of a region: only these accept no pixels."""
    fresh = evaluation.unfitted()
    fresh = fresh.inner if isinstance(fresh, InView) else fresh
    fresh.region = fresh.region or "no pixels"  # type: ignore[misc]
    return fresh


def _results(evaluation: Evaluation[Any]) -> dict[str, Any]:
    """Return the results without pixels, with the bounds that only bins of ranks have."""
    items = len(evaluation.info.names)

    def count(tally: Tally) -> TallyResult:
        state = tally.empty()
        return TallyResult(state, [tally.pack(state)] * items)

    replay(evaluation.fit(), count)
    _, exact = replay(evaluation.exact(), count)
    counted = {
        tally: count(tally) for tally in (*evaluation.tallies(), *evaluation.extra_tallies())
    }
    totals = {tally: result.total for tally, result in counted.items()}
    results = evaluation.run_of(counted, exact).results
    return evaluation.scores(totals) | results
