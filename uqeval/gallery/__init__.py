"""Pictures of a report's items, painted from the stores that the report was made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.errors import UsageError, number_of

if TYPE_CHECKING:
    from uqeval.inputs import Given, InputOptions, Inputs
    from uqeval.report import Report
    from uqeval.report.gallery import Gallery


def open_gallery(
    report: Report,
    predictions: Given | Sequence[Given] | None,
    truth: Given | None,
    images: str | Path | None,
    options: InputOptions,
    model: str | None = None,
) -> Gallery:
    """The gallery of a report's items, from stores that the caller names.

    Paths inside a report are read out of a file and are never followed. `model`: the only one that
    is shown, of a video's report. Raises `UsageError` where the stores are of other items or models
    than the report, or of a kind that has no pictures.
    """
    from uqeval.gallery.classes import Classes
    from uqeval.gallery.numbers import Numbers
    from uqeval.gallery.paint import files_of, photo_of
    from uqeval.gallery.video import Pairs
    from uqeval.inputs import open_inputs

    inputs = open_inputs(predictions, truth, options)
    named = [str(item["name"]) for item in report.items]
    if list(inputs.source.names) != named:
        raise UsageError(
            f"{inputs.source.where} holds {number_of(len(inputs.source.names), 'item')}, the first "
            f"{inputs.source.names[0]!r}; the report is of {len(named)}, the first "
            f"{named[0] if named else '-'!r}. Give the stores that it was made of."
        )
    kinds: dict[str, Callable[[Report, Inputs, dict[str, Path]], Gallery]]
    kinds = {"classes": Classes, "regression": Numbers, "video": Pairs}
    if inputs.source.kind not in kinds:
        raise UsageError(f"--gallery shows {' and '.join(kinds)}, not {inputs.source.kind}.")
    files = files_of(images)
    if images is not None and not any(photo_of(files, name) for name in named):
        raise UsageError(
            f"--images {images}: none of its {len(files)} images is named as an item of the "
            f"report; the first item is {named[0] if named else '-'!r}. Name the files as the "
            "items, or leave --images."
        )
    if model is not None:
        if inputs.source.kind != "video":
            raise UsageError("--model is for a report of `uqeval tc`; this one is of one model.")
        return Pairs(report, inputs, files, model)
    return kinds[inputs.source.kind](report, inputs, files)
