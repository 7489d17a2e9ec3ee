"""The evaluations of a run, rebuilt from its saved states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from uqeval.keys import family_of
from uqeval.metrics import COMPANIONS, FAMILIES_IN_REPORTS, Family
from uqeval.metrics._dataset_info import DatasetInfo, VideoInfo
from uqeval.metrics._evaluation import Evaluation
from uqeval.metrics._family import recorded_settings


def variants_of(
    index: Mapping[str, Any], info: DatasetInfo, path: object
) -> dict[str, tuple[Family, dict[str, Evaluation[Any]]]]:
    """Return the family of each variant of a run, and its evaluations by key: it and its parts.

    `index`: of the states at `path`. Raises `StoreError` for settings that no run records.
    """
    variants = {}
    for key, record in index["settings"].items():
        family = FAMILIES_IN_REPORTS.get(family_of(key))
        if family is not None:
            settings = recorded_settings(family.settings_type, record, path, key)
            variants[key] = family, family.evaluations(key, settings, info, index["fitted"])
    return variants


def evaluations_of(index: Mapping[str, Any], path: object) -> dict[str, Evaluation[Any]]:
    """Return the evaluations of a run by key, if the states contain their fitted values.

    `index` and errors as in `variants_of`.
    """
    variants = variants_of(index, info_of(index), path).values()
    return {
        key: evaluation
        for _, evaluations in variants
        for key, evaluation in evaluations.items()
        if evaluation.can_score
    }


def info_of(index: Mapping[str, Any]) -> DatasetInfo:
    """Return the facts about the data of a run, from its states."""
    record = index["facts"]
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    if (video := fields.get("video")) is not None:
        fields_of_video = {k: tuple(v) if isinstance(v, list) else v for k, v in video.items()}
        flows = video["flow_record"]
        fields["video"] = VideoInfo(
            **fields_of_video | {"flow_record": lambda method: dict(flows.get(method, {}))}
        )
    fields["sizes"] = tuple((h, w) for h, w in fields["sizes"])
    return DatasetInfo(**fields, command=_command_of(index["settings"]))


def _command_of(keys: Iterable[str]) -> str:
    """Return the command of a run with results under these keys: that of its family, or `run`."""
    families = {family_of(key) for key in keys} & FAMILIES_IN_REPORTS.keys()
    requested = {FAMILIES_IN_REPORTS[name].name for name in families} - set(COMPANIONS)
    return requested.pop() if len(requested) == 1 else "run"
