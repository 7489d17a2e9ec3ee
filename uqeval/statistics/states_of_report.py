"""Open the saved states of a report, and check that they belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.errors import StoreError, cut
from uqeval.records.class_names import called, class_names
from uqeval.records.folder import (
    foreign_states,
    saving_states,
    states_beside,
    why_without_states,
)
from uqeval.records.report import Report
from uqeval.statistics.scoring import Scoring

if TYPE_CHECKING:
    from uqeval.stores.states.saved import SavedStates


def scoring_of(report: Path, loaded_report: Report) -> Scoring:
    """Return the scoring of the states of a report, with its names of classes. Raises `StoreError`
    as `states_of` does."""
    return Scoring(states_of(report, loaded_report)).called(class_names(loaded_report.results))


def states_of(report: Path, loaded_report: Report) -> SavedStates:
    """Return the states of a report. Raises `StoreError` for states of another run."""
    from uqeval.stores.states.saved import SavedStates

    if (reason := why_without_states(report, loaded_report)) is not None:
        raise StoreError(reason)
    path = states_beside(report, loaded_report)
    assert path is not None
    saved = SavedStates.of_run(path)
    if loaded_report.states_digest not in (None, saved.digest):
        raise foreign_states(path, report, loaded_report.states_digest)
    if not _is_of(saved, loaded_report):
        raise StoreError(f"{cut(path)} are not the states of {report}; {saving_states(report)}")
    return saved


def _is_of(saved: SavedStates, loaded_report: Report) -> bool:
    """Return whether states belong to a report: same items, stores, settings and results."""
    index = saved.index
    settings = index["settings"].items()
    results = called(index["results"], class_names(loaded_report.results)).items()
    return (
        [item.get("name") for item in loaded_report.items] == list(index["items"])
        and all(
            loaded_report.settings.get(key) == value
            for key, value in settings
            if key != "intervals"
        )
        and _fingerprints(index["inputs"]) == _fingerprints(loaded_report.inputs)
        and all(
            _without_debiased(loaded_report.results.get(key)) == record for key, record in results
        )
    )


def _without_debiased(record: Any) -> Any:
    """Return a result without values from draws, which were added after the states were saved."""
    if not isinstance(record, Mapping):
        return record
    added = ("_debiased", "_debiased_reason")
    return {name: value for name, value in record.items() if not name.endswith(added)}


def _fingerprints(record: Any) -> list[str]:
    """Return the fingerprints of all stores in a record of inputs, in its order."""
    if isinstance(record, Mapping):
        fingerprints = [str(record["fingerprint"])] if "fingerprint" in record else []
        return fingerprints + [text for value in record.values() for text in _fingerprints(value)]
    if isinstance(record, list):
        return [text for value in record for text in _fingerprints(value)]
    return []
