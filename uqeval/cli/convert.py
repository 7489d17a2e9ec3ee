"""`uqeval convert`: arrays, folders of arrays or PNGs, and other Zarr stores to a checked store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from uqeval.cli.declared import Shared, with_options, without_absent
from uqeval.cli.streams import progress_for, tell, warn
from uqeval.disk.locks import lock
from uqeval.errors import UsageError
from uqeval.settings import Settings, shared_option


@dataclass(frozen=True)
class ConvertOptions(Settings):
    """The options of `uqeval convert`."""

    # fmt: off
    labels: str | None = shared_option(
        None, "Labels to add to the store: a folder of PNGs, a store or a .npy.", metavar="LABELS")
    kind: str | None = shared_option(
        None, "Content of an array without a name.",
        choices=("probs", "logits", "labels", "predictions"), shown="by its axes")
    axes: str | None = shared_option(
        None, "Order of the axes of an array without names: items N, samples T, classes C, H, W.",
        metavar="NTCHW")
    key: str | None = shared_option(
        None, "Name of the array in an .npz or Zarr group.", metavar="NAME")
    compression: str = shared_option(
        "lz4", "Compression: lz4 (fastest to read), zstd (smaller), or none.",
        choices=("lz4", "zstd", "none"))
    recommended: bool = shared_option(
        False, "Store probabilities as uint16 in steps of 1/65535 with zstd, for object stores "
        "and networks. Prints the largest change of a value.")
    overwrite: bool = shared_option(
        False, "Replace an existing store.", flags=("--overwrite/--no-overwrite",))
    # fmt: on

    def check_typed(self, typed: frozenset[str]) -> None:
        """Raise `UsageError` for options without effect; `typed`: names on the command line."""
        if self.recommended and "compression" in typed:
            raise UsageError(
                f"--compression {self.compression} has no effect with --recommended, which uses "
                "zstd; leave one of them out."
            )


@with_options("quiet", "names", "class_names", "ignore_index", "missing_chunks", of=ConvertOptions)
def convert(
    shared: Shared,
    settings: ConvertOptions,
    source: Annotated[str, typer.Argument(
        metavar="SRC", show_default=False,
        help="A .npy or .npz file, a folder of them (one per item), a folder of label PNGs, "
        "an HDF5 file, or a Zarr store to rechunk.")],
    destination: Annotated[str, typer.Argument(
        metavar="DST", show_default=False, help="The Zarr folder to write.")],
) -> None:  # fmt: skip
    """Convert saved predictions to a checked Zarr store that is fast to read.

    Example: uqeval convert softmax.npy preds.zarr --axes NTCHW --names names.txt
    """
    from uqeval.disk.outputs import refuse_overlap
    from uqeval.stores.names import read_names_file
    from uqeval.stores.writing.converted_numbers import Recoding
    from uqeval.usecases.convert import convert as write_store

    progress_bar = progress_for(shared.quiet)
    finished_items = 0

    def progress(items: int, total: int) -> None:
        nonlocal finished_items
        if finished_items == 0:
            progress_bar.begin("converting", total)
        progress_bar.advance(0, items - finished_items)
        finished_items = items

    settings.check_typed(shared.typed)
    refuse_overlap([destination], [source, settings.labels, shared.names], "choose another path")
    if "://" not in destination:
        lock(destination)
    options = without_absent(
        labels=settings.labels, kind=settings.kind, axes=settings.axes, key=settings.key,
        compression="zstd-4" if settings.recommended else settings.compression,
    ) | shared.values_of("class_names", "ignore_index")  # fmt: skip
    # An empty file is an error, as in an evaluation.
    names = None if shared.names is None else read_names_file(shared.names)
    recoding = Recoding() if settings.recommended else None
    try:
        warnings = write_store(
            source, destination, names=names, fill_missing=shared.missing_chunks == "fill",
            overwrite=settings.overwrite, recoding=recoding, progress=progress, **options,
        )  # fmt: skip
    finally:
        if finished_items:
            progress_bar.end()
    warn(warnings, shared.quiet)
    if not shared.quiet:
        tell(f"wrote {destination}{'' if recoding is None else f': {recoding.loss()}'}")
