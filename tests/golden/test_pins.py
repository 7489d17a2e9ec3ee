"""Pinned values are unchanged: every number of every report to the bit, every option of every
command.

Ends of intervals may differ by 1e-12: draws may be summed in another order.
New keys and new options are allowed, words are not pinned. On another processor or with other
versions of NumPy, SciPy or Numba than those that wrote the pins, the last bits of a logarithm or of
a quantile may differ: there numbers agree to 1e-9.
"""

from __future__ import annotations

import json
import lzma
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pinned
import pinned_options as options
import pytest

PINS = json.loads(lzma.decompress(pinned.PINS.read_bytes()))
SAME_MACHINE = PINS["machine"] == pinned.machine()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stores of all cases."""
    folder = tmp_path_factory.mktemp("pinned")
    pinned.stores(folder)
    return folder


@pytest.mark.parametrize("name", [*pinned.CASES, *pinned.OTHERS])
def test_every_number_of_a_report(folder: Path, name: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    different = list(_different(PINS["reports"][name], pinned.found(name), ""))
    assert not different, f"{len(different)} values:\n" + "\n".join(different[:20])


def test_all_cases_are_pinned() -> None:
    assert set(PINS["reports"]) == {*pinned.CASES, *pinned.OTHERS}


def test_a_changed_number_is_seen() -> None:
    then = {"a": [1.0, {"b": 2}], "c": None}
    assert not list(_different(then, {"a": [1.0, {"b": 2, "new": 3}], "c": None}, ""))
    for now in ({"a": [1.1, {"b": 2}], "c": None}, {"a": [1.0, {"b": 2}]},
                {"a": [1.0, {"b": 2}], "c": 0.0}, {"a": [1.0], "c": None},
                {"a": [1.0, {"b": 2.0}], "c": None}):  # fmt: skip
        assert len(list(_different(then, now, ""))) == 1


def test_no_option_is_lost() -> None:
    now = options.options()
    for command, own in json.loads(options.PINS.read_text()).items():
        for name, then in own.items():
            found = next((one for one in now[command].values() if name in one["names"]), {})
            assert set(then["names"]) <= set(found.get("names", ())), f"{command} {name}"
            assert set(then["choices"]) <= set(found["choices"]), f"{command} {name}"
            for part in ("default", "several", "required"):
                assert found[part] == then[part], f"{command} {name}: {part}"


def _different(then: Any, now: Any, place: str) -> Iterator[str]:
    """Where a value is another; keys that only `now` has are none."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key, value in then.items():
            if key not in now:
                yield f"{place}.{key}: missing"
            elif key != "digest" or SAME_MACHINE:
                yield from _different(value, now[key], f"{place}.{key}")
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for k, (one, other) in enumerate(zip(then, now, strict=True)):
            yield from _different(one, other, f"{place}[{k}]")
    elif not _same(then, now) and not (_resampled(place) and _near(then, now)):
        yield f"{place}: {now!r}, pinned {then!r}"


def _resampled(place: str) -> bool:
    """Whether a value comes from sums of draws, whose order of additions is free."""
    return place.endswith((".low", ".high")) or any(
        word in place for word in ("interval", "_debiased", "movers", "difference")
    )


def _near(then: Any, now: Any) -> bool:
    both = type(then) is float and type(now) is float
    return both and math.isclose(then, now, rel_tol=1e-12, abs_tol=1e-14)


def _same(then: Any, now: Any) -> bool:
    if type(then) is not type(now) or SAME_MACHINE or not isinstance(then, float):
        return type(then) is type(now) and bool(then == now)
    return math.isclose(then, now, rel_tol=1e-9, abs_tol=1e-12)


if os.environ.get("NUMBA_DISABLE_JIT") == "1":
    pytest.skip("compiled kernels are what is pinned", allow_module_level=True)
