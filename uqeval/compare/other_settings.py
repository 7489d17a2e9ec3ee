"""The results and the single scores that reports have of other settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import combinations

from uqeval.errors import cut, quoted
from uqeval.gate.other_settings import all_other_settings, first_other_setting
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.lookup import Score, addresses_in, find


def other_settings(
    first: Named, second: Named, key: str, fields: Collection[str] = ()
) -> str | None:
    """Return why scores of a result in two reports cannot be compared: a setting that differs.

    `fields`: those of one score; without them, all scores of the result.
    """
    if (differs := first_other_setting(first.report, second.report, key, fields)) is None:
        return None
    values = differs.value, differs.other
    first_value, second_value = ("not set" if value is None else quoted(value) for value in values)
    advice = differs.advice[0].lower() + differs.advice[1:]
    return (
        f"{cut(differs.name)} is {first_value} in {first.path} and {second_value} in "
        f"{second.path}; scores of different settings cannot be compared; {advice}"
    )


class OtherSettings:
    """Why results and scores of some reports cannot be compared: their settings differ.

    An option that changes only some scores leaves the others of its result comparable.
    """

    def __init__(self, reports: Sequence[Named]) -> None:
        self._reports = reports

    @cached_property
    def of_results(self) -> dict[str, str]:
        """Return the reason for each result without a comparable score, by its key."""
        reasons: dict[str, str] = {}
        for key, first, second in self._pairs():
            if key not in reasons and (reason := other_settings(first, second, key)) is not None:
                reasons[key] = reason
        return reasons

    @cached_property
    def _in_part(self) -> set[str]:
        """Return the keys of the other results of which a setting differs."""
        return {
            key
            for key, first, second in self._pairs()
            if key not in self.of_results
            and any(all_other_settings(first.report, second.report, key))
        }

    def of_score(self, address: Address) -> str | None:
        """Return why a score of a comparable result cannot be compared; None if it can."""
        if address.key not in self._in_part:
            return None
        having = [own for own in self._reports if isinstance(find(own.report, address), Score)]
        reasons = (
            other_settings(*pair, address.key, address.fields) for pair in combinations(having, 2)
        )
        return next(filter(None, reasons), None)

    def of_scores(self) -> Iterator[str]:
        """Yield the addresses of the scores of comparable results that cannot be compared."""
        addresses = {
            text: None
            for named in self._reports
            for key in self._in_part & named.report.results.keys()
            for text in addresses_in(key, named.report.results[key])
        }
        yield from (text for text in addresses if self.of_score(Address.parse(text)) is not None)

    def _pairs(self) -> Iterator[tuple[str, Named, Named]]:
        """Yield the key of each result with each pair of reports that have it: two reports may both
        agree with a third that does not have a setting, such as a unit."""
        for key in dict.fromkeys(key for named in self._reports for key in named.report.results):
            having = [named for named in self._reports if key in named.report.results]
            yield from ((key, first, second) for first, second in combinations(having, 2))
