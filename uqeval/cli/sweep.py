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
        help="Store of samples: of class probabilities (`probs`, `logits`), or of numbers "
        "(`samples`, or members' `mean` and `std`); or several: members of one ensemble. Then the "
        "labels or the target, where the store does not hold them; none for --reference alone.")]
        = None,
    metric: Annotated[list[str] | None, typer.Option(
        metavar="FAMILY", show_default=False,
        help="What to evaluate, again for more (default: segmentation and pavpu of classes; "
        "regression, sparsification and nmerci of numbers).")] = None,
    reference: Annotated[str | None, typer.Option(
        metavar="STORE", show_default=False,
        help="Evaluate the KL divergence from these predictions too; alone without labels.")]
        = None,
    samples: Annotated[str | None, typer.Option(
        metavar="1,2,4,…", show_default=False,
        help="Numbers of samples M (default: 1, 2, 4, … and all).")] = None,
    repeats: Annotated[str, typer.Option(
        metavar="R", help="Subsets drawn for each M; one number, or one for each M.")] = "8",
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    error: Annotated[str | None, typer.Option(
        metavar="ERROR", show_default=False,
        help="Of sparsification: brier or zero-one; rmse, mse, mae or abs-rel.")] = None,
    clip: Annotated[float | None, typer.Option(
        metavar="EPS", show_default=False,
        help="Of divergence: raise both to at least this probability.")] = None,
) -> None:  # fmt: skip
    """How many samples are enough? Each metric over M, mean ± std over drawn subsets.

    The stack is read once for all subsets. --csv writes one row a metric, M and draw, to plot.

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
