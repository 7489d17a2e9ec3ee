"""All laws over all tallies."""

from __future__ import annotations

from collections.abc import Callable

import laws
import pytest

from uqeval.tallies import TALLIES, Tally


def name_of(tally: Tally) -> str:
    same = [t for t in laws.EXAMPLES if type(t) is type(tally)]
    return f"{tally.id}{same.index(tally)}"


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("tally", laws.EXAMPLES, ids=name_of)
def test_law(tally: Tally, law: Callable[[Tally], None]) -> None:
    law(tally)


def test_every_tally_has_examples_and_an_oracle() -> None:
    assert {type(t) for t in laws.EXAMPLES} == set(TALLIES) == set(laws.ORACLES)


def test_ids_are_unique() -> None:
    assert len({t.id for t in TALLIES}) == len(TALLIES)
