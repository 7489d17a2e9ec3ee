"""`uqeval reduce`: sample stacks to a maps store."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.messages import tell


def reduce(
    paths: o.Paths,
    output: Annotated[str, typer.Option(
        "-o", "--output", metavar="MAPS", help="The maps store to write (a Zarr folder).")],
    maps: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False,
        help="Uncertainties to keep (default: all defined); give it again for more.")] = None,
    mean_probs: Annotated[bool, typer.Option(
        help="Keep the mean probabilities: float32, 4 bytes a class and pixel.")] = True,
    overwrite: Annotated[bool, typer.Option(help="Replace a store that is there.")] = False,
    quiet: o.Quiet = False,
    ignore_index: o.IgnoreIndex = None,
    names: o.Names = None,
    classes: o.Classes = None,
    label_map: o.LabelMap = None,
    sum_tolerance: o.SumTolerance = None,
    missing_chunks: o.MissingChunks = o.Missing.error,
    workers: o.Workers = None,
    memory: o.Memory = "512MB",
) -> None:  # fmt: skip
    """Reduce sample stacks to per-pixel maps, once, for all later evaluations.

    Every command that needs no single samples takes the maps store in place of the stack, with the
    same bits.

    Example: uqeval reduce preds.zarr labels/ -o maps.zarr && uqeval pavpu maps.zarr
    """
    from uqeval.cli.progress import progress_for
    from uqeval.inputs import InputOptions, open_inputs
    from uqeval.reduce import reduce as write_maps
    from uqeval.run import RunOptions

    given = o.given(
        ignore_index=ignore_index, names=names, classes=classes, label_map=label_map,
        sum_tolerance=sum_tolerance, missing_chunks=missing_chunks,
    )  # fmt: skip
    predictions, labels = o.split_paths(paths)
    inputs = open_inputs(predictions, labels, InputOptions(**given))
    options = RunOptions(workers, o.parse_memory(memory), progress=progress_for(quiet))
    target = write_maps(
        inputs, output, maps or None, mean_probs=mean_probs, overwrite=overwrite, options=options
    )
    if not quiet:
        for text in inputs.warnings:
            tell(f"warning: {text}")
        tell(f"wrote {target}")
