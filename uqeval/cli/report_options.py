"""The options of `uqeval report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uqeval.errors import UsageError
from uqeval.inputs.options import InputOptions
from uqeval.settings import Settings, same_option, shared_option

_FIGURES, _GALLERY, _ITEMS = "Figures", "Gallery", "Figures of items"
_TRACKERS = "Experiment trackers"


@dataclass(frozen=True)
class ReportOptions(Settings):
    """The options of `uqeval report`."""

    # fmt: off
    output: str | None = shared_option(
        None, "Write the page to FILE; - is stdout.", flags=("-o", "--output"), metavar="FILE",
        panel="Output", shown="the report's name with .html; for several reports "
        "comparison.html, in their folder or, if they have several, in the working folder")
    verdicts: str | None = shared_option(
        None, "Show the verdicts that `uqeval gate -o FILE` wrote for the report.", metavar="FILE")
    figures: str | None = shared_option(
        None, "Also write the figures to this folder.", metavar="DIR", panel=_FIGURES)
    figure_format: Sequence[str] = shared_option(
        (), "File format of the figures. Repeat for more.", choices=("svg", "png", "pdf"),
        list_by="repeat", panel=_FIGURES, shown="svg", needs="figures")
    gallery: int = shared_option(
        0, "Show pictures of the N worst items, and of some good ones.", metavar="N", least=0,
        panel=_GALLERY, common=True)
    item: Sequence[str] = shared_option(
        (), "Also write a figure with the maps of this item to the folder of --figures. Repeat for "
        "more. With several reports, the figure has the maps of all.", metavar="NAME",
        list_by="repeat", panel=_ITEMS, needs="figures")
    maps: str | None = shared_option(
        None, "Maps to show, such as image,prediction,errors or image,error,sigma; also accurate, "
        "uncertain, entropy, entropy:log, entropy:p95, entropy:class-p95.", metavar="A,B,…",
        panel=_ITEMS, shown="all", needs="item")
    by: Sequence[str] = shared_option(
        (), "Add this score of the item to its figure, such as pavpu.pavpu. Repeat for more. "
        "With several reports, the first --by sorts them, the best first.", metavar="FIELD",
        list_by="repeat", panel=_ITEMS, needs="item")
    frames: int | None = shared_option(
        None, "Video: show N frames that end at the item, and the predictions of each model.",
        metavar="N", least=2, most=8, panel=_ITEMS, shown="3", needs="item")
    box: Sequence[str] = shared_option(
        (), "Draw a box, in fractions of the image. Repeat for more.", metavar="Y0:Y1,X0:X1",
        list_by="repeat", panel=_ITEMS, needs="item")
    predictions: Sequence[str] = shared_option(
        (), "The predictions of the report. Repeat for the members of an ensemble; with several "
        "reports, give one for each, in their order.",
        metavar="STORE", list_by="repeat", panel=_GALLERY)
    video: str | None = shared_option(
        None, "The video of a `uqeval tc` report; it may contain the predictions.",
        metavar="VIDEO", panel=_GALLERY)
    model: str | None = shared_option(
        None, "Show only this model of a `uqeval tc` report.", metavar="NAME", panel=_GALLERY,
        shown="all")
    labels: str | None = shared_option(
        None, "Labels or target, if the store of predictions does not have them.",
        flags=("--labels", "--target"), metavar="STORE", panel=_GALLERY)
    images: str | None = shared_option(
        None, "Folder of the input images, with files named as the items.", metavar="DIR",
        panel=_GALLERY)
    single_file: bool = shared_option(
        False, "Embed all pictures in the page.", panel=_GALLERY,
        shown="above 3.5 MB they are files in a folder next to it")
    tensorboard: str | None = shared_option(
        None, "Also log scores, figures, settings and the page to TensorBoard, in this folder.",
        metavar="DIR", panel=_TRACKERS)
    mlflow: str | None = shared_option(
        None, "Also log them to this MLflow experiment, on the server of MLFLOW_TRACKING_URI.",
        metavar="NAME", panel=_TRACKERS)
    wandb: str | None = shared_option(
        None, "Also log them to this Weights & Biases project; WANDB_MODE=offline keeps them "
        "on this machine.", metavar="NAME", panel=_TRACKERS)
    fiftyone: str | None = shared_option(
        None, "Also write all items, with scores and maps, to this new dataset of FiftyOne; needs "
        "--images and --predictions.", metavar="NAME", panel=_TRACKERS)
    step: int | None = shared_option(
        None, "Step of the logged scores, such as the epoch.", metavar="N", least=0,
        panel=_TRACKERS, shown="0")
    quiet: bool = shared_option(
        False, "Print no messages.", flags=("-q", "--quiet"), panel="Output")
    names: str | None = same_option(InputOptions, "names")
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step is not None and not self.tracks:
            raise UsageError(
                "--step has an effect only with --tensorboard, --mlflow or --wandb; give one."
            )

    @property
    def tracks(self) -> bool:
        """Return whether reports go to an experiment tracker."""
        return not {self.tensorboard, self.mlflow, self.wandb} <= {None}

    @property
    def files(self) -> list[str | None]:
        """Return the files, other than the reports, that are read."""
        return [
            self.verdicts, self.video, self.labels, self.images, self.names, *self.predictions
        ]  # fmt: skip
