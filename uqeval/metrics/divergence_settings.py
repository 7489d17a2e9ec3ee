"""What can be chosen of a divergence."""

from __future__ import annotations

from dataclasses import dataclass

from uqeval.metrics._settings import Settings, definition_of, documented, option


@documented
@dataclass(frozen=True)
class DivergenceSettings(Settings):
    """Every choice behind a divergence."""

    # fmt: off
    clip: float = option(
        0.0, "Raise both to at least this probability and renormalise; with 0, pixels where the "
        "reference gives 0 are infinite, and counted apart.",
        metavar="EPS", least=0, below=1, shown="0", common=True)
    definition: str = definition_of(Settings.definitions)
    # fmt: on
