"""`uqeval convert`: `.npy`, `.npz`, folders of arrays or PNGs, other Zarr stores → a store."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.messages import tell, warn
from uqeval.cli.taking import taking


class Kind(StrEnum):
    """What a bare array holds."""

    probs = "probs"
    logits = "logits"
    labels = "labels"
    predictions = "predictions"


class Compression(StrEnum):
    """How chunks are compressed."""

    lz4 = "lz4"
    zstd = "zstd"
    none = "none"


@taking("quiet", "names", "class_names", "missing_chunks")
def convert(
    shared: o.Shared,
    source: Annotated[str, typer.Argument(
        metavar="SRC", show_default=False,
        help="A .npy or .npz file, a folder of them (one per item), a folder of label PNGs, or "
        "a Zarr store to rechunk.")],
    destination: Annotated[str, typer.Argument(
        metavar="DST", show_default=False, help="The Zarr folder to write.")],
    labels: Annotated[str | None, typer.Option(
        metavar="LABELS", show_default=False,
        help="Labels to add to the store: a folder of PNGs, a store or a .npy.")] = None,
    kind: Annotated[Kind | None, typer.Option(
        show_default=False,
        help="Content of an array without a name (default: by its axes).")] = None,
    axes: Annotated[str | None, typer.Option(
        metavar="NTCHW", show_default=False,
        help="Order of the axes of an array without names: items N, samples T, classes C, H, "
        "W.")] = None,
    key: Annotated[str | None, typer.Option(
        metavar="NAME", show_default=False,
        help="Name of the array in an .npz or Zarr group.")] = None,
    compression: Annotated[Compression, typer.Option(
        help="Compression: lz4 (fastest to read), zstd (smaller), or none.")] = Compression.lz4,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing store.")] = False,
) -> None:  # fmt: skip
    """Convert saved predictions to a checked Zarr store that is fast to read.

    Example: uqeval convert softmax.npy preds.zarr --axes NTCHW --names names.txt
    """
    from uqeval.cli.progress import progress_for
    from uqeval.disk.locks import lock
    from uqeval.stores.convert import convert as write_store
    from uqeval.stores.overlap import refuse_overlap
    from uqeval.stores.store import read_names_file

    shown = progress_for(shared.quiet)
    done = 0

    def progress(items: int, total: int) -> None:
        nonlocal done
        if done == 0:
            shown.begin("converting", total)
        shown.advance(0, items - done)
        done = items

    refuse_overlap([destination], [source, labels, shared.names], "choose another path")
    if "://" not in destination:
        lock(destination)
    given = o.given(
        labels=labels, kind=kind, axes=axes, key=key, compression=compression,
        names=read_names_file(shared.names) if shared.names else None,
    ) | shared.given("class_names")  # fmt: skip
    try:
        warnings = write_store(
            source, destination, fill_missing=shared.missing_chunks is o.Missing.fill,
            overwrite=overwrite, progress=progress, **given,
        )  # fmt: skip
    finally:
        if done:
            shown.end()
    warn(warnings, shared.quiet)
    if not shared.quiet:
        tell(f"wrote {destination}")
