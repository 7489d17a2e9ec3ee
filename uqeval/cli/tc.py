"""`uqeval tc`: measure whether a video's segmentation is consistent over time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from uqeval.cli.declared import Shared, without_absent
from uqeval.cli.options import evaluated, of_family, shared_by
from uqeval.errors import UsageError, option_name
from uqeval.inputs.options import OF_VIDEO

#: Maps of pairs are not cached, and several annotators have no mIoU of a frame.
_OF_IMAGES = ("map_cache", "annotator_folders")


@of_family(
    "tc", *(name for name in shared_by("classes") if name not in _OF_IMAGES),
    *(name for name in OF_VIDEO if name != "video"),
)  # fmt: skip
def tc(
    shared: Shared,
    settings: dict[str, Any],
    video: Annotated[str | None, typer.Argument(
        metavar="VIDEO", show_default=False,
        help="A folder with `frames/` and `predictions/` (optionally `labels/`), a folder of "
        "images, a store with `frames`, or a video file.")] = None,
    predictions: Annotated[list[str] | None, typer.Argument(
        metavar="[PREDS]...", show_default=False,
        help="Predictions of the frames: a folder of PNGs of class ids, or a store with "
        "`predictions`, `probs` or `logits`. Give several to compare models on the same "
        "flow.")] = None,
    labels: Annotated[str | None, typer.Option(
        metavar="LABELS", show_default=False,
        help="Labels of some or all frames, to compute mIoU_t and its correlation with "
        "TC_t.")] = None,
) -> None:  # fmt: skip
    """TC and mTC: is a video segmentation stable over time?

    Warps the prediction of each frame to the next one by optical flow and compares the two. Needs
    no labels. Several models or flows give a table of models × flows.

    Example: uqeval tc video/ --flow dis --labels labels/ -o report.json
    """
    from uqeval.engine.heap import keep_freed_memory

    keep_freed_memory()
    saved = [option_name(n) for n in ("flow_path", "flow_forward_path") if getattr(shared, n)]
    if saved and not any(m.startswith("file") for m in settings.get("flow", ())):
        raise UsageError(f"{saved[0]} needs --flow file; give that too.")
    of_video = shared.values_of(*OF_VIDEO)
    data = without_absent(video=video, predictions=predictions, labels=labels) | of_video
    evaluated("tc", shared, data, settings, "VIDEO")
