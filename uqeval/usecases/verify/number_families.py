"""Which scores of predicted numbers the plain path recomputes, and how: by item, and pooled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from uqeval.keys import family_of
from uqeval.usecases.verify import numbers, slice_ranks
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.sparsification import sparsification


def of_numbers(key: str, data: numbers.Numbers, settings: Mapping[str, Any]) -> Recomputed | str:
    """Return the scores of a key over some pixels with a target, or why there are none."""
    family = family_of(key)
    sigma = data.sigma_of(settings["uncertainty"])
    if sigma is None:
        return f"the store holds no {settings['uncertainty']} to recompute it from"
    if family == "sparsification":
        kind = settings["error"]
        error = data.error if kind == "mae" else data.error**2
        return Recomputed(sparsification(
            sigma.astype(np.float32), error, settings["steps"], kind == "rmse"
        ))  # fmt: skip
    functions: dict[str, Callable[..., dict[str, Any]]] = {
        "regression": numbers.regression, "nmerci": numbers.nmerci
    }  # fmt: skip
    return Recomputed(functions[family](data, sigma, settings))


def numbers_in_bins(
    key: str, data: numbers.Numbers, settings: Mapping[str, Any]
) -> Recomputed | str:  # fmt: skip
    """Return the scores of a key over the pixels of a slice with a target; ranks from bins."""
    sigma, family = data.sigma_of(settings["uncertainty"]), family_of(key)
    if family == "nmerci":
        return "n-MeRCI from bins is not recomputed"
    if family != "sparsification" or sigma is None:
        return of_numbers(key, data, settings)
    kind = settings["error"]
    error = data.error if kind == "mae" else data.error**2
    return slice_ranks.sparsified(
        sigma.astype(np.float32), data.error, error, None, settings["steps"], kind == "rmse"
    )
