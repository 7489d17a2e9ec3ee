"""The evaluations of a run, rebuilt from its saved states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqeval.keys import family_of
from uqeval.metrics import FAMILIES_IN_REPORTS, Family
from uqeval.metrics._dataset_info import DatasetInfo, VideoInfo
from uqeval.metrics._evaluation import Evaluation
from uqeval.metrics._family import settings_of


def variants_of(
    index: Mapping[str, Any], info: DatasetInfo
) -> dict[str, tuple[Family, dict[str, Evaluation[Any]]]]:
    """Return the family of each variant of a run, and its evaluations by key: it and its parts."""
    variants = {}
    for key, record in index["settings"].items():
        family = FAMILIES_IN_REPORTS.get(family_of(key))
        if family is not None:
            settings = settings_of(family.settings_type, record)
            variants[key] = family, family.evaluations(key, settings, info, index["fitted"])
    return variants


def evaluations_of(index: Mapping[str, Any]) -> dict[str, Evaluation[Any]]:
    """Return the evaluations of a run by key, if the states contain their fitted values."""
    variants = variants_of(index, info_of(index["facts"])).values()
    return {
        key: evaluation
        for _, evaluations in variants
        for key, evaluation in evaluations.items()
        if evaluation.can_score
    }


def info_of(record: Mapping[str, Any]) -> DatasetInfo:
    """Return the facts about the data of a run, from its states."""
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    if (video := fields.get("video")) is not None:
        fields_of_video = {k: tuple(v) if isinstance(v, list) else v for k, v in video.items()}
        flows = video["flow_record"]
        fields["video"] = VideoInfo(
            **fields_of_video | {"flow_record": lambda method: dict(flows.get(method, {}))}
        )
    fields["sizes"] = tuple((h, w) for h, w in fields["sizes"])
    return DatasetInfo(**fields)
