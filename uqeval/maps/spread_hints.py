"""Hints about arrays of standard deviations that hold something else: a logarithm, or none."""

from __future__ import annotations

from uqeval.stores.kinds import SPREADS


def of_negative(kind: str) -> str:
    """Return a hint about negative values of `std` or `variance`."""
    noun, names = "standard deviation", "log_std, or log_variance if they are of the variance"
    if kind == "variance":
        noun, names = "variance", "log_variance"
    return f"A {noun} is not negative. If these are natural logarithms, call the array {names}."


def of_large(kind: str) -> str:
    """Return a hint about numbers whose σ is infinite or beyond float32; empty for no logarithm."""
    formula = SPREADS[kind]
    if "exp" not in formula:
        return ""
    plain = "variance" if "/ 2" in formula else "std"
    return (
        f"It is read as a natural logarithm: σ = {formula}. If it holds no logarithm, call the "
        f"array {plain}. "
    )
