"""`uqeval sweep`: the metrics as functions of the number of samples."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.errors import UsageError


def sweep(
    paths: Annotated[list[str], typer.Argument(
        metavar="PREDS... [LABELS]", show_default=False,
        help="Store of samples: of class probabilities (`probs`, `logits`), or of numbers "
        "(`samples`, or members' `mean` and `std`); or several: members of one ensemble. Then the "
        "labels or the target, where the store does not hold them; none for --reference alone.")],
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
    output: o.Output = None,
    csv: o.Csv = None,
    format: o.Stdout = o.Format.table,
    quiet: o.Quiet = False,
    ignore_index: o.IgnoreIndex = None,
    names: o.Names = None,
    label_map: o.LabelMap = None,
    sum_tolerance: o.SumTolerance = None,
    missing_chunks: o.MissingChunks = o.Missing.error,
    nan_samples: o.SkipNan = o.NanSamples.error,
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
    from uqeval.sweeping import sweep as run_sweep

    given = o.given(
        ignore_index=ignore_index, names=names, label_map=label_map,
        sum_tolerance=sum_tolerance, missing_chunks=missing_chunks,
        nan_samples=nan_samples, limit=limit,
    )  # fmt: skip
    check_outputs(output, csv, inputs=[*paths, *([reference] if reference else [])])
    predictions, labels = o.split_paths(paths)
    report = run_sweep(
        predictions, labels, metric or None, reference=reference,
        settings={"sparsification": o.given(error=error), "divergence": o.given(clip=clip)},
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
