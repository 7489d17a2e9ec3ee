"""The range and the direction of any number of a report, for checks of limits.

`metrics` of a report lists scores of the whole set. The same scores are also in other places: of
intervals of depth, before and after a fit, corrected for bias, as a quantile of items.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from uqeval.records.addresses import ROWS, Address
from uqeval.records.scalars import described

#: Suffix of fields that bootstrap draws correct for bias, such as `calibration.ece_debiased`.
DEBIASED = "_debiased"
#: Fields that count pixels, patches, items, ….
_COUNT = re.compile(
    r"n_[a-z]+|([a-z_]+_)?(pixels|items|pairs|votes|errors|intervals|samples|annotators)(_in|_out)?"
    r"|cuts|gaps|steps|points"
)
#: Fields before those of a score that is not of the whole set. Fields are separated by NUL.
_PLACE = re.compile(r"(^|\0)(?:by_depth\0[^\0]+|by_depth_mean|held_out(?:\0(?:before|after))?)\0")
#: Values of items between the smallest and the largest.
_QUANTILE = re.compile(r"p[0-9]+|least|mean|median|most")


def bounds_of(metrics: Mapping[str, Mapping[str, Any]], address: Address) -> dict[str, Any]:
    """Return the record of a score in `metrics`; for a count its range; empty for other numbers.

    A score in another place has the record of the score of the whole set. A correction for bias may
    make a value negative.
    """
    plain = _of_whole_set(address.fields)
    is_debiased = plain[-1].endswith(DEBIASED)
    if is_debiased:
        plain = (*plain[:-1], plain[-1].removesuffix(DEBIASED))
    record = described(metrics, address.metric, plain) or _of_quantiles(metrics, address, plain)
    if record and is_debiased and isinstance(ends := record.get("range"), list | tuple):
        return record | {"range": [None, *ends[1:]]}
    if not record and _COUNT.fullmatch(plain[-1]):
        return {"range": [0.0, None]}
    return record


def _of_whole_set(fields: Sequence[str]) -> tuple[str, ...]:
    """Return the fields of the score of the whole set: `by_depth.0.rmse` is `rmse`, and
    `temperature.held_out.after.ece` is `temperature.ece`."""
    if fields[0] in ROWS:  # the second is the name of a class, which may be any
        return tuple(fields)
    text = _PLACE.sub(r"\1", "\0".join(fields))
    return tuple(text.split("\0"))


def _of_quantiles(
    metrics: Mapping[str, Mapping[str, Any]], address: Address, fields: tuple[str, ...]
) -> dict[str, Any]:
    """Return the record of another quantile of the same items: of `items.p05` for `items.p25`."""
    start = ".".join((address.metric, *fields[:-1]))
    if len(fields) < 2 or not _QUANTILE.fullmatch(fields[-1]):
        return {}
    quantiles = (
        record for name, record in metrics.items()
        if name.rpartition(".")[0] == start and _QUANTILE.fullmatch(name.rpartition(".")[2])
    )  # fmt: skip
    return dict(next(quantiles, {}))
