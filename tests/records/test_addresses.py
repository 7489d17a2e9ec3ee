"""Addresses: parsed, printed, and parsed again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_report import report

from uqeval.errors import UsageError
from uqeval.gate import Address
from uqeval.records.lookup import NoScore, find

TEXT = st.text(min_size=1, max_size=12) | st.text('."\\/@[]=, ab', min_size=1, max_size=8)
NAME = st.from_regex(r"[a-z_][a-z0-9_]*", fullmatch=True)
ADDRESSES = st.builds(
    Address,
    metric=NAME,
    fields=st.lists(NAME | TEXT, min_size=1, max_size=4).map(tuple),
    variant=st.none() | TEXT,
    store=st.none() | TEXT,
    where=st.lists(st.tuples(TEXT, TEXT), max_size=3, unique_by=lambda c: c[0]).map(tuple),
    region=st.none() | TEXT,
)


def test_a_record_without_numbers_offers_no_choice() -> None:
    found = find(
        report(results={"temporal": {"flow": {"id": "dis"}}}), Address("temporal", ("flow",))
    )
    assert isinstance(found, NoScore) and found.why == "temporal.flow holds no numbers"


@given(ADDRESSES)
def test_what_is_printed_is_parsed_again(address: Address) -> None:
    assert Address.parse(str(address)) == address


@given(st.text(max_size=30) | st.text('ab./[]@=,"\\', max_size=14))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = Address.parse(text)
    except UsageError as error:
        assert repr(text) in str(error)
    else:
        assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pavpu.pavpu", Address("pavpu", ("pavpu",))),
        ("city/calibration.ece", Address("calibration", ("ece",), store="city")),
        ("pavpu[window=7].surplus", Address("pavpu", ("surplus",), "window=7")),
        ("pavpu[threshold=range:0.5].phi", Address("pavpu", ("phi",), "threshold=range:0.5")),
        ("failure.risk_at_coverage.80", Address("failure", ("risk_at_coverage", "80"))),
        (
            'pavpu.per_class."traffic.light".pavpu',
            Address("pavpu", ("per_class", "traffic.light", "pavpu")),
        ),
        (
            "segmentation.miou@weather=night,city=x",
            Address("segmentation", ("miou",), where=(("weather", "night"), ("city", "x"))),
        ),
        ('"a/b.c"/pavpu.phi', Address("pavpu", ("phi",), store="a/b.c")),
    ],
)
def test_what_an_address_says(text: str, expected: Address) -> None:
    assert Address.parse(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text",
    ["", "pavpu", ".pavpu", "pavpu.", "a/b/c.d", "pavpu[].x", "pavpu[a.x", "a.b@c", "a.b@c=",
     'a."b', "a.b@c=1,c=2", "a.b@c=1@d=2", "a..b"],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError):
        Address.parse(text)


def test_the_keys_that_a_report_uses() -> None:
    address = Address.parse("city/pavpu[window=7].per_class.road.pavpu@a=1,b=2")
    assert address.key == "pavpu[window=7]"
    assert address.within == "pavpu[window=7].per_class.road.pavpu"
    assert list(address.slice_keys) == ["a=1,b=2", "b=2,a=1"]
