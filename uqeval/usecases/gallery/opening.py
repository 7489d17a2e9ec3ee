"""Pictures of a report's items, made from the stores of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from uqeval.errors import UsageError, listed, number_of, quoted
from uqeval.records.inputs import has_no_fingerprint

if TYPE_CHECKING:
    from uqeval.inputs import Given, InputOptions, Inputs
    from uqeval.records.report import Report
    from uqeval.report.page.gallery import Picture


class Painter(Protocol):
    """Painter of the pictures of items; `legend` has the meanings of their colours."""

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return colours and their meaning."""

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of one item. Raises `UqevalError`."""


def open_gallery(
    report: Report,
    predictions: Given | Sequence[Given] | None,
    truth: Given | None,
    images: str | Path | None,
    options: InputOptions,
    model: str | None = None,
    maps: Sequence[str] = (),
) -> Pictures:
    """Return the gallery of a report's items, from stores that the caller names.

    Never opens the paths inside a report, because reports may be forged. `model`: for the report of
    a video, the only model to show. `maps`: the pictures to show, by name. Raises `UsageError`
    where the stores are of other items or models than the report, or of a kind that has no
    pictures.
    """
    from uqeval.inputs import open_inputs
    from uqeval.usecases.plans import inputs_for

    inputs = open_inputs(predictions, truth, inputs_for(report.settings, options, maps))
    _refuse_without_truth(inputs)
    return gallery_of(report, inputs, images, model, maps)


def _refuse_without_truth(inputs: Inputs) -> None:
    """Raise `UsageError` for images without labels, or numbers without a target."""
    source = inputs.source
    kind = {"classes": "labels", "regression": "target"}.get(source.kind)
    if kind is None or inputs.record.get(kind) is not None:
        return
    files = {
        "labels": "a folder of label PNGs, or a store with `labels`",
        "target": "a store with `target`, a .npy, or a folder of 16-bit PNGs, .npy or .pfm files",
    }  # fmt: skip
    raise UsageError(
        f"{source.where} has no {kind}, which pictures show with the errors. Give --{kind} "
        f"{kind.upper()}: {files[kind]}."
    )


def gallery_of(
    report: Report,
    inputs: Inputs,
    images: str | Path | None = None,
    model: str | None = None,
    maps: Sequence[str] = (),
) -> Pictures:
    """Return the gallery of a report's items from opened inputs."""
    from uqeval.usecases.gallery.classes import Classes
    from uqeval.usecases.gallery.numbers import Numbers
    from uqeval.usecases.gallery.paint import images_of, warnings_of_images
    from uqeval.usecases.gallery.video import Pairs

    item_names = list(report.item_names)
    if list(inputs.source.names) != item_names:
        raise UsageError(
            f"{inputs.source.where} holds {number_of(len(inputs.source.names), 'item')}, the "
            f"first {quoted(inputs.source.names[0])}; the report is of {len(item_names)}, the "
            f"first {quoted(item_names[0] if item_names else '-')}. Give the stores of the report."
        )
    kinds: dict[str, Callable[[Report, Inputs, dict[str, Path], Sequence[str]], Painter]]
    kinds = {"classes": Classes, "regression": Numbers}
    if inputs.source.kind not in (*kinds, "video"):
        raise UsageError(f"--gallery shows {', '.join(kinds)} and video, not {inputs.source.kind}.")
    files = images_of(images, item_names)
    doubts = [text for text in warnings_of_images(images, files) if text not in report.warnings]
    notes = [other_data(report.inputs, inputs.record), *doubts]
    note = " ".join(filter(None, notes))
    if inputs.source.kind == "video":
        return Pictures(Pairs(report, inputs, model), inputs, note)
    if model is not None:
        raise UsageError("--model is for a report of `uqeval tc`; this one is of one model.")
    return Pictures(kinds[inputs.source.kind](report, inputs, files, maps), inputs, note)


@dataclass(frozen=True)
class Pictures:
    """A gallery that raises `ChangedError` if its data change while they are read.

    `note`: sentences about stores that differ from those of the report, and about images that may
    be of other items; empty if there are none.
    """

    painter: Painter
    inputs: Inputs
    note: str

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return colours and their meaning."""
        return self.painter.legend

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of one item. Raises `UqevalError`."""
        with self.inputs.watch.reading((item,)):
            return self.painter.pictures(item)


def other_data(of_report: Mapping[str, Any], of_gallery: Mapping[str, Any]) -> str:
    """Return a note about stores whose fingerprint differs from the report; empty if all agree."""
    differing_paths = []
    for kind in ("frames", "predictions", "reference", "labels", "target", "flow"):
        gallery_stores, then = (_stores(record.get(kind)) for record in (of_gallery, of_report))
        now, before = (
            [store.get("fingerprint") for store in own] for own in (gallery_stores, then)
        )
        is_unknown = any(map(has_no_fingerprint, (*gallery_stores, *then)))
        if then and (is_unknown or now != before):
            differing_paths += [str(store.get("path")) for store in gallery_stores] or [
                f"no {kind}"
            ]
    if not differing_paths:
        return ""
    return (
        f"{listed(dict.fromkeys(differing_paths))}: the fingerprint differs from the report's, or "
        "is unknown: the data were changed or copied, or are other data. The pictures may not "
        "match the scores. Evaluate again to be certain."
    )


def _stores(record: Any) -> list[Mapping[str, Any]]:
    stores = record if isinstance(record, list) else [record]
    return [store for store in stores if isinstance(store, Mapping)]
