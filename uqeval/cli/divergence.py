"""`uqeval divergence`: KL divergence to a reference predictive distribution."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, without_absent
from uqeval.cli.options import evaluated, of_family
from uqeval.errors import UsageError
from uqeval.inputs.options import OF_REFERENCE


@of_family(
    "divergence", *o.OUTPUTS, "store", *OF_REFERENCE, *o.CUTS, "map_cache", "resume", *o.RUNNING,
)  # fmt: skip
def divergence(
    shared: Shared,
    settings: dict[str, Any],
    predictions: Annotated[str | None, typer.Argument(
        metavar="PREDS", show_default=False, help="Store of predictions.")] = None,
    reference: Annotated[str | None, typer.Argument(
        metavar="REFERENCE", show_default=False,
        help="Store of the reference predictions for the same items.")] = None,
) -> None:  # fmt: skip
    """KL(PREDS ‖ REFERENCE): how far are the predictions from a reference distribution?

    For class probabilities (mean over samples) or Gaussians. Gives the mean over pixels in nats.
    Pixels with a void label count too.

    Example: uqeval divergence mc.zarr ensemble.zarr
    """
    if predictions is not None and reference is None:
        raise UsageError(f"no REFERENCE given with {predictions}; give PREDS REFERENCE.")
    data = without_absent(predictions=predictions, reference=reference)
    evaluated("divergence", shared, data, settings, "PREDS REFERENCE")
