"""`uqeval tc`: is a video's segmentation consistent over time?"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.evaluating import evaluated, of_family, shared_by
from uqeval.errors import UsageError


class Resize(StrEnum):
    """What to do about ids of another size than their frames."""

    none = "none"
    nearest = "nearest"


_FLOW = "Optical flow"


@of_family("tc", *(name for name in shared_by("classes") if name != "map_cache"))
def tc(
    shared: o.Shared,
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
        help="Labels of some or all frames: adds mIoU_t and its correlation with TC_t.")] = None,
    pseudo_labels: Annotated[str | None, typer.Option(
        metavar="PREDS", show_default=False,
        help="Use the predictions of another model as labels.")] = None,
    resize: Annotated[Resize, typer.Option(
        help="Class ids whose size differs from their frames: an error, or resize by nearest "
        "neighbour.")] = Resize.none,
    flow_path: Annotated[str | None, typer.Option(
        metavar="PATH", show_default=False, rich_help_panel=_FLOW,
        help="With --flow file: flow on the grid of frame t that points to t-1. A folder of "
        ".flo, KITTI .png, .npy or .pfm files named as frame t, or an array [N-1, H, W, "
        "2].")] = None,
    flow_forward_path: Annotated[str | None, typer.Option(
        metavar="PATH", show_default=False, rich_help_panel=_FLOW,
        help="The same on the grid of frame t-1, pointing to t; for --occlusion, --tracks and "
        "--grid previous.")] = None,
    flow_cache: Annotated[str | None, typer.Option(
        metavar="DIR", show_default=False, rich_help_panel=_FLOW,
        help="Cache the estimated flow here (8 bytes per pixel and pair), for other models on "
        "the same frames.")] = None,
) -> None:  # fmt: skip
    """TC and mTC: is a video segmentation stable over time?

    Warps the prediction of each frame to the next one by optical flow and compares the two. Needs
    no labels. Several models or flows give a table of models × flows.

    Example: uqeval tc video/ --flow dis --labels labels/ -o report.json
    """
    from uqeval.engine.heap import keep_freed_memory

    keep_freed_memory()
    if (flow_path or flow_forward_path) and not any(
        m.startswith("file") for m in settings.get("flow", ())
    ):
        raise UsageError("--flow-path is the flow of --flow file; give that too.")
    data = o.given(
        video=video, predictions=predictions, labels=labels, pseudo_labels=pseudo_labels,
        flow_path=flow_path, flow_forward_path=flow_forward_path, flow_cache=flow_cache,
        resize=resize,
    )  # fmt: skip
    evaluated("tc", shared, data, settings, "VIDEO")
