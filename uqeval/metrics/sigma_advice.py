"""Advice about σ: whether it is too small or too large, and what a fitted factor showed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uqeval.errors import number_of
from uqeval.metrics.standard_distributions import factors, quantiles, share_below

#: The AUCE changes if it does so by at least this fraction.
_CHANGE = 0.1
#: Of the targets, as many must be missing or too many in intervals of 90 % to show that these are
#: too narrow or wide.
_CLEAR = 0.02


def side(record: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return, as a clause, whether the intervals are too narrow or too wide; empty if neither is
    most of the AUCE, or if it is of quantiles."""
    over, under = record.get("auce_over"), record.get("auce_under")
    if over is None or under is None or settings.get("proportion") == "quantile":
        return ""
    if max(over, under) <= 2 * min(over, under):
        return ""
    word, sign = ("narrow", 1) if over > under else ("wide", -1)
    inside = (record.get("coverage") or {}).get("90")
    if inside is None or sign * (0.9 - inside) < _CLEAR:
        return f"most intervals are too {word}"
    return (
        f"the intervals are too {word} (those of 90 % contain {100 * inside:.1f} % of the targets)"
    )


def advice_on_factor(record: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return whether to scale σ by the factor that was fitted on other items; empty if there is
    none."""
    scale = record.get("sigma_scale") or {}
    held_out = scale.get("held_out") or {}
    before, after = held_out.get("nll_before"), held_out.get("nll")
    if before is None or after is None:
        return ""
    # The factor and both NLLs are those of normal distributions.
    nll = "NLL" if settings.get("distribution") == "gaussian" else "Gaussian NLL"
    score = f"the {nll} of the {number_of(held_out['items'], 'other item')}"
    factor = f"{scale['value']:.4g}"
    if after < before:
        return f"Multiply σ by {factor}: {score} falls from {before:.3f} to {after:.3f}."
    return (
        f"The factor of σ fitted on other items ({factor}) does not lower {score} ({before:.3f} "
        f"before, {after:.3f} after). Look at the worst items first."
    )


def _advice_on_coverage(record: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    return _unhelpful_factor(record, settings) or advice_on_factor(record, settings)


def _unhelpful_factor(record: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return why σ should not be scaled by the factor of `record`, and what to do; empty if the
    factor clearly lowers the AUCE, or if there is none.

    A few errors of many σ dominate the mean of (ε/σ)², and so the factor with the least NLL. The
    AUCE at the factor is interpolated between the plotted levels.
    """
    factor = (record.get("sigma_scale") or {}).get("value")
    calibration = record.get("calibration") or {}
    p, observed = calibration.get("p") or [], calibration.get("observed") or []
    of_quantiles = settings.get("proportion") == "quantile"
    if not factor or not p or None in observed:
        return ""
    share, inverse = _distribution(str(settings.get("distribution")), of_quantiles)
    curve = [(0.0, 0.0), *((x, y) for x, y in zip(p, observed, strict=True) if 0 < x < 1), (1, 1)]
    scaled = [_at(share(factor * inverse(x)), curve) if 0 < x < 1 else x for x in p]
    before, after = _area(p, observed), _area(p, scaled)
    if after < (1 - _CHANGE) * before:
        return ""
    if factor > 1 and after > (1 + _CHANGE) * before:
        return (
            f"The factor of σ with the least NLL ({factor:.4g}) would raise it (to about "
            f"{after:.3f}): a few errors that are large beside their σ decide the factor. Look at "
            "the worst items first, and do not scale σ by this factor."
        )
    other = "gaussian" if settings.get("distribution") == "laplace" else "laplace"
    return (
        f"The factor of σ with the least NLL ({factor:.4g}) would hardly change it (to about "
        f"{after:.3f}): the errors have another distribution. Compare --distribution {other}."
    )


def _distribution(
    name: str, of_quantiles: bool
) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Return the level of a half width (or quantile) in units of σ, and the inverse."""
    if of_quantiles:
        return lambda z: share_below(z, name), lambda p: quantiles([p], name)[0]
    return lambda z: 2 * share_below(z, name) - 1, lambda p: factors([p], name)[0]


def _at(p: float, curve: Sequence[tuple[float, float]]) -> float:
    """Return the value of a piecewise linear curve from (0, 0) to (1, 1)."""
    k = min(bisect_right([x for x, _ in curve], p), len(curve) - 1)
    (x, y), (next_x, next_y) = curve[k - 1], curve[k]
    return y + (next_y - y) * (p - x) / (next_x - x)


def _area(p: Sequence[float], observed: Sequence[float]) -> float:
    """Return the area between observed and nominal coverage by trapezoids."""
    gaps = [abs(x - y) for x, y in zip(p, observed, strict=True)]
    steps = zip(p, p[1:], gaps, gaps[1:], strict=False)
    return sum((b - a) * (left + right) / 2 for a, b, left, right in steps)


#: Advice of metrics of σ, as arguments of `Metric`; and that of its coverage.
SCALE_SIGMA: dict[str, Any] = {
    "advice": "Scale σ by a factor fitted on other images (--sigma-scale --fit-on).",
    "specific": advice_on_factor,
}
COVERAGE_BY_SIGMA = SCALE_SIGMA | {"specific": _advice_on_coverage, "side": side}
