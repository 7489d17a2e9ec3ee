"""The evaluations of a sweep and its subsets of samples, from its settings alone.

They are the same for data and for saved states.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.arrays import np
from uqeval.errors import UsageError, data_of_kind, number_of
from uqeval.keys import Key
from uqeval.maps.views import Subset
from uqeval.metrics import FAMILIES, Family
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._driver import drive, renamed
from uqeval.metrics._evaluation import Passes, Section, put_part
from uqeval.metrics._family import recorded_settings
from uqeval.usecases.plans import known_families
from uqeval.usecases.sweep.summary import lost_pixels, numerics_of, summary_of, warnings_of


@dataclass(frozen=True)
class SweepPlan:
    """Families on subsets of the samples.

    `variants`: by name of a family, its key in reports and its settings. `drawn`: the subsets for
    each of the `ms`, drawn with `seed`. `of_several`: maps that one sample does not have.
    """

    info: DatasetInfo
    variants: Mapping[str, tuple[str, Any]]
    ms: list[int]
    drawn: list[list[tuple[int, ...]]]
    seed: int
    of_several: frozenset[str]

    @classmethod
    def of_index(cls, index: Mapping[str, Any], info: DatasetInfo, path: object) -> SweepPlan:
        """Return the sweep of the saved states at `path`, with this index. Raises `StoreError`."""
        drawn = index["settings"]["sweep"]
        variants = {
            name: (
                key,
                recorded_settings(FAMILIES[name].settings_type, index["settings"][key], path, key),
            )
            for name, key in index["sweep"]["families"].items()
        }
        subsets = [[tuple(subset) for subset in group] for group in drawn["subsets"]]
        of_several = frozenset(index["sweep"]["of_several"])
        return cls(info, variants, list(drawn["samples"]), subsets, drawn["seed"], of_several)

    def index(self) -> dict[str, Any]:
        """Return the record of the plan in saved states, without the settings."""
        families = {name: key for name, (key, _) in self.variants.items()}
        return {"sweep": {"families": families, "of_several": sorted(self.of_several)}}

    @property
    def families(self) -> list[Family]:
        """Return the families that are evaluated."""
        return [FAMILIES[name] for name in self.variants]

    def maps(self) -> set[str]:
        """Return the names of the maps that are read."""
        infos = [dataclasses.replace(self.info, samples=m) for m in self.ms]
        variants = self.variants.items()
        return set().union(
            *(
                FAMILIES[n].maps(evaluation, info)
                for n, (_, evaluation) in variants
                for info in infos
            )
        )

    def settings(self) -> dict[str, Any]:
        """Return the settings as the report has them."""
        of_families = {
            key: dataclasses.asdict(evaluation) for key, evaluation in self.variants.values()
        }
        return of_families | {
            "sweep": {
                "samples": self.ms,
                "repeats": [len(group) for group in self.drawn],
                "seed": self.seed,
                "subsets": [[list(subset) for subset in group] for group in self.drawn],
                "definition": "paper",
            }
        }

    def passes(self, sectioned: bool = True) -> dict[str, Passes]:
        """Return the passes of every subset, keyed `<subset>:<family>`; their results are sections,
        if `sectioned`."""
        passes: dict[str, Passes] = {}
        subsets = [subset for group in self.drawn for subset in group]
        for name, (key, settings) in self.variants.items():
            family = FAMILIES[name]
            maps = family.maps(settings, self.info)
            for k, subset in enumerate(subsets):
                fields = None
                if len(subset) == 1 and maps & self.of_several:
                    fields = family.on_subsets.of_one_sample
                    if not fields:
                        continue
                subset_info = dataclasses.replace(self.info, samples=len(subset))
                evaluations = family.evaluations(key, settings, subset_info)
                passes[f"{k}:{name}"] = _of_subset(drive(evaluations, sectioned), k, fields)
        return passes

    def record(self, sections: Mapping[str, Section], names: Sequence[str]) -> dict[str, Any]:
        """Return results, items, settings, numerics and warnings of a report."""
        place = itertools.count()
        groups = [[next(place) for _ in group] for group in self.drawn]
        families, ms = self.families, self.ms
        summary = summary_of(sections, families, ms, groups)
        return {
            "results": {"sweep": summary},
            "items": [{"name": name} for name in names],
            "settings": self.settings(),
            "numerics": numerics_of(sections, families, groups),
            "warnings": warnings_of(sections, families, ms, groups) + lost_pixels(summary),
        }


def variants_of(
    families: Mapping[str, Mapping[str, Any]], info: DatasetInfo
) -> dict[str, tuple[str, Any]]:
    """Return the key and the settings of each family. Raises `UsageError` for several variants, and
    for options that a sweep does not have."""
    variants = {}
    for name in families:
        if name in FAMILIES and not {"classes", "regression"} & {*FAMILIES[name].kinds}:
            data = data_of_kind(FAMILIES[name].kinds[0])
            raise UsageError(f"{name} evaluates {data}, which have no sweep; leave {name} out.")
    for family in known_families(families, info):
        options = families[family.name]
        fixed = family.on_subsets.fixed
        for name, value in fixed.items():
            if options.get(name, value) != value:
                raise UsageError(f"a sweep cannot evaluate {name} of {family.name}; leave it out.")
        settings = family.settings({**options, **fixed}, info)
        if len(settings) > 1:
            raise UsageError(
                f"a sweep evaluates one variant of {family.name}, but {len(settings)} are "
                f"requested: {', '.join(settings)}."
            )
        ((key, variant),) = settings.items()
        variants[family.name] = key, variant
    return variants


def families_of_passes(keys: Sequence[str]) -> list[str]:
    """Return the names of the families of some keys of `SweepPlan.passes`, each once."""
    return list(dict.fromkeys(key.partition(":")[2] for key in keys))


def _of_subset(passes: Passes, subset: int, fields: Sequence[str] | None) -> Passes:
    """Run the passes on the maps of one subset; return the results in `fields`, or all (None)."""
    sections: dict[str, Section] = yield from renamed(
        passes, lambda tally: tally.in_view(Subset(subset))
    )
    if not sections:
        return None
    (_, section), *parts = sections.items()
    for key, part in parts:
        put_part(section.results, Key.parse(key).part, part.results, part.flat)
    if fields is None:
        return section
    results = {k: v for k, v in section.results.items() if k.removesuffix("_reason") in fields}
    return Section(results, [])


def default_samples(total: int) -> list[int]:
    """Return M = 1, 2, 4, … below T, and T."""
    return [2**k for k in range(total.bit_length()) if 2**k < total] + [total]


def draw(
    total: int, samples: Sequence[int], repeats: Sequence[int], seed: int
) -> list[list[tuple[int, ...]]]:
    """Return, for each M, R different subsets of M of `total` samples, each ascending.

    R is at most the number of subsets that there are. Seeded; the same for any platform.
    """
    if seed < 0:
        raise UsageError(f"--seed {seed}; expected a whole number from 0 on.")
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen_subsets: list[list[tuple[int, ...]]] = []
    for m, repeat_count in zip(samples, repeats, strict=True):
        possible = math.comb(total, m)
        if possible <= 4 * repeat_count:
            all_subsets = list(itertools.combinations(range(total), m))
            selected = rng.permutation(len(all_subsets))[:repeat_count]
            chosen_subsets.append([all_subsets[int(i)] for i in sorted(selected)])
            continue
        subsets: dict[tuple[int, ...], None] = {}
        while len(subsets) < repeat_count:
            subset = sorted(rng.permutation(total)[:m].tolist())
            subsets[tuple(subset)] = None
        chosen_subsets.append(list(subsets))
    return chosen_subsets


def checked_samples(samples: Sequence[int] | None, total: int, where: str) -> list[int]:
    """Return the Ms, ascending. Raises `UsageError` for numbers outside 1 … T."""
    if samples is None:
        return default_samples(total)
    ms = list(samples)
    if not ms or sorted(set(ms)) != ms or ms[0] < 1:
        raise UsageError(f"--samples {ms}; expected different numbers from 1 on, ascending.")
    if ms[-1] > total:
        raise UsageError(
            f"--samples {ms[-1]}, but {where} holds {number_of(total, 'sample')} per item."
        )
    return ms


def checked_repeats(repeats: int | Sequence[int], count: int) -> list[int]:
    """Return R for each M.

    Raises `UsageError` below 1, and for another count than one or `count`.
    """
    counts = [repeats] * count if isinstance(repeats, int) else list(repeats)
    if len(counts) == 1:
        counts *= count
    if len(counts) != count or min(counts, default=0) < 1:
        raise UsageError(
            f"--repeats {counts}; expected one number from 1 on, or one for each of the {count} Ms."
        )
    return counts
