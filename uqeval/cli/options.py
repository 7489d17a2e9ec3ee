"""Groups of shared options, and the paths of predictions and labels on the command line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uqeval.engine.options import MachineOptions
from uqeval.errors import UsageError, listed, option_name
from uqeval.inputs.options import InputOptions
from uqeval.settings import options_of
from uqeval.statistics.options import CutOptions

if TYPE_CHECKING:
    from uqeval.stores.contents import Contents


def _paths(shown: str, text: str) -> Any:
    """Return the declaration of the paths of a command: their names in help, and its text."""
    return typer.Argument(metavar=shown, help=text, show_default=False)


Paths = Annotated[
    list[str] | None,
    _paths(
        "PREDS... [LABELS]",
        "Store of predictions: Zarr folder, .zip or URL, .npy, .npz. Several stores are "
        "members of one ensemble. The labels come last: a folder of label PNGs, a store or a "
        ".npy; omit them if the store of predictions has `labels`.",
    ),
]
TargetPaths = Annotated[
    list[str] | None,
    _paths(
        "PREDS... [TARGET]",
        "Store of predictions (Zarr folder, .zip or URL, or .npz) with `mean` and `std` "
        "or `variance`, or `samples`. Several stores are members of one ensemble. The target "
        "comes last: a store, a .npy, or a folder of 16-bit KITTI PNGs, .npy or .pfm files; omit "
        "it if the store of predictions has it.",
    ),
]
#: The same for commands that also evaluate classes.
ClassOrTargetPaths = Annotated[
    list[str] | None,
    _paths(
        "PREDS... [TARGET]",
        "Store of predictions (Zarr folder, .zip or URL, .npy or .npz): class probabilities, "
        "or numbers (`mean` and `std` or `variance`, or `samples`). Several stores are members of "
        "one ensemble. The labels or the target come last: a folder of label PNGs, 16-bit KITTI "
        "PNGs, .npy or .pfm files, a store or a .npy; omit them if the store of predictions has "
        "them.",
    ),
]


#: Outputs and their format.
OUTPUTS = ("output", "csv", "format", "states", "quiet")
#: Input options, without those of videos and of out-of-distribution sets.
INPUTS = tuple(
    n for n, option in options_of(InputOptions).items() if option.data not in ("video", "ood")
)
#: The same without options of items and targets.
READING = tuple(
    n for n in INPUTS
    if n not in (
        "class_names", "nan_samples", "invalid", "limit", "part", "fitted", "region", "depth_map",
        "baseline_focal", "disparity", "median_scaling", "map_cache",
    )
)  # fmt: skip
#: Intervals and slices, which are computed from the states.
CUTS = tuple(options_of(CutOptions))
#: Threads, memory and resuming.
RUNNING = tuple(options_of(MachineOptions))


def data_of(paths: list[str] | None) -> dict[str, Any]:
    """Return predictions and labels as `uqeval.evaluate` takes them; empty without paths."""
    if not paths:
        return {}
    predictions, labels = split_paths(paths)
    return {"predictions": predictions, "labels": labels}


def refuse_draws_without_level(typed: Collection[str], ci: float | None) -> None:
    """Raise `UsageError` for options of intervals on the command line if there are no intervals.

    Also for a typed default value: a user who gives `--draws 2000` expects intervals.
    """
    interval_options = ("draws", "seed", "interval_method")
    typed_options = [option_name(name) for name in interval_options if name in typed]
    if typed_options and ci is None:
        raise UsageError(
            f"no effect without intervals: {' and '.join(typed_options)}; give --ci LEVEL, such as "
            f"--ci 0.95, or leave out {' and '.join(typed_options)}."
        )


def split_paths(
    paths: Sequence[str | Contents], labels_alone: bool = False
) -> tuple[list[Contents], Contents | None]:
    """Open the paths: predictions, then labels or a target if the last path holds these.

    The kind of files, the name, the dtype and the axes of an array decide, never its values. Raises
    `UsageError` for labels or a target before the last path, or without predictions; `StoreError`
    for a path that cannot be opened.
    """
    from uqeval.stores.store import contents_of

    stores = [contents_of(path) for path in paths]
    for store in stores[:-1] or stores:
        _refuse_video(store)
    truth = [store.is_truth() for store in stores]
    if len(stores) == 1 and truth[0] and labels_alone:
        return stores, None
    if len(stores) == 1 and truth[0]:
        raise UsageError(
            f"{stores[0]} holds {_noun(stores[0])}; give the predictions before them."
            + _how_to_name_or_pack(stores)
        )
    if any(truth[:-1]) and not _predictions_of(stores):
        wrong = stores[truth.index(True)]
        noun = _noun(wrong)
        raise UsageError(
            f"{wrong} holds {noun}, and {stores[-1]} follows it; give one store of {noun}, after "
            "all predictions." + _how_to_name_or_pack(stores)
        )
    if truth[-1]:
        return stores[:-1], stores[-1]
    return stores, None


def _refuse_video(store: Contents) -> None:
    """Raise `UsageError` for frames of a video in place of predictions."""
    if not (Path(store.path) / "frames").is_dir() and "frames" not in store.kinds:
        return
    from uqeval.inputs.video_stores import frames_in, has_predictions

    if what := frames_in(store):
        video = quote(store.path)
        advice = (
            f"Check it with `uqeval inspect {video}`, or evaluate it with `uqeval tc {video}`."
            if has_predictions(store.path)
            else f"Give its predictions after it: `uqeval inspect {video} PREDS` checks both, "
            f"`uqeval tc {video} PREDS` evaluates them."
        )
        raise UsageError(f"{store} has {what}, so it looks like a video. {advice}")


def _predictions_of(stores: Sequence[Contents]) -> bool:
    """Return whether all stores but the last hold class predictions, and the last one labels.

    A store alone may be either. Ids before ids are predicted classes; numbers [N, C] or [N, T, C]
    before ids are class probabilities.
    """
    *before, last = stores
    if not last.is_labels():
        return False
    if before[0].is_labels():
        return len(before) == 1 and before[0].may_be_predictions()
    return all(
        not store.is_truth() or (store.may_be_predictions() and not store.is_labels())
        for store in before
    )


def _how_to_name_or_pack(stores: Sequence[Contents]) -> str:
    """Return a hint for a target without predictions of a known name, for separate files of mean
    and standard deviation, or for a lost item axis."""
    for store in stores:
        if store.is_truth() and (store.kinds - {"target", "valid", "labels", "names"}):
            return (
                f" {store} holds {listed(sorted(store.kinds), 12)}. Predicted numbers are arrays "
                "called `mean` (with `std`, …) or `samples`, class predictions `probs` or `logits`."
            )
    loose = [store for store in stores if _noun(store) == "targets" and _is_loose(store.path)]
    if not loose:
        return ""
    hint = (
        " A folder of .npy files holds targets, one file per item, unless its folders are called "
        "mean/, std/ and target/."
    )
    if loose[0].unnamed is not None:
        shape = loose[0].unnamed.shape
        hint = (
            f" This array has the shape {shape}. An array without a class axis is a target; class "
            "probabilities have 4 or 5 axes, [item, (sample,) class, y, x]"
            + (": is the item axis missing?" if len(shape) == 3 else ".")
            + " Probabilities of image classification, [N, C] or [N, T, C], need their labels [N] "
            "as the last path."
        )
    return hint + (
        " Predicted numbers are one store with `mean` and `std` (or `variance`, or `samples`), "
        "[N, H, W] each: put your arrays into one with "
        'numpy.savez("preds.npz", mean=mean, std=std), and give preds.npz.'
    )


def _is_loose(path: str) -> bool:
    """Return whether a path is a .npy file, or a folder with such files."""
    return path.endswith(".npy") or any(Path(path).rglob("*.npy"))


def _noun(store: Contents) -> str:
    return "labels" if store.is_labels() else "targets"
