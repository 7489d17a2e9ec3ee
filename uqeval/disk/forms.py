"""Check the form of records from files, which may come from anyone: their keys and types."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from uqeval.errors import FormError, cut, quoted

#: A count of items, classes, pixels of a side.
Count = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
#: Types that pydantic would else make of other values, such as the number 5 of the text "5".
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
#: Options of intervals, as `statistics.options` declares them.
Draws = Annotated[int, Field(strict=True, ge=100, le=100_000)]
Seed = Annotated[int, Field(strict=True, ge=0)]
Level = Annotated[float, Field(strict=True, ge=0.5, lt=1)]
Method = Literal[
    "auto", "korn-graubard", "jackknife-t", "expanded", "batch-means", "percentile"
]  # fmt: skip
#: Expected values by the first word of pydantic's type of error.
_WORDS = {
    "string": "a text", "dict": "a record", "dataclass": "a record", "list": "a list",
    "tuple": "a list", "int": "a whole number", "float": "a number", "bool": "true or false",
    "finite": "a finite number", "model": "a record", "mapping": "a record",
}  # fmt: skip


@dataclass
class Store:
    """The record of a store in a report and in saved states."""

    path: str = ""
    #: None if the server of the store does not tell enough of its content.
    fingerprint: str | None = ""


@dataclass
class Shard:
    """Which shard of a run a report or states are of."""

    number: Count
    of: Count


@dataclass
class Inputs:
    """The record of inputs in a report and in saved states, as far as commands read it."""

    predictions: list[Store] = field(default_factory=list)
    labels: Store | None = None
    target: Store | None = None
    frames: Store | None = None
    reference: Store | None = None
    flow: list[Store] | None = None
    regions: list[Store] | None = None
    options: dict[str, Any] | None = None
    items: Count | None = None
    evaluated: Count | None = None
    part: Shard | None = None
    sets: list[dict[str, Any]] | None = None
    frame_names: list[str] | None = None
    merged_runs: Count | None = None


@dataclass
class Metric:
    """The record of a metric in a report and in saved states."""

    label: str = ""
    unit: str = ""
    direction: Annotated[str | None, Field(pattern="^(higher|lower)$")] = None
    range: tuple[Number | None, Number | None] = (None, None)
    reference: str = ""
    interval: str = ""
    meaning: str = ""
    advice: str = ""


@dataclass
class Interval:
    """The record of an interval in a report."""

    level: Number | None = None
    low: Number | None = None
    high: Number | None = None
    units: dict[str, Any] | None = None


def formed(kind: Any, record: Any, allow_missing: bool = False) -> Any:
    """Return a record as an object of the class `kind`, by the annotations of its fields.

    Raises `FormError` for the first value of another type, with its key. `allow_missing`: None if
    only keys are missing.
    """
    try:
        return _reader(kind).validate_python(record)
    except ValidationError as error:
        for flaw in error.errors(include_url=False):
            is_missing = flaw["type"] == "missing" and isinstance(flaw["loc"][-1], str)
            if not (allow_missing and is_missing):
                raise FormError(_in_words(flaw)) from None
    return None


def _in_words(flaw: Any) -> str:
    key = f"`{cut('.'.join(map(str, flaw['loc'])))}`" if flaw["loc"] else "it"
    if flaw["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"{key} is an unknown key"
    if flaw["type"] == "missing":
        return f"{key} is missing"
    expected = _WORDS.get(flaw["type"].partition("_")[0])
    found = f"{key} is {quoted(flaw['input'])}"
    if flaw["type"] == "greater_than_equal":
        expected = f"a number of at least {flaw['ctx']['ge']}"
    elif flaw["type"] == "literal_error":
        expected = f"one of {flaw['ctx']['expected']}"
    elif flaw["type"] == "less_than":
        expected = f"a number below {flaw['ctx']['lt']}"
    elif flaw["type"] == "less_than_equal":
        expected = f"a number of at most {flaw['ctx']['le']}"
    elif flaw["type"] == "string_pattern_mismatch":
        expected = f"one of {flaw['ctx']['pattern'].strip('^$()').replace('|', ', ')}"
    return f"{found}; expected {expected or 'another value'}"


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
