"""Options of stores, items and videos, each declared once; shards of items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from uqeval.argument_types import fits
from uqeval.disk.objects import is_object_url, refuse_overlap_of_urls
from uqeval.errors import UsageError, check_numbers, cut, number_in, option_name, quoted
from uqeval.maps.names import map_and_id
from uqeval.records.inputs import numbers_in_json, set_of_numbers
from uqeval.settings import Settings, documented, normal_value, options_of, shared_option
from uqeval.stores.map_names import STORED_DEPTH


@dataclass(frozen=True)
class Part:
    """The `number`-th (from 1) of `of` contiguous shards."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """Read "2/3". Raises `UsageError` for another form."""
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", str(text).strip())
        number, of = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= number <= of:
            raise UsageError(
                f"--part {cut(text)}; expected K/N, the K-th of N shards, such as 2/3."
            )
        return cls(number, of)

    def of_items(self, count: int, ends: Sequence[int] | None = None) -> range:
        """Return the indices of its items among `count`; sizes of shards differ by at most one.

        `ends`: the only allowed ends of shards, as numbers of items; takes the nearest. Raises
        `UsageError` if a shard, this one or another, has no items.
        """
        borders = [k * count // self.of for k in range(min(self.of, count) + 1)]
        if ends is not None:
            borders = [min((0, *ends), key=lambda end: abs(end - k)) for k in borders]
        if self.of > count or any(first == last for first, last in pairwise(borders)):
            unit = "items" if ends is None else "sequences, which --tracks keeps whole,"
            raise UsageError(
                f"--part {self.number}/{self.of}: there are not enough {unit} for {self.of} "
                "shards; some would be empty. Give fewer shards."
            )
        return range(borders[self.number - 1], borders[self.number])

    def record(self, item_range: range) -> dict[str, int]:
        """Return the record of the shard in a report."""
        return {"number": self.number, "of": self.of, "first": item_range.start}


def chosen_items(
    options: InputOptions, count: int, ends: Sequence[int] | None = None
) -> tuple[range, dict[str, Any]]:
    """Return the indices of the items to evaluate, and the record of the choice.

    `part`: the shard, such as "2/3"; `limit`: the largest number of items. Raises `UsageError` for
    a shard without items.
    """
    if options.part is None:
        item_range = range(min(options.limit or count, count))
        return item_range, {"items": count, "evaluated": len(item_range)}
    shard = Part.parse(options.part)
    item_range = shard.of_items(count, ends)
    record = {"items": count, "evaluated": len(item_range), "part": shard.record(item_range)}
    return item_range, record


_IN, _RUN, _FLOW = "Input", "Running", "Optical flow"


def _mask_or_id(mask: Any) -> Any:
    """Return a mask; a text of digits that is no path is an id of the labels."""
    is_number = isinstance(mask, str) and mask.isascii() and mask.isdigit()
    return int(mask) if is_number and not Path(mask).exists() else mask


def _invalid_set(entries: Any) -> tuple[float, ...]:
    """Return values of `invalid` as a set: ascending, each once. Raises `UsageError`."""
    listed = isinstance(entries, Iterable) and not isinstance(entries, str)
    numbers = []
    for value in entries if listed else [entries]:
        try:
            if isinstance(value, bool) or value is None:
                raise ValueError
            numbers.append(number_in(value))
        except (TypeError, ValueError, OverflowError):
            raise UsageError(
                f"--invalid {quoted(value)}; expected a number, such as 0, -1 or "
                "nan: the value of targets without a measurement."
            ) from None
    return set_of_numbers(numbers)


@documented
@dataclass(frozen=True)
class InputOptions(Settings):
    """Options to read inputs. Raises `UsageError` for an invalid value."""

    # fmt: off
    ignore_index: int | None = shared_option(
        None, "Label of void pixels.", panel=_IN, shown="from the store, else 255", data="classes")
    names: str | Path | Sequence[str] | None = shared_option(
        None, "Item names for stores without names: a JSON list, or one name per line.",
        metavar="FILE", panel=_IN, path=True)
    classes: int | None = shared_option(
        None, "Number of classes, for maps stores that do not have it.", panel=_IN, data="classes")
    class_names: Sequence[str] | None = shared_option(
        None, "Class names, separated by commas.", metavar="A,B,…", panel=_IN, list_by="commas",
        data="classes")
    kind: str | None = shared_option(
        None, "Content of prediction arrays without names.", panel=_IN,
        choices=("probs", "logits", "predictions"), shown="probs; integers: predicted ids",
        data="classes")
    axes: str | None = shared_option(
        None, "Order of the axes, for predictions without axis names: items N (or slices Z), "
        "samples T, classes C, H, W; such as NHWC.", metavar="NTCHW", panel=_IN)
    label_map: str | None = shared_option(
        None, "Convert label ids to train ids.", metavar="cityscapes", panel=_IN, data="classes")
    annotator_folders: bool = shared_option(
        False, "LABELS is a folder with one folder for each annotator, which has a label PNG for "
        "every item.", panel=_IN, data="classes")
    sum_tolerance: float | None = shared_option(
        None, "Allowed deviation of the sum of class probabilities from 1.", panel=_IN,
        least=0, below=1,
        shown="0.002 for float16, 0.0001 for float32 and float64, classes × scale for integers",
        data="classes")
    missing_chunks: str = shared_option(
        "error", "Missing chunks: stop with an error, or read the fill value.", panel=_IN,
        choices=("error", "fill"))
    nan_samples: str = shared_option(
        "error", "NaN among the `samples` of a pixel: an error, or skipped.", panel=_IN,
        choices=("error", "skip"), data="regression")
    invalid: float | str | Sequence[float | str] | None = shared_option(
        None, "Target value that means \"not measured\", such as 0 in sparse depth. Repeat for "
        "more.", metavar="VALUE", panel=_IN, list_by="repeat", data="regression",
        normal=_invalid_set)
    baseline_focal: float | None = shared_option(
        None, "Predictions are disparities: depth = BF / disparity, with BF the baseline times the "
        "focal length in pixels; σ by the first-order rule.", metavar="BF", panel=_IN, above=0,
        data="regression")
    disparity: str = shared_option(
        "predictions", "With --baseline-focal: which values are disparities, the predictions or "
        "both the predictions and the target.",
        panel=_IN, choices=("predictions", "both"), data="regression")
    median_scaling: bool = shared_option(
        False, "Scale predictions and σ of each item by median(target) / median(prediction).",
        panel=_IN, data="regression")
    limit: int | None = shared_option(
        None, "Evaluate only the first N items, of each set of `ood`; the report is marked as "
        "partial.",
        metavar="N", panel=_IN, least=1)
    part: str | None = shared_option(
        None, "Count the first pass over the K-th of N shards of the items. `uqeval merge` joins "
        "the shards; if metrics need more passes, run `uqeval merge --fit` first.",
        metavar="K/N", panel=_IN, in_file=False)
    fitted: str | Path | None = shared_option(
        None, "With --part: count the pass that follows this file, which `uqeval merge --fit` "
        "wrote.", metavar="FILE", panel=_IN, in_file=False)
    region: str | Sequence[str] = shared_option(
        (), "Also compute all scores in this region: boundary:R, the pixels at most R pixels from "
        "another class; interior:R, the others; class:NAME; depth:LOW-HIGH; box:y0:y1,x0:x1 in "
        "fractions; map:NAME, each id in an array of the store or a folder of PNGs; map:NAME:ID. "
        "Repeat for more.", metavar="REGION", panel=_IN, list_by="repeat", common=True)
    depth_map: Any = shared_option(
        None, "Depth of each pixel for --region depth:LOW-HIGH: a folder of 16-bit KITTI PNGs, "
        ".npy or .pfm files, an array, or a store with an array `depth` or `target`. Default: the "
        "array `depth` of the predictions, or the target.",
        metavar="PATH", panel=_IN, path=True)
    out: Sequence[Any] = shared_option(
        (), "Stores of out-of-distribution items.", metavar="STORE", panel=_IN, list_by="repeat",
        path=True, data="ood")
    ood_mask: Any = shared_option(
        None, "Out-of-distribution pixels inside the images: a folder of PNGs or a store of ids (0 "
        "in, 255 void, other ids out), or an id of the labels, such as 254.", metavar="MASK",
        panel=_IN, path=True, data="ood", normal=_mask_or_id)
    #: Whether shards contain only whole sequences of a video.
    whole_sequences: bool = False
    #: The maps that options of metrics or of a command name.
    read_maps: Sequence[str] = ()
    video: Any = shared_option(
        None, "Frames: a folder, a store or a video file.", metavar="VIDEO", panel=_IN, path=True,
        data="video")
    pseudo_labels: Any = shared_option(
        None, "Use the predictions of another model as labels.", metavar="PREDS", path=True,
        data="video")
    resize: str = shared_option(
        "none", "Class ids whose size differs from their frames: an error, or resize by nearest "
        "neighbour.", choices=("none", "nearest"), data="video")
    flow_path: Any = shared_option(
        None, "With --flow file: flow on the grid of frame t that points to t-1. A folder of "
        ".flo, KITTI .png, .npy or .pfm files named as frame t, or an array [N-1, H, W, 2].",
        metavar="PATH", panel=_FLOW, path=True, data="video")
    flow_forward_path: Any = shared_option(
        None, "Like --flow-path, but on the grid of frame t-1 and pointing to t; for "
        "--occlusion, --tracks and --grid previous.",
        metavar="PATH", panel=_FLOW, path=True, data="video")
    flow_cache: str | Path | None = shared_option(
        None, "Cache the estimated flow here (8 bytes per pixel and pair), for other models on "
        "the same frames.", metavar="DIR", panel=_FLOW, path=True, data="video")
    map_cache: str | Path | None = shared_option(
        None, "Cache the maps of each item here, in a folder or at a URL such as s3://bucket/maps "
        "(bytes per pixel: 6 for pavpu; 14, and 4 more per class, for calibration). Later commands "
        "read them instead of the store.",
        metavar="DIR", panel=_RUN, path=True)
    # fmt: on

    def __post_init__(self) -> None:
        if isinstance(self.out, str | Path | Mapping) or _is_array(self.out):
            object.__setattr__(self, "out", (self.out,))  # one store
        if self.invalid is not None:
            _invalid_set(self.invalid)  # a message with its rule, not its type
        check_numbers({name: getattr(self, name) for name in self.__dataclass_fields__})
        if not fits(str | Sequence[str], self.region):
            raise UsageError(
                f"--region {quoted(self.region)}; expected a region such as boundary:8, or several."
            )
        folder = self.map_cache
        local = isinstance(folder, str | Path) and str(folder) and "://" not in str(folder)
        if folder is not None and not local and not is_object_url(folder):
            raise UsageError(
                f"--map-cache {quoted(folder)}; expected a folder of this machine, or a URL such "
                "as s3://bucket/maps."
            )
        super().__post_init__()
        for name in options_of(InputOptions):
            object.__setattr__(self, name, normal_value(InputOptions, name, getattr(self, name)))
        class_names = self.class_names
        if class_names is not None and (not all(class_names) or not list(class_names)):
            raise UsageError(
                f"--class-names {quoted(class_names)}; expected a name for each class."
            )
        if self.part is not None:
            Part.parse(self.part)
            if self.limit is not None:
                raise UsageError("--limit and --part exclude each other; give one of them.")
        if self.fitted is not None and self.part is None:
            raise UsageError(
                f"--fitted {quoted(str(self.fitted))} is for a shard of the items; give --part K/N "
                "too, as in the first round, or leave out --fitted."
            )

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions that are evaluated in addition to the whole image, as given."""
        return (self.region,) if isinstance(self.region, str) else tuple(self.region)

    @property
    def converts(self) -> bool:
        """Return whether predicted numbers are converted to other units."""
        return self.baseline_focal is not None or self.median_scaling

    @property
    def ood_id(self) -> int | None:
        """Return the id of the labels that `ood_mask` is; None if it is a store, or not given."""
        return self.ood_mask if type(self.ood_mask) is int else None

    def invalid_targets(self) -> tuple[float, ...]:
        """Return the target values that mean "not measured"."""
        return () if self.invalid is None else _invalid_set(self.invalid)

    def refuse_invalid(self, where: str) -> None:
        """Raise `UsageError` for `invalid` with data that have no target."""
        if self.invalid is not None:
            raise UsageError(
                f"--invalid is for regression targets, and {where} has none. Leave it out. For "
                "void labels give --ignore-index; for unknown depth set the attribute invalid of "
                "the array of depths."
            )
        if self.converts or self.disparity != "predictions":
            option = "--baseline-focal" if self.baseline_focal is not None else "--disparity"
            option = "--median-scaling" if self.median_scaling else option
            raise UsageError(
                f"{option} is for predicted depths, mean and std; {where} has none. Leave it out."
            )

    @property
    def region_maps(self) -> list[str]:
        """Return the maps of ids that --region names: arrays of the store, or paths."""
        return [map_and_id(text)[0] for text in self.regions if text.strip().startswith("map:")]

    @property
    def named_maps(self) -> frozenset[str]:
        """Return the names of arrays in the store of predictions that options name."""
        named = {*map(str.strip, (*self.read_maps, *self.region_maps))}
        if self.depth_map is None and any(t.strip().startswith("depth:") for t in self.regions):
            named.add(STORED_DEPTH)
        return frozenset(named)

    def paths(self) -> list[Any]:
        """Return the paths that are read, except predictions and labels."""
        input_paths = (
            *self.out,
            self.ood_mask,
            self.names,
            self.video,
            self.pseudo_labels,
            self.flow_path,
            self.flow_forward_path,
            self.depth_map,
            *self.region_maps,
            self.fitted,
        )
        return [path for path in input_paths if isinstance(path, str | Path)]

    def check_caches(self, *inputs: Any) -> None:
        """Raise `UsageError` for a cache that is an input, contains one or lies in one."""
        if self.map_cache is None and self.flow_cache is None:
            return
        from uqeval.disk.outputs import paths_in, refuse_overlap
        from uqeval.stores.contents import Contents

        caches = (("--map-cache", self.map_cache), ("--flow-cache", self.flow_cache))
        given = paths_in([*inputs, *self.paths()])
        sources = [source.path if isinstance(source, Contents) else source for source in given]
        for option, folder in caches:
            refuse_overlap([folder], sources, f"give another {option}")
        if is_object_url(self.map_cache):
            refuse_overlap_of_urls([str(self.map_cache)], sources, "give another --map-cache")

    def refuse_video(self) -> None:
        """Raise `UsageError` for an option that applies only to videos."""
        for name in OF_VIDEO:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value == "none"):
                raise UsageError(f"{option_name(name)} is for a video (`uqeval tc`).")

    def record(self) -> dict[str, Any]:
        """Return the record of the options that results depend on.

        Options of videos are included only for a video, and `names` only if it is given.
        """
        hidden = {"names", "whole_sequences", "read_maps", "map_cache", "fitted"}
        hidden |= set() if self.video is not None else {*OF_VIDEO}
        hidden |= set() if self.converts else {"baseline_focal", "disparity", "median_scaling"}
        hidden |= set() if self.region else {"region", "depth_map"}
        hidden |= set() if self.is_ood else {"out", "ood_mask"}
        record = {
            name: _recorded(getattr(self, name))
            for name in self.__dataclass_fields__
            if name not in hidden
        }
        if self.names is not None:  # the items have the names
            is_file = isinstance(self.names, str | Path)
            record["names"] = str(self.names) if is_file else "names in memory"
        if self.invalid is not None:  # as JSON can hold it
            record["invalid"] = numbers_in_json(self.invalid_targets())
        return record

    @property
    def is_ood(self) -> bool:
        """Return whether the data are divided into in-distribution and out-of-distribution."""
        return bool(self.out) or self.ood_mask is not None

    @property
    def fill(self) -> bool:
        """Return whether missing chunks read as the fill value."""
        return self.missing_chunks == "fill"


def regions_of(given: str | Sequence[str]) -> list[str]:
    """Return the regions of an option that takes one or several."""
    return [given] if isinstance(given, str) else list(given)


def check_forms(given: str | Sequence[str]) -> None:
    """Raise `UsageError` for a text that is no region of any data."""
    for text in regions_of(given):
        from uqeval.maps.region_text import check_form

        check_form(text)


def regions_beside(given: str | Sequence[str], folder: Path) -> list[str]:
    """Return regions; a path `map:PATH` that exists in `folder` becomes `map:folder/PATH`."""
    regions = regions_of(given)
    for i, text in enumerate(regions):
        path, number = map_and_id(text)
        if text.strip().startswith("map:") and "://" not in path and (folder / path).exists():
            regions[i] = f"map:{folder / path}" + ("" if number is None else f":{number}")
    return regions


def _is_array(value: Any) -> bool:
    """Return whether a value is an array of any framework."""
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _recorded(value: Any) -> Any:
    """Return the value of an option as JSON can hold it."""
    if isinstance(value, list | tuple):
        return [_recorded(entry) for entry in value]
    if isinstance(value, Mapping):
        return "arrays in memory"
    if _is_array(value):
        return "an array in memory"
    return str(value) if isinstance(value, Path) or hasattr(value, "path") else value


#: Options that apply only to videos.
OF_VIDEO = tuple(
    name for name, option in options_of(InputOptions).items() if option.data == "video"
)
#: Options that apply to predictions and a reference.
OF_REFERENCE = (
    "names", "kind", "axes", "sum_tolerance", "missing_chunks", "invalid", "limit", "part",
    "fitted",
)  # fmt: skip
