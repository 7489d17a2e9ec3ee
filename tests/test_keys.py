"""Keys of results: taken apart and put together, whatever text a variant or region holds."""

from __future__ import annotations

import pytest

from uqeval.gate import Address
from uqeval.keys import Key, family_of


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("pavpu", Key("pavpu")),
        ("pavpu[window=7]", Key("pavpu", "window=7")),
        ("calibration@boundary:8", Key("calibration", None, "boundary:8")),
        ("pavpu[window=7]@map:road", Key("pavpu", "window=7", "map:road")),
        ("calibration[clip=0.1]/temperature", Key("calibration", "clip=0.1", None, "temperature")),
        ("calibration[fit_on=a/b.txt]/temperature",
         Key("calibration", "fit_on=a/b.txt", None, "temperature")),
        ("temporal[flow=dis@fast]", Key("temporal", "flow=dis@fast")),
        ("pavpu[threshold_from=x[1].json]@interior:3/accuracy_by_uncertainty",
         Key("pavpu", "threshold_from=x[1].json", "interior:3", "accuracy_by_uncertainty")),
    ],
)  # fmt: skip
def test_keys(text: str, key: Key) -> None:
    assert Key.parse(text) == key
    assert str(key) == text
    assert key.whole == text.removesuffix(f"/{key.part}")
    assert family_of(text) == key.family


def test_an_address_of_a_region() -> None:
    address = Address.parse("city/calibration@boundary:8.per_class.car.ece@weather=fog")
    assert address.region == "boundary:8"
    assert address.key == "calibration@boundary:8"
    assert Address.of_key("calibration@box:0.5:1,0:1", ("ece",)).within == (
        'calibration@"box:0.5:1,0:1".ece'
    )
