"""The form of the index of a states file, and of the run in a file of fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

from uqeval.disk.forms import Count, Draws, Flag, Inputs, Method, Metric, Seed, Whole, formed
from uqeval.errors import FormError, cut, quoted

_Records = dict[str, dict[str, Any]]


@dataclass
class Video:
    """The facts about a video."""

    models: list[str]
    before: list[str]
    sequences: list[str]
    first: list[Flag]
    rows: list[dict[str, Any]]
    frames: Count
    flow_record: _Records
    against: str | None = None
    unlabelled: Count = 0
    named: Flag = True
    voids: list[Whole | None] = field(default_factory=list)


@dataclass
class Facts:
    """The facts about the data of a run (`uqeval.metrics._dataset_info`)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    where: str
    names: list[str]
    sizes: list[tuple[Count, Count]]
    classes: Count
    class_names: list[str]
    samples: Count | None
    kind: str = ""
    reference: Flag = False
    video: Video | None = None
    paths: list[str] = field(default_factory=list)
    invalid: Flag = False
    groups: list[str] | None = None
    halves: list[str] = field(default_factory=list)
    labels: str = ""
    ignore_index: Whole | None = None
    sets: list[Count] = field(default_factory=list)
    inner_classes: Count = 0
    annotators: Count = 0
    choices: Count = 0
    units: str = ""
    samples_of_maps: Count = 0
    names_digest: str = ""
    fit_names: dict[str, list[str]] = field(default_factory=dict)
    columns: dict[str, dict[str, list[str]]] = field(default_factory=dict)


@dataclass
class Resampling:
    """The options of intervals that a merge takes."""

    draws: Draws | None = None
    seed: Seed | None = None
    interval_method: Method | None = None
    group_by: str | None = None


@dataclass
class Index:
    """What scoring saved states requires, by key of the index."""

    items: list[str]
    records: list[dict[str, Any]]
    settings: _Records
    fitted: _Records
    facts: Facts
    metrics: dict[str, Metric]
    inputs: Inputs
    results: _Records
    numerics: dict[str, dict[str, Whole]]
    uqeval_version: str
    fingerprint: str
    partial: Flag
    warnings: list[str]
    result_warnings: list[str] = field(default_factory=list)
    stamps: list[str | None] = field(default_factory=list)
    rounds: dict[str, Any] = field(default_factory=dict)
    draws: Resampling = field(default_factory=Resampling)
    maps_version: Whole | None = None
    last_digits: list[str] = field(default_factory=list)


def check_index(index: Mapping[str, Any], allow_missing: bool) -> None:
    """Raise `FormError` for an index of another form. `allow_missing`: keys may be missing."""
    formed(Index, index, allow_missing)
    if allow_missing:
        return
    items = index["items"]
    for name, entries in (("facts.names", index["facts"]["names"]),
                          ("records", index["records"]),
                          ("facts.sizes", index["facts"]["sizes"])):  # fmt: skip
        if len(entries) != len(items):
            raise FormError(f"`{name}` has {len(entries)} entries for {len(items)} items")
    for item, record in zip(items, index["records"], strict=True):
        if record.get("name") != item:
            raise FormError(
                f"a record has the name {quoted(record.get('name'))}; expected that of the item "
                f"{cut(item)}"
            )


@dataclass
class RunInputs:
    """The options of the inputs that all shards of a run share."""

    options: dict[str, Any]
    ignore_index: Whole | None = None


@dataclass
class RunFacts:
    """The facts about the data that all shards of a run share."""

    kind: str
    classes: Count
    class_names: list[str]
    samples: Count | None
    reference: Flag
    video: dict[str, Any] | None
    inner_classes: Count = 0
    annotators: Count = 0
    choices: Count = 0
    units: str = ""
    samples_of_maps: Count = 0
    names_digest: str = ""
    fit_names: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Run:
    """What all shards of a run share."""

    uqeval_version: str
    fingerprint: str
    facts: RunFacts
    inputs: RunInputs
    settings: _Records
    maps_version: Whole | None = None


@dataclass
class Total:
    """The packed total of a tally over all items, and over some, in base 64."""

    total: str
    of_items: dict[str, str] = field(default_factory=dict)


@dataclass
class Fits:
    """The file of `uqeval merge --fit`."""

    passes: Annotated[Count, Field(ge=1)]
    unfinished: list[str]
    shards: list[str]
    run: Run
    totals: dict[str, Total]
    digest: str
