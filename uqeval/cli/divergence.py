"""`uqeval divergence`: KL divergence to a reference predictive distribution."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.evaluating import evaluated
from uqeval.cli.taking import taking
from uqeval.errors import UsageError


@taking(
    *o.OUTPUTS, "store", "names", "kind", "axes", "sum_tolerance", "missing_chunks", "invalid",
    "limit", "part", *o.CUTS, "map_cache", "resume", *o.RUNNING,
)  # fmt: skip
def divergence(
    shared: o.Shared,
    predictions: Annotated[str | None, typer.Argument(
        metavar="PREDS", show_default=False, help="Store of predictions.")] = None,
    reference: Annotated[str | None, typer.Argument(
        metavar="REFERENCE", show_default=False,
        help="Store of the reference's predictions, for the same items.")] = None,
    clip: Annotated[list[float] | None, typer.Option(
        metavar="EPS", show_default=False,
        help="Raise both to at least this probability and renormalise (default 0: pixels where the "
        "reference gives 0 are infinite, and counted apart).")] = None,
) -> None:  # fmt: skip
    """KL(PREDS ‖ REFERENCE): how far are the predictions from a reference distribution?

    Class probabilities (of the mean over samples) or Gaussians; mean over pixels, in nats.

    Example: uqeval divergence mc.zarr ensemble.zarr
    """
    if predictions is not None and reference is None:
        raise UsageError(f"no REFERENCE given beside {predictions}; give PREDS REFERENCE.")
    data = o.given(predictions=predictions, reference=reference)
    evaluated("divergence", shared, data, o.given(clip=clip), "PREDS REFERENCE")
