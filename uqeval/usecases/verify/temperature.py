"""Temperature scaling: the temperature with the least NLL, and the scores at it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.class_scores import equal_width, gaps, nll
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.families import Pixels

#: The exponents of 2 between which a temperature is searched.
_EXPONENTS = range(-5, 6)
#: The allowed relative difference of the temperature, whose maps are float32.
TOLERANCE = 1e-5
#: The NLL is least at an exponent if it is not lower at this distance from it.
_BESIDE = 1e-4
#: Mean NLLs that differ by less are the same: the errors of their sums.
_SAME = 1e-12
#: The same where pixels are clipped: the NLL has kinks, between which a run's search may stop.
_SAME_IF_CLIPPED = 1e-5


def temperature(
    parts: Sequence[Pixels], fitted_on: Sequence[Pixels], held_out: Sequence[Pixels] | None,
    settings: Mapping[str, Any], reported: Mapping[str, Any],
) -> Recomputed:  # fmt: skip
    """Return the temperature that fits the pixels of some items, and the scores of others at it.

    Scores are those at the temperature of the report. `held_out`: the parts that are not fitted on,
    None if all items are.
    """
    own = reported.get("temperature")
    own = own if isinstance(own, Mapping) else {}
    at = own.get("value")
    value, slack = _fitted(fitted_on, settings["clip"], at)
    label_probs = np.concatenate([item.maps["label_probability"] for item in fitted_on])
    record: dict[str, Any] = {
        "value": value, "fitted_on": settings["fit_on"] or "all items",
        "pixels": int((label_probs > 0).sum()),
        "label_probability_zero": int((label_probs == 0).sum()),
        "ece": None, "mce": None, "nll": None,
    }  # fmt: skip
    if settings["fit_on"]:  # compared with the names of the file before
        record["fitted_on_digest"] = own.get("fitted_on_digest")
    all_slack = {"temperature.value": slack}
    if at is None:
        return Recomputed({"temperature": record}, all_slack)
    scores = _scores(parts, 1 / at, settings)
    record |= scores.values
    all_slack |= {f"temperature.{name}": own for name, own in scores.slack.items()}
    if held_out is not None:
        record["held_out"] = {"items": len(held_out)}
        for name, beta in (("before", 1.0), ("after", 1 / at)):
            scores = _scores(held_out, beta, settings)
            record["held_out"][name] = scores.values
            place = f"temperature.held_out.{name}"
            all_slack |= {f"{place}.{field}": own for field, own in scores.slack.items()}
    return Recomputed({"temperature": record}, all_slack)


def _scores(parts: Sequence[Pixels], beta: float, settings: Mapping[str, Any]) -> Recomputed:
    """Return ECE, MCE and NLL of the pixels of some items at the temperature 1/β."""
    scaled = [_scaled(_logarithms(item), item.label, beta) for item in parts]
    empty = np.zeros((2, 0))
    confidence, label_probability = (
        np.concatenate(values) for values in zip(empty, *scaled, strict=True)
    )
    right = np.concatenate([np.zeros(0, bool), *(~item.wrong for item in parts)])
    bins, near = equal_width(confidence.astype(np.float32), right, settings["bins"])
    ece, mce, _ = gaps(bins)
    values = {"ece": ece, "mce": mce, "nll": nll(label_probability, settings["clip"])}
    return Recomputed(values, {"ece": 2 * near / max(right.size, 1), "mce": float(near > 0)})


def _logarithms(item: Pixels) -> Array:
    """Return the logarithms of the mean probabilities [class, i], -∞ at 0."""
    assert item.probs is not None
    with np.errstate(divide="ignore"):
        return np.log(item.probs.astype(np.float64))


def _scaled(logits: Array, label: Array, beta: float) -> tuple[Array, Array]:
    """Return the confidences and the labels' probabilities [i] of softmax(β·logits)."""
    powers = np.exp(beta * (logits - logits.max(axis=0)))
    total = powers.sum(axis=0)
    return 1 / total, np.take_along_axis(powers, label[None], 0)[0] / total


def _fitted(
    parts: Sequence[Pixels], clip: float, reported: float | None
) -> tuple[float | None, float]:
    """Return the temperature with the least clipped NLL, and the allowed difference from it.

    None if the NLL is as low at an end of the search. A reported temperature is right too if its
    NLL is the same, or almost the same where pixels are clipped; and where none is clipped, if the
    NLL without clipping is least there.
    """
    from scipy.optimize import minimize_scalar

    fitted = [(_logarithms(item), item.label) for item in parts if item.label.size]

    def loss(exponent: float, least: float = clip) -> float:
        """Return the mean NLL at the temperature 2^-exponent."""
        sums = [
            float(-np.log(np.maximum(values, least)).sum()) for values in _labels(fitted, exponent)
        ]
        return math.fsum(sums) / max(sum(label.size for _, label in fitted), 1)

    losses = [loss(exponent) for exponent in _EXPONENTS]
    best = _EXPONENTS[int(np.argmin(losses))]
    ends = max(best - 1, _EXPONENTS[0]), min(best + 1, _EXPONENTS[-1])
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-10})
    lowest = min(found.fun, *losses)
    value = None if min(losses[0], losses[-1]) <= lowest + _SAME else float(2.0**-found.x)
    if reported is None:
        return value, 0.0 if value is None else TOLERANCE * value
    at = -math.log2(reported)
    is_clipped = any(((p > 0) & (p < clip)).any() for p in _labels(fitted, at))
    is_right = loss(at) <= lowest + (_SAME_IF_CLIPPED if is_clipped else _SAME)
    if not is_right and not is_clipped:
        # Smaller probabilities are 0 at every temperature: their NLL is a constant.
        beside = [loss(at + shift, np.finfo(float).tiny) for shift in (-_BESIDE, 0.0, _BESIDE)]
        is_right = min(beside) == beside[1]
    if is_right:
        return value, math.inf if value is None else abs(reported - value)
    return value, 0.0 if value is None else TOLERANCE * value


def _labels(fitted: Sequence[tuple[Array, Array]], exponent: float) -> Iterator[Array]:
    """Yield the labels' probabilities of each item at the temperature 2^-exponent.

    `fitted`: logits [class, i] and labels [i] of each item.
    """
    for logits, label in fitted:
        yield _scaled(logits, label, 2.0**exponent)[1]
