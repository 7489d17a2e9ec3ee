"""`uqeval sweep`: the metrics as functions of the number of samples."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.errors import UsageError


def sweep(
    paths: o.Paths,
    metric: Annotated[list[str] | None, typer.Option(
        metavar="FAMILY", show_default=False,
        help="What to evaluate: segmentation, pavpu, … (default: both of these); give it again "
        "for more.")] = None,
    samples: Annotated[str | None, typer.Option(
        metavar="1,2,4,…", show_default=False,
        help="Numbers of samples M (default: 1, 2, 4, … and all).")] = None,
    repeats: Annotated[str, typer.Option(
        metavar="R", help="Subsets drawn for each M; one number, or one for each M.")] = "8",
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    output: o.Output = None,
    csv: o.Csv = None,
    format: o.Stdout = o.Format.table,
    quiet: o.Quiet = False,
    ignore_index: o.IgnoreIndex = None,
    names: o.Names = None,
    label_map: o.LabelMap = None,
    sum_tolerance: o.SumTolerance = None,
    missing_chunks: o.MissingChunks = o.Missing.error,
    limit: o.Limit = None,
    workers: o.Workers = None,
    memory: o.Memory = "512MB",
) -> None:  # fmt: skip
    """How many samples are enough? Each metric over M, mean ± std over drawn subsets.

    The stack is read once for all subsets. --csv writes one row a metric, M and draw, to plot.

    Example: uqeval sweep preds.zarr labels/ --samples 1,2,4,8 --csv sweep.csv
    """
    from uqeval.cli.finish import check_outputs, deliver
    from uqeval.cli.progress import progress_for
    from uqeval.sweep import sweep as run_sweep

    given = o.given(
        ignore_index=ignore_index, names=names, label_map=label_map,
        sum_tolerance=sum_tolerance, missing_chunks=missing_chunks, limit=limit,
    )  # fmt: skip
    check_outputs(output, csv, inputs=paths)
    predictions, labels = o.split_paths(paths)
    report = run_sweep(
        predictions, labels, metric or ("segmentation", "pavpu"),
        samples=_numbers("--samples", samples), repeats=_numbers("--repeats", repeats) or 8,
        seed=seed, workers=workers, memory=o.parse_memory(memory),
        progress=progress_for(quiet), **given,
    )  # fmt: skip
    deliver(report, output, csv, format, quiet)


def _numbers(option: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"{option} {text!r}; expected whole numbers with commas between."
        ) from None
