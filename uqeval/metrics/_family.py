"""A family: the metrics of one command, under one key of a report; and the list of all families,
which are loaded when they are looked up.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any

from uqeval.argument_types import python_value
from uqeval.errors import StoreError, UsageError, all_listed, cut, did_you_mean, option_name
from uqeval.keys import Key, family_of
from uqeval.maps.region_text import region_of
from uqeval.maps.regions import SHARE
from uqeval.metrics._contract import Display, Doubt, Metric
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Evaluation, Part
from uqeval.metrics._view import InView
from uqeval.settings import check_value, default_of, for_python, normal_value


@dataclass(frozen=True)
class OnSubsets:
    """How a sweep evaluates a family on subsets of the samples.

    `default`: the kinds of data for which it is evaluated if no family is named, given ground
    truth. `fixed`: options that have these values in a sweep. `of_one_sample`: the fields that are
    defined for one sample, which has no σ; empty: none. `own_points`: curves whose points are those
    of each subset, so that they have no mean; a part with such a table is off in `fixed`.
    """

    default: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    of_one_sample: tuple[str, ...] = ()
    own_points: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """How a family is evaluated.

    `settings(options, info)` returns the settings of each variant by report key, and raises
    `UsageError` for invalid options. `evaluation` fits, counts and scores a variant; each of
    `parts` does the same for a part of its results, if the settings request it. `kinds`: the kinds
    of data that it evaluates. `key`: its name in reports, if that differs from its command.
    `settings_type` makes settings from their record in a report. `about`: the help of its command:
    one line, more, and an example. `label`: the heading of its part of a page. `words`: the names
    in tables of result fields that are not metrics. `of_items`: fields of items that rank them
    where items have none of the headlines. `display`: how its results are shown. `on_subsets`: in a
    sweep. `needs_reference`: it compares the predictions with those of a reference.
    `needs_annotators`: it compares the labels of several annotators. `on_request`: it is evaluated
    only if a user names it. `one_pass`: options with which it counts shards in one pass.
    `doubt` returns from a record of results why predictions and ground truth may not belong
    together, or None; it is a warning, and the first advice of the findings.
    """

    name: str
    metrics: tuple[Metric, ...]
    settings: Callable[[Mapping[str, Any], DatasetInfo], dict[str, Any]]
    evaluation: type[Evaluation[Any]]
    settings_type: Any
    parts: tuple[type[Part[Any]], ...] = ()
    kinds: tuple[str, ...] = ("classes",)
    key: str = ""
    about: str = ""
    label: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    of_items: tuple[str, ...] = ()
    display: Display = field(default_factory=Display)
    on_subsets: OnSubsets = field(default_factory=OnSubsets)
    needs_reference: bool = False
    needs_annotators: bool = False
    on_request: bool = False
    one_pass: str = ""
    doubt: Callable[[Mapping[str, Any]], Doubt | None] | None = None

    @property
    def in_reports(self) -> str:
        """Return the family's name in reports: `temporal` for the command `tc`."""
        return self.key or self.name

    @cached_property
    def by_field(self) -> Mapping[str, Metric]:
        """Return the metrics by their fields."""
        return {metric.field: metric for metric in self.metrics}

    @property
    def headlines(self) -> tuple[str, ...]:
        """Return the fields that a reader sees first, in their order."""
        metrics = [metric for metric in self.metrics if metric.headline]
        return tuple(metric.field for metric in sorted(metrics, key=lambda metric: metric.headline))

    def evaluations(
        self, key: str, settings: Any, info: DatasetInfo, fitted: Mapping[str, Any] | None = None
    ) -> dict[str, Evaluation[Any]]:
        """Return the evaluation of a variant by its key, and of its parts by `key/part`.

        They are of the region that the key names. `fitted`: the fitted numbers, by the same keys.
        """
        kinds = {key: self.evaluation}
        kinds |= {f"{key}/{part.name}": part for part in self.parts if part.is_requested(settings)}
        fitted_values = fitted or {}
        evaluations_by_key = {
            name: kind(settings, info, dict(fitted_values.get(name, {})))
            for name, kind in kinds.items()
        }
        region = Key.parse(key).region
        if region is None:
            return evaluations_by_key
        view = region_of(region, info.labelled, getattr(settings, "region_share", SHARE))
        return {
            name: InView(evaluation.of_region(region), view)
            for name, evaluation in evaluations_by_key.items()
        }

    def maps(self, settings: Any, info: DatasetInfo) -> set[str]:
        """Return the names of the maps that a variant and its parts read."""
        evaluations = self.evaluations("", settings, info).values()
        return set().union(*(evaluation.maps() for evaluation in evaluations))


def settings_of(kind: Any, record: Mapping[str, Any]) -> Any:
    """Return the settings of dataclass `kind` from their record in a report."""
    fields = kind.__dataclass_fields__
    return kind(**{name: value for name, value in record.items() if name in fields})


def recorded_settings(kind: Any, record: Mapping[str, Any], path: object, key: str) -> Any:
    """Return the settings of a result from their record in a report or in states at `path`.

    Raises `StoreError` for a value that no run records: the file is wrong, not an option.
    """
    try:
        return settings_of(kind, record)
    except UsageError as error:
        raise StoreError(
            f"{cut(path)}: settings.{cut(key)}: {for_python(str(error))} uqeval does not write "
            "such settings: evaluate again."
        ) from None


def normal_settings(key: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a result's settings with values in their one spelling, and options
    without effect at their default: earlier versions recorded values as the user wrote them, and a
    run gives all variants the options that only some of them use."""
    return dict(_normal(_Recorded.of(key, record)))


@dataclass(frozen=True)
class _Recorded:
    """The settings of a result in a report, of any types.

    `text` tells them apart. Reports are compared in pairs, and a gate has many rules on a result:
    what follows from settings is found once.
    """

    key: str
    text: str
    record: Mapping[str, Any] = field(compare=False)

    @classmethod
    def of(cls, key: str, record: Mapping[str, Any]) -> _Recorded:
        return cls(key, repr(record), record)


@lru_cache(maxsize=1024)
def _normal(own: _Recorded) -> Mapping[str, Any]:
    # A copy: the caller may change the lists of its record, but not those of a known result.
    key, record = own.key, own.record
    family = FAMILIES_IN_REPORTS.get(family_of(key))
    normal = dict(record)
    if family is None or not record:
        return normal
    for name in family.settings_type.__dataclass_fields__.keys() & record.keys():
        # A report may come from anyone, so a value may be of any type.
        with suppress(UsageError, TypeError, ValueError, AttributeError, OverflowError):
            normal[name] = normal_value(family.settings_type, name, record[name])
    with suppress(UsageError, TypeError, ValueError, AttributeError, OverflowError):
        region = Key.parse(key).region
        unused = settings_of(family.settings_type, normal).unused(region is not None)
        normal |= {name: default_of(family.settings_type, name) for name in unused & record.keys()}
    return normal


def default_settings(key: str) -> dict[str, Any]:
    """Return the record of a result's settings if no option is given: those of a family that a run
    evaluates only for another one."""
    family = FAMILIES_IN_REPORTS.get(family_of(key))
    return {} if family is None else asdict(family.settings_type())


def results_read(key: str, record: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the keys and fields of other results from whose items a result is computed, from the
    record of its settings."""
    return _read(_Recorded.of(key, record))


@lru_cache(maxsize=1024)
def _read(own: _Recorded) -> tuple[tuple[str, str], ...]:
    family = FAMILIES_IN_REPORTS.get(family_of(own.key))
    if family is not None:
        with suppress(UsageError, TypeError, ValueError, AttributeError, OverflowError):
            settings = settings_of(family.settings_type, own.record)
            read: tuple[tuple[str, str], ...] = settings.reads()
            return read
    return ()


def variants(
    family: str, settings: Any, options: Mapping[str, Any], bare: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the settings of every combination of the options' values, by report key.

    `settings` is a dataclass with a constructor `of`. The first value of each option has the plain
    key, such as `pavpu`. Other keys name the changed options, `pavpu[window=7]`, in the order of
    the fields, whatever that of `options`; options in `bare` appear by their value alone,
    `pavpu[mutual_information]`. Of two spellings of a value, such as 0.4 and "0.40", only the
    first counts. Raises `UsageError` for unknown options and empty lists.
    """
    fields = settings.__dataclass_fields__
    strange = [name for name in options if name not in fields]
    if strange:
        raise UsageError(
            f"unknown {family} options {all_listed(strange)}; "
            + did_you_mean(strange[0], fields, f"expected some of {', '.join(fields)}.")
        )
    plain = {
        k: os.fspath(v) if isinstance(v, os.PathLike) else python_value(v)
        for k, v in ((name, options[name]) for name in fields if name in options)
    }
    lists = {k: list(v) if isinstance(v, list | tuple) else [v] for k, v in plain.items()}
    for name, values in lists.items():
        if not values:
            raise UsageError(f"{option_name(name)} is an empty list; expected a value.")
        for value in values:
            check_value(settings, name, value)
    # Keys have values as the user wrote them, so that rules of the gate name them.
    pairs: list[list[tuple[Any, Any]]] = []
    for name, values in lists.items():
        pairs.append([])
        for value in values:
            normal = normal_value(settings, name, value)
            if all(normal != other for _, other in pairs[-1]):
                pairs[-1].append((value, normal))
    variants_by_key: dict[str, Any] = {}
    for combination in itertools.product(*pairs):
        changes = [
            str(value) if name in bare else f"{name}={value}"
            for name, own, (value, normal) in zip(lists, pairs, combination, strict=True)
            if normal != own[0][1]
        ]
        key = f"{family}[{','.join(changes)}]" if changes else family
        values_of_variant = dict(zip(lists, (normal for _, normal in combination), strict=True))
        variants_by_key[key] = settings.of(**values_of_variant)
    return variants_by_key


class _Families(MutableMapping[str, Family]):
    """Families by name; a module is loaded when its family is looked up."""

    def __init__(self, modules: dict[str, str]) -> None:
        self._modules = modules
        self._families: dict[str, Family] = {}
        #: The name of each family by its key in reports, which is the name of its module.
        self.names_in_reports = {module: name for name, module in modules.items()}

    def __getitem__(self, name: str) -> Family:
        if name not in self._families:
            module = import_module(f"uqeval.metrics.{self._modules[name]}")
            self._families[name] = module.FAMILY
        return self._families[name]

    def __setitem__(self, name: str, family: Family) -> None:
        self._families[name] = family
        self._modules.setdefault(name, name)
        self.names_in_reports[family.in_reports] = name

    def __delitem__(self, name: str) -> None:
        del self._modules[name], self.names_in_reports[self._families.pop(name).in_reports]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class _InReports(Mapping[str, Family]):
    """The families by their names in reports."""

    def __getitem__(self, name: str) -> Family:
        return FAMILIES[FAMILIES.names_in_reports[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(FAMILIES.names_in_reports)

    def __len__(self) -> int:
        return len(FAMILIES)


#: The only list of families, by name, with the module that defines `FAMILY`. Runs, columns of
#: reports, directions of the gate and tables of the docs come from it.
FAMILIES = _Families({
    "segmentation": "segmentation",
    "pavpu": "pavpu",
    "calibration": "calibration",
    "failure": "failure",
    "image_failure": "image_failure",
    "sparsification": "sparsification",
    "regression": "regression",
    "nmerci": "nmerci",
    "divergence": "divergence",
    "ood": "ood",
    "conformal": "conformal",
    "annotators": "annotators",
    "tc": "temporal",
})  # fmt: skip
FAMILIES_IN_REPORTS = _InReports()
