"""The record of a run that must be equal for all shards, in every round."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uqeval.keys import Key
from uqeval.statistics.merged_states import difference

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.metrics._dataset_info import DatasetInfo
    from uqeval.metrics._evaluation import Evaluation

_FACTS = ("kind", "classes", "class_names", "samples", "reference")
_OF_VIDEO = ("models", "against", "named")


def settings_of_evaluations(evaluations: Mapping[str, Evaluation[Any]]) -> dict[str, Any]:
    """Return the settings of each result by key."""
    return {
        key: dataclasses.asdict(evaluation.settings)
        for key, evaluation in evaluations.items() if not Key.parse(key).part
    }  # fmt: skip


def run_of_inputs(
    inputs: Inputs, info: DatasetInfo, settings: Mapping[str, Any], version: str
) -> dict[str, Any]:
    """Return the record of a shard from its inputs and the settings of each result."""
    video = None
    if info.video is not None:
        video = {name: getattr(info.video, name) for name in _OF_VIDEO}
    facts = {name: getattr(info, name) for name in _FACTS}
    inputs_record = {**inputs.record, "options": inputs.options}
    return _run(version, inputs.fingerprint, facts | {"video": video}, inputs_record, settings)


def run_of_states(index: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of the run from merged states."""
    facts, video = index["facts"], index["facts"].get("video")
    chosen = {name: facts[name] for name in _FACTS}
    chosen["video"] = None if video is None else {name: video.get(name) for name in _OF_VIDEO}
    version, fingerprint = index["uqeval_version"], index["fingerprint"]
    return _run(version, fingerprint, chosen, index["inputs"], settings)


def _run(
    version: str,
    fingerprint: str,
    facts: Mapping[str, Any],
    inputs: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the record as plain JSON values, equal from inputs and from states."""
    options = {name: value for name, value in inputs["options"].items() if name != "part"}
    record = {
        "uqeval_version": version,
        "fingerprint": fingerprint,
        "facts": facts,
        "inputs": {"ignore_index": inputs.get("ignore_index"), "options": options},
        "settings": settings,
    }
    return json.loads(json.dumps(record, default=str))


def difference_of_runs(fitted: Mapping[str, Any], own: Mapping[str, Any]) -> str | None:
    """Return the first difference of two runs with both values; None if they are the same."""
    if fitted.get("fingerprint") != own["fingerprint"]:
        return "the content of the stores"
    return difference(fitted, own)
