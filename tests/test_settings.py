"""Options are declared once: what the field says is what holds everywhere."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import uqeval
from uqeval.config.options import commands
from uqeval.errors import UsageError
from uqeval.metrics import FAMILIES
from uqeval.metrics._family import normal_settings, variants
from uqeval.settings import (
    Option,
    Settings,
    documented,
    for_python,
    normal_value,
    option,
    options_of,
)

OPTIONS = [
    (name, option_, own)
    for name, family in FAMILIES.items()
    for option_, own in options_of(family.settings_type).items()
]


@pytest.mark.parametrize(("family", "name", "own"), OPTIONS)
def test_an_option_says_what_it_is(family: str, name: str, own: Option) -> None:
    settings = FAMILIES[family].settings_type
    assert own.help.endswith(".") and "default" not in own.help
    assert f"`{name}`: {for_python(own.help).removesuffix('.')}" in settings.__doc__
    assert name in commands()[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_definitions_change_options_that_there_are(family: str) -> None:
    settings = FAMILIES[family].settings_type
    for name, changed in settings.definitions.items():
        assert set(changed) <= set(options_of(settings))
        made = settings.of(definition=name)
        assert {key: getattr(made, key) for key in changed} == changed


@documented
@dataclasses.dataclass(frozen=True)
class Example(Settings):
    """An example."""

    whole: int = option(4, "A number.", least=1, most=9)
    part: float = option(0.5, "A part.", above=0, below=1)
    maybe: float | None = option(None, "Perhaps.", least=0)
    base: float | str = option(2.0, "A base.")
    word: str = option("a", "A word.", choices=("a", "b"), shown="the first")
    flag: bool = option(True, "Whether.")
    free: str = option("", "Anything.")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"whole": 0}, "--whole 0; expected a whole number from 1 to 9."),
        ({"whole": 10}, "--whole 10; expected a whole number from 1 to 9."),
        ({"whole": 2.0}, "--whole 2.0; expected a whole number"),
        ({"whole": True}, "--whole True; expected a whole number"),
        ({"whole": "4"}, "--whole '4'; expected a whole number"),
        ({"part": 0}, "--part 0; expected a number above 0 and below 1."),
        ({"part": 40}, "expected a number above 0 and below 1. For 40 %, write 0.4."),
        ({"part": "0,4"}, "below 1. A decimal number has a point: write 0.4."),
        ({"part": 1.0}, "--part 1.0; expected a number above 0 and below 1."),
        ({"part": float("nan")}, "--part nan; expected a number above 0"),
        ({"part": None}, "--part None; expected a number above 0"),
        ({"maybe": -1}, "--maybe -1; expected a number of at least 0."),
        ({"word": "c"}, "--word 'c'; expected one of a, b."),
        ({"flag": 1}, "--flag 1; expected true or false."),
        ({"definition": "x"}, "--definition 'x'; expected one of paper."),
    ],
)
def test_a_value_that_its_option_does_not_allow(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Example.of(**given)
    assert says in str(caught.value)


def test_values_that_are_allowed() -> None:
    made = Example.of(whole=9, part=1e-9, maybe=0, base="classes", word="b", flag=False, free="x")
    assert made == Example(9, 1e-9, 0, "classes", "b", False, "x")
    assert "`word`: A word (default: the first)." in (Example.__doc__ or "")
    assert "`whole`: A number (default: 4)." in (Example.__doc__ or "")


@pytest.mark.parametrize("name", FAMILIES)
def test_values_of_definitions_are_in_their_one_spelling(name: str) -> None:
    settings = FAMILIES[name].settings_type
    for definition in settings.definitions:
        made = settings.of(definition=definition)
        for option_name in options_of(settings):
            value = getattr(made, option_name)
            assert repr(normal_value(settings, option_name, value)) == repr(value)


@pytest.mark.parametrize(
    ("family", "options", "spelling"),
    [
        ("pavpu", {"accuracy_threshold": 1}, 1.0), ("pavpu", {"curve_range": "0:1.0"}, "0:1"),
        ("pavpu", {"threshold": [".50", 0.5]}, "0.5"), ("nmerci", {"depth_step": 2}, 2.0),
        ("tc", {"flow_scale": 1}, 1.0), ("divergence", {"clip": 0}, 0.0),
        ("image_failure", {"risk_limit": 1.0}, "1"), ("ood", {"aggregation": "p90.0"}, "p90"),
        ("image_failure", {"confidence": "p90.0"}, "p90"), ("failure", {"threshold": 1}, "1"),
    ],
)  # fmt: skip
def test_equal_values_are_recorded_as_equal(
    family: str, options: dict[str, Any], spelling: Any
) -> None:
    ((key, made),) = variants(family, FAMILIES[family].settings_type, options).items()
    ((name, given),) = options.items()
    assert (key, repr(getattr(made, name))) == (family, repr(spelling))
    given = given if isinstance(given, list) else [given]
    for value in given:  # as earlier versions recorded it
        assert normal_settings(FAMILIES[family].in_reports, {name: value, "x": 1}) == {
            name: spelling, "x": 1,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("family", "options", "keys"),
    [
        ("pavpu", {"threshold": ["mean", "0.00001", 1e-05, "1e-5"]}, ["", "[threshold=0.00001]"]),
        ("pavpu", {"threshold": ["0.3", "0.40", ".4"], "window": [4, 7]}, [
            "", "[window=7]", "[threshold=0.40]", "[window=7,threshold=0.40]"]),
        ("ood", {"aggregation": ["mean", "p90", "p90.0"]}, ["", "[aggregation=p90]"]),
        ("calibration", {"clip": [0.1, 0.00001, 1e-05]}, ["", "[clip=1e-05]"]),
    ],
)  # fmt: skip
def test_equal_values_in_a_list_are_one_variant(
    family: str, options: dict[str, Any], keys: list[str]
) -> None:
    """The first spelling names it, so that rules of a gate name it as the user does."""
    found = variants(family, FAMILIES[family].settings_type, options)
    assert sorted(found) == sorted(f"{family}{key}" for key in keys)


def test_values_of_no_form_stay_as_they_are() -> None:
    """A report may come from anyone."""
    record = {"threshold": [], "curve_range": 3, "accuracy_threshold": {}, "window": "x"}
    assert normal_settings("pavpu", record) == record
    assert normal_settings("other", {"threshold": "1.0"}) == {"threshold": "1.0"}


def test_docstrings_of_python_have_keywords_and_lists() -> None:
    """Help of commands has flags, and words for options that are repeated."""
    text = uqeval.evaluate.__doc__ or ""
    assert "`class_names`: Class names, as a list." in text
    assert "`slice_by`: Slice by this column, or by combinations. A list gives several" in text
    for words in ("--part", "--region", "-o FILE", "Repeat for more", "by commas", "LABELS"):
        assert words not in text, words
    assert "`uqeval merge --fit`" in text, "a command stays"
