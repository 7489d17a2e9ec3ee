"""`uqeval failure`: does the uncertainty find wrong pixels, or, with --images, bad items?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options
from uqeval.cli.options import evaluated, shared_by
from uqeval.errors import UsageError, cut, option_name
from uqeval.metrics.failure_settings import FailureSettings
from uqeval.metrics.image_failure_settings import ImageFailureSettings

_SAVED = (".json", ".states.zip")


@with_options(*shared_by("classes", "regression"), of=ImageFailureSettings, form="given")
def failure(
    shared: Shared,
    settings: dict[str, Any],
    paths: Annotated[list[str] | None, typer.Argument(
        metavar="PREDS... [LABELS]", show_default=False,
        help="Store of predictions: Zarr folder, .zip or URL, .npy, .npz. Several stores are "
        "members of one ensemble. The labels come last: a folder of label PNGs, a store or a "
        ".npy; omit them if the store of predictions has `labels`. With --images also a store of "
        "predicted numbers, or a REPORT with its saved states in place of both.")] = None,
    images: Annotated[bool, typer.Option(
        "--images",
        help="Rank whole items instead of pixels: risk of each item against its confidence.",
    )] = False,
) -> None:  # fmt: skip
    """Failure detection: are wrong pixels less certain than correct ones?

    Computes AUROC, AUPR, FPR95, AURC, e-AURC, AUGRC, risk at coverage, coverage at risk and
    undetected errors, over all pixels and per ground-truth class. With --images: AURC, e-AURC,
    AUGRC, AUROC and rank correlations of items, such as 1 - mIoU against mean entropy.

    Example: uqeval failure preds.zarr labels/ --uncertainty entropy --uncertainty confidence
    """
    if not images:
        _refuse_options_of_images(settings)
        evaluated("failure", shared, o.data_of(paths), settings, "PREDS [LABELS]")
    elif paths and any(path.endswith(_SAVED) for path in paths):
        _from_reports(paths, shared, settings)
    else:
        needs = "PREDS [LABELS] or REPORT"
        evaluated("image_failure", shared, o.data_of(paths), settings, needs)


def _refuse_options_of_images(settings: dict[str, Any]) -> None:
    """Raise `UsageError` for options that need --images."""
    of_pixels = FailureSettings.__dataclass_fields__
    names = [name for name in settings if name not in of_pixels or name == "definition"]
    if names:
        raise UsageError(
            f"{', '.join(map(option_name, names))} has an effect only with --images; add that, or "
            "leave it out."
        )


def _from_reports(paths: Sequence[str], shared: Shared, settings: dict[str, Any]) -> None:
    """Evaluate the items of reports from their states and records, and deliver the report."""
    from uqeval.cli.merge import deliver_merged

    strange = [path for path in paths if not path.endswith(_SAVED)]
    if strange:
        raise UsageError(
            f"{cut(strange[0])} is not a report; give only reports with saved states, or give "
            "predictions and labels."
        )
    used_options = {"output", "csv", "format", "states", "quiet", *o.CUTS}
    if unused := sorted(shared.typed & shared.option_names - used_options):
        raise UsageError(
            f"{', '.join(map(option_name, unused))} has no effect on saved reports, because their "
            "predictions are not read. Leave it out."
        )
    table = settings.get("item_table")
    deliver_merged(paths, shared, [table], metrics={"image_failure": settings})
