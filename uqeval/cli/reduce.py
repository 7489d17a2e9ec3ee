"""`uqeval reduce`: convert sample stacks to a maps store."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options
from uqeval.cli.options import completed, read_by
from uqeval.cli.streams import progress_for, tell, warn
from uqeval.disk.locks import lock
from uqeval.engine.options import MachineOptions
from uqeval.inputs import InputOptions, open_inputs


@with_options("quiet", "store", *o.READING, "class_names", *o.RUNNING)
def reduce(
    shared: Shared,
    output: Annotated[str, typer.Option(
        "-o", "--output", metavar="MAPS", help="The maps store to write (a Zarr folder).")],
    paths: o.Paths = None,
    maps: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False,
        help="Uncertainty maps to compute, and maps of the store to copy (default: all). Repeat "
        "for more.")] = None,
    mean_probs: Annotated[bool, typer.Option(
        help="Write the mean probabilities: float32, 4 bytes per class and pixel.")] = True,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing store.")] = False,
) -> None:  # fmt: skip
    """Convert sample stacks to per-pixel maps once, for all later evaluations.

    Every command that does not need single samples accepts the maps store instead of the stack,
    and gives identical results. Other maps of the store are copied: your uncertainty maps, and
    those of `--region`.

    Example: uqeval reduce preds.zarr labels/ -o maps.zarr && uqeval pavpu maps.zarr
    """
    from uqeval.disk.outputs import paths_in, refuse_overlap
    from uqeval.engine.scheduler import cluster_of
    from uqeval.usecases.reduce import reduce as write_maps

    request, _, errors = completed("reduce", shared, o.data_of(paths), {}, "PREDS [LABELS]")
    refuse_overlap([output], paths_in(read_by(request)), "give another path for the maps")
    if "://" not in output:
        lock(output)
    if request.pop("limit", None) is not None:
        warn(
            [
                "ignoring limit: of uqeval.yaml, which applies to reports; "
                "writing the maps of all items."
            ],
            shared.quiet,
        )
    predictions, labels = request.pop("predictions"), request.pop("labels")
    machine = MachineOptions(**{n: request.pop(n) for n in o.RUNNING if n in request})
    with errors, cluster_of(machine) as cluster:
        inputs = open_inputs(predictions, labels, InputOptions(**request, read_maps=maps or ()))
        write_maps(
            inputs, output, maps or None, mean_probs=mean_probs, overwrite=overwrite,
            options=machine.run(progress=progress_for(shared.quiet), cluster=cluster),
        )  # fmt: skip
    warn(inputs.warnings, shared.quiet)
    if not shared.quiet:
        tell(f"wrote {output}")
