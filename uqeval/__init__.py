"""uqeval: find out whether a vision model's uncertainty can be trusted, from saved predictions.

    import uqeval
    report = uqeval.evaluate("preds.zarr", "labels/")
    report.results["pavpu"]["pavpu"]

Everything is loaded on first use (PEP 562), so that help, completion and the gate start at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uqeval.version import VERSION as __version__

_HOMES = {
    "DataError": "uqeval.errors",
    "Evaluator": "uqeval.usecases.evaluator",
    "OutputError": "uqeval.errors",
    "PredictionWriter": "uqeval.writer",
    "Report": "uqeval.records.report",
    "StoreError": "uqeval.errors",
    "TemporalObserver": "uqeval.usecases.observe",
    "UqevalError": "uqeval.errors",
    "UsageError": "uqeval.errors",
    "evaluate": "uqeval.usecases.evaluate",
    "fit_shards": "uqeval.usecases.rounds.fitting",
    "merge": "uqeval.usecases.merge",
    "run_config": "uqeval.usecases.run.running",
    "sweep": "uqeval.usecases.sweep.sweeping",
}
__all__ = [
    "DataError",
    "Evaluator",
    "OutputError",
    "PredictionWriter",
    "Report",
    "StoreError",
    "TemporalObserver",
    "UqevalError",
    "UsageError",
    "__version__",
    "evaluate",
    "fit_shards",
    "merge",
    "run_config",
    "sweep",
]

if TYPE_CHECKING:
    from uqeval.errors import DataError, OutputError, StoreError, UqevalError, UsageError
    from uqeval.records.report import Report
    from uqeval.usecases.evaluate import evaluate
    from uqeval.usecases.evaluator import Evaluator
    from uqeval.usecases.merge import merge
    from uqeval.usecases.observe import TemporalObserver
    from uqeval.usecases.rounds.fitting import fit_shards
    from uqeval.usecases.run.running import run_config
    from uqeval.usecases.sweep.sweeping import sweep
    from uqeval.writer import PredictionWriter


def __dir__() -> list[str]:
    """Return the public names, which completion in notebooks lists."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    import importlib

    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'uqeval' has no attribute {name!r}")
