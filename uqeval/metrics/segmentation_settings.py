"""There is one definition of the segmentation scores, and nothing to choose."""

from __future__ import annotations

from dataclasses import dataclass

from uqeval.settings import Settings, definition_of, documented


@documented
@dataclass(frozen=True)
class SegmentationSettings(Settings):
    """No choice is behind the segmentation scores."""

    definition: str = definition_of(Settings.definitions)
