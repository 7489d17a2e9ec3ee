"""Options that several commands share, each defined once, and what they mean together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Annotated, Any

import typer

from uqeval.errors import UsageError

_IN, _OUT, _RUN, _CUT = "Input", "Output", "Running", "Intervals and slices"


class Format(StrEnum):
    """What is printed to stdout."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


class NanSamples(StrEnum):
    """What to do about samples that are NaN."""

    error = "error"
    skip = "skip"


class Kind(StrEnum):
    """What predictions hold whose arrays have no names."""

    probs = "probs"
    logits = "logits"
    predictions = "predictions"


class Method(StrEnum):
    """How intervals are computed."""

    auto = "auto"
    korn_graubard = "korn-graubard"
    jackknife_t = "jackknife-t"
    expanded = "expanded"
    batch_means = "batch-means"
    percentile = "percentile"


class Missing(StrEnum):
    """What to do about chunks that a store does not hold."""

    error = "error"
    fill = "fill"


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


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The options that several commands share: what they are, their defaults, and what was given.

    A command has those that it names to `taking`; the others keep their defaults.
    """

    # fmt: off
    output: Annotated[str | None, typer.Option(
        "-o", "--output", metavar="FILE", show_default=False, rich_help_panel=_OUT,
        help="Write the report as JSON. - is stdout.")] = None
    csv: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False, rich_help_panel=_OUT,
        help="Write one row per item as CSV.")] = None
    format: Annotated[Format, typer.Option(
        rich_help_panel=_OUT, help="Format of stdout.")] = Format.table
    states: Annotated[bool | None, typer.Option(
        "--states/--no-states", show_default=False, rich_help_panel=_OUT,
        help="Save the per-item tallies next to the report, as FILE.states.zip (default: with "
        "-o FILE).")] = None
    quiet: Annotated[bool, typer.Option(
        "-q", "--quiet", rich_help_panel=_OUT, help="Print no progress, no warnings and no "
        "table.")] = False
    store: Annotated[str | None, typer.Option(
        metavar="NAME", show_default=False, rich_help_panel=_IN,
        help="Without paths: store of uqeval.yaml (default: the only one that fits).")] = None
    ignore_index: Annotated[int | None, typer.Option(
        show_default=False, rich_help_panel=_IN,
        help="Label of void pixels (default: from the store, else 255).")] = None
    names: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False, rich_help_panel=_IN,
        help="Item names for stores without names: a JSON list, or one name per line.")] = None
    classes: Annotated[int | None, typer.Option(
        show_default=False, rich_help_panel=_IN,
        help="Number of classes, for maps stores that do not have it.")] = None
    class_names: Annotated[str | None, typer.Option(
        metavar="A,B,…", show_default=False, rich_help_panel=_IN,
        help="Class names, separated by commas.")] = None
    kind: Annotated[Kind | None, typer.Option(
        show_default=False, rich_help_panel=_IN,
        help="Content of prediction arrays without names (default: probs; integers: predicted "
        "ids).")] = None
    axes: Annotated[str | None, typer.Option(
        metavar="NTCHW", show_default=False, rich_help_panel=_IN,
        help="Order of the axes, for predictions without axis names: items N (or slices Z), "
        "samples T, classes C, H, W; such as NHWC.")] = None
    label_map: Annotated[str | None, typer.Option(
        metavar="cityscapes", show_default=False, rich_help_panel=_IN,
        help="Convert label ids to train ids.")] = None
    sum_tolerance: Annotated[float | None, typer.Option(
        show_default=False, rich_help_panel=_IN,
        help="Allowed deviation of the sum of class probabilities from 1 (default: 2e-3 for "
        "float16, 1e-4 for float32 and float64, classes × scale for integers).")] = None
    missing_chunks: Annotated[Missing, typer.Option(
        rich_help_panel=_IN,
        help="Missing chunks: stop with an error, or read the fill value.")] = Missing.error
    nan_samples: Annotated[NanSamples, typer.Option(
        rich_help_panel=_IN,
        help="NaN among the `samples` of a pixel: an error, or skipped.")] = NanSamples.error
    invalid: Annotated[list[str] | None, typer.Option(
        metavar="VALUE", show_default=False, rich_help_panel=_IN,
        help="Target value that means \"not measured\", such as 0 in sparse depth. Repeat for "
        "more.")] = None
    limit: Annotated[int | None, typer.Option(
        metavar="N", show_default=False, rich_help_panel=_IN,
        help="Evaluate only the first N items; the report is marked as partial.")] = None
    part: Annotated[str | None, typer.Option(
        metavar="K/N", show_default=False, rich_help_panel=_IN,
        help="Evaluate only the K-th of N shards of the items; `uqeval merge` joins them.")] = None
    ci: Annotated[float | None, typer.Option(
        metavar="LEVEL", show_default=False, rich_help_panel=_CUT,
        help="Compute intervals of all scores at this level, such as 0.95, by resampling "
        "items.")] = None
    slices: Annotated[str | None, typer.Option(
        metavar="FILE.csv", show_default=False, rich_help_panel=_CUT,
        help="Table of the items (columns: name, weather, city, …): compute the scores for "
        "each value of a column.")] = None
    slice_by: Annotated[list[str] | None, typer.Option(
        metavar="COLUMN[,COLUMN]", show_default=False, rich_help_panel=_CUT,
        help="Slice by this column, or by combinations. Repeat for more (default: every column "
        "with few values).")] = None
    group_by: Annotated[str | None, typer.Option(
        metavar="COLUMN", show_default=False, rich_help_panel=_CUT,
        help="Resample groups of related items (drive, city, patient) instead of items.")] = None
    interval_method: Annotated[Method, typer.Option(
        rich_help_panel=_CUT,
        help="Method for all intervals (auto: chosen by the kind of score).")] = Method.auto
    draws: Annotated[int, typer.Option(
        metavar="N", rich_help_panel=_CUT, help="Number of bootstrap draws.")] = 2000
    seed: Annotated[int, typer.Option(
        rich_help_panel=_CUT, help="Seed of the bootstrap draws.")] = 0
    resume: Annotated[bool, typer.Option(
        "--resume", rich_help_panel=_RUN,
        help="Continue the same command after an interruption (with -o FILE).")] = False
    workers: Annotated[int | None, typer.Option(
        show_default=False, rich_help_panel=_RUN, help="Number of threads (default: usable "
        "CPUs).")] = None
    memory: Annotated[str, typer.Option(
        metavar="SIZE", rich_help_panel=_RUN,
        help="Memory for tiles and maps, such as 512MB or 2GiB.")] = "512MB"
    map_cache: Annotated[str | None, typer.Option(
        metavar="DIR", show_default=False, rich_help_panel=_RUN,
        help="Cache the maps of each item here (6 bytes per pixel for pavpu, 4 more per class "
        "for calibration). Later commands read the cached maps instead of the store.")] = None
    # fmt: on
    #: Those that the command has.
    taken: frozenset[str] = frozenset()
    #: The options that stand on the command line, the command's own too.
    typed: frozenset[str] = frozenset()

    def given(self, *names: str) -> dict[str, Any]:
        """Those of `names` that the command has and that have a value, for the library."""
        found = given(**{name: getattr(self, name) for name in names if name in self.taken})
        if "class_names" in found:
            found["class_names"] = found["class_names"].split(",")
        return found


#: Where a report goes, and what is printed.
OUTPUTS = ("output", "csv", "format", "states", "quiet")
#: How stores are read.
READING = (
    "ignore_index", "names", "classes", "kind", "axes", "label_map", "sum_tolerance",
    "missing_chunks",
)  # fmt: skip
#: The same, and which items.
INPUTS = (*READING, "class_names", "nan_samples", "invalid", "limit", "part", "map_cache")
#: What is read off the states.
CUTS = ("ci", "slices", "slice_by", "group_by", "interval_method", "draws", "seed")
#: How the machine is used.
RUNNING = ("workers", "memory")


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
    given = [f"--{name.replace('_', '-')}" for name in named if name in typed]
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


def given(**options: Any) -> dict[str, Any]:
    """The options that the user gave: not None, not an empty list; choices by their value."""
    found = {}
    for name, value in options.items():
        if value is None or value == []:
            continue
        if isinstance(value, list):
            plain: Any = [v.value if isinstance(v, Enum) else v for v in value]
        else:
            plain = value.value if isinstance(value, Enum) else value
        found[name] = plain
    return found


def choice_of(choices: Mapping[str, Iterable[str]]) -> Callable[[str], type[Enum]]:
    """What makes the type of an option from its name: one of the values that `choices` lists."""
    return lambda name: Enum(name, {value: value for value in choices[name]}, type=str)  # type: ignore[return-value]
