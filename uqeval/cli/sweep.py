"""`uqeval sweep`: metrics as functions of the number of samples."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options
from uqeval.cli.options import completed
from uqeval.cli.streams import progress_for
from uqeval.config.options import SweepOptions
from uqeval.errors import UsageError

_ITEMS = ("nan_samples", "invalid", "limit", "part", "fitted")


@with_options(
    "output", "csv", "format", "quiet", "store",
    *(name for name in (*o.READING, *_ITEMS) if name != "classes"), "resume", *o.RUNNING,
    of=SweepOptions, form="values",
    help={"csv": "Write one row per metric, M and draw as CSV, for plots."},
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
    """Show how many samples are enough: each metric for M samples, mean ± std over subsets.

    Reads the stack once for all subsets.

    Example: uqeval sweep preds.zarr labels/ --samples 1,2,4,8 --csv sweep.csv
    """
    from uqeval.cli.finish import deliver, states_path
    from uqeval.usecases.sweep.sweeping import arguments
    from uqeval.usecases.sweep.sweeping import sweep as run_sweep

    if shared.resume and shared.part is None:
        raise UsageError("--resume works only for a shard of a sweep (--part K/N). Leave it out.")
    states_file = states_path(shared) if shared.part is not None else None
    request, settings, errors = completed(
        "sweep", shared, o.data_of(paths), settings, "PREDS [LABELS]", states_file
    )
    with errors:
        report = run_sweep(
            **request | arguments(settings), states=states_file, resume=shared.resume,
            progress=progress_for(shared.quiet),
        )  # fmt: skip
    deliver(report, shared)
