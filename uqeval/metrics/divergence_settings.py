"""Settings of the divergence."""

from __future__ import annotations

from dataclasses import dataclass

from uqeval.settings import Settings, definition_of, documented, option


@documented
@dataclass(frozen=True)
class DivergenceSettings(Settings):
    """Every choice behind a divergence."""

    # fmt: off
    clip: float = option(
        0.0, "Raise both probabilities to at least EPS and renormalise. With 0, the divergence "
        "is infinite where the reference is 0; such pixels are counted separately.",
        metavar="EPS", least=0, below=1, shown="0", common=True)
    definition: str = definition_of(Settings.definitions)
    # fmt: on
