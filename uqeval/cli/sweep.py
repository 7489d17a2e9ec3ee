"""`uqeval sweep`: the metrics as functions of the number of samples."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.evaluating import completed
from uqeval.cli.taking import taking


@taking(
    "output", "csv", "format", "quiet", "store",
    *(name for name in (*o.READING, "nan_samples", "invalid", "limit") if name != "classes"),
    *o.RUNNING,
)  # fmt: skip
def sweep(
    shared: o.Shared,
    paths: Annotated[list[str] | None, typer.Argument(
        metavar="PREDS... [LABELS]", show_default=False,
        help="Store of samples: class probabilities (`probs`, `logits`) or numbers (`samples`, "
        "or `mean` and `std` of members). Several stores are members of one ensemble. The "
        "labels or the target come last, if the store does not have them; not needed for "
        "--reference alone.")]
        = None,
    metric: Annotated[list[str] | None, typer.Option(
        metavar="FAMILY", show_default=False,
        help="Metric family to evaluate. Repeat for more (default: segmentation and pavpu for "
        "classes; regression, sparsification and nmerci for regression).")] = None,
    reference: Annotated[str | None, typer.Option(
        metavar="STORE", show_default=False,
        help="Also compute the KL divergence from these predictions; without labels, only that.")]
        = None,
    samples: Annotated[str | None, typer.Option(
        metavar="1,2,4,…", show_default=False,
        help="Numbers of samples M (default: 1, 2, 4, … and all).")] = None,
    repeats: Annotated[str, typer.Option(
        metavar="R", help="Number of subsets for each M: one number, or one per M.")] = "8",
    seed: Annotated[int, typer.Option(help="Seed of the subsets.")] = 0,
    error: Annotated[str | None, typer.Option(
        metavar="ERROR", show_default=False,
        help="Error measure of sparsification: brier or zero-one; rmse, mse, mae or abs-rel.")]
        = None,
    clip: Annotated[float | None, typer.Option(
        metavar="EPS", show_default=False,
        help="For divergence: raise both probabilities to at least EPS.")] = None,
) -> None:  # fmt: skip
    """Show how many samples are enough: each metric over M, mean ± std over drawn subsets.

    Reads the stack once for all subsets. --csv writes one row per metric, M and draw, for plots.

    Example: uqeval sweep preds.zarr labels/ --samples 1,2,4,8 --csv sweep.csv
    """
    from uqeval.cli.finish import deliver
    from uqeval.cli.progress import progress_for
    from uqeval.usecases.sweep import arguments
    from uqeval.usecases.sweep import sweep as run_sweep

    settings = o.given(
        metric=metric, reference=reference, samples=samples, repeats=repeats, seed=seed,
        error=error, clip=clip,
    )  # fmt: skip
    asked, settings = completed("sweep", shared, o.data_of(paths), settings, "PREDS [LABELS]")
    report = run_sweep(**asked | arguments(settings), progress=progress_for(shared.quiet))
    deliver(report, shared)
