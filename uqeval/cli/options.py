"""Groups of shared options, and the paths of predictions and labels on the command line."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

import typer

from uqeval.engine.options import MachineOptions
from uqeval.errors import UsageError
from uqeval.inputs.options import InputOptions
from uqeval.settings import option_name, options_of
from uqeval.statistics.options import CutOptions

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PREDS... [LABELS]",
        help="Store of predictions: Zarr folder, .zip or URL, .npy, .npz. Several stores are "
        "members of one ensemble. The labels come last: a folder of label PNGs, a store or a "
        ".npy; omit them if the store of predictions has `labels`.",
        show_default=False,
    ),
]
TargetPaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PREDS... [TARGET]",
        help="Store of predictions (Zarr folder, .zip or URL, or .npz) with `mean` and `std` "
        "or `variance`, or `samples`. Several stores are members of one ensemble. The target "
        "comes last: a store, a .npy, or a folder of 16-bit KITTI PNGs, .npy or .pfm files "
        "(label PNGs for classes); omit it if the store of predictions has it.",
        show_default=False,
    ),
]


#: Where a report goes, and what is printed.
OUTPUTS = ("output", "csv", "format", "states", "quiet")
#: Which inputs are read and how, for data of every kind but video.
INPUTS = tuple(n for n, own in options_of(InputOptions).items() if own.data != "video")
#: The same without what concerns items and targets: how any store is read.
READING = tuple(
    n for n in INPUTS
    if n not in ("class_names", "nan_samples", "invalid", "limit", "part", "region", "map_cache")
)  # fmt: skip
#: What is computed from the states.
CUTS = tuple(options_of(CutOptions))
#: How the machine is used.
RUNNING = tuple(options_of(MachineOptions))


def data_of(paths: list[str] | None) -> dict[str, Any]:
    """Predictions and labels as `uqeval.evaluate` takes them; nothing where there are no paths."""
    if not paths:
        return {}
    predictions, labels = split_paths(paths)
    return {"predictions": predictions, "labels": labels}


def refuse_draws_without_level(typed: Collection[str], ci: float | None) -> None:
    """Raise `UsageError` for options of intervals on the command line where there are none.

    Typed defaults too: who gives `--draws 2000` expects intervals.
    """
    named = ("draws", "seed", "interval_method")
    given = [option_name(name) for name in named if name in typed]
    if given and ci is None:
        raise UsageError(
            f"{' and '.join(given)}: intervals are drawn so, and there are none without a level; "
            f"give --ci LEVEL, such as --ci 0.95, or leave out {' and '.join(given)}."
        )


def split_paths(paths: list[str], labels_alone: bool = False) -> tuple[list[str], str | None]:
    """Predictions, and the ground truth if the last path holds labels or a target.

    Decided by what the path holds (PNG, .npy or .pfm files, an array called `labels` or `target`,
    ids or numbers without a class axis), never by its values. Raises `UsageError` where ground
    truth stands anywhere but last, or alone.
    """
    from uqeval.stores.store import looks_like_truth

    kinds = [looks_like_truth(path) for path in paths]
    if len(paths) == 1 and kinds[0] and labels_alone:
        return paths, None
    if len(paths) == 1 and kinds[0]:
        raise UsageError(
            f"{paths[0]} holds {_noun(paths[0])}; give the predictions before them."
            + _how_to_pack(paths)
        )
    if any(kinds[:-1]) and not _predictions_of(paths):
        wrong = paths[kinds.index(True)]
        noun = _noun(wrong)
        raise UsageError(
            f"{wrong} holds {noun}; give one store of {noun}, after all predictions."
            + _how_to_pack(paths)
        )
    if kinds[-1]:
        return paths[:-1], paths[-1]
    return paths, None


def _predictions_of(paths: list[str]) -> bool:
    """Whether all paths but the last are predictions of classes, and the last one their labels.

    Decided together, since each of them alone may be either: ids before ids are predicted;
    numbers [N, C] or [N, T, C] before ids are class probabilities.
    """
    from uqeval.stores.store import looks_like_labels, looks_like_truth, may_be_predictions

    *before, last = paths
    if not looks_like_labels(last):
        return False
    if looks_like_labels(before[0]):
        return len(before) == 1 and may_be_predictions(before[0])
    return all(
        not looks_like_truth(path) or (may_be_predictions(path) and not looks_like_labels(path))
        for path in before
    )


def _how_to_pack(paths: list[str]) -> str:
    """A hint for mean and standard deviation in files of their own, or for a lost item axis."""
    from uqeval.stores.numpy_array import open_npy

    loose = [path for path in paths if _noun(path) == "targets" and _is_loose(path)]
    if not loose:
        return ""
    hint = " A folder of .npy files is targets, one an item."
    if loose[0].endswith(".npy"):
        shape = open_npy(loose[0]).shape
        hint = (
            f" An array without a class axis is a target, and this one has the shape {shape}; "
            "class probabilities have 4 or 5 axes, [item, (sample,) class, y, x]"
            + (": is the item axis missing?" if len(shape) == 3 else ".")
            + " Those of image classification, [N, C] or [N, T, C], need their labels [N] after "
            "them."
        )
    return hint + (
        " Predicted numbers are one store with `mean` and `std` (or `variance`, or `samples`), "
        "[N, H, W] each: put your arrays into one with "
        'numpy.savez("preds.npz", mean=mean, std=std), and give preds.npz.'
    )


def _is_loose(path: str) -> bool:
    """Whether a path is a .npy file, or a folder of such."""
    from pathlib import Path

    return path.endswith(".npy") or any(Path(path).glob("*.npy"))


def _noun(path: str) -> str:
    from uqeval.stores.store import looks_like_labels

    return "labels" if looks_like_labels(path) else "targets"
