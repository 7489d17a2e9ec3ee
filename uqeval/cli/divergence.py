"""`uqeval divergence`: KL divergence to a reference predictive distribution."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o


def divergence(
    predictions: Annotated[str, typer.Argument(
        metavar="PREDS", show_default=False, help="Store of predictions.")],
    reference: Annotated[str, typer.Argument(
        metavar="REFERENCE", show_default=False,
        help="Store of the reference's predictions, for the same items.")],
    clip: Annotated[list[float] | None, typer.Option(
        metavar="EPS", show_default=False,
        help="Raise both to at least this probability and renormalise (default 0: pixels where the "
        "reference gives 0 are infinite, and counted apart).")] = None,
    output: o.Output = None,
    csv: o.Csv = None,
    format: o.Stdout = o.Format.table,
    states: o.States = None,
    quiet: o.Quiet = False,
    names: o.Names = None,
    sum_tolerance: o.SumTolerance = None,
    missing_chunks: o.MissingChunks = o.Missing.error,
    limit: o.Limit = None,
    part: o.Part = None,
    resume: o.Resume = False,
    workers: o.Workers = None,
    memory: o.Memory = "512MB",
) -> None:  # fmt: skip
    """KL(PREDS ‖ REFERENCE): how far are the predictions from a reference distribution?

    Class probabilities (of the mean over samples) or Gaussians; mean over pixels, in nats.

    Example: uqeval divergence mc.zarr ensemble.zarr
    """
    from uqeval.cli.finish import check_outputs, deliver, states_path
    from uqeval.cli.progress import progress_for
    from uqeval.run import evaluate

    beside = states_path(output, states, resume)
    check_outputs(output, csv, beside, inputs=[predictions, reference])
    inputs = o.given(
        names=names, sum_tolerance=sum_tolerance, missing_chunks=missing_chunks, limit=limit,
        part=part,
    )  # fmt: skip
    report = evaluate(
        predictions, None, {"divergence": o.given(clip=clip)}, reference=reference, states=beside,
        resume=resume, workers=workers, memory=o.parse_memory(memory),
        progress=progress_for(quiet), **inputs,
    )  # fmt: skip
    deliver(report, output, csv, format, quiet)
