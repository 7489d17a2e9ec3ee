"""`uqeval tc`: is a video's segmentation consistent over time?"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from uqeval.cli import options as o
from uqeval.cli.evaluating import evaluated, shared_by
from uqeval.cli.taking import taking
from uqeval.errors import UsageError
from uqeval.metrics.temporal import CHOICES

_FLOW, _CHOICES, _TRACKS = "Optical flow", "Choices of a definition", "Long-term tracks"

_choice = o.choice_of(CHOICES)
Occlusion, Absent, Average = _choice("occlusion"), _choice("absent"), _choice("average")
Grid, Out, Definition = _choice("grid"), _choice("out_of_frame"), _choice("definition")


class Resize(StrEnum):
    """What to do about ids of another size than their frames."""

    none = "none"
    nearest = "nearest"


@taking(*(name for name in shared_by("classes") if name != "map_cache"))
def tc(
    shared: o.Shared,
    video: Annotated[str | None, typer.Argument(
        metavar="VIDEO", show_default=False,
        help="A folder with `frames/` and `predictions/` (and perhaps `labels/`), a folder of "
        "images, a store with `frames`, or a video file.")] = None,
    predictions: Annotated[list[str] | None, typer.Argument(
        metavar="[PREDS]...", show_default=False,
        help="Predictions of the frames: a folder of PNGs of class ids, or a store with "
        "`predictions`, `probs` or `logits`; give several to compare models on the same "
        "flow.")] = None,
    labels: Annotated[str | None, typer.Option(
        metavar="LABELS", show_default=False,
        help="Ground truth of the frames (some or all): mIoU_t, and its correlation with "
        "TC_t.")] = None,
    pseudo_labels: Annotated[str | None, typer.Option(
        metavar="PREDS", show_default=False,
        help="Another model's predictions in place of labels.")] = None,
    resize: Annotated[Resize, typer.Option(
        help="Ids of another size than their frames: an error, or resized by nearest "
        "neighbour.")] = Resize.none,
    flow: Annotated[list[str] | None, typer.Option(
        metavar="METHOD", show_default=False, rich_help_panel=_FLOW,
        help="farneback (default), dis (dis:medium), dis:fast, dis:ultrafast, tvl1, or file; with "
        "parameters as farneback:winsize=21; give it again for an ablation.")] = None,
    flow_scale: Annotated[list[float] | None, typer.Option(
        metavar="SCALE", show_default=False, rich_help_panel=_FLOW,
        help="Estimate on images of this part of their sides (default 1).")] = None,
    flow_path: Annotated[str | None, typer.Option(
        metavar="PATH", show_default=False, rich_help_panel=_FLOW,
        help="For --flow file: flow on frame t's grid that points to t-1, as a folder of .flo, "
        "KITTI .png, .npy or .pfm named as frame t, or an array [N-1, H, W, 2].")] = None,
    flow_forward_path: Annotated[str | None, typer.Option(
        metavar="PATH", show_default=False, rich_help_panel=_FLOW,
        help="The same on frame t-1's grid pointing to t, for --occlusion, --tracks and --grid "
        "previous.")] = None,
    flow_cache: Annotated[str | None, typer.Option(
        metavar="DIR", show_default=False, rich_help_panel=_FLOW,
        help="Keep estimated flow here (8 bytes a pixel and pair), for other models on the same "
        "frames.")] = None,
    occlusion: Annotated[Occlusion | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_FLOW,
        help="none (default), or fb: scores without the pixels that a forward-backward check calls "
        "occluded, beside the others.")] = None,
    tracks: Annotated[bool, typer.Option(
        "--tracks", rich_help_panel=_TRACKS,
        help="C26: the share of long-term tracks along which the prediction keeps its "
        "label.")] = False,
    track_step: Annotated[int | None, typer.Option(
        metavar="PIXELS", show_default=False, rich_help_panel=_TRACKS,
        help="Tracks begin on a grid this wide (default 8).")] = None,
    track_length: Annotated[int | None, typer.Option(
        metavar="FRAMES", show_default=False, rich_help_panel=_TRACKS,
        help="Shorter tracks are not counted (default 2).")] = None,
    track_everywhere: Annotated[bool, typer.Option(
        "--track-everywhere", rich_help_panel=_TRACKS,
        help="Begin tracks where the image has no structure too.")] = False,
    drop_cuts: Annotated[bool, typer.Option(
        "--drop-cuts", rich_help_panel=_CHOICES,
        help="Leave pairs that look like scene cuts out of the means.")] = False,
    absent: Annotated[list[Absent] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Classes in neither map: excluded (default), or 0; current: classes of y_t "
        "only.")] = None,
    average: Annotated[list[Average] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="mTC is the mean over pairs (default), or of pooled counts.")] = None,
    grid: Annotated[list[Grid] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Warp t-1 to the current frame (default), or t back to the previous one.")] = None,
    out_of_frame: Annotated[list[Out] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Pixels that come from outside: excluded (default), or the nearest at the "
        "border.")] = None,
    least_pixels: Annotated[int | None, typer.Option(
        metavar="N", show_default=False, rich_help_panel=_CHOICES,
        help="Leave classes of fewer pixels in y_t out of TC_t (default 0).")] = None,
    definition: Annotated[list[Definition] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Whose definition: sets the choices above as that paper or code has them; several "
        "make variants.")] = None,
) -> None:  # fmt: skip
    """TC and mTC: is a video's segmentation consistent over time?

    Warps the prediction of each frame to the next one by optical flow and compares the two; needs
    no labels. With a table of models × flows if several are given.

    Example: uqeval tc video/ --flow dis --labels labels/ -o report.json
    """
    from uqeval.engine.heap import keep_freed_memory

    keep_freed_memory()
    if (flow_path or flow_forward_path) and not any(m.startswith("file") for m in flow or ()):
        raise UsageError("--flow-path is the flow of --flow file; give that too.")
    data = o.given(
        video=video, predictions=predictions, labels=labels, pseudo_labels=pseudo_labels,
        flow_path=flow_path, flow_forward_path=flow_forward_path, flow_cache=flow_cache,
        resize=resize,
    )  # fmt: skip
    settings = o.given(
        flow=flow, flow_scale=flow_scale, occlusion=occlusion, absent=absent, average=average,
        grid=grid, out_of_frame=out_of_frame, least_pixels=least_pixels, definition=definition,
        track_step=track_step, track_length=track_length, tracks=tracks or None,
        track_everywhere=track_everywhere or None, drop_cuts=drop_cuts or None,
    )  # fmt: skip
    evaluated("tc", shared, data, settings, "VIDEO")
