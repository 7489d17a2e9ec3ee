"""Settings of segmentation scores: none, as there is one definition."""

from __future__ import annotations

from dataclasses import dataclass

from uqeval.settings import Settings, definition_of, documented


@documented
@dataclass(frozen=True)
class SegmentationSettings(Settings):
    """No choice is behind the segmentation scores."""

    definition: str = definition_of(Settings.definitions)
