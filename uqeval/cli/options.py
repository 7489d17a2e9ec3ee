"""Options that several commands share, each defined once, and what they mean together."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Annotated, Any

import typer

from uqeval.errors import UsageError
from uqeval.sizes import parse_memory as parse_memory

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


class Missing(StrEnum):
    """What to do about chunks that a store does not hold."""

    error = "error"
    fill = "fill"


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PREDS... [LABELS]",
        help="Store of predictions (Zarr folder, .zip or URL, .npy, .npz), or several: members of "
        "one ensemble. Then the labels: a folder of label PNGs, a store or a .npy; not needed "
        "where the predictions' store holds `labels`.",
        show_default=False,
    ),
]
TargetPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="PREDS... [TARGET]",
        help="Store of predictions (Zarr folder, .zip or URL, or .npz) with `mean` and `std` or "
        "`variance`, or `samples`; or several: members of one ensemble. Then the target: a store, "
        "a .npy, or a folder of 16-bit KITTI PNGs, .npy or .pfm files (of label PNGs for "
        "classes); not needed where the predictions' store holds it.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the report as JSON; - is stdout.",
                 rich_help_panel=_OUT, show_default=False),
]  # fmt: skip
Csv = Annotated[
    str | None,
    typer.Option("--csv", metavar="FILE", help="Write one row an item as CSV.",
                 rich_help_panel=_OUT, show_default=False),
]  # fmt: skip
Stdout = Annotated[
    Format, typer.Option("--format", help="What to print to stdout.", rich_help_panel=_OUT)
]
States = Annotated[
    bool | None,
    typer.Option("--states/--no-states", help="Keep the per-item tallies beside the report, as "
                 "FILE.states.zip (default: with -o FILE).", rich_help_panel=_OUT,
                 show_default=False),
]  # fmt: skip
Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="No progress, no warnings, no table.", rich_help_panel=_OUT),
]
IgnoreIndex = Annotated[
    int | None,
    typer.Option(help="Label that means void (default: the store's, else 255).",
                 rich_help_panel=_IN, show_default=False),
]  # fmt: skip
Names = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Item names, for stores that carry none: a JSON list, or one "
                 "name a line.", rich_help_panel=_IN, show_default=False),
]  # fmt: skip
Classes = Annotated[
    int | None,
    typer.Option(help="Number of classes, for maps stores that do not say it.", rich_help_panel=_IN,
                 show_default=False),
]  # fmt: skip
LabelMap = Annotated[
    str | None,
    typer.Option(metavar="cityscapes", help="Turn label ids into train ids.", rich_help_panel=_IN,
                 show_default=False),
]  # fmt: skip
SumTolerance = Annotated[
    float | None,
    typer.Option(help="How far class probabilities may be from summing to 1 (default: 2e-3 for "
                 "float16, 1e-4 for float32 and float64, classes × scale for integers).",
                 rich_help_panel=_IN, show_default=False),
]  # fmt: skip
MissingChunks = Annotated[
    Missing,
    typer.Option(help="Chunks that the store does not hold: an error, or the fill value.",
                 rich_help_panel=_IN),
]  # fmt: skip
SkipNan = Annotated[
    NanSamples,
    typer.Option("--nan-samples", help="NaN among the `samples` of a pixel: an error, or left out.",
                 rich_help_panel=_IN),
]  # fmt: skip
Limit = Annotated[
    int | None,
    typer.Option(metavar="N", help="Only the first N items; the report is marked partial.",
                 rich_help_panel=_IN, show_default=False),
]  # fmt: skip
Part = Annotated[
    str | None,
    typer.Option(metavar="K/N", help="Only the K-th of N parts of the items; `uqeval merge` joins "
                 "them.", rich_help_panel=_IN, show_default=False),
]  # fmt: skip
Ci = Annotated[
    float | None,
    typer.Option(metavar="LEVEL", help="Intervals of all scores at this level, such as 0.95, by "
                 "resampling items.", rich_help_panel=_CUT, show_default=False),
]  # fmt: skip
Draws = Annotated[
    int, typer.Option(metavar="N", help="Resamples of the intervals.", rich_help_panel=_CUT)
]
Seed = Annotated[int, typer.Option(help="Seed of the resamples.", rich_help_panel=_CUT)]
Slices = Annotated[
    str | None,
    typer.Option(metavar="FILE.csv", help="Table of the items (columns: name, weather, city, …): "
                 "the same scores for each value of a column.", rich_help_panel=_CUT,
                 show_default=False),
]  # fmt: skip
SliceBy = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN[,COLUMN]", help="Cut by this column, or by combinations; give it "
                 "again for more (default: every column of few values).", rich_help_panel=_CUT,
                 show_default=False),
]  # fmt: skip
GroupBy = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Resample groups of items that belong together (drive, "
                 "city, patient) instead of items.", rich_help_panel=_CUT, show_default=False),
]  # fmt: skip
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on from what the same command had counted when it was "
                 "stopped (with -o FILE).", rich_help_panel=_RUN),
]  # fmt: skip
StoreName = Annotated[
    str | None,
    typer.Option("--store", metavar="NAME", help="Without paths: the store of uqeval.yaml "
                 "(default: the only one that fits).", rich_help_panel=_IN, show_default=False),
]  # fmt: skip
Workers = Annotated[
    int | None,
    typer.Option(help="Threads (default: usable CPUs).", rich_help_panel=_RUN, show_default=False),
]
Memory = Annotated[
    str,
    typer.Option(metavar="SIZE", help="Bytes of tiles and maps, such as 512MB or 2GiB.",
                 rich_help_panel=_RUN),
]  # fmt: skip


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
        raise UsageError(f"{paths[0]} holds {_noun(paths[0])}; give the predictions before them.")
    if any(kinds[:-1]):
        wrong = paths[kinds.index(True)]
        noun = _noun(wrong)
        raise UsageError(f"{wrong} holds {noun}; give one store of {noun}, after all predictions.")
    if kinds[-1]:
        return paths[:-1], paths[-1]
    return paths, None


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
