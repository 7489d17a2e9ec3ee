"""Which texts spell one unit."""

from __future__ import annotations

import pytest

from uqeval.records.units import is_same_unit


@pytest.mark.parametrize(
    "spellings",
    [
        ("m", "meter", "metres", "Metre", " m "),
        ("cm", "centimeters"),
        ("mm", "millimetre"),
        ("km", "kilometers"),
        ("µm", "um", "μm", "microns"),
        ("s", "sec", "seconds"),
        ("ms", "msec", "msecs", "Milliseconds"),
        ("µs", "usec", "microsecond"),
        ("deg", "°", "degrees"),
        ("rad", "radian"),
        ("m s-1", "m s-1"),
        (None, None),
    ],
)
def test_spellings_of_one_unit(spellings: tuple[str, ...]) -> None:
    assert all(is_same_unit(spellings[0], other) for other in spellings)


@pytest.mark.parametrize(
    "units",
    [
        ("m", "cm"), ("mm", "Mm"), ("m", "M"), ("s", "S"), ("ms", "m s"), ("m", ""), (1, "m"),
        ("msec", "Msec"), ("msec", "MSEC"), ("usec", "Usec"),
    ],
)  # fmt: skip
def test_other_units(units: tuple[str, str]) -> None:
    assert not is_same_unit(*units)
