"""A family of metrics: what one command evaluates, under one key of a report."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from uqeval.errors import UsageError
from uqeval.metrics._again import Again
from uqeval.metrics._contract import Metric
from uqeval.metrics._plan import Plan, Pooling, Recutting


@dataclass(frozen=True)
class VideoFacts:
    """What is known of a video: its items are pairs of neighbouring frames.

    `models`: what the predictions are called. Of each pair: the name of the frame `before`, its
    sequence in `sequences`, and whether it is the `first` of a run. `rows`: one record a sequence.
    `flow_record` says what a method of flow is. `against`: "labels", "pseudo-labels" or None;
    `unlabelled` of the `frames` have none. `named`: whether the classes have names of their own.
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


@dataclass(frozen=True)
class Facts:
    """What is known of the data before any of it is read.

    `kind`: "classes" (probabilities or ids, with labels), "regression" (a mean and a standard
    deviation, with a target; one class) or "video" (pairs of frames). `sizes`: height and width of
    each item. `samples`: T of a stack, None for maps. `reference`: whether there is one to compare
    with. `paths`: predictions and ground truth as they were given; `invalid`: whether the user says
    which targets are no measurement.
    """

    where: str
    names: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    classes: int
    class_names: tuple[str, ...]
    samples: int | None
    kind: str = "classes"
    reference: bool = False
    video: VideoFacts | None = None
    paths: tuple[str, ...] = ()
    invalid: bool = False
    #: The case (volume) of each item, where items are slices of cases.
    groups: tuple[str, ...] | None = None
    #: Maps that are stored as float16.
    halves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """How a run evaluates a family.

    `settings(options, facts)` gives the settings of every variant by report key, and raises
    `UsageError` for what cannot be; `maps(settings, facts)` the maps that a variant reads;
    `plans(key, settings, facts)` its plans by key, `key/part` for a part of the results. `kinds` of
    data that it can evaluate. `key`: what reports call it where its command has another name.
    `pooled(settings, facts)` fits the thresholds alone and gives the options that would fix them.
    `again(key, settings, facts, fitted)` says how the scores of a variant and of its parts are read
    off saved states, `fitted` by the same keys; `settings_type` makes settings of their record.
    `recut(rule, settings, facts, fitted)` gives what is fitted with another threshold, as far as
    states can tell; it raises `UsageError` where they do not hold it. `about`: the help of its
    command, one line, more, and an example. `label`: the heading of its part of a page; `words`:
    what tables call the fields of its results that are no metric; `of_items`: fields of items that
    rank them where items have none of the headlines.
    """

    name: str
    metrics: tuple[Metric, ...]
    settings: Callable[[Mapping[str, Any], Facts], dict[str, Any]]
    maps: Callable[[Any, Facts], set[str]]
    plans: Callable[[str, Any, Facts], dict[str, Plan]]
    kinds: tuple[str, ...] = ("classes",)
    key: str = ""
    again: Callable[[str, Any, Facts, Mapping[str, Any]], dict[str, Again]] | None = None
    settings_type: Any = None
    about: str = ""
    pooled: Callable[[Any, Facts], Pooling] | None = None
    recut: Callable[[str, Any, Facts, Mapping[str, Any]], Recutting] | None = None
    label: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    of_items: tuple[str, ...] = ()

    @property
    def in_reports(self) -> str:
        """What reports call it: `temporal` of the command `tc`."""
        return self.key or self.name

    @property
    def headlines(self) -> tuple[str, ...]:
        """The fields that a reader sees first, in their order."""
        chosen = [metric for metric in self.metrics if metric.headline]
        return tuple(own.field for own in sorted(chosen, key=lambda own: own.headline))


def variants(
    family: str,
    settings: Any,
    options: Mapping[str, Any],
    bare: Sequence[str] = (),
) -> dict[str, Any]:
    """Settings of every combination of options that were given several values, by report key.

    `settings` is a dataclass with a constructor `of`. The first value of each option has the plain
    key, say `pavpu`; others say what they change: `pavpu[window=7]`, and by its value alone what
    `bare` names: `pavpu[mutual_information]`. Raises `UsageError` for unknown options and empty
    lists.
    """
    known = settings.__dataclass_fields__
    strange = [name for name in options if name not in known]
    if strange:
        raise UsageError(
            f"unknown {family} options {', '.join(strange)}; expected some of {', '.join(known)}."
        )
    lists = {k: list(v) if isinstance(v, list | tuple) else [v] for k, v in options.items()}
    for name, values in lists.items():
        if not values:
            raise UsageError(f"--{name.replace('_', '-')} is an empty list; expected a value.")
    found: dict[str, Any] = {}
    for combination in itertools.product(*lists.values()):
        changes = [
            str(value) if name in bare else f"{name}={value}"
            for (name, values), value in zip(lists.items(), combination, strict=True)
            if value != values[0]
        ]
        key = f"{family}[{','.join(changes)}]" if changes else family
        found[key] = settings.of(**dict(zip(lists, combination, strict=True)))
    return found
