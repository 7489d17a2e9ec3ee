"""The items that all reports have, in the whole set and in slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from uqeval.compare.same_data import refuse_other_sets
from uqeval.errors import UsageError, listed, number_of
from uqeval.records.addresses import Address, slice_key
from uqeval.records.folder import Named
from uqeval.records.lookup import slice_names


@dataclass(frozen=True)
class CommonItems:
    """The items that all reports have. `counts`: the sizes of the different sets of items."""

    names: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def same(self) -> bool:
        """Return whether no report has other items."""
        return all(count == len(self.names) for count in self.counts)

    def __str__(self) -> str:
        """Return over which items the models are compared."""
        if not self.names:
            return f"no item is common to all models, of {self._counts}, so there is no score"
        return (
            f"compared over the {number_of(len(self.names), 'item')} that all models have, "
            f"of {self._counts}"
        )

    @property
    def _counts(self) -> str:
        return " and ".join(map(str, self.counts))


def common_items(reports: Sequence[Named]) -> CommonItems:
    """Return the common items of the whole sets.

    Their order does not depend on the order of the reports, so that draws do not either.
    """
    sets = [named.report.item_names for named in reports]
    shared = set.intersection(*map(set, sets))
    names = min(tuple(name for name in own if name in shared) for own in sets)
    return CommonItems(names, _sizes(sets))


def common_in_slice(whole: CommonItems, reports: Sequence[Named], address: Address) -> CommonItems:
    """Return the common items in the slice of an address, of the reports that have this slice."""
    slices = [slice_names(named.report, address) for named in reports]
    sets = [names for names in slices if names is not None]
    shared = set(whole.names).intersection(*sets)
    return CommonItems(tuple(name for name in whole.names if name in shared), _sizes(sets))


def in_words(address: Address) -> str:
    """Return the slice of an address in words."""
    return f"slice {slice_key(address.where)}"


def _sizes(sets: Iterable[Iterable[str]]) -> tuple[int, ...]:
    return tuple(len(names) for names in dict.fromkeys(map(frozenset, sets)))


def refuse_other_items(
    reports: Sequence[Named], common: CommonItems, without_states: str, place: str
) -> None:
    """Raise `UsageError` if scores of the common items cannot be computed, or if there are none.

    `without_states`: why there are no states; empty if there are. `place`: the beginning of the
    message.
    """
    if not common.names:
        of_models = dict.fromkeys(named.report.item_names for named in reports)
        raise UsageError(
            f"{place}the models have no common items: their items are called "
            f"{' and '.join(listed(names, 3) for names in of_models)}. Evaluate them on the "
            "same data; --names FILE of the evaluation gives stores the same names."
        )
    if without_states:
        raise UsageError(
            f"{place}the reports share {number_of(len(common.names), 'item')} of "
            f"{common._counts}; scores of the common items need states: {without_states}."
        )
    refuse_other_sets(reports, common.names, place)
