"""Advice about a calibration error: which side it is on, and what fits on other items showed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uqeval.errors import decimals, number_of
from uqeval.metrics._contract import LARGE_GAP

Record = Mapping[str, Any]

_FIT = "Fit a temperature on other images (--fit-on)"
_GENERAL = (
    f"{_FIT}. Label smoothing in training helps an over-confident model, and harms an "
    "under-confident one."
)
#: How to fit on other images, by the fit that is best on the evaluated ones.
_FIT_OF = {
    "temperature": _FIT,
    "isotonic": "Fit an isotonic regression on other images (--isotonic, --fit-on)",
    "vector": "Fit vector scaling on other images (--vector, --fit-on)",
}
#: What follows it, by the side of the error.
_OF_SIDE = {
    "over-confident": ", or train with label smoothing.",
    "under-confident": ", or train with less label smoothing.",
    "": ".",
}
_OF_BOTH = (
    "A temperature moves all confidences to one side: it corrects some and harms the others. "
)
_MORE = (
    "Look at the ECE of each class and at the reliability diagram, and fit more parameters on "
    "other images (--isotonic, --vector, --fit-on)."
)
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
    if settings.get("binary") == "positive":
        return "", ""  # of class 1: without confidences, a temperature alone does not tell
    of_gap, numbers = _side_of_gap(record)
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


def _side_of_gap(record: Record) -> tuple[str, str]:
    """Return the side that the accuracy and the confidence of all bins show, or "both"."""
    bins, ece = record.get("reliability") or {}, record.get("ece")
    counts, rows = bins.get("count") or [], [bins.get(name) for name in ("accuracy", "confidence")]
    if not sum(counts) or None in rows or not ece:
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
        of_others = [own for own in lowering if _is_of_others(record[own[0]])]
        if best := _best(of_others):
            name, before, after = best
            return (
                f"{_use_of(name, record[name], settings)}: the {label} of {_items(record[name])} "
                f"falls from {decimals(before, 3)} to {decimals(after, 3)}."
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
        name, word = (_best(lowering) or ("temperature",))[0], _side(record, settings)[0]
        if word == "both" and not lowering:
            return _OF_BOTH + _MORE
        if word == "both" and name != "temperature":
            return f"{_OF_BOTH}{_FIT_OF[name]}."
        if not word and name == "temperature" and not record.get("reliability"):
            return ""
        # A temperature that lowers an error on both sides corrects more than it harms.
        return _FIT_OF[name] + _OF_SIDE["" if word == "both" else word]

    return advice


def _best(effects: Sequence[tuple[str, Any, Any]]) -> tuple[str, Any, Any] | None:
    """Return the best fit, with the score before and after it; None if there is none. A fit of more
    parameters is worth it if it halves what the simpler one leaves."""
    best = None
    for effect in effects:
        if best is None or effect[2] < best[2] / 2:
            best = effect
    return best


def _is_of_others(fit: Record) -> bool:
    """Return whether a fit is on other items than those whose score it changes. A slice has the fit
    of the whole set, without scores of items that are held out."""
    is_of_file = fit.get("fitted_on") not in (None, "all items")
    return bool(fit.get("held_out")) or (is_of_file and "held_out" not in fit)


def _items(fit: Record) -> str:
    """Return which items the scores of a fit on others are of."""
    if "held_out" not in fit:
        return "these items"
    items = fit["held_out"].get("items")
    return f"the {number_of(items, 'other item')}" if items else "the other items"


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
