"""`uqeval sweep`: metrics as functions of the number of samples."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options
from uqeval.cli.evaluating import completed
from uqeval.config.options import SweepOptions


@with_options(
    "output", "csv", "format", "quiet", "store",
    *(name for name in (*o.READING, "nan_samples", "invalid", "limit") if name != "classes"),
    *o.RUNNING, of=SweepOptions, form="values",
)  # fmt: skip
def sweep(
    shared: Shared,
    settings: dict[str, Any],
    paths: Annotated[list[str] | None, typer.Argument(
        metavar="PREDS... [LABELS]", show_default=False,
        help="Store of samples: class probabilities (`probs`, `logits`) or numbers (`samples`, "
        "or `mean` and `std` of members). Several stores are members of one ensemble. The "
        "labels or the target come last, if the store does not have them; not needed for "
        "--reference alone.")]
        = None,
) -> None:  # fmt: skip
    """Show how many samples are enough: each metric over M, mean ± std over drawn subsets.

    Reads the stack once for all subsets. --csv writes one row per metric, M and draw, for plots.

    Example: uqeval sweep preds.zarr labels/ --samples 1,2,4,8 --csv sweep.csv
    """
    from uqeval.cli.finish import deliver
    from uqeval.cli.streams import progress_for
    from uqeval.usecases.sweep import arguments
    from uqeval.usecases.sweep import sweep as run_sweep

    request, settings = completed("sweep", shared, o.data_of(paths), settings, "PREDS [LABELS]")
    report = run_sweep(**request | arguments(settings), progress=progress_for(shared.quiet))
    deliver(report, shared)
