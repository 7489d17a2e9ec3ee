"""Properties of the data that are known before any of it is read, and the items of `--fit-on`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from uqeval.errors import DataError, StoreError, UsageError, cut, listed, number_of
from uqeval.maps.region_text import Labelled

T = TypeVar("T")


@dataclass(frozen=True)
class VideoInfo:
    """Facts about a video that are known before reading it; its items are pairs of neighbouring
    frames.

    `models`: the names of the predictions. For each pair: the name of the frame `before`, its
    sequence in `sequences`, and whether it is the `first` of a run. `rows`: one record per
    sequence. `flow_record` returns the record of a method of flow. `against`: "labels",
    "pseudo-labels" or None; `unlabelled` of the `frames` have none. `named`: whether the classes
    have names, not only ids. `voids`: the void id of the predictions of each model, None of
    computed ones, of which no pixel is void; empty in states of earlier versions.
    """

    models: tuple[str, ...]
    before: tuple[str, ...]
    sequences: tuple[str, ...]
    first: tuple[bool, ...]
    rows: tuple[dict[str, Any], ...]
    frames: int
    flow_record: Callable[[str], dict[str, Any]]
    against: str | None = None
    unlabelled: int = 0
    named: bool = True
    voids: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class DatasetInfo:
    """Facts about the data that are known before reading them.

    `kind`: "classes" (probabilities or ids, with labels), "regression" (a mean and a standard
    deviation, with a target; one class), "video" (pairs of frames) or "ood" (an uncertainty of
    in-distribution and other pixels; the classes are in, and each set out). `sizes`: height and
    width of each item. `samples`: T of a stack, None for maps. `reference`: whether there is one to
    compare with. `paths`: predictions and ground truth as given; `invalid`: whether the user named
    target values that mean "not measured".
    """

    where: str
    names: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    classes: int
    class_names: tuple[str, ...]
    samples: int | None
    kind: str = "classes"
    reference: bool = False
    video: VideoInfo | None = None
    paths: tuple[str, ...] = ()
    invalid: bool = False
    #: The case (volume) of each item, where items are slices of cases.
    groups: tuple[str, ...] | None = None
    #: Maps that are stored as float16.
    halves: tuple[str, ...] = ()
    #: Where the labels are, and the id that means void there.
    labels: str = ""
    ignore_index: int | None = None
    #: The command that computes the same metrics from `paths`: that of the single family, or `run`.
    command: str = "run"
    #: Names and sizes of the items of all shards, of which these are one; None if these are all
    #: items. A decision about the run reads these, so that all shards decide the same.
    all_names: tuple[str, ...] | None = None
    all_sizes: tuple[tuple[int, int], ...] | None = None
    #: A digest of `all_names`, which shards save in their place.
    names_digest: str = ""
    #: Of several sets of items, such as in-distribution and others: the set of each item.
    sets: tuple[int, ...] = ()
    #: Of masked pixels in labelled images: how many classes there are; else 0.
    inner_classes: int = 0
    #: The number of annotators of each item; 0 for one label per pixel.
    annotators: int = 0
    #: Of a maps store: the number of samples with a map of their likeliest classes; else 0.
    choices: int = 0
    #: The unit that predicted numbers or their target declare; empty without one.
    units: str = ""
    #: Of maps that record it: how many samples they were computed from; else 0.
    samples_of_maps: int = 0
    #: The content of files that options name, by path: names of `--fit-on`, and by column of
    #: `--item-table` a cell for each item. Filled when settings are made of a user's options. Saved
    #: states contain it, so that no path in them is opened.
    fit_names: dict[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    columns: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict, compare=False)

    @property
    def names_and_sizes(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Return name and size of each item of the run, also of other shards."""
        if self.all_names is None or self.all_sizes is None:
            return zip(self.names, self.sizes, strict=True)
        return zip(self.all_names, self.all_sizes, strict=True)

    @property
    def is_of_single_pixels(self) -> bool:
        """Return whether all items of the run have one pixel (image classification)."""
        return all(size == (1, 1) for _, size in self.names_and_sizes)

    @property
    def labelled(self) -> Labelled:
        """Return the properties of the data that regions depend on."""
        has_labels = self.kind == "classes" or (self.video is not None and self.video.against)
        return Labelled(self.kind, self.class_names if has_labels else (), self.where)


def names_digest(names: tuple[str, ...] | None) -> str:
    """Return a digest of the names in their order; empty for None."""
    if names is None:
        return ""
    # Names may hold half a character (a lone surrogate).
    return hashlib.sha256("\n".join(names).encode(errors="surrogatepass")).hexdigest()


def all_void(info: DatasetInfo) -> DataError:
    """Return the error for labels that are void everywhere."""
    return DataError(
        f"{info.labels}: nothing is left to evaluate: all labels of "
        f"{number_of(len(info.names), 'item')} are ignore_index {info.ignore_index} (void). Check "
        "--ignore-index and how the labels were written."
    )


def read_fit_on(fit_on: str | None, info: DatasetInfo) -> None:
    """Read the names of a file that the user gives to `--fit-on`. Raises `UsageError` for names
    that are no items, and `StoreError`.
    """
    if fit_on is not None:
        from uqeval.stores.names import as_items, read_names_file

        if Path(fit_on).is_dir():
            raise UsageError(
                f"--fit-on {cut(fit_on)} is a folder or store; expected a text file with the "
                "names of those evaluated items that the fit uses, one per line, such as "
                f"{listed(list(info.all_names or info.names), 3)}. Evaluate both sets as one store."
            )
        # In the spelling of the items, so that states of files in two spellings can be merged.
        names = as_items(read_names_file(fit_on), info.all_names or info.names)
        info.fit_names[fit_on] = names
        fit_items(fit_on, info)


def fit_items(fit_on: str | None, info: DatasetInfo) -> list[int] | None:
    """Return the indices of the items that `--fit-on` names, among those of all shards; None for
    all.

    Raises `UsageError` for names that are no items.
    """
    if fit_on is None:
        return None
    from uqeval.stores.names import as_items

    place = {name: i for i, name in enumerate(info.all_names or info.names)}
    names = as_items(saved_content(info.fit_names, fit_on, "--fit-on", info), place)
    strange = [name for name in names if name not in place]
    if strange or not names:
        raise UsageError(
            f"--fit-on {fit_on} is empty; expected the names of items, one per line."
            if not names
            else f"--fit-on {fit_on}: {len(strange)} of {number_of(len(names), 'name')} not among "
            f"the {number_of(len(place), 'evaluated item')}: {listed(strange)}. The names of items "
            f"are such as {listed(list(place), 3)}."
        )
    return sorted({place[name] for name in names})


def fitted_on(fit_on: str | None, info: DatasetInfo) -> dict[str, str]:
    """Return the record of the items of a fit: the file that names them, and a digest of their
    names."""
    items = fit_items(fit_on, info)
    if fit_on is None or items is None:
        return {"fitted_on": "all items"}
    all_names = info.all_names or info.names
    digest = names_digest(tuple(sorted(all_names[i] for i in items)))
    return {"fitted_on": fit_on, "fitted_on_digest": digest}


def saved_content(files: Mapping[str, T], path: str, option: str, info: DatasetInfo) -> T:
    """Return the content of a file that an option names. Raises `StoreError` for saved states that
    do not have it: a path in states is not opened.
    """
    if path in files:
        return files[path]
    raise StoreError(
        f"{info.where}: the saved states do not contain the content of {option} {cut(path)}, and "
        "uqeval does not open such a path from states. Evaluate again with this version."
    )
