"""All laws over all tallies."""

from __future__ import annotations

import laws
import pytest

from uqeval.tallies._contract import Tally


def name_of(tally: Tally) -> str:
    same = [t for t in laws.EXAMPLES if type(t) is type(tally)]
    return f"{tally.id}{same.index(tally)}"


@pytest.mark.parametrize("tally", laws.EXAMPLES, ids=name_of)
def test_all_laws(tally: Tally) -> None:
    """In one test: the items of a tally are counted once, by kernels that are compiled once."""
    for law in laws.LAWS:
        law(tally)
    assert laws.states_for(tally)


def test_every_tally_has_examples_and_an_oracle() -> None:
    assert {type(t) for t in laws.EXAMPLES} == laws.all_tallies() == set(laws.ORACLES)


def test_ids_are_unique() -> None:
    assert len({t.id for t in laws.all_tallies()}) == len(laws.all_tallies())
