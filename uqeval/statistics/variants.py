"""How the variants of a run are scored again, from what its states say of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqeval.metrics import FAMILIES
from uqeval.metrics._again import Again, settings_of
from uqeval.metrics._family import Facts, VideoFacts


def agains_of(index: Mapping[str, Any]) -> dict[str, Again]:
    """How each variant and part of a run is scored again, by its key."""
    facts = facts_of(index["facts"])
    families = {family.key or family.name: family for family in FAMILIES.values()}
    found: dict[str, Again] = {}
    for key, record in index["settings"].items():
        family = families.get(key.split("[")[0])
        if family is not None and family.again is not None:
            settings = settings_of(family.settings_type, record)
            found |= family.again(key, settings, facts, index["fitted"])
    return found


def facts_of(record: Mapping[str, Any]) -> Facts:
    """What was known of the data of a run, from what its states say."""
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    if (video := known.get("video")) is not None:
        plain = {k: tuple(v) if isinstance(v, list) else v for k, v in video.items()}
        flows = video["flow_record"]
        known["video"] = VideoFacts(
            **plain | {"flow_record": lambda method: dict(flows.get(method, {}))}
        )
    known["sizes"] = tuple((h, w) for h, w in known["sizes"])
    return Facts(**known)
