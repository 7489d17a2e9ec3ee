"""The items that something is fitted on (`--fit-on`)."""

from __future__ import annotations

from uqeval.errors import UsageError, listed, number_of
from uqeval.metrics._dataset_info import DatasetInfo


def fit_items(fit_on: str | None, info: DatasetInfo) -> list[int] | None:
    """Return the indices of the items in a file, among those of all shards; None for all.

    Raises `UsageError` for names that are no items.
    """
    if fit_on is None:
        return None
    from uqeval.stores.names import read_names_file

    names = read_names_file(fit_on)
    place = {name: i for i, name in enumerate(info.all_names or info.names)}
    strange = [name for name in names if name not in place]
    if strange or not names:
        raise UsageError(
            f"--fit-on {fit_on}: is empty; expected the names of items, one per line."
            if not names
            else f"--fit-on {fit_on}: {len(strange)} of {number_of(len(names), 'name')} not among "
            f"the {number_of(len(place), 'evaluated item')}: {listed(strange)}."
        )
    return sorted({place[name] for name in names})
