"""Advice about a calibration error: which side it is on, and what fits on other items showed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from uqeval.errors import decimals, number_of
from uqeval.metrics._contract import LARGE_GAP

Record = Mapping[str, Any]

_FIT = "Fit a temperature on other images (--fit-on)"
_GENERAL = (
    f"{_FIT}. Label smoothing in training helps an over-confident model, and harms an "
    "under-confident one."
)
_OF_SIDE = {
    "over-confident": f"{_FIT}, or train with label smoothing.",
    "under-confident": f"{_FIT}, or train with less label smoothing.",
    "": f"{_FIT}.",
    "both": (
        "A temperature moves all confidences to one side: it corrects some and harms the others. "
        "Look at the ECE of each class and at the reliability diagram, and fit more parameters on "
        "other images (--isotonic, --vector, --fit-on)."
    ),
}
#: The fits that a report may have, the simplest first.
_FITS = {
    "temperature": "temperature", "isotonic": "isotonic regression", "vector": "vector scaling"
}  # fmt: skip
#: The mean gap tells the side if it is at least this share of the ECE: in other bins, the gaps are
#: on both sides. Each side then has at least a quarter of the ECE.
_MOST = 0.5
#: A temperature that is nearer to 1 tells no side.
_NEAR_1 = 0.05


def by_temperature(field: str) -> dict[str, Any]:
    """Return the advice of a metric that a fit may improve, as arguments of `Metric`.

    `field`: the score that shows whether it did, `ece` or `nll`.
    """
    return {"advice": _GENERAL, "specific": _advice_on(field), "side": side}


def side(record: Record, settings: Record) -> str:
    """Return, as a clause, whether the model is over- or under-confident, or both, and what shows
    it; empty if the results do not show it."""
    word, why = _side(record, settings)
    if word == "both":
        return f"the model is over-confident for some pixels and under-confident for others ({why})"
    return f"the model is {word} ({why})" if word else ""


def _side(record: Record, settings: Record) -> tuple[str, str]:
    """Return the side, "both" or "", and what shows it."""
    of_gap, numbers = _side_of_gap(record, settings)
    temperature = (record.get("temperature") or {}).get("value")
    if of_gap == "both":
        # Bins are on both sides by chance, too, which raises the ECE of few items.
        is_shown = (record.get("ece_debiased") or 0.0) > LARGE_GAP
        return (of_gap, numbers) if is_shown else ("", "")
    if not temperature or abs(temperature - 1) < _NEAR_1:
        return of_gap, numbers
    of_fit = "over-confident" if temperature > 1 else "under-confident"
    if of_gap:
        return (of_gap, numbers) if of_gap == of_fit else ("", "")
    return of_fit, f"temperature {temperature:.4g}"


def _side_of_gap(record: Record, settings: Record) -> tuple[str, str]:
    """Return the side that the accuracy and the confidence of all bins show, or "both"."""
    bins, ece = record.get("reliability") or {}, record.get("ece")
    counts, rows = bins.get("count") or [], [bins.get(name) for name in ("accuracy", "confidence")]
    # The bins of class 1 have probabilities and frequencies, not confidence and accuracy.
    if not sum(counts) or None in rows or not ece or settings.get("binary") == "positive":
        return "", ""
    filled = [own for own in zip(counts, *(row or () for row in rows), strict=True) if own[0]]
    accuracy, confidence = (sum(own[0] * own[k] for own in filled) / sum(counts) for k in (1, 2))
    if abs(accuracy - confidence) >= _MOST * ece:
        word = "over-confident" if confidence > accuracy else "under-confident"
        return word, f"accuracy {accuracy:.3f}, mean confidence {confidence:.3f}"
    over = sum(n * max(own - right, 0.0) for n, right, own in filled) / sum(counts)
    under = over - (confidence - accuracy)
    if abs(over - under) >= _MOST * (over + under):
        return "", ""
    return "both", f"{over:.3f} and {under:.3f} of the ECE"


def _advice_on(field: str) -> Callable[[Record, Record], str]:
    label = field.upper()

    def advice(record: Record, settings: Record) -> str:
        """Return what the fits of a report say to do; empty without results that say it."""
        fits = [(name, *_effect(record, record.get(name), field)) for name in _FITS]
        effects = [(n, before, after) for n, before, after in fits if before is not None]
        lowering = [(name, before, after) for name, before, after in effects if after < before]
        best = None
        for name, before, after in lowering:
            # A fit of more parameters is worth it if it halves what the simpler one leaves.
            if record[name].get("held_out") and (best is None or after < best[2] / 2):
                best = name, before, after
        if best is not None:
            name, before, after = best
            items = record[name]["held_out"].get("items")
            of_others = f"the {number_of(items, 'other item')}" if items else "the other items"
            return (
                f"{_use_of(name, record[name], settings)}: the {label} of {of_others} falls from "
                f"{decimals(before, 3)} to {decimals(after, 3)}."
            )
        if effects and not lowering:
            name, before, after = effects[0]
            left = [f"--{fit}" for fit in ("isotonic", "vector") if not record.get(fit)]
            more = f"Fit more parameters on other images ({', '.join(left)})."
            return (
                f"The fitted {_FITS[name]} does not lower the {label} "
                f"({decimals(before, 3)} before, {decimals(after, 3)} after). "
                f"{more if left else 'Fit on more images.'}"
            )
        word = _side(record, settings)[0]
        if word == "both" and any(name == "temperature" for name, *_ in lowering):
            word = ""  # it corrects more than it harms
        return _OF_SIDE[word] if word or record.get("reliability") else ""

    return advice


def _effect(record: Record, fit: Record | None, field: str) -> tuple[Any, Any]:
    """Return a score before and after a fit, of the items that it is not fitted on if there are
    any; None if it is not known."""
    held_out = (fit or {}).get("held_out") or {}
    before = (held_out.get("before") or record).get(field)
    after = (held_out.get("after") or fit or {}).get(field)
    return (None, None) if before is None or after is None else (before, after)


def _use_of(name: str, fit: Record, settings: Record) -> str:
    if name == "temperature":
        each = " of each sample" if settings.get("temperature_of") == "samples" else ""
        return f"Divide the logits{each} by T = {fit.get('value') or 0:.4g}"
    place = "calibration.isotonic.curve" if name == "isotonic" else "calibration.vector"
    return f"Apply the fitted {_FITS[name]} ({place} in the report)"


TEMPERATURE = by_temperature("ece")
