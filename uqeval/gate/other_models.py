"""Whether two reports of a video have a result of the same one of several models."""

from __future__ import annotations

from shlex import quote
from typing import Any

from uqeval.errors import IN_MEMORY
from uqeval.keys import family_of
from uqeval.records.report import Report


def other_models(report: Report, baseline: Report, key: str) -> tuple[str, str] | None:
    """Return the models of a result in both reports if one of them is another model of the other
    report; else None.

    The keys of results tell the order in which models were given. A model may have a new name, so
    models that only one report has are compared by their order.
    """
    names = [_models(own, key) for own in (report, baseline)]
    model, other = (own.get(key) for own in names)
    if model is None or other is None or model == other:
        return None
    is_known = model in names[1].values() or other in names[0].values()
    return (model, other) if is_known else None


def in_one_order(report: Report, baseline: Report, key: str) -> str:
    """Return advice on how to evaluate two reports whose models have another order."""
    advice = "Evaluate again with the same models in the same order"
    names, others = (list(dict.fromkeys(_models(own, key).values())) for own in (report, baseline))
    frames: Any = baseline.inputs.get("frames")
    stores: Any = baseline.inputs.get("predictions")
    if sorted(names) != sorted(others) or len(stores or ()) != len(others) or not frames:
        return advice
    path_of = dict(zip(others, (str(store.get("path")) for store in stores), strict=True))
    paths = [str(frames.get("path")), *(path_of[name] for name in names)]
    if any(IN_MEMORY in path for path in paths):
        return advice
    return f"{advice} (uqeval tc {' '.join(map(quote, paths))}, and the other options)"


def _models(report: Report, key: str) -> dict[str, str]:
    """Return the model of each result of a family by its key."""
    return {
        own: str(settings["model"])
        for own, settings in report.settings.items()
        if family_of(own) == family_of(key) and isinstance(settings, dict) and "model" in settings
    }
